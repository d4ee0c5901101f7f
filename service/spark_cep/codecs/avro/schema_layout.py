"""The operations that read, or pass over, the values of one writer's schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from spark_cep.codecs.avro.layout_rows import LayoutRows
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
)
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node, children, kind, reachable
from spark_cep.codecs.avro.value_reader import ValueReader
from spark_cep.codecs.record_reader import Wanted
from spark_cep.codecs.wanted_columns import defaults_in, wanted_in
from spark_cep.columns.representation import MOST_WHOLE_DIGITS, Representation, representation
from spark_cep.packing import pack
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.types import BOOLEAN, DATE, STRING, DecimalType

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
#: Of a field of a record in an array or a map.
_FIELD_BYTES = 64
#: A record type that is used often becomes operations of its own once there are so many.
_MOST_WRITTEN_OUT = 2_000


class SchemaLayout:
    """Writes the operations of one schema, ``writer``, for the columns that are ``wanted``."""

    def __init__(self, out: LayoutRows, writer: AvroSchema, wanted: Wanted) -> None:
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
        if look or (path is not None and wanted_in(self._wanted, path)):
            self.value(action, path, look=look)
        else:
            self.skip(written)

    def _default(self, path: ColumnPath, value: Any) -> None:
        """Write the constants that columns have where the writer has none."""
        out = self._out
        for vector, of, found in defaults_in(self._wanted, path, value):
            if of is Representation.TEXT:
                out.add(ops.SET_TEXT, vector, out.text(found))
            elif of is Representation.OBJECT:
                # Of its place only the row of constants is looked at.
                out.constants.append(found)
                out.add(ops.SET, vector, 0)
                out.add(ops.SET, out.vectors.reader(vector), -len(out.constants))
            else:
                out.add(ops.SET, vector, found)

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
