"""What a job wrote, decoded with the public schemas and put into forms that tests can compare."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from io import BytesIO
from typing import Any, ClassVar, NamedTuple, cast

import fastavro
from confluent_kafka import Message

from spark_cep.codecs.output.fields import RECORDS, Contract
from spark_cep.codecs.output.outputs import KIND_HEADER
from spark_cep.codecs.output.record_shape import FieldType
from spark_cep.codecs.output.record_shape import Record as TableRecord
from spark_cep.codecs.output.schemas import schema_text
from tests.kafka_access import KafkaAccess


class Found(NamedTuple):
    """A match or timeout. ``steps``: per step that has any, the offsets of its events; ``time``:
    that of the match, or the timeout's deadline."""

    rule: str
    key: str | None
    steps: tuple[tuple[str, tuple[int, ...]], ...]
    time: int


def found(rule: str, key: str | None, time: int, **steps: int | tuple[int, ...]) -> Found:
    """What a test expects: offsets by step, in the order of the steps."""
    taken = tuple((name, at if isinstance(at, tuple) else (at,)) for name, at in steps.items())
    return Found(rule, key, taken, time)


@dataclass(frozen=True)
class Record:
    """One output record. ``body`` is empty where the value is not one of our schemas."""

    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes | None]
    body: Mapping[str, Any]

    @property
    def found(self) -> Found:
        """The match or timeout as tests compare it."""
        body = self.body
        steps = tuple(
            (step["step"], tuple(event["offset"] for event in step["events"]))
            for step in body["steps"]
        )
        at = body["time"] if "time" in body else body["deadline"]
        return Found(body["rule_id"], body["key"], steps, at)


@dataclass(frozen=True)
class Outputs:
    """The output topics."""

    KINDS: ClassVar[tuple[str, ...]] = (
        "matches",
        "timeouts",
        "match_rows",
        "late",
        "dead_letters",
        "shadow",
    )

    matches: list[Record]
    timeouts: list[Record]
    match_rows: list[Record]
    late: list[Record]
    dead_letters: list[Record]
    shadow: list[Record]

    @classmethod
    def read(cls, kafka: KafkaAccess, topic: Callable[[str], str]) -> Outputs:
        """Everything in the topics; nothing where a topic does not exist yet."""
        messages = kafka.read(*(topic(kind) for kind in cls.KINDS))
        return cls(
            **{
                kind: [_record(m) for m in messages if m.topic() == topic(kind)]
                for kind in cls.KINDS
            }
        )

    def of(self, rule: str) -> tuple[list[Found], list[Found]]:
        """Sorted matches and timeouts of one rule; what was written twice stands there twice."""
        return (
            sorted(m.found for m in self.matches if m.body["rule_id"] == rule),
            sorted(t.found for t in self.timeouts if t.body["rule_id"] == rule),
        )

    def match_ids(self) -> list[str]:
        """The sorted ids of all matches."""
        return sorted(record.body["match_id"] for record in self.matches)

    def timeout_ids(self) -> list[str]:
        """The sorted ids of all timeouts."""
        return sorted(record.body["match_id"] for record in self.timeouts)

    def reasons(self) -> list[tuple[int, str]]:
        """Offset and reason of each dead letter, sorted."""
        return sorted(
            (letter.body["offset"], letter.body["reason"]) for letter in self.dead_letters
        )


def each_output(kafka: KafkaAccess, topic: Callable[[str], str]) -> Iterator[tuple[str, Record]]:
    """All records of :class:`Outputs`, each with its kind, without holding them."""
    kinds = {topic(kind): kind for kind in Outputs.KINDS}
    for message in kafka.each(*kinds):
        name = message.topic()
        assert name is not None
        yield kinds[name], _record(message)


@cache
def _schema(contract: Contract) -> Any:
    """The public schema without its logical types, so that times are read as numbers."""
    return fastavro.parse_schema(_plain(json.loads(schema_text(contract))))


def _plain(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _plain(part) for name, part in schema.items() if name != "logicalType"}
    return [_plain(part) for part in schema] if isinstance(schema, list) else schema


def of_json(contract: Contract, value: bytes) -> dict[str, Any]:
    """A record in JSON, with times as numbers and bytes, as it would be in Avro."""
    return _of_json(RECORDS[contract], json.loads(value))


def _of_json(record: TableRecord, given: Mapping[str, Any]) -> dict[str, Any]:
    assert [*given] == [field.name for field in record.fields]
    found = {}
    for field in record.fields:
        value = given[field.name]
        if isinstance(field.type, TableRecord):
            value = [_of_json(field.type, each) for each in value]
        elif field.type is FieldType.TIME:
            value = round(datetime.fromisoformat(value).timestamp() * 1000)
        elif field.type is FieldType.OPTIONAL_BYTES and value is not None:
            value = b64decode(value)
        found[field.name] = value
    return found


def _record(message: Message) -> Record:
    value = message.value()
    # Those of records that were read are bytes.
    headers = cast("dict[str, bytes | None]", dict(message.headers() or []))
    kind = (headers[KIND_HEADER] or b"").decode()
    body: Any = {}
    if kind != "late":
        contract = cast("Contract", kind)
        assert value is not None
        if value[:1] == b"{":
            return Record(message.key(), value, headers, of_json(contract, value))
        assert value[:1] == b"\x00", "an output record without the registry's framing"
        body = fastavro.schemaless_reader(BytesIO(value[5:]), _schema(contract), None)
    return Record(message.key(), value, headers, body)
