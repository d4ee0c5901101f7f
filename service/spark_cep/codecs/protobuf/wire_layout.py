"""Columns out of Protobuf in one compiled pass, without an object for any value.

A *layout* is made for the columns that are wanted of some messages: a node for each message that is
gone into, its fields in a table by their numbers, and the constants of fields that are not there,
for :mod:`spark_cep.codecs.protobuf.loops.wire`. A column of repeated fields or whole messages is
read by Protobuf's own parser, out of the whole record: its parts may be anywhere in it. Records
with such a column are parsed when they are read, so that what the parser refuses is a fault.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from numpy.typing import NDArray

from spark_cep.codecs.protobuf.loops import wire as ops
from spark_cep.codecs.protobuf.message_columns import TIMESTAMP_NAME, is_repeated, wrapped
from spark_cep.codecs.protobuf.message_values import MessageParser, MessageValue, plain_bytes
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import Read, Wanted
from spark_cep.codecs.registry.framing import Framing
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.compilation import I64
from spark_cep.columns.representation import Representation, representation
from spark_cep.columns.vectors import Bytes, fixed
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.types import BINARY, SqlType

_F = FieldDescriptor
#: In place of a wire type, of fields that are passed over.
_NEVER = -1
_KINDS = {
    _F.TYPE_INT64: (ops.WHOLE, ops.VARINT), _F.TYPE_UINT64: (ops.UNSIGNED, ops.VARINT),
    _F.TYPE_SINT64: (ops.ZIGZAG, ops.VARINT), _F.TYPE_INT32: (ops.INT, ops.VARINT),
    _F.TYPE_UINT32: (ops.UNSIGNED_INT, ops.VARINT), _F.TYPE_SINT32: (ops.ZIGZAG_INT, ops.VARINT),
    _F.TYPE_BOOL: (ops.BOOLEAN, ops.VARINT), _F.TYPE_ENUM: (ops.SYMBOL, ops.VARINT),
    _F.TYPE_SFIXED64: (ops.FIXED, ops.EIGHT_BYTES),
    _F.TYPE_FIXED64: (ops.FIXED_UNSIGNED, ops.EIGHT_BYTES),
    _F.TYPE_DOUBLE: (ops.DOUBLE, ops.EIGHT_BYTES),
    _F.TYPE_SFIXED32: (ops.FIXED_INT, ops.FOUR_BYTES),
    _F.TYPE_FIXED32: (ops.FIXED_UNSIGNED_INT, ops.FOUR_BYTES),
    _F.TYPE_FLOAT: (ops.FLOAT, ops.FOUR_BYTES), _F.TYPE_STRING: (ops.TEXT, ops.LENGTH),
    _F.TYPE_BYTES: (ops.BYTES, ops.LENGTH), _F.TYPE_MESSAGE: (ops.MESSAGE, ops.LENGTH),
    _F.TYPE_GROUP: (ops.OBJECT, _NEVER),
}  # fmt: skip
_LONG = struct.Struct("<q")

Reader = Callable[[bytes], Any]


@dataclass(frozen=True)
class KnownMessages:
    """The messages of schemas. ``ids`` and ``guids`` as in
    :class:`~spark_cep.codecs.avro.record_layout.Layouts`; ``first`` and ``messages`` as
    :func:`~spark_cep.codecs.protobuf.loops.wire.read_messages` takes them."""

    ids: I64
    guids: NDArray[np.uint64]
    first: I64
    messages: I64


@dataclass(frozen=True)
class WireLayout:
    """The tables of some messages. ``roots``: the node of each; ``parsers``: of those messages
    whose records are parsed when they are read; ``texts``: of constants and symbols."""

    roots: I64
    nodes: I64
    fields: I64
    slots: I64
    constants: I64
    symbols: I64
    members: I64
    inside: I64
    inner: I64
    depth: int
    texts: bytes
    width: int
    readers: tuple[Reader, ...]
    parsers: tuple[MessageParser | None, ...]

    def read(
        self,
        values: Bytes,
        headers: Bytes,
        known: KnownMessages,
        readable: NDArray[np.uint8],
        framing: Framing,
        unframed: int,
    ) -> Read:
        """The records with these values and headers."""
        count, data = len(values), values.data
        wholes = np.zeros((count, max(1, self.width)), np.int64)
        nulls = np.ones(wholes.shape, np.uint8)
        types, faults = np.empty(count, np.int32), np.empty(count, np.int32)
        single, bodies = np.zeros(1, np.float32), np.zeros(count, np.int64)
        ops.read_messages(
            data, values.places, values.nulls, framing.number, headers.data, headers.places,
            headers.nulls, unframed, known.ids, known.guids, known.first, known.messages, readable,
            self.roots, self.nodes, self.fields, self.slots, self.constants, self.symbols,
            self.members, self.inside, self.inner, np.zeros((self.depth + 1, 2), np.int64),
            np.full(len(self.nodes) + 1, -1, np.int64), np.zeros(ops.MOST_GROUPS, np.int64),
            single.view(np.uint32), single, wholes, wholes.view(np.float64), nulls, types, faults,
            bodies,
        )  # fmt: skip
        self._parse(Bytes(bodies, values.nulls, data), types, faults)
        if self.texts:
            data = fixed(np.concatenate([data, np.frombuffer(self.texts, np.uint8)]))
        return Read(
            data, wholes, wholes.view(np.float64), nulls, types, faults, self.readers, (), 0
        )

    def _parse(self, bodies: Bytes, types: NDArray[np.int32], faults: NDArray[np.int32]) -> None:
        """Make a fault of what Protobuf's parser refuses, where values are to be read by it."""
        for number, parser in enumerate(self.parsers):
            if parser is None:
                continue
            rows = np.flatnonzero((types == number) & (faults == Fault.NONE))
            for row in rows.tolist():
                try:
                    parser(bodies.value(row) or b"")
                except ValueError:
                    faults[row] = Fault.UNDECODABLE


