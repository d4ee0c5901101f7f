"""Settings of input topics, output topics and the schema registry."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, FilePath, SecretStr, model_validator

from spark_cep.config.quantities import PositiveDuration, SettingsSection, Shown, setting
from spark_cep.documents.values import contradiction, refused
from spark_cep.event_times import KAFKA_TIMESTAMP

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_ALLOWED_URLS: Final = "http://… or https://…, several with commas between"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def topic_name(value: str) -> str:
    """``value``, if topics may be called so."""
    if not _TOPIC.fullmatch(value) or value in (".", ".."):
        raise refused("a topic name: at most 249 letters, digits, dots, underscores and hyphens")
    return value


def _dotted(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise refused("a name, or names with dots between, as a.b.c")
    return value


def _urls(value: str) -> str:
    for url in value.split(","):
        if "@" in url:
            raise refused("a URL without credentials; they have settings of their own")
        try:
            parts = urlsplit(url.strip())
            _ = parts.port
        except ValueError:
            raise refused(_ALLOWED_URLS, "is not a URL") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise refused(_ALLOWED_URLS)
    return value


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        where = "" if error.pos is None else f", at character {error.pos + 1}"
        raise refused(
            "a regular expression of topic names, as `payments-.*`",
            f"cannot be read: {error.msg}{where}",
        ) from None
    return value


Topic = Annotated[str, AfterValidator(topic_name), Shown("topic")]
DottedName = Annotated[str, AfterValidator(_dotted), Shown("name")]


class ReaderSchema(SettingsSection):
    """The schema that events are read as, whatever schema wrote them."""

    file: FilePath | None = setting(None, description="An Avro schema file (`.avsc`).")
    subject: str | None = setting(None, description="A subject of the registry.")
    version: Annotated[int, Shown("number")] | Literal["latest"] = setting(
        "latest", description="Version of the subject, read once at start."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> ReaderSchema:
        if (self.file is None) == (self.subject is None):
            raise contradiction("exactly one of file and subject is needed")
        return self


class Input(SettingsSection):
    """One kind of events: where they are read, as what, and which time they bear."""

    topics: list[Topic] = setting([], description="Topics to read.")
    topic_pattern: Annotated[str, AfterValidator(_pattern), Shown("text")] | None = setting(
        None,
        description=(
            "Instead of `topics`: a regular expression (Python's) that whole names of topics match."
        ),
        min_length=1,
    )
    record: DottedName | None = setting(
        None,
        description="Full name of the Avro record to take, in topics with several record types.",
    )
    reader_schema: ReaderSchema | None = setting(
        None,
        description=(
            "Schema to read events as; absent: the latest of the subject that "
            "`registry.subject_name_strategy` gives."
        ),
    )
    event_time: DottedName = setting(
        KAFKA_TIMESTAMP,
        description="Column of the event time, as `a.b.c`; `kafka_timestamp` is the record's own.",
    )
    event_time_unit: Literal["auto", "millis", "micros", "seconds"] = setting(
        "auto",
        description=(
            "Unit of a plain `long` event time; `auto` follows the logical type and takes a plain "
            "`long` as milliseconds."
        ),
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Input:
        if bool(self.topics) == (self.topic_pattern is not None):
            raise contradiction("exactly one of topics and topic_pattern is needed")
        if len(set(self.topics)) != len(self.topics):
            raise contradiction("a topic is listed twice", "topics")
        return self

    def topics_of(self, existing: Sequence[str]) -> list[str]:
        """The topics that the input reads, of those that exist."""
        if self.topic_pattern is None:
            return list(self.topics)
        pattern = re.compile(self.topic_pattern)
        return sorted(topic for topic in existing if pattern.fullmatch(topic))


class OutputTopicNames(SettingsSection):
    """Topics of the results. Two kinds may share a topic only by mistake, so that is refused."""

    matches: Topic = setting("cep.matches", description="Matches.")
    timeouts: Topic = setting("cep.timeouts", description="Partial matches that timed out.")
    match_rows: Topic = setting(
        "cep.match-rows", description="Rows of matches, of rules in SQL with `ALL ROWS PER MATCH`."
    )
    late: Topic = setting("cep.late", description="Events that came too late, unchanged.")
    dead_letters: Topic = setting(
        "cep.dead-letters", description="Records that could not be processed, and why."
    )

    shadow: Topic = setting(
        "cep.shadow",
        description="Matches, rows of matches and timeouts of rules with `mode: shadow`.",
    )

    rule_status: Topic | None = setting(
        "cep.rule-status",
        description=(
            "The state of each rule, for each version; compacted. `null`: it is not written."
        ),
    )
    rule_audit: Topic | None = setting(
        "cep.rule-audit",
        description=(
            "Every decision about rules, from which the rule set of any batch can be rebuilt. "
            "`null`: it is not written."
        ),
    )

    def all(self) -> tuple[str, ...]:
        """The topics of results."""
        return (
            self.matches,
            self.timeouts,
            self.match_rows,
            self.late,
            self.dead_letters,
            self.shadow,
        )

    @model_validator(mode="after")
    def _distinct(self) -> OutputTopicNames:
        of_rules = [topic for topic in (self.rule_status, self.rule_audit) if topic is not None]
        if len({*self.all(), *of_rules}) < len(self.all()) + len(of_rules):
            raise contradiction("each kind of output needs a topic of its own")
        return self


class NewTopics(SettingsSection):
    """Creation of output topics that do not exist."""

    enabled: bool = setting(True, description="Whether missing output topics are made at start.")
    partitions: int = setting(4, description="Partitions of a new topic.", unit="partitions", ge=1)
    replication: int = setting(
        -1,
        description="Copies of each partition of a new topic; -1: as the broker is set.",
        unit="brokers",
        ge=-1,
        le=32767,
    )

    @model_validator(mode="after")
    def _some_copies(self) -> NewTopics:
        if self.replication == 0:
            raise contradiction("0 is not a number of copies: -1, or 1 or more", "replication")
        return self


class OutputSettings(SettingsSection):
    """Results: where they go, in transactions."""

    topics: OutputTopicNames = setting(
        OutputTopicNames(), description="Topics of the kinds of output."
    )
    create_topics: NewTopics = setting(NewTopics(), description="Making of missing topics.")
    transactional_id_prefix: Topic | None = setting(
        None,
        description=(
            "Transactional ids are this, `-` and the number of the state partition; the topic "
            "`<prefix>.commit-markers` says which batches are written. Each job needs its own "
            "prefix. "
            "Absent: `spark.app_name`."
        ),
        max_length=234,
    )
    transaction_timeout: PositiveDuration = setting(
        600_000,
        description=(
            "Longest time from the first record of a batch to its commit, and longest wait for "
            "brokers that are unavailable. At most `transaction.max.timeout.ms` of the brokers."
        ),
    )
    if_commit_markers_disagree: Literal["refuse", "go_on"] = setting(
        "refuse",
        description=(
            "What to do at start when the output is ahead of the checkpoint, or belongs to another "
            "one: end, or go on, which may write records again."
        ),
    )
    late_events: Literal["relevant", "all", "drop"] = setting(
        "relevant",
        description=(
            "Late events to write. `relevant`: those that a rule could have used. `all`: every "
            "late event of an input that a rule reads. `drop`: none. Those that a rule could have "
            "used are counted in any case."
        ),
    )


class SchemaRegistry(SettingsSection):
    """The schema registry (Confluent's REST interface)."""

    url: Annotated[str, AfterValidator(_urls), Shown("URL")] = setting(
        description="Address of the registry, several with commas between."
    )
    username: str | None = setting(None, description="Name for HTTP basic authentication.")
    password: SecretStr | None = setting(
        None, description="Password for HTTP basic authentication."
    )
    bearer_token: SecretStr | None = setting(
        None, description="Token for HTTP bearer authentication, instead of name and password."
    )
    ssl_ca_file: FilePath | None = setting(
        None, description="PEM file of the authorities to trust; absent: the usual ones."
    )
    ssl_certificate_file: FilePath | None = setting(
        None, description="PEM file of the client's certificate."
    )
    ssl_key_file: FilePath | None = setting(
        None, description="PEM file of the client's private key."
    )
    ssl_key_password: SecretStr | None = setting(
        None, description="Password of an encrypted private key."
    )
    subject_name_strategy: Literal["topic", "record", "topic_record"] = setting(
        "topic",
        description=(
            "How the subject of a topic's values is named: `<topic>-value`, `<record>` or "
            "`<topic>-<record>`."
        ),
    )
    auto_register: bool = setting(
        True, description="Whether the schemas of the output are registered at start."
    )
    timeout: PositiveDuration = setting(10_000, description="Longest wait for one answer.")
    max_attempts: int = setting(
        5,
        description="Requests sent before the registry counts as unavailable.",
        unit="requests",
        ge=1,
        le=100,
    )
    backoff: PositiveDuration = setting(
        500, description="Wait before the second attempt; it doubles each time."
    )
    max_backoff: PositiveDuration = setting(10_000, description="Longest wait between attempts.")

    @model_validator(mode="after")
    def _one_identity(self) -> SchemaRegistry:
        if (self.username is None) != (self.password is None):
            raise contradiction("username and password go together", "username")
        if self.username is not None and ":" in self.username:
            raise contradiction("a colon cannot stand in the name", "username")
        if self.username is not None and self.bearer_token is not None:
            raise contradiction("either username and password or a token", "bearer_token")
        if (self.ssl_certificate_file is None) != (self.ssl_key_file is None):
            raise contradiction(
                "ssl_certificate_file and ssl_key_file go together", "ssl_certificate_file"
            )
        return self
