"""Columns out of Avro records in one compiled pass, without an object for any of them.

A *layout* says for one writer's schema which bytes to skip and which to read, as rows of operations
for :mod:`service.codecs.record_bytes`. It covers records whose columns are read as they were
written: numbers, truth, text, enums, dates and timestamps, nullable or not, also in nested records;
a column that the writer does not have and that is NULL then. For anything else (decimals, other
defaults, columns inside arrays and maps, promotions, recursive types) there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.codecs import record_bytes
from service.codecs.avro_schema import AvroSchema, Node, kind
from service.pattern.expressions import ColumnPath
from service.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
)

#: By type and Avro's name for it.
_READ: dict[tuple[SqlType, str], int] = {
    (INT, "int"): record_bytes.READ_INT,
    (BIGINT, "long"): record_bytes.READ_LONG,
    (STRING, "string"): record_bytes.READ_TEXT,
    (DATE, "int"): record_bytes.READ_DATE,
    (BOOLEAN, "boolean"): record_bytes.READ_BOOLEAN,
    (FLOAT, "float"): record_bytes.READ_FLOAT,
    (DOUBLE, "double"): record_bytes.READ_DOUBLE,
}
_READ_TIMESTAMP = {
    "timestamp-millis": record_bytes.READ_MILLIS,
    "timestamp-micros": record_bytes.READ_MICROS,
}
#: Types whose columns can be read.
READABLE = frozenset({*(of for of, _ in _READ), TIMESTAMP})

_SKIP = {
    "int": (record_bytes.SKIP_NUMBER, record_bytes.INT_BYTES),
    "enum": (record_bytes.SKIP_NUMBER, record_bytes.INT_BYTES),
    "long": (record_bytes.SKIP_NUMBER, record_bytes.LONG_BYTES),
    "boolean": (record_bytes.SKIP_BYTES, 1),
    "float": (record_bytes.SKIP_BYTES, 4),
    "double": (record_bytes.SKIP_BYTES, 8),
    "string": (record_bytes.SKIP_TEXT, 0),
    "bytes": (record_bytes.SKIP_TEXT, 0),
}

_Row = tuple[int, int]
#: Lane and type by column.
Wanted = Mapping[ColumnPath, tuple[int, SqlType]]


class NoLayoutError(Exception):
    """Records of this writer are not read here; the text says what is in the way."""


class Read(NamedTuple):
    """What records hold: a row each of ``wholes`` and ``doubles`` (the same memory) and ``nulls``,
    the place of its schema id among those of the layouts (-1: none of them), and its outcome
    (:data:`service.codecs.record_bytes.READ` and what follows it). Texts are places in ``data``."""

    data: NDArray[np.uint8]
    wholes: NDArray[np.int64]
    doubles: NDArray[np.float64]
    nulls: NDArray[np.uint8]
    layouts: NDArray[np.int32]
    outcomes: NDArray[np.uint8]


@dataclass(frozen=True)
class Layouts:
    """The operations of all schema ids; ``starts`` -1 where records are not to be read;
    ``symbols``: those of all enums, one behind the other."""

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    code: NDArray[np.int64]
    symbols: bytes
    depth: int
    width: int

    def read(
        self, data: NDArray[np.uint8], ends: NDArray[np.int32], present: NDArray[np.uint8]
    ) -> Read:
        """The records of a pool: record *i* is ``data[ends[i]:ends[i + 1]]``, framed."""
        count, symbols = len(present), len(data)
        if self.symbols:
            data = np.concatenate([data, np.frombuffer(self.symbols, np.uint8)])
            data.flags.writeable = False
        wholes = np.zeros((count, max(1, self.width)), np.int64)
        nulls = np.ones(wholes.shape, np.uint8)
        layouts, outcomes = np.empty(count, np.int32), np.empty(count, np.uint8)
        single = np.zeros(1, np.float32)
        record_bytes.read_records(
            data, ends, present, self.ids, self.starts, self.code, symbols,
            np.zeros((self.depth + 1, 2), np.int64), single.view(np.uint32), single,
            wholes, wholes.view(np.float64), nulls, layouts, outcomes,
        )  # fmt: skip
        return Read(data, wholes, wholes.view(np.float64), nulls, layouts, outcomes)


class LayoutWriter:
    """Puts the layouts of several schema ids together."""

    def __init__(self) -> None:
        self._starts: dict[int, int] = {}
        self._rows: list[_Row] = []
        self._symbols = bytearray()
        self._depth = 0

    def skip(self, schema_id: int) -> None:
        """Records with this id are not read."""
        self._starts[schema_id] = -1

    def add(self, schema_id: int, writer: AvroSchema, reader: AvroSchema, wanted: Wanted) -> None:
        """Read columns from records of ``writer`` as ``reader`` has them.

        Raises NoLayoutError where that is not supported.
        """
        if writer.recursive or reader.recursive:
            raise NoLayoutError("a type contains itself")
        one = _Layout(writer, reader, wanted, len(self._rows), self._symbols)
        one.value(writer.root, reader.root, ())
        one.add(record_bytes.END)
        self._starts[schema_id] = len(self._rows)
        self._rows += one.rows
        self._depth = max(self._depth, one.depth)

    def written(self, width: int) -> Layouts:
        """All of them, for records with so many lanes."""
        ids = sorted(self._starts)
        return Layouts(
            np.array(ids, np.int64),
            np.array([self._starts[each] for each in ids], np.int64),
            np.array(self._rows, np.int64).reshape(-1, 2),
            bytes(self._symbols),
            self._depth,
            width,
        )


class _Layout:
    """Writes the operations of one schema; ``first`` is the number of their first row. Adds the
    symbols that they name to ``symbols``."""

    def __init__(
        self,
        writer: AvroSchema,
        reader: AvroSchema,
        wanted: Wanted,
        first: int,
        symbols: bytearray,
    ) -> None:
        self.rows: list[_Row] = []
        self.depth = 0
        self._writer, self._reader, self._wanted, self._first = writer, reader, wanted, first
        self._symbols = symbols
        self._open = 0

    def add(self, code: int, a: int = 0) -> int:
        """One operation; its place."""
        self.rows.append((code, a))
        return len(self.rows) - 1

    def value(self, writer: Node, reader: Node, path: ColumnPath) -> None:
        """Read what is wanted of a value, which is the column ``path``."""
        below = [column for column in self._wanted if column[: len(path)] == path]
        if not below:
            self._skip(writer)
            return
        written, read = self._writer.resolve(writer), self._reader.resolve(reader)
        if isinstance(written, list):
            self._nullable(written, read, path)
            return
        if isinstance(read, list):
            read = self._reader.resolve(_other_than_null(read))
        if kind(written) == "record" and kind(read) == "record":
            self._record(written, read, path)
            return
        lane, of = self._wanted.get(path, (0, None))
        alike = kind(written) == kind(read) and _logical(written) == _logical(read)
        if below != [path] or not alike:
            raise self._unlike(path)
        if isinstance(written, dict) and isinstance(read, dict) and kind(written) == "enum":
            if written["name"] != read["name"] or {*written["symbols"]} - {*read["symbols"]}:
                raise self._unlike(path)
            self._enum(written["symbols"], lane)
            return
        if of == TIMESTAMP and kind(written) == "long":
            code = _READ_TIMESTAMP.get(str(_logical(written)))
        else:
            code = None if of is None else _READ.get((of, kind(written)))
        if code is None:
            raise self._unlike(path)
        self.add(code, lane)

    def _enum(self, symbols: Sequence[str], lane: int) -> None:
        self.add(record_bytes.READ_SYMBOL, lane)
        self.add(record_bytes.READ_SYMBOL, len(symbols))
        for symbol in symbols:
            text = symbol.encode()
            self.add(record_bytes.READ_SYMBOL, len(self._symbols) << 32 | len(text))
            self._symbols += text

    @staticmethod
    def _unlike(path: ColumnPath) -> NoLayoutError:
        return NoLayoutError(f"the column {'.'.join(path)} is not read as it is written")

    def _nullable(self, written: Sequence[Node], read: Node, path: ColumnPath) -> None:
        if not isinstance(read, list):
            raise self._unlike(path)
        inner, of_reader = _other_than_null(written), _other_than_null(read)
        self._branches(
            [None if b == "null" else lambda: self.value(inner, of_reader, path) for b in written]
        )

    def _branches(self, bodies: Sequence[Any]) -> None:
        """A union: what to do with each of its branches, ``None``: nothing."""
        self.add(record_bytes.UNION, len(bodies))
        table = [self.add(record_bytes.JUMP) for _ in bodies]
        ends = []
        for place, body in zip(table, bodies, strict=True):
            self._jump(place)
            if body is not None:
                body()
            ends.append(self.add(record_bytes.JUMP))
        for end in ends:
            self._jump(end)

    def _jump(self, place: int) -> None:
        """The jump at ``place`` leads to what is written next."""
        self.rows[place] = (self.rows[place][0], self._first + len(self.rows))

    def _record(self, written: Node, read: Node, path: ColumnPath) -> None:
        assert isinstance(written, dict)
        assert isinstance(read, dict)
        fields = {field["name"]: field for field in read["fields"]}
        if "aliases" in read or any("aliases" in field for field in fields.values()):
            raise NoLayoutError("the reader schema has aliases")
        found = set()
        for field in written["fields"]:
            name = field["name"]
            found.add(name)
            if name in fields:
                self.value(field["type"], fields[name]["type"], (*path, name))
            else:
                self._skip(field["type"])
        for column in self._wanted:
            if column[: len(path)] != path or (name := column[len(path)]) in found:
                continue
            # Lanes are NULL until they are read.
            if fields.get(name, {}).get("default", 0) is not None:
                raise NoLayoutError(f"the column {'.'.join(column)} has another default than null")

    def _skip(self, writer: Node) -> None:
        node = self._writer.resolve(writer)
        if isinstance(node, list):
            self._branches([lambda branch=branch: self._skip(branch) for branch in node])
            return
        what = kind(node)
        if what in _SKIP:
            self.add(*_SKIP[what])
        elif isinstance(node, dict) and what == "fixed":
            self.add(record_bytes.SKIP_BYTES, node["size"])
        elif isinstance(node, dict) and what == "record":
            for field in node["fields"]:
                self._skip(field["type"])
        elif isinstance(node, dict) and what in ("array", "map"):
            self._items(node)
        elif what != "null":
            raise NoLayoutError(f"a value of type {what}")

    def _items(self, node: Mapping[str, Any]) -> None:
        items = self.add(record_bytes.ITEMS)
        self._open += 1
        self.depth = max(self.depth, self._open)
        if node["type"] == "map":
            self.add(*_SKIP["string"])
            self._skip(node["values"])
        else:
            self._skip(node["items"])
        self._open -= 1
        if len(self.rows) == items + 1:
            # Of those a record may claim any number.
            raise NoLayoutError("an array has items without a byte")
        self.add(record_bytes.NEXT_ITEM)
        self._jump(items)


def _other_than_null(union: Sequence[Node]) -> Node:
    others = [branch for branch in union if branch != "null"]
    if len(others) != 1 or len(union) != 2:  # noqa: PLR2004  null and one more
        raise NoLayoutError("a column has several types")
    return others[0]


def _logical(node: Node) -> Any:
    return node.get("logicalType") if isinstance(node, dict) else None
