"""The reader of Avro records, whatever says which schema wrote them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spark_cep.codecs.avro.broken_records import explain_undecodable
from spark_cep.codecs.avro.loops.record_bytes import MOST_ADDED, MOST_DEEP
from spark_cep.codecs.avro.record_layout import Layouts, LayoutWriter
from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import RawRecord, Read, RecordReader, Wanted
from spark_cep.codecs.registry.event_types import types_in
from spark_cep.codecs.registry.framing import Framed, Framing, FramingError, locate, of_glue
from spark_cep.codecs.registry.glue_bodies import without_compression
from spark_cep.codecs.registry.schema_ids import SchemaId, ids_in, ids_in_order, in_order
from spark_cep.codecs.registry.schema_lookup import UnknownIds
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.vectors import Bytes

if TYPE_CHECKING:
    from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas, WriterSchema


@dataclass(frozen=True)
class AvroReader(RecordReader):
    """Reads by the layouts of all known schemas. ``kind_of_topic``: for :meth:`Layouts.read`; any
    other topic is of ``other_topics``."""

    layouts: Layouts
    kind_of_topic: Mapping[str, int]
    other_topics: int
    schemas: ResolvedSchemas
    unknown: UnknownIds

    def read(self, topic: str, values: Bytes, headers: Bytes) -> Read:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        kind = self.kind_of_topic.get(topic, self.other_topics)
        kinds = np.full(len(values), kind, np.int32)
        match framing := self.schemas.framing:
            case Framing.GLUE:
                values, added = without_compression(values)
                read = self.layouts.read(values, headers, kinds, framing)
                return read._replace(added=read.added + added)
            case Framing.NONE:
                return self.layouts.read(values, headers, kinds, framing, self._unframed(topic))
        return self.layouts.read(values, headers, kinds)

    def _unframed(self, topic: str) -> int:
        """The id of the schema of a topic whose records have no framing."""
        number = self.schemas.unframed.number(topic)
        return -1 if number is None else number

    def _framed(self, record: RawRecord) -> Framed:
        """The schema and the body of a record. Raises FramingError."""
        match self.schemas.framing:
            case Framing.GLUE:
                return of_glue(record.value)
            case Framing.NONE:
                return Framed(self._unframed(record.topic), record.value)
        return locate(record.value, record.headers)

    def explain(self, record: RawRecord, fault: Fault, number: int) -> tuple[Reason, str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        value = record.value
        try:
            schema_id, body = self._framed(record)
        except FramingError as error:
            return Reason.NOT_FRAMED, str(error)
        match fault:
            case Fault.NOT_FRAMED:
                return Reason.NOT_FRAMED, "the record is not framed"
            case Fault.UNKNOWN_SCHEMA:
                if self.schemas.framing is Framing.REGISTRY:
                    return Reason.UNKNOWN_SCHEMA_ID, self.unknown.explained(schema_id)
                if self.schemas.framing is Framing.NONE:
                    return Reason.UNKNOWN_SCHEMA_ID, f"no input reads the topic {record.topic}"
                return Reason.UNKNOWN_SCHEMA_ID, self.schemas.not_given(record.topic, schema_id)
            case Fault.UNREADABLE_SCHEMA:
                return Reason.UNREADABLE_SCHEMA, self.schemas.unreadable[schema_id]
            case Fault.TOO_DEEP:
                return Reason.UNDECODABLE, (
                    f"the schema is recursive, and in this value of {len(value)} bytes types"
                    f" contain themselves more than {MOST_DEEP} times"
                )
            case Fault.TOO_LARGE:
                return Reason.UNDECODABLE, (
                    f"in this value of {len(value):,} bytes, fields without bytes (by defaults of"
                    f" the reader schema, or null) would take more than {MOST_ADDED:,} bytes"
                )
        writer = self.schemas.writers[schema_id][0].schema
        # A union's branch that there is not has no reader: the writer's fault comes first.
        reader = writer if number < 0 else self.schemas.types[number].readable
        return explain_undecodable(body, writer, reader)

    def of_task(self, planned_at: int, schemas: str | None) -> AvroReader:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        if schemas is None:
            lookup = self.schemas.lookup
            unknown = UnknownIds(lookup, self.schemas.unknown_ids, planned_at)
            return replace(self, unknown=unknown)
        return replace(self, layouts=self.layouts.only(ids_in(schemas)), unknown=UnknownIds())

    def new_schemas(self, records: Iterable[RawRecord]) -> Collection[str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        ids = Counter(self._framed(record).schema for record in records)
        return [str(each) for each in self.unknown.to_learn(ids)]


def avro_reader(
    schemas: ResolvedSchemas, wanted: Sequence[Wanted], vectors: ColumnVectors
) -> AvroReader:
    """The reader of the ``wanted`` columns of each record type."""
    kind_of_topic, other, readable = _topics(schemas)
    layouts = _layouts(schemas, readable, wanted, vectors)
    return AvroReader(layouts, kind_of_topic, other, schemas, UnknownIds())


def _topics(schemas: ResolvedSchemas) -> tuple[dict[str, int], int, list[frozenset[int]]]:
    """Kinds of topics: by name, of any other, and of each the record types that are read in it."""
    kinds: dict[frozenset[int], int] = {}

    def kind(topic: str | None) -> int:
        return kinds.setdefault(types_in(schemas.types, topic), len(kinds))

    other = kind(None)
    topics = sorted({topic for one in schemas.types for topic in one.topics})
    return {topic: kind(topic) for topic in topics}, other, list(kinds)


def _layouts(
    schemas: ResolvedSchemas,
    readable: Iterable[frozenset[int]],
    wanted: Sequence[Wanted],
    vectors: ColumnVectors,
) -> Layouts:
    """The layouts of all schema ids in all kinds of topics."""
    out = LayoutWriter(vectors)
    known: dict[tuple[SchemaId, int | None, int], int] = {}
    ids, guids = in_order(schemas.ids)

    def record(writer: WriterSchema, number: int) -> int:
        key = writer.id, writer.branch, number
        if key not in known:
            reader = schemas.types[number].readable
            known[key] = out.record(number, writer.schema, reader, wanted[number], writer.written)
        return known[key]

    def program(schema_id: SchemaId, read: frozenset[int]) -> int:
        if schema_id in schemas.unreadable:
            return out.unreadable
        writers = schemas.writers[schema_id]
        of: dict[int | None, int] = {}
        for writer in writers:
            if writer.type is not None and writer.type in read:
                of.setdefault(writer.branch, record(writer, writer.type))
        if not of or None in of:
            return of.get(None, out.not_read)
        branches = 1 + max(writer.branch or 0 for writer in writers)
        return out.union([of.get(branch, out.not_read) for branch in range(branches)])

    together = ids_in_order(schemas.ids)
    programs = [[program(each, read) for each in together] for read in readable]
    return out.written(ids, programs, guids)
