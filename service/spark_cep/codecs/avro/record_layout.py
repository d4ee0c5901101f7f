"""Columns out of Avro records in one compiled pass, without an object for any of them.

A *layout* says for one writer's schema which bytes to skip and which to read, as rows of
operations for :mod:`spark_cep.codecs.avro.loops.record_bytes`. A column whose values are no numbers
and no text is looked at (its bytes must be sound) and left where it is: its vector has the place,
another vector the number of its reader among :attr:`Layouts.readers`, or below 0 that of a
constant, for who wants the value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from spark_cep.codecs.avro.loops import record_bytes as ops
from spark_cep.codecs.avro.resolved import (
    Action,
    Fields,
    Items,
    Nothing,
    ResolvedMember,
    Scalar,
    Skipped,
    Symbols,
    Union,
    Unreadable,
    resolved,
)
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node, children, kind, reachable
from spark_cep.codecs.avro.value_reader import ValueReader
from spark_cep.codecs.record_reader import Read, Wanted
from spark_cep.codecs.registry.framing import Framing
from spark_cep.codecs.registry.schema_ids import SchemaId
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.representation import (
    MOST_WHOLE_DIGITS,
    Representation,
    representation,
    to_whole,
)
from spark_cep.columns.vectors import Bytes
from spark_cep.packing import pack
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.types import BOOLEAN, DATE, STRING, DecimalType, SqlType

_SKIP = {
    "int": (ops.SKIP_NUMBER, ops.INT_BYTES),
    "enum": (ops.SKIP_NUMBER, ops.INT_BYTES),
    "long": (ops.SKIP_NUMBER, ops.LONG_BYTES),
    "boolean": (ops.SKIP_BYTES, 1),
    "float": (ops.SKIP_BYTES, 4),
    "double": (ops.SKIP_BYTES, 8),
    "string": (ops.SKIP_TEXT, 0),
    "bytes": (ops.SKIP_TEXT, 0),
}
_MOST_BYTES = {"int": ops.INT_BYTES, "long": ops.LONG_BYTES}
_LONG = struct.Struct("<q")
#: Of a field of a record in an array or a map.
_FIELD_BYTES = 64
#: A record type that is used often becomes operations of its own once there are so many.
_MOST_WRITTEN_OUT = 2_000

_Row = tuple[int, int, int, int]


@dataclass(frozen=True)
class Layouts:
    """The operations of all schemas. ``programs``: by kind of topic the first of each id, and then
    of each of ``guids``, of which the upper and the lower half is there;
    ``symbols``: those of all enums, and constant texts, one behind the other; ``depth``: how deep
    items and types that contain themselves may stand in each other."""

    ids: NDArray[np.int64]
    guids: NDArray[np.uint64]
    programs: NDArray[np.int64]
    code: NDArray[np.int64]
    symbols: bytes
    depth: int
    width: int
    readers: tuple[ValueReader, ...]
    constants: tuple[Any, ...]

    def only(self, ids: Collection[SchemaId]) -> Layouts:
        """Return the layouts of these ids only; all others are unknown."""
        mine: list[SchemaId] = self.ids.tolist()
        mine += [UUID(int=upper << 64 | lower) for upper, lower in self.guids.tolist()]
        kept = np.array([each in ids for each in mine], bool)
        programs = np.ascontiguousarray(self.programs[:, kept])
        count = len(self.ids)
        return replace(
            self, ids=self.ids[kept[:count]], guids=self.guids[kept[count:]], programs=programs
        )

    def read(
        self,
        values: Bytes,
        headers: Bytes,
        kinds: NDArray[np.int32],
        framing: Framing = Framing.REGISTRY,
        unframed: int = 0,
    ) -> Read:
        """The records with these values and headers, each of a topic of one of the ``kinds``.
        ``unframed``: the id of their schema, where there is no framing."""
        data = values.data
        count, symbols = len(values), len(data)
        if self.symbols:
            data = np.concatenate([data, np.frombuffer(self.symbols, np.uint8)])
            data.flags.writeable = False
        wholes = np.zeros((count, max(1, self.width)), np.int64)
        nulls = np.ones(wholes.shape, np.uint8)
        types, faults = np.empty(count, np.int32), np.empty(count, np.int32)
        single, added = np.zeros(1, np.float32), np.zeros(1, np.int64)
        ops.read_records(
            data, values.places, values.nulls, framing.number, headers.data, headers.places,
            headers.nulls, unframed, self.ids, self.guids, self.programs, kinds, self.code, symbols,
            np.zeros((self.depth + 1, 2), np.int64), single.view(np.uint32), single,
            wholes, wholes.view(np.float64), nulls, types, faults, added,
        )  # fmt: skip
        return Read(
            data, wholes, wholes.view(np.float64), nulls, types, faults, self.readers,
            self.constants, int(added[0]),
        )  # fmt: skip


class LayoutWriter:
    """Puts the layouts of several schemas together, for columns in ``vectors``."""

    def __init__(self, vectors: ColumnVectors) -> None:
        self.rows: list[_Row] = []
        self.depth = 0
        self.readers: list[ValueReader] = []
        self.constants: list[Any] = []
        self.vectors = vectors
        self._symbols = bytearray()
        self._ends = {
            outcome: self.add(ops.END, outcome)
            for outcome in (ops.NOT_READ, ops.UNREADABLE, ops.UNDECODABLE)
        }

    @property
    def not_read(self) -> int:
        """The program of records that are not read."""
        return self._ends[ops.NOT_READ]

    @property
    def unreadable(self) -> int:
        """The program of records whose schema cannot be read."""
        return self._ends[ops.UNREADABLE]

    def record(
        self,
        number: int,
        writer: AvroSchema,
        reader: AvroSchema,
        wanted: Wanted,
        written: Node | None = None,
    ) -> int:
        """The program that reads columns of the type ``written`` of ``writer`` (of all of it) as
        ``reader`` has them, of records of type ``number``."""
        layout = _Layout(self, writer, wanted)
        first = self.add(ops.TYPE, number)
        layout.value(resolved(writer, reader, written), ())
        self.add(ops.END, ops.READ)
        layout.write_called()
        self.depth = max(self.depth, layout.depth)
        return first

    def place(self, writer: AvroSchema) -> int:
        """The program that passes over a value of ``writer``, and leaves its place in vector 0."""
        layout = _Layout(self, writer, {})
        first = self.add(ops.BEGIN, 0)
        layout.skip(writer.root)
        self.add(ops.FINISH, 0, 1)
        self.add(ops.END, ops.READ)
        layout.write_called()
        self.depth = max(self.depth, layout.depth)
        return first

    def union(self, programs: Sequence[int]) -> int:
        """The program of a union of records, by that of each branch."""
        first = self.add(ops.UNION, len(programs))
        for each in programs:
            self.add(ops.JUMP, each)
        return first

    def written(
        self, ids: Sequence[int], programs: Sequence[Sequence[int]], guids: Sequence[UUID] = ()
    ) -> Layouts:
        """All of them, by kind of topic for each of these schema ids and then GUIDs, which are in
        order."""
        halves = [(each.int >> 64, each.int & (1 << 64) - 1) for each in guids]
        return Layouts(
            np.array(ids, np.int64),
            np.array(halves, np.uint64).reshape(len(guids), 2),
            np.array(programs, np.int64).reshape(len(programs), len(ids) + len(guids)),
            np.array(self.rows, np.int64).reshape(-1, 4),
            bytes(self._symbols),
            self.depth,
            self.vectors.width,
            tuple(self.readers),
            tuple(self.constants),
        )

    # What layouts are made of.

    def add(self, code: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        """One operation; its place."""
        self.rows.append((code, a, b, c))
        return len(self.rows) - 1

    def jump(self, place: int) -> None:
        """The jump at ``place`` leads to what is written next."""
        code, _, b, c = self.rows[place]
        self.rows[place] = (code, len(self.rows), b, c)

    def text(self, text: str) -> int:
        """The place of a constant text."""
        encoded = text.encode()
        at = self._symbols.find(encoded)
        if at < 0:
            at = len(self._symbols)
            self._symbols += encoded
        return at << 32 | len(encoded)


class _Layout:
    """Writes the operations of one schema."""

    def __init__(self, out: LayoutWriter, writer: AvroSchema, wanted: Wanted) -> None:
        self.depth = 0
        self._out, self._writer, self._wanted = out, writer, wanted
        self._first = len(out.rows)
        self._open = 0
        #: By type that is written once, the calls of it.
        self._calls: dict[str, list[int]] = {}
        self._recursive = {
            name
            for name, definition in writer.named.items()
            if any(name in reachable(child, writer.named) for child in children(definition))
        }

    def value(self, action: Action, path: ColumnPath | None, *, look: bool = False) -> None:
        """Read what is wanted of a value, which is the column ``path`` (``None``: inside one);
        ``look``: all of it must be sound."""
        vector, of = self._wanted.get(path, (-1, None)) if path is not None else (-1, None)
        if of is not None and representation(of) is Representation.OBJECT:
            self._left_in_place(action, path, vector)
        else:
            self._read(action, path, vector, look=look)

    def _left_in_place(self, action: Action, path: ColumnPath | None, vector: int) -> None:
        readers = self._out.readers
        reader = ValueReader(action, self._writer)
        if reader not in readers:
            readers.append(reader)
        self._out.add(ops.BEGIN, vector)
        nulls = self._read(action, path, -1, look=True)
        if not isinstance(action, Nothing):
            self._out.add(
                ops.FINISH, vector, self._out.vectors.reader(vector), readers.index(reader)
            )
        for each in nulls:
            self._out.jump(each)

    def _read(  # noqa: C901  a case for each kind of value
        self, action: Action, path: ColumnPath | None, vector: int, *, look: bool
    ) -> list[int]:
        """Write what reads a value; the jumps to behind it that nulls take."""
        out = self._out
        match action:
            case Nothing():
                pass
            case Unreadable():
                out.add(ops.END, ops.UNDECODABLE)
            case Skipped(written):
                self.skip(written)
            case Scalar():
                self._scalar(action, vector)
            case Symbols(symbols):
                out.add(ops.READ_SYMBOL, vector, len(symbols))
                for symbol in symbols:
                    out.add(ops.READ_SYMBOL, -1 if symbol is None else out.text(symbol))
            case Items(item, is_map):
                self._items(is_map=is_map, item=partial(self.value, item, None, look=True))
            case Union(branches):
                bodies = [partial(self._read, b, path, vector, look=look) for b in branches]
                return self._union(bodies, [isinstance(b, Nothing) for b in branches])
            case ResolvedMember(number, _, value, written):
                below = None if path is None else (*path, f"member{number}")
                self._part(value, written, below, look=look)
            case Fields():
                for field in action.fields:
                    below = None if path is None or field.name is None else (*path, field.name)
                    self._part(field.value, field.written, below, look=look)
                if path is not None:
                    for name, value in action.defaults.items():
                        self._default((*path, name), value)
                elif size := _without_bytes(action):
                    out.add(ops.ADDED, size)
        return []

    def _part(self, action: Action, written: Node, path: ColumnPath | None, *, look: bool) -> None:
        """A part of a value, read where something of it is wanted, or all is looked at."""
        if look or (path is not None and self._columns(path)):
            self.value(action, path, look=look)
        else:
            self.skip(written)

    def _columns(self, path: ColumnPath) -> list[ColumnPath]:
        """Return the parts of a column that are needed."""
        return [column for column in self._wanted if column[: len(path)] == path]

    def _default(self, path: ColumnPath, value: Any) -> None:
        """Write the constants that columns have where the writer has none."""
        for column in self._columns(path):
            found = value
            for name in column[len(path) :]:
                found = None if found is None else found[name]
            if found is not None:
                self._constant(*self._wanted[column], found)

    def _constant(self, vector: int, of: SqlType, value: Any) -> None:
        out = self._out
        match representation(of):
            case Representation.WHOLE:
                out.add(ops.SET, vector, to_whole(of)(value))
            case Representation.DOUBLE:
                out.add(ops.SET, vector, *_LONG.unpack(struct.pack("<d", value)))
            case Representation.TEXT:
                out.add(ops.SET_TEXT, vector, out.text(value))
            case Representation.OBJECT:
                # Of its place only the row of constants is looked at.
                out.constants.append(value)
                out.add(ops.SET, vector, 0)
                out.add(ops.SET, out.vectors.reader(vector), -len(out.constants))

    def _scalar(self, action: Scalar, vector: int) -> None:
        out, of, written = self._out, action.type, action.written
        if isinstance(of, DecimalType):
            length = action.size if written == "fixed" else -1
            bound = 10**of.precision
            if of.precision <= MOST_WHOLE_DIGITS:
                out.add(ops.READ_DECIMAL, vector, bound, length)
            else:
                out.add(ops.CHECK_DECIMAL, length, bound >> 64, _signed(bound))
        elif written in _MOST_BYTES:
            out.add(_number_code(action), vector, _MOST_BYTES[written])
        elif written in ("float", "double"):
            out.add(ops.READ_FLOAT if written == "float" else ops.READ_DOUBLE, vector)
        elif of == BOOLEAN:
            out.add(ops.READ_BOOLEAN, vector)
        elif of == STRING:
            out.add(ops.READ_TEXT, vector)
        elif written == "fixed":
            out.add(ops.SKIP_BYTES, action.size)
        else:
            out.add(ops.SKIP_TEXT)

    def _union(self, bodies: Sequence[Callable[[], Any]], null: Sequence[bool]) -> list[int]:
        """A union; the jumps of those branches that are ``null``."""
        out = self._out
        out.add(ops.UNION, len(bodies))
        table = [out.add(ops.JUMP) for _ in bodies]
        ends = []
        for place, body in zip(table, bodies, strict=True):
            out.jump(place)
            body()
            ends.append(out.add(ops.JUMP))
        for end in ends:
            out.jump(end)
        return [end for end, is_null in zip(ends, null, strict=True) if is_null]

    def _items(self, item: Callable[[], None], *, is_map: bool, look: bool = True) -> None:
        """An array or a map; ``look``: at its keys, too."""
        out = self._out
        items = out.add(ops.ITEMS, 0, int(look))
        self._open += 1
        self.depth = max(self.depth, self._open)
        if is_map:
            out.add(*(ops.READ_TEXT, -1) if look else _SKIP["string"])
        item()
        self._open -= 1
        out.add(ops.NEXT_ITEM)
        out.jump(items)

    def skip(self, written: Node) -> None:
        """Pass over a value."""
        if isinstance(written, str) and written in self._writer.named:
            long = len(self._out.rows) - self._first > _MOST_WRITTEN_OUT
            definition = self._writer.named[written]
            if written in self._recursive or (long and definition["type"] == "record"):
                self._calls.setdefault(written, []).append(self._out.add(ops.CALL))
                return
        self._skip_node(self._writer.resolve(written))

    def _skip_node(self, node: Node) -> None:
        if isinstance(node, list):
            self._union([partial(self.skip, branch) for branch in node], [False] * len(node))
            return
        what = kind(node)
        if what in _SKIP:
            self._out.add(*_SKIP[what])
        elif isinstance(node, dict) and what == "fixed":
            self._out.add(ops.SKIP_BYTES, node["size"])
        elif isinstance(node, dict) and what == "record":
            for field in node["fields"]:
                self.skip(field["type"])
        elif isinstance(node, dict) and what in ("array", "map"):
            item = partial(self.skip, node["items" if what == "array" else "values"])
            self._items(item, is_map=what == "map", look=False)

    def write_called(self) -> None:
        """Write the types that are written once, behind all others."""
        written: dict[str, int] = {}
        while waiting := [name for name in self._calls if name not in written]:
            for name in waiting:
                written[name] = len(self._out.rows)
                self._skip_node(self._writer.named[name])
                self._out.add(ops.RETURN)
        if written:
            self.depth = ops.MOST_DEEP
        for name, calls in self._calls.items():
            for call in calls:
                self._out.rows[call] = (ops.CALL, written[name], 0, 0)


def _number_code(action: Scalar) -> int:
    if action.read in ("float", "double"):
        return ops.READ_AS_FLOAT if action.read == "float" else ops.READ_AS_DOUBLE
    if action.micros:
        return ops.READ_MILLIS if action.micros > 1 else ops.READ_MICROS
    return ops.READ_DATE if action.type == DATE else ops.READ_WHOLE


def _without_bytes(action: Fields) -> int:
    """Return about how much memory the fields take that a record has without bytes for them, as a
    value here or packed."""
    written = {each.name for each in action.fields if not isinstance(each.value, Nothing)}
    added = [name for name in action.names if name not in written]
    return sum(_FIELD_BYTES + len(pack(action.defaults.get(name))) for name in added)


def _signed(number: int) -> int:
    """The lower 64 bits as a signed number."""
    low = number & (1 << 64) - 1
    return low - (1 << 64) if low >> 63 else low
