"""Resolved schemas: the record types that a job reads, and who writes them.

A *record type* is one kind of event of one input, with its reader schema. A *writer* is a schema
id met in a topic; it is read as one record type, or as several where it is a union of records. The
plan is built for the writers known when it starts; an id met later is learnt (:meth:`learn`) and
the plan built again. :mod:`spark_cep.codecs.registry.schema_resolution` finds those of the
settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spark_cep.codecs.avro.broken_records import without_bytes
from spark_cep.codecs.avro.reader_schemas import record_names, record_schema
from spark_cep.codecs.avro.record_layout import LayoutWriter
from spark_cep.codecs.avro.resolution import resolves
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node
from spark_cep.codecs.record_reader import Wanted
from spark_cep.codecs.registry.avro_reader import AvroReader, avro_reader
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.schema_ids import SchemaId, named
from spark_cep.codecs.registry.schemas_by_id import SchemasById
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.errors import SchemaError
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.types import (
    NULL,
    RecordType,
    SqlType,
    unreadable_part,
)

if TYPE_CHECKING:
    # Its HTTP client takes a while to import, and these travel to each Python worker.
    from spark_cep.codecs.registry.registry import Registry


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
class ResolvedSchemas(SchemasById[AvroSchema, WriterSchema]):
    """Avro: record types, and the writers of each schema id. ``unframed``: of records without
    framing, the schema id of each topic."""

    def reader(self, wanted: Sequence[Wanted], vectors: ColumnVectors) -> AvroReader:
        """The reader of the ``wanted`` columns of each record type."""
        return avro_reader(self, wanted, vectors)

    def registered(self, registry: Registry, schema_id: SchemaId) -> AvroSchema:
        """See :class:`~spark_cep.codecs.registry.schemas_by_id.SchemasById`."""
        return registry.get_schema(schema_id)

    def writers_in(self, schema_id: SchemaId, schema: AvroSchema) -> Iterable[WriterSchema]:
        """See :class:`~spark_cep.codecs.registry.schemas_by_id.SchemasById`."""
        if problem := without_bytes(schema):
            raise SchemaError(f"{named(schema_id)}: {problem}, in any number")
        for writer in self._writers(schema_id, schema):
            if writer.type is not None:
                _try_layout(writer, self.types[writer.type])
            yield writer

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
                    f"{named(schema_id)} ({name}) cannot be read as {reader.name} of input"
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
