"""Settings of input topics, output topics and the schema registry."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import AfterValidator, FilePath, SecretStr, model_validator

from spark_cep.config.quantities import (
    PositiveDuration,
    SettingsSection,
    Shown,
    check_pair,
    setting,
    url_parts,
)
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
        parts = url_parts(url.strip(), _ALLOWED_URLS)
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

    file: FilePath | None = setting(
        None,
        "A file with the schema. `format: avro`: an Avro schema (`.avsc`). `json`: one of Avro, a "
        "JSON Schema or a `.proto` file. `protobuf`: a `.proto` file. What a `.proto` file imports "
        "stands below its folder.",
    )
    subject: str | None = setting(None, "A subject of the registry.")
    version: Annotated[int, Shown("number")] | Literal["latest"] = setting(
        "latest", "Version of the subject, read once at start."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> ReaderSchema:
        if (self.file is None) == (self.subject is None):
            raise contradiction("exactly one of file and subject is needed")
        return self


class Input(SettingsSection):
    """One kind of events: where they are read, as what, and which time they bear."""

    topics: list[Topic] = setting([], "Topics to read.")
    topic_pattern: Annotated[str, AfterValidator(_pattern), Shown("text")] | None = setting(
        None,
        "Instead of `topics`: a regular expression (Python's) that whole names of topics match.",
        min_length=1,
    )
    format: Literal["avro", "json", "protobuf"] = setting(
        "avro",
        "Format of the records. `avro`: a body of Avro. `json`: an object. `protobuf`: a message.",
    )
    framing: Literal["registry", "glue", "none"] = setting(
        "registry",
        "What says which schema wrote a record. `registry`: a schema id or GUID of the registry, "
        "in front or in the header `__value_schema_id`; JSON may do without. `glue`: the framing "
        "of AWS Glue's registry. `none`: nothing, the value is the body alone.",
    )
    record: DottedName | None = setting(
        None,
        "Full name of the Avro record or the message to take, in topics with several record types; "
        "of JSON, the name of the record type.",
    )
    reader_schema: ReaderSchema | None = setting(
        None,
        "Schema to read events as; absent: the latest of the subject that "
        "`registry.subject_name_strategy` gives. With another `framing` than `registry`, Avro and "
        "Protobuf need a file; without framing, it is also what wrote the records of Avro.",
    )
    writer_schemas: dict[UUID, FilePath] = setting(
        {},
        "With Avro or Protobuf and `framing: glue`: the files of the schemas that wrote the "
        "records, by the GUID that Glue gave each version of the schema.",
    )
    event_time: DottedName = setting(
        KAFKA_TIMESTAMP,
        "Column of the event time, as `a.b.c`; `kafka_timestamp` is the record's own.",
    )
    event_time_unit: Literal["auto", "millis", "micros", "seconds", "iso"] = setting(
        "auto",
        "Unit of a plain `long` event time; `auto` follows the logical type and takes a plain "
        "`long` as milliseconds. Text needs a unit: `iso` for ISO 8601 "
        "(`2026-01-31T12:00:00.000Z`; UTC unless an offset is given), another one for whole "
        "numbers in text.",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Input:
        if bool(self.topics) == (self.topic_pattern is not None):
            raise contradiction("exactly one of topics and topic_pattern is needed")
        if len(set(self.topics)) != len(self.topics):
            raise contradiction("a topic is listed twice", "topics")
        return self

    @model_validator(mode="after")
    def _schemas_are_given(self) -> Input:
        by_guid = self.format != "json" and self.framing == "glue"
        if self.writer_schemas and not by_guid:
            raise contradiction(
                "only Avro and Protobuf with framing: glue have them", "writer_schemas"
            )
        if by_guid and not self.writer_schemas:
            raise contradiction(
                "with framing: glue, writer_schemas has to name the files of the schemas that wrote"
                " the records, by the GUIDs of their versions",
                "writer_schemas",
            )
        if self.format != "json" and self.framing != "registry" and not self._has_file:
            raise contradiction(
                f"with framing: {self.framing}, {self.format.capitalize()} is read as the schema of"
                " reader_schema.file",
                "reader_schema",
            )
        return self

    @property
    def asks_registry(self) -> bool:
        """Return whether schemas are looked up in the registry: the one to read events as, and,
        but for JSON, those that wrote the records."""
        return not self._has_file or (self.framing == "registry" and self.format != "json")

    @property
    def _has_file(self) -> bool:
        return self.reader_schema is not None and self.reader_schema.file is not None

    def topics_of(self, existing: Sequence[str]) -> list[str]:
        """The topics that the input reads, of those that exist."""
        if self.topic_pattern is None:
            return list(self.topics)
        pattern = re.compile(self.topic_pattern)
        return sorted(topic for topic in existing if pattern.fullmatch(topic))


class OutputTopicNames(SettingsSection):
    """Topics of the results. Two kinds may share a topic only by mistake, so that is refused."""

    matches: Topic = setting("cep.matches", "Matches.")
    timeouts: Topic = setting("cep.timeouts", "Partial matches that timed out.")
    match_rows: Topic = setting(
        "cep.match-rows", "Rows of matches, of rules in SQL with `ALL ROWS PER MATCH`."
    )
    late: Topic = setting("cep.late", "Events that came too late, unchanged.")
    dead_letters: Topic = setting(
        "cep.dead-letters", "Records that could not be processed, and why."
    )

    shadow: Topic = setting(
        "cep.shadow",
        "Matches, rows of matches and timeouts of rules with `mode: shadow`.",
    )

    rule_status: Topic | None = setting(
        "cep.rule-status",
        "The state of each rule, for each version; compacted. `null`: it is not written.",
    )
    rule_audit: Topic | None = setting(
        "cep.rule-audit",
        "Every decision about rules, from which the rule set of any batch can be rebuilt. "
        "`null`: it is not written.",
    )

    def kinds(self) -> dict[str, str]:
        """The topics of results, with the kind of each."""
        return {
            self.matches: "match",
            self.timeouts: "timeout",
            self.match_rows: "match_row",
            self.late: "late",
            self.dead_letters: "dead_letter",
            self.shadow: "shadow",
        }

    def all(self) -> tuple[str, ...]:
        """The topics of results."""
        return tuple(self.kinds())

    @model_validator(mode="after")
    def _distinct(self) -> OutputTopicNames:
        topics = [topic for topic in self.model_dump().values() if topic is not None]
        if len(set(topics)) < len(topics):
            raise contradiction("each kind of output needs a topic of its own")
        return self


class OutputFormats(SettingsSection):
    """Formats of single kinds of output, where they are not `outputs.format`."""

    matches: Literal["avro", "json"] | None = setting(None, "Format of matches.")
    timeouts: Literal["avro", "json"] | None = setting(None, "Format of timeouts.")
    match_rows: Literal["avro", "json"] | None = setting(None, "Format of rows of matches.")
    dead_letters: Literal["avro", "json"] | None = setting(None, "Format of dead letters.")


class NewTopics(SettingsSection):
    """Creation of output topics that do not exist."""

    enabled: bool = setting(True, "Whether missing output topics are made at start.")
    partitions: int = setting(4, "Partitions of a new topic.", unit="partitions", ge=1)
    replication: int = setting(
        -1,
        "Copies of each partition of a new topic; -1: as the broker is set.",
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

    topics: OutputTopicNames = setting(OutputTopicNames(), "Topics of the kinds of output.")
    format: Literal["avro", "json"] = setting(
        "avro",
        "Format of results and dead letters. `avro`: with a schema id of the registry in front. "
        "`json`: objects, for which no registry is needed. Late events stay as they came.",
    )
    formats: OutputFormats = setting(OutputFormats(), "Formats of single kinds of output.")
    create_topics: NewTopics = setting(NewTopics(), "Making of missing topics.")
    transactional_id_prefix: Topic | None = setting(
        None,
        "Transactional ids are this, `-` and the number of the state partition; the topic "
        "`<prefix>.commit-markers` says which batches are written. Each job needs its own "
        "prefix. Absent: `spark.app_name`.",
        max_length=234,
    )
    transaction_timeout: PositiveDuration = setting(
        600_000,
        "Longest time from the first record of a batch to its commit, and longest wait for "
        "brokers that are unavailable. At most `transaction.max.timeout.ms` of the brokers.",
    )
    if_commit_markers_disagree: Literal["refuse", "go_on"] = setting(
        "refuse",
        "What to do at start when the output is ahead of the checkpoint, or belongs to another "
        "one: end, or go on, which may write records again.",
    )
    late_events: Literal["relevant", "all", "drop"] = setting(
        "relevant",
        "Late events to write. `relevant`: those that a rule could have used. `all`: every late "
        "event of an input that a rule reads. `drop`: none. Those that a rule could have used "
        "are counted in any case.",
    )

    def format_of(self, kind: str) -> str:
        """The format of a kind of output, one of those of ``formats``."""
        return getattr(self.formats, kind) or self.format


class SchemaRegistry(SettingsSection):
    """The schema registry (Confluent's REST interface)."""

    url: Annotated[str, AfterValidator(_urls), Shown("URL")] = setting(
        ..., "Address of the registry, several with commas between."
    )
    username: str | None = setting(None, "Name for HTTP basic authentication.")
    password: SecretStr | None = setting(None, "Password for HTTP basic authentication.")
    bearer_token: SecretStr | None = setting(
        None, "Token for HTTP bearer authentication, instead of name and password."
    )
    ssl_ca_file: FilePath | None = setting(
        None, "PEM file of the authorities to trust; absent: the usual ones."
    )
    ssl_certificate_file: FilePath | None = setting(None, "PEM file of the client's certificate.")
    ssl_key_file: FilePath | None = setting(None, "PEM file of the client's private key.")
    ssl_key_password: SecretStr | None = setting(None, "Password of an encrypted private key.")
    subject_name_strategy: Literal["topic", "record", "topic_record"] = setting(
        "topic",
        "How the subject of a topic's values is named: `<topic>-value`, `<record>` or "
        "`<topic>-<record>`.",
    )
    auto_register: bool = setting(
        True, "Whether the schemas of the output are registered at start."
    )
    timeout: PositiveDuration = setting(10_000, "Longest wait for one answer.")
    max_attempts: int = setting(
        5,
        "Requests sent before the registry counts as unavailable.",
        unit="requests",
        ge=1,
        le=100,
    )

    @model_validator(mode="after")
    def _one_identity(self) -> SchemaRegistry:
        check_pair(self, "username", "password")
        check_pair(self, "ssl_certificate_file", "ssl_key_file")
        if self.username is not None and ":" in self.username:
            raise contradiction("a colon cannot stand in the name", "username")
        if self.username is not None and self.bearer_token is not None:
            raise contradiction("either username and password or a token", "bearer_token")
        return self
