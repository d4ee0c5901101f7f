"""Checks of a Kafka cluster for ``spark-cep doctor``: its version, the rights that a job needs, its
clock. Read-only, but for one transactional id of their own."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from spark_cep.config import Settings
from spark_cep.errors import StartError
from spark_cep.kafka_errors import ErrorKind, kind_of
from spark_cep.pipeline.driver.commands.machine_checks import Doubt
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.kafka.refusals import made

#: The release that first had this version of a request, the newest one first. Brokers tell the
#: requests that they know, and not their own version.
_RELEASES: Final = (
    ("4.1", "Fetch", 18), ("4.0", "Produce", 12), ("3.9", "Fetch", 17), ("3.8", "Produce", 11),
    ("3.7", "Fetch", 16), ("3.6", "AddPartitionsToTxn", 4), ("3.5", "Fetch", 15),
    ("3.3", "DescribeAcls", 3), ("3.2", "JoinGroup", 9), ("3.1", "Fetch", 13),
    ("3.0", "ListOffsets", 7), ("2.8", "Produce", 9), ("2.7", "Fetch", 12),
    ("2.6", "ListGroups", 4), ("2.5", "JoinGroup", 7), ("2.4", "Produce", 8),
    ("2.3", "Fetch", 11), ("2.1", "Fetch", 10),
)  # fmt: skip
_REQUEST: Final = re.compile(r"ApiKey (\w+) \(\d+\) Versions \d+\.\.(\d+)")
#: Clocks differ by less.
_AHEAD_SECONDS: Final = 60.0
_READ, _WRITE = "Read", "Write"
_PAGE: Final = "docs/security.md, Rights in Kafka"
_T = TypeVar("_T")


def release_of(requests: Mapping[str, int]) -> str | None:
    """The newest release whose requests a broker knows; ``requests``: the newest version of each by
    name."""
    return next((name for name, key, least in _RELEASES if requests.get(key, -1) >= least), None)


def broker_version(settings: Settings, seconds: float) -> str:
    """The release of the brokers, by the requests that they know."""
    lines: list[str] = []
    log = _log_into(_CheckLines(lines))
    config = settings.kafka.admin_config() | {"debug": "feature", "log_level": 7, "logger": log}
    admin = made(lambda: AdminClient(config))
    _asked(lambda: admin.list_topics(timeout=seconds))
    admin.poll(0.1)
    found = [each for line in lines for each in _REQUEST.findall(line)]
    # Of several brokers the oldest one counts.
    oldest: dict[str, int] = {}
    for name, newest in found:
        oldest[name] = min(int(newest), oldest.get(name, int(newest)))
    release = release_of(oldest)
    return "not known" if release is None else f"{release}, or a newer one with the same requests"


def _log_into(handler: logging.Handler) -> logging.Logger:
    """A log of a client that goes nowhere else."""
    log = logging.getLogger("spark_cep.doctor")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.handlers[:] = [handler]
    return log


class _CheckLines(logging.Handler):
    """Keeps the texts of a log."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a text."""
        self._lines.append(record.getMessage())


class Rights:
    """The rights of a login, as the brokers tell them. What they do not tell is not known, and is
    not missing."""

    def __init__(self, config: Mapping[str, Any], seconds: float) -> None:
        quiet = {**config, "log_level": 0}
        self._admin = made(lambda: AdminClient(quiet))
        self._seconds = seconds

    def missing_of_topics(self, wanted: Mapping[str, Sequence[str]]) -> list[str]:
        """The operations that are missing on topics which exist."""
        if not wanted:
            return []
        asked = self._admin.describe_topics(
            TopicCollection(list(wanted)), include_authorized_operations=True
        )
        return self._missing("topic", asked, wanted)

    def missing_of_groups(self, wanted: Mapping[str, Sequence[str]]) -> list[str]:
        """The operations that are missing on consumer groups."""
        asked = self._admin.describe_consumer_groups(
            list(wanted), include_authorized_operations=True
        )
        return self._missing("consumer group", asked, wanted)

    def may_create(self) -> bool:
        """Tell whether topics can be made, whatever their name."""
        found = self._admin.describe_cluster(include_authorized_operations=True)
        given = _names(found.result(self._seconds).authorized_operations)
        return given is None or "CREATE" in given

    def _missing(
        self, kind: str, asked: Mapping[str, Any], wanted: Mapping[str, Sequence[str]]
    ) -> list[str]:
        lacking = []
        for name, future in asked.items():
            try:
                given = _names(future.result(self._seconds).authorized_operations)
            except KafkaException as error:
                if kind_of(error.args[0]) is ErrorKind.UNREACHABLE:
                    raise
                # A group that nobody has used yet is not described.
                refused = "AUTHORIZATION" in str(error.args[0].name())
                given = frozenset() if refused else None
            known = frozenset(map(str.upper, wanted[name])) if given is None else given
            lacks = [each for each in wanted[name] if each.upper() not in known]
            if lacks:
                lacking.append(f"{kind} {name}: {' and '.join(lacks)}")
        return lacking


