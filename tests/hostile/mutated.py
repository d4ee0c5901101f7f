"""Records of mutated writers for the hostile stream, each with what must come of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from random import Random
from typing import Any, NamedTuple

import fastavro
from confluent_kafka.schema_registry.error import SchemaRegistryError

from spark_cep.codecs.avro.broken_records import decoding_fault
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import frame
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from tests.codecs.registry.test_resolved_schemas import FakeRegistry
from tests.e2e import poison
from tests.e2e.scenario import Scenario
from tests.pipeline.decode.mutated_schemas import NoValueError, mutated, some_body
from tests.pipeline.decode.reference import sql_value

_READER = parse(json.dumps(poison.EVENT), "reader")
_EVENT_TYPE = EventType(0, "events", "e2e.Event", _READER, ("t",), "ts", "auto")


class Mutated(NamedTuple):
    """A record's value, and what must come of it: the event that it is, a dead letter of this
    reason, or nothing."""

    value: bytes
    event: dict[str, Any] | None = None
    reason: str | None = None


@dataclass
class MutatedWriters:
    """Registers mutated schemas. ``refused`` are those that the registry did not take, ``unused``
    those whose records could be several things."""

    scenario: Scenario
    registered: int = 0
    refused: int = 0
    unused: int = 0
    _known: set[int] = field(default_factory=set)

    def records(self, random: Random, count: int, key: str, time_ms: int) -> Iterator[Mutated]:
        """A record each of so many new schemas."""
        while count:
            schema = mutated(random, poison.EVENT)
            try:
                schema_id = self.scenario.register_as_it_is("mutated", schema)
            except SchemaRegistryError:
                self.refused += 1
                continue
            if schema_id in self._known:
                continue
            self._known.add(schema_id)
            self.registered += 1
            count -= 1
            made = _record(random, schema_id, schema, key, time_ms)
            if made is None:
                self.unused += 1
            else:
                yield made


def _record(random: Random, schema_id: int, schema: Any, key: str, time_ms: int) -> Mutated | None:
    schemas = ResolvedSchemas((_EVENT_TYPE,))
    schemas.ask(FakeRegistry({schema_id: schema}), [schema_id])
    if schema_id in schemas.unreadable:
        value = frame(schema_id, random.randbytes(random.randrange(60)))
        return Mutated(value, reason="unreadable_schema")
    (writer, *others) = schemas.writers[schema_id]
    if others or writer.branch is not None:
        return None
    chosen = {"ts": time_ms, "k": key, "name": random.choice("abcdx")}
    try:
        body = some_body(random, writer.schema, lambda name, _: chosen.get(name))
    except NoValueError:
        return None
    if writer.type is None:
        return Mutated(frame(schema_id, body))
    if decoding_fault(body, writer.schema, _READER):
        return None
    event = _read(writer.schema, body)
    wanted = poison.values(key, "", time_ms)
    if (event["ts"], event["k"]) != (wanted["ts"], wanted["k"]):
        # Late, too early, or without key: whatever it is, other records show it.
        return None
    return Mutated(frame(schema_id, body), event)


def _read(writer: AvroSchema, body: bytes) -> dict[str, Any]:
    """The event, as fastavro reads it."""
    written, read = (
        poison.without_logical_types(json.loads(schema.text)) for schema in (writer, _READER)
    )
    datum: Any = fastavro.schemaless_reader(BytesIO(body), written, read)
    event: dict[str, Any] = sql_value(_READER, _READER.root, datum)
    return event
