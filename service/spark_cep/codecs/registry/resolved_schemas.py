"""Resolved schemas: the record types that a job reads, and who writes them.

A *record type* is one kind of event of one input, with its reader schema. A *writer* is a schema
id met in a topic; it is read as one record type, or as several where it is a union of records. The
plan is built for the writers known when it starts; an id met later is learnt (:meth:`learn`) and
the plan built again. :mod:`spark_cep.codecs.registry.schema_resolution` finds those of the
settings.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from spark_cep.codecs.avro.broken_records import without_bytes
from spark_cep.codecs.avro.reader_schemas import project, record_names, record_schema
from spark_cep.codecs.avro.record_layout import LayoutWriter
from spark_cep.codecs.avro.resolution import resolves
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node
from spark_cep.codecs.output.dead_letters import LONGEST_DETAIL
from spark_cep.codecs.record_reader import RecordFormat, Wanted
from spark_cep.codecs.registry.avro_reader import AvroReader, avro_reader
from spark_cep.codecs.registry.framing import Framing
from spark_cep.codecs.registry.schema_ids import SchemaId, in_order, ranges_of, schema_id_of
from spark_cep.codecs.registry.schema_lookup import LARGEST_REGISTERED, SchemaLookup
from spark_cep.codecs.topic_numbers import TopicNumbers
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.errors import SchemaError, SchemaNotFoundError, printable, shortened
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.types import (
    NULL,
    RecordType,
    SqlType,
    readable_columns,
    record_type,
    unreadable_part,
)

if TYPE_CHECKING:
    # Its HTTP client takes a while to import, and these travel to each Python worker.
    from spark_cep.codecs.registry.registry import Registry


class SchemasById(Protocol):
    """Knows schemas by id, as a registry does."""

    def get_schema(self, schema: SchemaId) -> AvroSchema:
        """The schema with this id. Raises SchemaNotFoundError where there is none, SchemaError
        where it cannot be used."""


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
        """The reader schema as column types.

        Raises SchemaError where it has types that cannot be read.
        """
        try:
            return record_type(self.reader.text)
        except SchemaError as error:
            raise SchemaError(
                f"input {self.input}: {self.name} of {self.reader.origin} cannot be the reader"
                f" schema: {error}; to read the other columns, set"
                f" inputs.{self.input}.reader_schema to a file that has the schema without this one"
            ) from error

    @cached_property
    def readable(self) -> AvroSchema:
        """The reader schema without the columns that cannot be read."""
        if unreadable_part(self.columns) is None:
            return self.reader
        return project(self.reader, [".".join(path) for path in readable_columns(self.columns)])


@dataclass(frozen=True)
class WriterSchema:
    """Schema id ``id`` writes record type ``type`` (its number; ``None``: a record that no input
    reads). ``branch``: its position in the writer's top-level union, if that is one."""

    id: SchemaId
    schema: AvroSchema
    branch: int | None
    type: int | None

    @property
    def written(self) -> Node:
        """The record, as the schema has it."""
        root = self.schema.root
        return root[self.branch or 0] if isinstance(root, list) else root


