"""The reader of Protobuf records, and the format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from google.protobuf.descriptor import Descriptor

from spark_cep.codecs.output.dead_letters import LONGEST_DETAIL, Reason
from spark_cep.codecs.protobuf.descriptors import MessageFiles
from spark_cep.codecs.protobuf.loops import wire as ops
from spark_cep.codecs.protobuf.message_values import MessageParser, misfits
from spark_cep.codecs.protobuf.wire_layout import KnownMessages, WireLayout, wire_layout
from spark_cep.codecs.protobuf.writers import WriterMessage, differences, index_of
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import RawRecord, Read, RecordReader, Wanted
from spark_cep.codecs.registry.event_types import types_in
from spark_cep.codecs.registry.framing import (
    Framing,
    FramingError,
    MessageFraming,
    message_framing,
    message_of_glue,
)
from spark_cep.codecs.registry.glue_bodies import without_compression
from spark_cep.codecs.registry.schema_ids import (
    SchemaId,
    halves_of,
    ids_in,
    ids_in_order,
    in_order,
    named,
)
from spark_cep.codecs.registry.schema_lookup import UnknownIds
from spark_cep.codecs.registry.schemas_by_id import SchemasById
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.vectors import Bytes
from spark_cep.errors import (
    SchemaError,
    printable,
    shortened,
)

if TYPE_CHECKING:
    # Its HTTP client takes a while to import, and these travel to each Python worker.
    from spark_cep.codecs.registry.registry import Registry


@dataclass(frozen=True)
class ProtobufReader(RecordReader):
    """Reads by the layout of each type, which is found by the schema and the index in front, or by
    the topic."""

    layout: WireLayout
    known: KnownMessages
    schemas: ProtobufFormat
    unknown: UnknownIds

    def read(self, topic: str, values: Bytes, headers: Bytes) -> Read:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        schemas, added = self.schemas, 0
        if schemas.framing is Framing.GLUE:
            values, added = without_compression(values)
        readable = np.zeros(len(schemas.types), np.uint8)
        readable[[*types_in(schemas.types, topic)]] = 1
        number = schemas.unframed.number(topic)
        read = self.layout.read(
            values, headers, self.known, readable, schemas.framing,
            -1 if number is None else number,
        )  # fmt: skip
        return read._replace(added=read.added + added)

    def explain(self, record: RawRecord, fault: Fault, number: int) -> tuple[Reason, str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        body = record.value
        if self.schemas.framing is not Framing.NONE:
            try:
                schema_id, index, body = self._framed(record)
            except FramingError as error:
                return Reason.NOT_FRAMED, str(error)
            match fault:
                case Fault.UNKNOWN_SCHEMA if self.schemas.framing is Framing.GLUE:
                    return Reason.UNKNOWN_SCHEMA_ID, self.schemas.not_given(record.topic, schema_id)
                case Fault.UNKNOWN_SCHEMA:
                    return Reason.UNKNOWN_SCHEMA_ID, self.unknown.explained(schema_id)
                case Fault.UNREADABLE_SCHEMA:
                    return Reason.UNREADABLE_SCHEMA, self.schemas.unreadable[schema_id]
            if number < 0:
                return Reason.UNDECODABLE, (
                    f"the schema {schema_id} has no message with the index"
                    f" {list(index) if index else 'that is in front of the body'}"
                )
        return self._body(body, fault, number)

    def _framed(self, record: RawRecord) -> MessageFraming:
        """The schema, the message and the body of a record. Raises FramingError."""
        if self.schemas.framing is Framing.GLUE:
            return message_of_glue(record.value)
        return message_framing(record.value, record.headers)

    def _body(self, body: bytes, fault: Fault, number: int) -> tuple[Reason, str]:
        parser = self.schemas.parsers[number]
        try:
            message = parser(body)
        except ValueError:
            return Reason.UNDECODABLE, (
                f"the {len(body):,} bytes of the body are not a message {parser.name}, or a text in"
                " it is not UTF-8"
            )
        if fault is Fault.BAD_VALUE:
            why = next(misfits(message), "a number or a time is out of its column's range")
            return Reason.VALUE_OUT_OF_RANGE, shortened(printable(why), LONGEST_DETAIL - 1)
        return Reason.UNDECODABLE, f"a text of the message {parser.name} is not UTF-8"

    def of_task(self, planned_at: int, schemas: str | None) -> ProtobufReader:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        if schemas is None:
            lookup = self.schemas.lookup
            unknown = UnknownIds(lookup, self.schemas.unknown_ids, planned_at)
            return replace(self, unknown=unknown)
        return replace(self, known=self.schemas.known_messages(ids_in(schemas)))

    def new_schemas(self, records: Iterable[RawRecord]) -> Collection[str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordReader`."""
        ids = Counter(self._framed(each).schema for each in records)
        return [str(each) for each in self.unknown.to_learn(ids)]


@dataclass
class ProtobufFormat(SchemasById[MessageFiles, WriterMessage]):
    """Protobuf: the record types with the parser of each; of the schemas of records the fields are
    found by the numbers that the types have. ``unframed``: of records without framing, the type of
    each topic."""

    parsers: tuple[MessageParser, ...] = ()

    def reader(self, wanted: Sequence[Wanted], vectors: ColumnVectors) -> ProtobufReader:
        """See :class:`~spark_cep.codecs.record_reader.RecordFormat`."""
        messages = [(each.files.message(each.name), each) for each in self.parsers]
        layout = wire_layout(messages, wanted, vectors)
        return ProtobufReader(layout, self.known_messages(self.ids), self, UnknownIds())

    def known_messages(self, ids: Collection[SchemaId]) -> KnownMessages:
        """The messages of these schemas."""
        known = [each for each in ids if each in self.ids]
        first, messages = [0], list[tuple[int, int]]()
        for schema_id in ids_in_order(known):
            messages += [
                (one.message, -1 if one.type is None else one.type)
                for one in self.writers.get(schema_id, ())
            ]
            first.append(len(messages))
        numbers, guids = in_order(known)
        return KnownMessages(
            np.array(numbers, np.int64),
            halves_of(guids),
            np.array(first, np.int64),
            np.array(messages, np.int64).reshape(-1, 2),
        )

    def registered(self, registry: Registry, schema_id: SchemaId) -> MessageFiles:
        """See :class:`~spark_cep.codecs.registry.schemas_by_id.SchemasById`."""
        return registry.get_messages(schema_id)

    def writers_in(self, schema_id: SchemaId, schema: MessageFiles) -> Iterable[WriterMessage]:
        """See :class:`~spark_cep.codecs.registry.schemas_by_id.SchemasById`."""
        names: Mapping[str, int] = {one.name: one.number for one in self.types}
        of_glue = self.framing is Framing.GLUE
        for index, message in schema.numbered() if of_glue else schema.messages():
            number = names.get(message.full_name)
            if number is not None and (problems := differences(message, self._message(number))):
                raise SchemaError(
                    f"{named(schema_id)}: {message.full_name} cannot be read as that of input"
                    f" {self.types[number].input}: {'; '.join(problems)}"
                )
            key = index_of(index)
            if key is not None:
                yield WriterMessage(key, number)

    def _message(self, number: int) -> Descriptor:
        parser = self.parsers[number]
        return parser.files.message(parser.name)


def prepare() -> None:
    """Compile the loops with a batch without records, or load what was compiled before."""
    nothing = Bytes.of(())
    reader = ProtobufFormat(()).reader((), ColumnVectors())
    reader.read("", nothing, nothing)
    assert ops.READ == Fault.NONE