def wire_layout(
    messages: Sequence[tuple[Descriptor, MessageParser]],
    wanted: Sequence[Wanted],
    vectors: ColumnVectors,
) -> WireLayout:
    """The layout of the ``wanted`` columns of each of these messages."""
    out = _Tables(vectors)
    roots, parsers = [], []
    for (message, parser), columns in zip(messages, wanted, strict=True):
        made = _MessageLayout(out, parser, columns)
        roots.append(made.node(message, (), 0))
        parsers.append(parser if made.parses else None)
    return out.written(roots, parsers)


class _Tables:
    def __init__(self, vectors: ColumnVectors) -> None:
        self.vectors = vectors
        self.nodes: list[list[int]] = []
        self.fields: list[list[int]] = []
        self.slots: list[int] = []
        self.constants: list[tuple[int, int, int]] = []
        self.symbols: list[tuple[int, int]] = []
        self.members: list[int] = []
        self.inside: list[int] = []
        self.inner: list[int] = []
        self.texts = bytearray()
        self.readers: list[Reader] = []
        self.depth = 0

    def text(self, encoded: bytes) -> int:
        """The place of a constant text, or of other bytes."""
        at = self.texts.find(encoded)
        if at < 0:
            at = len(self.texts)
            self.texts += encoded
        return at << 32 | len(encoded)

    def reader(self, reader: Reader) -> int:
        """The number of a reader."""
        if reader not in self.readers:
            self.readers.append(reader)
        return self.readers.index(reader)

    def written(self, roots: Sequence[int], parsers: Sequence[MessageParser | None]) -> WireLayout:
        """All of them."""

        def table(rows: Sequence[Sequence[int]], columns: int) -> I64:
            return np.array(rows, np.int64).reshape(-1, columns)

        def row(numbers: Sequence[int]) -> I64:
            return np.array(numbers, np.int64)

        return WireLayout(
            row(roots), table(self.nodes, ops.NODE_COLUMNS), table(self.fields, ops.FIELD_COLUMNS),
            row(self.slots), table(self.constants, 3), table(self.symbols, 2), row(self.members),
            row(self.inside), row(self.inner), self.depth, bytes(self.texts), self.vectors.width,
            tuple(self.readers), tuple(parsers),
        )  # fmt: skip


