"""Settings of the running job: time, source, state, trigger, circuit breaker, pages and
logs."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    Field,
    FilePath,
    SecretStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from spark_cep.config.quantities import (
    Duration,
    Place,
    PositiveDuration,
    SettingsSection,
    Shown,
    Size,
    check_pair,
    setting,
)
from spark_cep.config.traces import Traces
from spark_cep.documents.values import contradiction, refused

LATEST, EARLIEST = -1, -2
"""What Kafka writes for "the end" and "the beginning" in place of an offset."""

_START = (
    "`earliest`, `latest`, a date and time with its zone, as 2026-01-31T12:00:00Z, or offsets by"
    " topic and partition, as {logins: {0: 1200, 1: -2}}"
)
_Offset = Annotated[int, Field(ge=EARLIEST)]
_Partition = Annotated[int, Field(ge=0)]
_Offsets = dict[_Partition, _Offset]
_OFFSETS: Final = TypeAdapter(_Offsets)
_TIME: Final = TypeAdapter(AwareDatetime)
StartingOffsets = Literal["earliest", "latest"] | AwareDatetime | dict[str, _Offsets]


def _starting_offsets(value: Any) -> StartingOffsets:
    if isinstance(value, dict):
        return {str(topic): _offsets_of(str(topic), each) for topic, each in value.items()}
    if value in ("earliest", "latest"):
        return value  # type: ignore[no-any-return]  # one of the two
    if isinstance(value, str | datetime):
        try:
            return _TIME.validate_python(value)
        except ValidationError:
            pass
    raise refused(_START)


def _offsets_of(topic: str, value: Any) -> dict[int, int]:
    try:
        return _OFFSETS.validate_python(value)
    except ValidationError as error:
        where = error.errors()[0]["loc"]
        if isinstance(value, dict) and len(where) == 1:
            allowed = "an offset: 0 or more, -1 for the end, -2 for the beginning"
            raise contradiction(f"{topic}, partition {where[0]}: allowed is {allowed}") from None
        raise contradiction(
            f"{topic}: allowed is a map from partitions to offsets, as {{0: 1200, 1: -2}}"
        ) from None


LogLevel = Literal["debug", "info", "warning", "error"]
_LOGGER: Final = re.compile(r"[A-Za-z_][\w$-]*(\.[\w$-]+)*")


def _logger_name(value: str) -> str:
    if not _LOGGER.fullmatch(value):
        raise refused("a logger, as spark_cep.rules or org.apache.spark.sql")
    return value


class Time(SettingsSection):
    """Event time: order, lateness, and the watermark that moves deadlines."""

    allowed_disorder: Duration = setting(
        1_000,
        "How far events may be out of order; an event older than the watermark, which trails by "
        "this much, is late. Each match waits for as long. A second is enough for several "
        "producers with synchronized clocks: Kafka keeps the order within a partition. Devices "
        "that send later need more.",
    )
    watermark: Literal["partition_minimum", "maximum"] = setting(
        "partition_minimum",
        "What the watermark follows: the slowest partition, so that one that lags behind makes "
        "no late events, or the newest event anywhere.",
    )
    partition_idle_after: PositiveDuration = setting(
        60_000,
        "A partition without new records for so long is no longer waited for; what it brings "
        "later may be late.",
    )
    advance_when_idle: PositiveDuration | None = setting(
        None,
        "When the whole input has been idle for so long, event time advances with the clock; "
        "absent: it waits for events.",
    )
    max_ahead: PositiveDuration | None = setting(
        3_600_000,
        "An event whose time is further than this ahead of its Kafka record's timestamp, or of "
        "the clock when its batch began, is a dead letter, because one wrong clock would make "
        "every other event late, for as long as it is ahead. An hour is Kafka's own limit for "
        "timestamps; `null`: no limit but the year 9999.",
    )


class Source(SettingsSection):
    """Reading of the input. `starting_offsets` counts at the first start only."""

    starting_offsets: Annotated[
        StartingOffsets,
        BeforeValidator(_starting_offsets),
        Shown("`earliest`, `latest`, date and time with zone, or map of topic, partition, offset"),
    ] = setting(
        "earliest",
        "Where a new job starts to read. A date and time: at the first record of each partition "
        "with this timestamp or a later one, or its end. A map: at these offsets, one for every "
        "partition; -1 is the end, -2 the beginning.",
    )
    max_offsets_per_trigger: int | None = setting(
        2_000_000,
        "Most records in one batch, over all partitions; `null`: no such bound.",
        unit="records",
        ge=1,
    )
    max_bytes_per_trigger: Size | None = setting(
        256 * 2**20,
        "Most bytes in one batch, over all partitions, about: by the mean size of the records "
        "read last. It bounds how long a batch takes and what it puts on disk, not what it holds "
        "in memory, which is bounded anyway; `null`: no such bound.",
        ge=2**20,
    )
    min_partitions: int | None = setting(
        None,
        "Fewest tasks to read with; absent: one for each Kafka partition, and fewer where a "
        "batch is small.",
        unit="tasks",
        ge=1,
    )
    fail_on_data_loss: bool = setting(
        True,
        "Whether the job stops when records were deleted before it read them, or a topic was "
        "created again. If not, it goes on behind them and logs `records_lost`.",
    )
    commit_offsets: bool = setting(
        True,
        "Whether Kafka is told after each committed batch what was read, for tools that watch "
        "consumer groups. The job itself goes on from its checkpoint alone.",
    )
    consumer_group: str | None = setting(
        None,
        "Consumer group that the offsets are told of; absent: `spark.app_name`.",
        min_length=1,
    )


class StateSettings(SettingsSection):
    """Partial matches and waiting events."""

    checkpoint: Place = setting(
        ..., "Folder or URI of the checkpoint (offsets, state, rules), for one job alone."
    )
    bucket_size: Size = setting(
        64 * 2**10,
        "Keys of a state partition share buckets of about so many bytes, which are read together; "
        "there are more of them as the state grows.",
        ge=1_024,
    )
    state_partitions: int = setting(
        2,
        "Tasks that match; on two cores each beyond two adds 30 to 60 ms to a batch. "
        "`spark-cep rescale` changes the number of a checkpoint.",
        unit="partitions",
        ge=1,
        le=32_768,
    )
    rocksdb_memory: Size = setting(
        512 * 2**20, "Memory of RocksDB in one executor, all partitions together."
    )


class Trigger(SettingsSection):
    """Start and end of batches."""

    mode: Literal["continuous", "available_now"] = setting(
        "continuous",
        "`continuous`: micro-batches without end; `available_now`: what is there at the start, "
        "then stop.",
    )
    at_end_of_input: Literal["wait", "decide"] = setting(
        "wait",
        "With `available_now`: whether what is still open at the end waits for a later run "
        "(`wait`), or time moves to its end and everything is decided (`decide`, for back-tests: "
        "a later run from the same checkpoint finds every event late).",
    )
    latency: Duration = setting(
        250,
        "How long a record may take from its append to Kafka until its batch is committed, "
        "without what it waits for the watermark. After an idle spell a batch begins at once; "
        "otherwise as late as this allows, so that batches are few and large. `0 ms`, or less "
        "than two batches take: the next at once.",
    )

    @property
    def ends(self) -> bool:
        """Tell whether the input ends, and time with it."""
        return self.mode == "available_now" and self.at_end_of_input == "decide"


class CircuitBreakerLimits(SettingsSection):
    """Limits of dead letters, beyond which the job stops or a rule is paused."""

    max_share: float | None = setting(
        None,
        "Largest share of records that may become dead letters (0.1: a tenth); with more, the "
        "job stops after the batch with exit code 9. `null`: it goes on whatever comes.",
        gt=0,
        lt=1,
    )
    max_rule_share: float | None = setting(
        None,
        "Most dead letters of one rule, as a share of the events that went on to the matcher; "
        "with more, that rule is paused until somebody resumes it. `null`: no rule is paused.",
        gt=0,
        lt=1,
    )
    window: PositiveDuration = setting(
        300_000,
        "Length of the sliding window over which the shares are computed.",
    )
    min_records: int = setting(
        1000,
        "Fewest records (for a rule: events that went on to the matcher) in the window to judge "
        "by, so that one bad record in a small batch does not count as a large share.",
        unit="records",
        ge=1,
    )


#: Addresses to listen on that are none to ask.
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared


class Observability(SettingsSection):
    """Metrics, health and logs."""

    metrics_host: str = setting(
        "0.0.0.0",  # noqa: S104 - scraped from outside the container by default
        "Address that metrics and health listen on.",
        min_length=1,
    )
    metrics_port: int = setting(
        9108,
        "Port of `/metrics`, `/livez`, `/readyz` and `/rules`; 0: none.",
        ge=0,
        le=65_535,
    )
    ssl_certificate_file: FilePath | None = setting(
        None,
        "PEM file of the pages' certificate and its chain; absent: no TLS.",
    )
    ssl_key_file: FilePath | None = setting(None, "PEM file of the certificate's private key.")
    ssl_key_password: SecretStr | None = setting(None, "Password of an encrypted private key.")
    username: str | None = setting(
        None,
        "Name that readers of the pages give; absent: everybody may read. `/livez` and "
        "`/readyz`, which supervisors ask without a login, answer everybody.",
    )
    password: SecretStr | None = setting(None, "Password that goes with the name.")
    max_rule_labels: int = setting(
        500,
        "Rules that have series of their own in metrics; the rest are `other`.",
        unit="rules",
        ge=1,
        le=10_000,
    )
    stall_limit: PositiveDuration = setting(
        300_000, "Without progress for so long, `/livez` fails."
    )
    log_level: LogLevel = setting("info", "Least severe messages that are written.")
    log_levels: Annotated[
        dict[Annotated[str, AfterValidator(_logger_name)], LogLevel],
        Shown("map of logger to level"),
    ] = setting(
        {},
        "Other levels for some loggers and all below them, by the name that the line has as "
        "`logger`: a module, a library, a Java class or package.",
    )
    log_format: Literal["auto", "json", "console"] = setting(
        "auto", "JSON lines, or text for people; `auto`: text on a terminal."
    )
    traces: Traces | None = setting(
        None, "Traces of batches, for a collector of OpenTelemetry; absent: none."
    )

    @property
    def pages_url(self) -> str | None:
        """The address of the pages from this machine, where there are any."""
        if not self.metrics_port:
            return None
        scheme = "http" if self.ssl_certificate_file is None else "https"
        host = _ANY.get(self.metrics_host, self.metrics_host)
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.metrics_port}"

    @model_validator(mode="after")
    def _whole_access(self) -> Observability:
        check_pair(self, "username", "password")
        check_pair(self, "ssl_certificate_file", "ssl_key_file")
        if self.username is not None and ":" in self.username:
            raise contradiction("a colon cannot stand in the name", "username")
        if self.password is not None and not self.password.get_secret_value():
            raise contradiction("an empty password keeps nobody out", "password")
        return self