def _names(operations: Iterable[Any] | None) -> frozenset[str] | None:
    return None if not operations else frozenset(each.name for each in operations)


def check_rights(
    settings: Settings, inputs: Sequence[str], existing: Sequence[str], seconds: float
) -> str:
    """Ask for the rights on topics that exist, consumer groups, and new topics. StartError names
    all that are missing."""
    outputs, kafka = settings.outputs, settings.kafka
    topics = outputs.topics
    markers = f"{settings.transactional_id_prefix}.commit-markers"
    own: dict[str | None, tuple[str, ...]] = dict.fromkeys(
        (*topics.all(), topics.rule_audit), (_WRITE,)
    )
    own |= {topics.rule_status: (_READ, _WRITE), settings.rules.overrides_topic: (_READ,)}
    own[markers] = (_READ, _WRITE)
    groups = {markers: (_READ,)}
    if settings.consumer_group is not None:
        groups[settings.consumer_group] = (_READ,)
    there = {topic: wanted for topic, wanted in own.items() if topic in existing and topic}
    writer = Rights(kafka.admin_config(), seconds)
    lacking = _asked(
        lambda: [
            *Rights(kafka.reader_config(), seconds).missing_of_topics(
                dict.fromkeys(inputs, (_READ,))
            ),
            *writer.missing_of_topics(there),
            *writer.missing_of_groups(groups),
        ]
    )
    if lacking:
        raise StartError(f"rights are missing: {'; '.join(lacking)}; grant them ({_PAGE})")
    new = sorted(topic for topic in own if topic and topic not in existing)
    if new and outputs.create_topics.enabled and not _asked(writer.may_create):
        raise Doubt(
            f"a start makes {', '.join(new)}, and this login may not make every topic: see that it"
            f" has Create on these ({_PAGE}), or make them yourself"
        )
    return f"{len(inputs) + len(there)} topics, {len(groups)} consumer groups"


def check_transactions(settings: Settings, seconds: float) -> str:
    """Begin with a transactional id that no job has, as tasks do. StartError where the brokers
    refuse it."""
    name = f"{settings.transactional_id_prefix}-doctor"
    config = settings.kafka.producer_config() | {
        "transactional.id": name,
        "transaction.timeout.ms": settings.outputs.transaction_timeout,
        # A refusal would be written as well as raised.
        "logger": _log_into(logging.NullHandler()),
    }
    producer = made(lambda: Producer(config))
    try:
        producer.init_transactions(seconds)
    except KafkaException as error:
        raise StartError(
            f"transactional id {name}: {error.args[0].str()}; needed are Write and Describe on"
            f" transactional ids with the prefix {settings.transactional_id_prefix}- ({_PAGE})"
        ) from error
    return f"ids with the prefix {settings.transactional_id_prefix}-"


def check_clock(settings: Settings, topics: Sequence[str], seconds: float) -> str:
    """Compare this machine's clock with the timestamps of records: Kafka does not tell its own
    time, but a record of the future tells that a clock is wrong."""
    cluster = Cluster(settings, seconds=seconds)
    partitions = cluster.partitions_with_records(topics)
    if not partitions:
        return "no record to compare it with"
    future = round((time.time() + _AHEAD_SECONDS) * 1000)
    found = cluster.offsets(partitions, future, committed=False)
    ahead = sorted((at, offset) for at, offset in found.items() if offset >= 0)
    if ahead:
        (topic, number), offset = ahead[0]
        raise Doubt(
            f"the record at offset {offset} of {topic}, partition {number}, is stamped more than"
            f" {_AHEAD_SECONDS:.0f} s ahead of this machine's clock: set the clock here, or where"
            " records are produced (NTP)"
        )
    return f"no record is ahead of it by more than {_AHEAD_SECONDS:.0f} s"


def _asked(request: Callable[[], _T]) -> _T:
    """The answer to a request; what goes wrong is one of our errors."""
    try:
        return request()
    except KafkaException as error:
        raise StartError(f"Kafka: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise StartError("Kafka did not answer in time") from error