class _MessageLayout:
    """Writes the nodes of one message."""

    def __init__(self, out: _Tables, parser: MessageParser, wanted: Wanted) -> None:
        self._out, self._parser, self._wanted = out, parser, wanted
        self.parses = False

    def node(self, message: Descriptor, path: ColumnPath, depth: int) -> int:
        """The node of a message, which is the column ``path``; its number."""
        number = self._begin(depth)
        made: dict[int, int] = {}
        constants: list[tuple[int, int, int]] = []
        for field in message.fields:
            below = (*path, field.name)
            if any(column[: len(below)] == below for column in self._wanted):
                made[field.number] = self._field(field, below, depth, constants)
        self._oneofs(message, made)
        self._end(number, made, constants)
        return number

    def _begin(self, depth: int) -> int:
        """Add a node at a depth; its number."""
        out = self._out
        out.depth = max(out.depth, depth)
        out.nodes.append([0] * ops.NODE_COLUMNS)
        return len(out.nodes) - 1

    def _end(
        self, number: int, made: Mapping[int, int], constants: Sequence[tuple[int, int, int]]
    ) -> None:
        """Fill a node with its fields, by their numbers, and with the constants of those that are
        not there."""
        out, node = self._out, self._out.nodes[number]
        self._table(node, made)
        node[ops.CONSTANTS] = len(out.constants)
        out.constants += constants
        node[ops.CONSTANTS_END] = len(out.constants)

    def _row(
        self, number: int, field: FieldDescriptor, vector: int, of: SqlType | None
    ) -> list[int]:
        """The row of a field with this number, whose value is one of ``field``."""
        row = [0] * ops.FIELD_COLUMNS
        row[ops.NUMBER], row[ops.VECTOR], row[ops.READER_VECTOR] = number, vector, -1
        row[ops.KIND], row[ops.WIRE] = _KINDS[field.type]
        if of is not None and representation(of) is Representation.OBJECT:
            row[ops.READER_VECTOR] = self._out.vectors.reader(vector)
        return row

    def _field(
        self,
        field: FieldDescriptor,
        path: ColumnPath,
        depth: int,
        constants: list[tuple[int, int, int]],
    ) -> int:
        """A field, with the constants that it has where it is not there; its row."""
        out = self._out
        vector, of = self._wanted.get(path, (-1, None))
        first_node = len(out.nodes)
        row = self._row(field.number, field, vector, of)
        if is_repeated(field):
            # The parser finds its values; what is here is passed over.
            row[ops.KIND], row[ops.WIRE] = ops.OBJECT, _NEVER
            self._left(row, path)
            constants.append((vector, 0, ops.IS_PLACE))
            constants.append((row[ops.READER_VECTOR], row[ops.READER], ops.IS_VALUE))
        elif field.message_type is not None:
            self._message(row, field, path, depth)
        else:
            self._scalar(row, field, of, constants)
        row[ops.INSIDE] = len(out.inside)
        out.inside += [
            self._wanted[column][0] for column in self._wanted if column[: len(path)] == path
        ]
        row[ops.INSIDE_END] = len(out.inside)
        row[ops.NODES] = len(out.inner)
        out.inner += range(first_node, len(out.nodes))
        row[ops.NODES_END] = len(out.inner)
        out.fields.append(row)
        return len(out.fields) - 1

    def _message(
        self, row: list[int], field: FieldDescriptor, path: ColumnPath, depth: int
    ) -> None:
        inner = wrapped(field)
        if field.message_type.full_name == TIMESTAMP_NAME:
            row[ops.KIND] = ops.TIMESTAMP
        elif inner is not None:
            row[ops.NODE] = self._wrapper(inner, path, depth + 1)
            row[ops.VECTOR] = -1
        elif any(len(column) > len(path) and column[: len(path)] == path
                 for column in self._wanted):  # fmt: skip
            row[ops.NODE] = self.node(field.message_type, path, depth + 1)
            if row[ops.VECTOR] >= 0:
                self._left(row, path)
        else:
            row[ops.KIND] = ops.OBJECT
            self._left(row, path)

    def _wrapper(self, field: FieldDescriptor, path: ColumnPath, depth: int) -> int:
        """The node of a wrapper, whose value is the column itself."""
        out = self._out
        number = self._begin(depth)
        vector, of = self._wanted[path]
        row = self._row(1, field, vector, of)
        constants: list[tuple[int, int, int]] = []
        self._scalar(row, field, of, constants)
        out.fields.append(row)
        self._end(number, {1: len(out.fields) - 1}, constants)
        return number

    def _scalar(
        self,
        row: list[int],
        field: FieldDescriptor,
        of: SqlType | None,
        constants: list[tuple[int, int, int]],
    ) -> None:
        out, vector = self._out, row[ops.VECTOR]
        assert of is not None
        if field.enum_type is not None:
            row[ops.SYMBOLS] = len(out.symbols)
            # Of several names of a number the first one counts, as for Protobuf's parser.
            names = {each.number: each.name for each in reversed(field.enum_type.values)}
            out.symbols += [(number, out.text(name.encode())) for number, name in names.items()]
            row[ops.SYMBOLS_END] = len(out.symbols)
        if of == BINARY:
            row[ops.READER] = out.reader(plain_bytes)
        if field.has_presence and not field.has_default_value:
            return
        default = field.default_value
        if field.enum_type is not None:
            default = field.enum_type.values_by_number[default].name
        match representation(of):
            case Representation.WHOLE:
                constants.append((vector, int(default), ops.IS_VALUE))
            case Representation.DOUBLE:
                (bits,) = _LONG.unpack(struct.pack("<d", default))
                constants.append((vector, bits, ops.IS_VALUE))
            case Representation.TEXT:
                constants.append((vector, out.text(default.encode()), ops.IS_TEXT))
            case Representation.OBJECT:
                constants.append((vector, out.text(default), ops.IS_TEXT))
                constants.append((row[ops.READER_VECTOR], row[ops.READER], ops.IS_VALUE))

    def _left(self, row: list[int], path: ColumnPath) -> None:
        """The value is read by Protobuf's parser."""
        self.parses = True
        row[ops.READER] = self._out.reader(MessageValue(self._parser, path))

    def _oneofs(self, message: Descriptor, made: dict[int, int]) -> None:
        out = self._out
        for oneof in message.oneofs:
            of = [field.number for field in oneof.fields]
            if len(of) < 2 or not any(number in made for number in of):  # noqa: PLR2004
                continue
            # One that is not wanted takes the place of those that are.
            for number in of:
                if number not in made:
                    made[number] = self._unwanted(message.fields_by_number[number])
            for number in of:
                row = out.fields[made[number]]
                row[ops.ONEOF] = len(out.members)
                out.members += [made[other] for other in of if other != number]
                row[ops.ONEOF_END] = len(out.members)

    def _unwanted(self, field: FieldDescriptor) -> int:
        row = [0] * ops.FIELD_COLUMNS
        row[ops.NUMBER], row[ops.VECTOR], row[ops.READER_VECTOR] = field.number, -1, -1
        row[ops.KIND], row[ops.WIRE] = _KINDS[field.type]
        if row[ops.KIND] in (ops.MESSAGE, ops.TIMESTAMP, ops.TEXT):
            row[ops.KIND] = ops.BYTES
        self._out.fields.append(row)
        return len(self._out.fields) - 1

    def _table(self, node: list[int], numbers: Mapping[int, int]) -> None:
        """Write the table of fields of a node, by their numbers."""
        size = 1 << (2 * len(numbers)).bit_length()
        slots = [-1] * size
        for number, row in numbers.items():
            slot = number & size - 1
            while slots[slot] >= 0:
                slot = slot + 1 & size - 1
            slots[slot] = row
        node[ops.SLOTS], node[ops.MASK] = len(self._out.slots), size - 1
        self._out.slots += slots
