"""Resolved schemas: the record types that a job reads, and who writes them.

A *record type* is one kind of event of one input, with its reader schema. A *writer* is a schema
id met in a topic; it is read as one record type, or as several where it is a union of records. The
plan is built for the writers known when it starts; an id met later is learnt (:meth:`learn`) and
the plan built again. :mod:`spark_cep.pipeline.decode.schema_resolution` finds those of the
settings.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from spark_cep.codecs.avro.reader_schemas import record_names, record_schema
from spark_cep.codecs.avro.resolution import resolves
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.output.dead_letters import without_bytes
from spark_cep.errors import SchemaError, SchemaNotFoundError
from spark_cep.pattern.types import RecordType, record_type
from spark_cep.pipeline.decode.schema_lookup import LARGEST_REGISTERED

if TYPE_CHECKING:
    # Its HTTP client takes a while to import, and these travel to each Python worker.
    from spark_cep.codecs.registry.registry import Registry


@dataclass(frozen=True)
class EventType:
    """One record type of one input, read with ``reader``. ``topics``: where it is read, ``None``
    for every topic of the source."""

    number: int
    input: str
    name: str
    reader: AvroSchema
    topics: tuple[str, ...]
    event_time: str
    event_time_unit: str

    @cached_property
    def columns(self) -> RecordType:
        """The reader schema as column types."""
        return record_type(self.reader.text)


@dataclass(frozen=True)
class Writer:
    """Schema id ``id`` writes record type ``type`` (its number; ``None``: a record that no input
    reads). ``branch``: its position in the writer's top-level union, if that is one."""

    id: int
    schema: AvroSchema
    branch: int | None
    type: int | None


@dataclass
class ResolvedSchemas:
    """Record types, writers, ids that the registry does not know (with when it said so, in
    milliseconds since 1970), and ids whose schema cannot be read with the reader schema (with the
    reason)."""

    types: tuple[EventType, ...]
    writers: dict[int, tuple[Writer, ...]] = field(default_factory=dict)
    unknown_ids: dict[int, int] = field(default_factory=dict)
    unreadable: dict[int, str] = field(default_factory=dict)

    def types_of(self, inputs: Sequence[str]) -> list[EventType]:
        """The record types of ``inputs`` (of all, when empty)."""
        return [t for t in self.types if not inputs or t.input in inputs]

    def snapshot(self) -> ResolvedSchemas:
        """What is known by now, for another thread or process."""
        return ResolvedSchemas(
            self.types, dict(self.writers), dict(self.unknown_ids), dict(self.unreadable)
        )

    @property
    def ids(self) -> frozenset[int]:
        """The schema ids that a plan is built for."""
        return frozenset({*self.writers, *self.unreadable})

    def learn(self, registry: Registry, ids: Iterable[int]) -> None:
        """Ask the registry for ``ids``; what it does not know is remembered as unknown.

        Raises RegistryError when the registry cannot be reached: nothing is decided then.
        """
        now = round(time.time() * 1000)
        for schema_id in ids:
            if schema_id > LARGEST_REGISTERED:
                # To a registry that is no id at all, and its answer may look like an outage.
                self.unknown_ids[schema_id] = now
                continue
            try:
                schema = registry.get_schema(schema_id)
                if problem := without_bytes(schema):
                    raise SchemaError(f"schema id {schema_id}: {problem}, in any number")
                self.writers[schema_id] = tuple(self._writers(schema_id, schema))
                self.unknown_ids.pop(schema_id, None)
            except SchemaNotFoundError:
                self.unknown_ids[schema_id] = now
            except SchemaError as error:
                self.unreadable[schema_id] = str(error)
                self.unknown_ids.pop(schema_id, None)

    def _writers(self, schema_id: int, schema: AvroSchema) -> Iterable[Writer]:
        if not isinstance(schema.root, list):
            (name,) = record_names(schema)
            yield from self._readings(schema_id, schema, name, None)
            return
        for branch, node in enumerate(schema.root):
            found = schema.resolve(node)
            if isinstance(found, dict) and found["type"] == "record":
                yield from self._readings(schema_id, schema, found["name"], branch)
            else:
                yield Writer(schema_id, schema, branch, None)

    def _readings(
        self, schema_id: int, schema: AvroSchema, name: str, branch: int | None
    ) -> Iterable[Writer]:
        """How the record ``name`` of a schema is read: as every type that is called so."""
        readers = [t for t in self.types if name in names_of(t.reader)]
        if not readers:
            yield Writer(schema_id, schema, branch, None)
            return
        for reader in readers:
            problems = resolves(_record(schema, name, branch), reader.reader)
            if problems:
                raise SchemaError(
                    f"schema id {schema_id} ({name}) cannot be read as {reader.name} of input"
                    f" {reader.input}: " + "; ".join(problems)
                )
            yield Writer(schema_id, schema, branch, reader.number)


def _record(schema: AvroSchema, name: str, branch: int | None) -> AvroSchema:
    """The record ``name`` on its own, also out of a union that has more than records."""
    if branch is None or not isinstance(schema.root, list):
        return record_schema(schema, name)
    return record_schema(replace(schema, root=schema.root[branch]), name)


def names_of(reader: AvroSchema) -> list[str]:
    """The names a writer's record may have to be read with ``reader``: its own and its aliases."""
    (name,) = record_names(reader)
    namespace = name.rpartition(".")[0]
    aliases = reader.named[name].get("aliases", [])
    return [name, *(a if "." in a or not namespace else f"{namespace}.{a}" for a in aliases)]