@dataclass
class ResolvedSchemas(RecordFormat):
    """Record types, writers, ids that the registry does not know (with when it said so, in
    milliseconds since 1970), and ids whose schema cannot be read with the reader schema (with the
    reason). Tasks ask ``lookup`` about ids that are not among these, the driver learns them from
    ``registry``. ``unframed``: of records without framing, the schema id of each topic."""

    types: tuple[EventType, ...]
    writers: dict[SchemaId, tuple[WriterSchema, ...]] = field(default_factory=dict)
    unknown_ids: dict[SchemaId, int] = field(default_factory=dict)
    unreadable: dict[SchemaId, str] = field(default_factory=dict)
    framing: Framing = Framing.REGISTRY
    unframed: TopicNumbers = field(default_factory=lambda: TopicNumbers({}))
    lookup: SchemaLookup | None = None
    registry: Registry | None = None

    def snapshot(self) -> ResolvedSchemas:
        """Return a copy of the present knowledge for another thread or process."""
        return replace(
            self,
            writers=dict(self.writers),
            unknown_ids=dict(self.unknown_ids),
            unreadable=dict(self.unreadable),
            registry=None,
        )

    def reader(self, wanted: Sequence[Wanted], vectors: ColumnVectors) -> AvroReader:
        """The reader of the ``wanted`` columns of each record type."""
        return avro_reader(self, wanted, vectors)

    @property
    def ids(self) -> frozenset[SchemaId]:
        """The schema ids that a plan is built for."""
        return frozenset({*self.writers, *self.unreadable})

    @property
    def known(self) -> str:
        """The ids as ranges, in text."""
        return ranges_of(self.ids)

    def learn(self, schemas: Iterable[str]) -> list[str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordFormat`; names are the ids' texts."""
        numbers, guids = in_order(map(schema_id_of, schemas))
        ids: list[SchemaId] = [*numbers, *guids]
        assert self.registry is not None
        self.ask(self.registry, ids)
        return [str(each) for each in ids if each in self.unknown_ids]

    def ask(self, registry: SchemasById, ids: Iterable[SchemaId]) -> None:
        """Ask the registry for ``ids``; what it does not know is remembered as unknown, and what is
        wrong with a schema as the reason why it cannot be read.

        Raises RegistryError when the registry cannot be reached: nothing is decided then.
        """
        now = round(time.time() * 1000)
        for schema_id in ids:
            if isinstance(schema_id, int) and schema_id > LARGEST_REGISTERED:
                # To a registry that is no id at all, and its answer may look like an outage.
                self.unknown_ids[schema_id] = now
                continue
            try:
                schema = registry.get_schema(schema_id)
                self.writers[schema_id] = self._readable(schema_id, schema)
            except SchemaNotFoundError:
                self.unknown_ids[schema_id] = now
                continue
            except SchemaError as error:
                # It goes into each dead letter.
                self.unreadable[schema_id] = shortened(printable(str(error)), LONGEST_DETAIL)
            self.unknown_ids.pop(schema_id, None)

    def _readable(self, schema_id: SchemaId, schema: AvroSchema) -> tuple[WriterSchema, ...]:
        """The writers of a schema. Raises SchemaError for whatever it fails in."""
        try:
            if problem := without_bytes(schema):
                raise SchemaError(f"schema id {schema_id}: {problem}, in any number")
            writers = tuple(self._writers(schema_id, schema))
            for writer in writers:
                if writer.type is not None:
                    _try_layout(writer, self.types[writer.type])
        except SchemaError:
            raise
        except Exception as error:
            # Whoever may register schemas must not be able to end a job with one.
            raise SchemaError(
                f"schema id {schema_id} cannot be used: {type(error).__name__}: {error}"
            ) from error
        return writers

    def _writers(self, schema_id: SchemaId, schema: AvroSchema) -> Iterable[WriterSchema]:
        if not isinstance(schema.root, list):
            (name,) = record_names(schema)
            yield from self._readings(schema_id, schema, name, None)
            return
        for branch, node in enumerate(schema.root):
            found = schema.resolve(node)
            if isinstance(found, dict) and found["type"] == "record":
                yield from self._readings(schema_id, schema, found["name"], branch)
            else:
                yield WriterSchema(schema_id, schema, branch, None)

    def _readings(
        self, schema_id: SchemaId, schema: AvroSchema, name: str, branch: int | None
    ) -> Iterable[WriterSchema]:
        """Return the readings of the record ``name`` of a schema, one for each type of that
        name."""
        readers = [t for t in self.types if name in names_of(t.reader)]
        if not readers:
            yield WriterSchema(schema_id, schema, branch, None)
            return
        for reader in readers:
            problems = resolves(_record(schema, name, branch), reader.readable)
            if problems:
                raise SchemaError(
                    f"schema id {schema_id} ({name}) cannot be read as {reader.name} of input"
                    f" {reader.input}: " + "; ".join(problems)
                )
            yield WriterSchema(schema_id, schema, branch, reader.number)


def _try_layout(writer: WriterSchema, event_type: EventType) -> None:
    """Write the operations that read every column, as a plan does for those of its rules."""
    vectors = ColumnVectors()
    wanted = {path: (vectors.value(path, of), of) for path, of in _columns(event_type.columns, ())}
    out = LayoutWriter(vectors)
    program = out.record(
        event_type.number, writer.schema, event_type.readable, wanted, writer.written
    )
    layouts = out.written([0], [[program]])
    for reader in layouts.readers:
        reader.prepare()


def _columns(record: RecordType, above: ColumnPath) -> Iterator[tuple[ColumnPath, SqlType]]:
    for name, of in record.fields.items():
        if of != NULL and unreadable_part(of) is None:
            yield (*above, name), of
        if isinstance(of, RecordType):
            yield from _columns(of, (*above, name))


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
