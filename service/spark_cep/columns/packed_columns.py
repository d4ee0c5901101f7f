"""Columns of several tables as bytes, in blocks, and back: many blocks are written at once, and of
many blocks any rows are read at once, without decoding the others.

A block, all numbers little-endian::

    block    format (1 byte), columns (2), rows of each table (4 each), column …
    column   tag (1), nulls, widths (1), least, distances, bytes

The tag says what the column is (``whole``, ``double``, ``bytes``, ``objects``) and whether some or
all of it is NULL; ``nulls`` are a bit a row, if some are. A number is its distance from the
``least`` one, in 0, 1, 2, 4 or 8 bytes (lower half of ``widths``); the least itself takes as many
as the upper half says. A double is the whole number that has its bits. Numbers of bytes and objects
are their lengths; an object is MessagePack. A block may have fewer columns than others: the rest is
NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.compilation import I64, NONE
from spark_cep.columns.loops.keyed_hash import SECRET
from spark_cep.columns.loops.packed_loops import (
    ALL_NULL,
    COUNT,
    HEADER,
    KIND,
    SOME_NULL,
    WITH_BYTES,
    choose,
    locate,
    measure,
    read_chosen,
    read_nulls,
    read_numbers,
    read_sums,
    search,
    write_bytes,
    write_nulls,
    write_numbers,
)
from spark_cep.columns.texts import TextSet
from spark_cep.columns.vectors import LENGTH_BITS, Bytes, Flags, Numbers, Objects, Vector
from spark_cep.errors import StateError, damaged_state
from spark_cep.packing import pack, unpack

_WHOLE, _DOUBLE, _BYTES, _OBJECTS = range(4)
assert min(_BYTES, _OBJECTS) == WITH_BYTES


class PackedColumn(NamedTuple):
    """A column of a table; numbers without NULLs may be an array of their own."""

    table: int
    values: Vector | NDArray[Any]


class _Parts(NamedTuple):
    """A column about to be written: its kind, numbers, NULLs if there are some, and the bytes that
    numbers are lengths of."""

    kind: int
    numbers: I64
    nulls: Flags | None = None
    texts: Bytes | None = None

    @classmethod
    def of(cls, values: Vector | NDArray[Any]) -> _Parts:
        """The parts of a column with these values."""
        if isinstance(values, np.ndarray):
            return cls(_WHOLE, values)
        kind = _BYTES
        if isinstance(values, Objects):
            kind = _OBJECTS
            values = Bytes.of([None if each is None else pack(each) for each in values.values])
        nulls = np.ascontiguousarray(values.nulls)
        some = nulls if nulls.any() else None
        if isinstance(values, Bytes):
            places = np.ascontiguousarray(values.places)
            return cls(kind, values.lengths, some, Bytes(places, nulls, values.data))
        numbers = np.where(nulls, 0, values.values)
        kind = _DOUBLE if numbers.dtype == np.float64 else _WHOLE
        return cls(kind, numbers.view(np.int64), some)


def blocks(form: int, columns: Sequence[PackedColumn], ends: Sequence[I64]) -> list[bytes]:
    """The columns, in blocks of ``format`` ``form``. ``ends``: by table, where the rows of each
    block end."""
    count = len(ends[0])
    if not count:
        return []
    parts = [_Parts.of(values) for _, values in columns]
    marked = [(place, part.nulls) for place, part in enumerate(parts) if part.nulls is not None]
    texts = [(place, part.texts) for place, part in enumerate(parts) if part.texts is not None]
    tables = np.array([table for table, _ in columns])
    ends_of = np.stack(ends)
    rows = np.diff(ends_of, prepend=0)
    # All numbers in one array, so that each of the loops runs once.
    lengths = np.array([len(part.numbers) for part in parts])
    starts = lengths.cumsum() - lengths
    some_numbers = [part.numbers for part in parts if len(part.numbers)] or [parts[0].numbers]
    numbers = np.concatenate(some_numbers, dtype=np.int64, casting="unsafe")
    shape = len(columns), count
    least, width, sizes, of_nulls = np.zeros((4, *shape), np.int64)
    measure(numbers, starts, tables, ends_of, least, width, sizes)
    tags = np.empty(shape, np.uint8)
    tags[:] = np.array([[part.kind] for part in parts])
    for place, nulls in marked:
        of_block, of_rows = _of_blocks(nulls, ends[tables[place]]), rows[tables[place]]
        tags[place, (of_block == of_rows) & (of_rows > 0)] |= ALL_NULL
        some = (of_block > 0) & (of_block < of_rows)
        tags[place, some] |= SOME_NULL
        of_nulls[place] = np.where(some, (of_rows + 7) // 8, 0)
    for place, _ in texts:
        sizes[place] += _of_blocks(parts[place].numbers, ends[tables[place]])
    sizes += of_nulls + 1
    header = HEADER + COUNT * len(ends)
    stops = np.cumsum(sizes.sum(axis=0) + header)
    out = np.zeros(int(stops[-1]), np.uint8)
    begins = np.append(0, stops[:-1])
    out[begins] = form
    for place, byte in enumerate((len(columns) & 0xFF, len(columns) >> 8), 1):
        out[begins + place] = byte
    counts = begins[:, None] + np.arange(HEADER, header)
    out[counts] = np.ascontiguousarray(rows.T, "<u4").view(np.uint8)
    at = begins + header + np.cumsum(sizes, axis=0) - sizes
    out[at] = tags
    at += 1
    for place, nulls in marked:
        write_nulls(nulls, ends_of[tables[place]], tags[place], out, at[place])
    at += of_nulls
    write_numbers(numbers, starts, tables, ends_of, least, width, out, at)
    for place, each in texts:
        write_bytes(each.data, each.places, each.nulls, ends_of[tables[place]], out, at[place])
    return [out[a:b].tobytes() for a, b in zip(begins.tolist(), stops.tolist(), strict=True)]


def _of_blocks(values: NDArray[Any], ends: I64) -> I64:
    """The sum of each block's values."""
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
    return np.diff(sums[ends], prepend=0)


class Layout(NamedTuple):
    """The relation of tables. By table, ``owners``: the table, a lower one, to whose rows its rows
    belong; ``counts_of``: the column of that table with their numbers; any of the first.
    ``first`` is the first of some columns, of ``tables``; of each, ``linked`` is the table that its
    numbers are places in, ``NONE`` for other numbers (see ``choose`` and ``read_chosen`` in
    :mod:`spark_cep.columns.loops.packed_loops`)."""

    owners: I64
    counts_of: I64
    first: int
    tables: I64
    linked: I64


class ChosenRows(NamedTuple):
    """The rows of all tables that belong to some rows of the first: by table, where its rows begin
    among all, how many they are, and how many belong to each of those (``of_first``); the numbers
    of the columns of a layout, one behind the other, and where those of each end."""

    every: I64
    begins: I64
    sizes: I64
    of_first: I64
    numbers: I64
    ends: list[int]

    def rows(self, table: int) -> I64:
        """The rows of a table."""
        begin = self.begins[table]
        return self.every[begin : begin + self.sizes[table]]

    def columns(self, first: int, end: int) -> I64:
        """The numbers of columns of one table, by their places in the layout: (columns, rows)."""
        begin = self.ends[first - 1] if first else 0
        return self.numbers[begin : self.ends[end - 1]].reshape(end - first, -1)


class PackedColumns:
    """Blocks, read together. ``tables``: by column, whose rows it has; the columns that a block has
    beyond these are of the last table. StateError when a block has another form than
    :func:`blocks` writes."""

    def __init__(self, form: int, stored: Sequence[bytes], tables: Sequence[int]) -> None:
        count = max(tables) + 1
        if any(len(block) < HEADER + COUNT * count or block[0] != form for block in stored):
            raise damaged()
        self._data = np.frombuffer(b"".join(stored), np.uint8)
        ends = np.cumsum([0, *map(len, stored)])
        columns = [int.from_bytes(block[1:HEADER], "little") for block in stored]
        if any(number < len(tables) for number in columns):
            raise damaged()
        #: How many columns the block has that has most.
        self.columns = max(columns, default=len(tables))
        self._tables = np.full(self.columns, tables[-1], np.int64)
        self._tables[: len(tables)] = tables
        shape = (self.columns, len(stored))
        self._tags = np.full(shape, ALL_NULL, np.uint8)
        self._nulls_at, self._least, self._width, self._numbers_at, self._bytes_at = np.zeros(
            (5, *shape), np.int64
        )
        #: Rows, by table and block.
        self.counts = np.zeros((count, len(stored)), np.int64)
        #: By table, where the rows of each block start, and where the last ends.
        self.starts = np.zeros((count, len(stored) + 1), np.int64)
        if not stored:
            return
        wrong = locate(
            self._data, ends, self._tables, self._tags, self._nulls_at, self._least, self._width,
            self._numbers_at, self._bytes_at, self.counts,
        )  # fmt: skip
        if wrong >= 0:
            raise damaged()
        self.counts.cumsum(axis=1, out=self.starts[:, 1:])

    def rows(self, table: int) -> I64:
        """All rows of a table."""
        return np.arange(self.starts[table, -1])

    def numbers(self, column: int, rows: I64) -> I64:
        """The numbers of some rows, in ascending order, of a column without NULLs."""
        numbers: I64 = self.several(column, 1, rows)[0]
        return numbers

    def several(self, first: int, count: int, rows: I64) -> I64:
        """The numbers of ``count`` columns of a table, from column ``first`` on: (count, rows)."""
        out = np.empty((count, len(rows)), np.int64)
        chosen = slice(first, first + count)
        read_numbers(
            self._data, self._numbers_at[chosen], self._least[chosen], self._width[chosen],
            self.starts[self._tables[first]], rows, out,
        )  # fmt: skip
        return out

    def sums(self, column: int, base: I64, rows: I64) -> I64:
        """For some rows, in ascending order, of a column of numbers without NULLs, or of bytes: the
        sum of the numbers, or lengths, before each in its block, and of the block's ``base``."""
        out = np.empty(len(rows), np.int64)
        read_sums(
            self._data, self._numbers_at[column], self._least[column], self._width[column], base,
            self.starts[self._tables[column]], rows, out,
        )  # fmt: skip
        return out

    def chosen(self, layout: Layout, rows: I64) -> ChosenRows:
        """The rows that belong to some rows of the first table, in ascending order. StateError when
        they are more than there are, or a link leads nowhere."""
        starts, tables = self.starts, len(layout.owners)
        of_tables = starts[:tables, -1]
        begins = of_tables.cumsum() - of_tables
        every = np.empty(int(begins[-1] + of_tables[-1]), np.int64)
        sizes, of_first = np.empty(tables, np.int64), np.zeros((tables, len(rows)), np.int64)
        packed = self._data, self._numbers_at, self._least, self._width, starts
        wrong = choose(
            *packed, layout.counts_of, layout.owners, rows, begins, every, sizes, of_first
        )
        if wrong != NONE:
            raise damaged()
        ends = sizes[layout.tables].cumsum()
        numbers = np.empty(int(ends[-1]), np.int64)
        of = slice(layout.first, layout.first + len(ends))
        wrong = read_chosen(
            self._data, self._numbers_at[of], self._least[of], self._width[of], starts,
            layout.tables, layout.linked, begins, every, sizes, of_first, ends, numbers,
        )  # fmt: skip
        if wrong != NONE:
            column = layout.first + int(np.searchsorted(ends, wrong, "right"))
            raise damaged_state(f"a link in column {column} is {int(numbers[wrong])}")
        return ChosenRows(every, begins, sizes, of_first, numbers, ends.tolist())

    def different(self, column: int) -> tuple[I64, I64]:
        """Return numbers of a column without NULLs, and the block of each; one number for a block
        in which all are equal."""
        table = self._tables[column]
        counts, same = self.counts[table], self._width[column] == 0
        one = np.flatnonzero(same & (counts > 0))
        others = np.repeat(~same, counts)
        return (
            np.concatenate(
                [self._least[column][one], self.numbers(column, np.flatnonzero(others))]
            ),
            np.concatenate([one, np.repeat(np.arange(len(counts)), counts)[others]]),
        )

    def search(self, column: int, texts: TextSet) -> tuple[I64, I64]:
        """The rows whose value of a column of bytes is one of these texts, in ascending order, and
        the number of each."""
        starts = self.starts[self._tables[column]]
        self._kind(column, starts)
        rows, numbers = np.empty((2, starts[-1]), np.int64)
        count = search(
            self._data, self._nulls_at[column], self._tags[column], self._numbers_at[column],
            self._least[column], self._width[column], self._bytes_at[column], starts,
            SECRET, texts.texts.data, texts.table, texts.firsts, texts.of_null, rows, numbers,
        )  # fmt: skip
        return rows[:count], numbers[:count]

    def is_null(self, column: int) -> bool:
        """Return whether all values of a column of bytes are NULL in all blocks."""
        return bool((self._tags[column] == _BYTES | ALL_NULL).all())

    def vector(self, column: int, rows: I64) -> Vector:
        """The values of some rows, in ascending order. Bytes stay where they are."""
        tags, starts = self._tags[column], self.starts[self._tables[column]]
        nulls = np.zeros(len(rows), bool)
        if (tags & (SOME_NULL | ALL_NULL)).any():
            read_nulls(self._data, self._nulls_at[column], tags, starts, rows, nulls)
        kind = self._kind(column, starts)
        if kind >= WITH_BYTES:
            places = self.sums(column, self._bytes_at[column], rows) << LENGTH_BITS
            places |= self.numbers(column, rows)
            found = Bytes(places, nulls, self._data)
            if kind == _BYTES:
                return found
            values = map(found.value, range(len(rows)))
            return Objects([None if value is None else unpack(value) for value in values])
        numbers = self.numbers(column, rows)
        return Numbers(numbers.view(np.float64) if kind == _DOUBLE else numbers, nulls)

    def _kind(self, column: int, starts: I64) -> int:
        """The kind of a column in all blocks; in some it may be NULL alone. StateError when blocks
        have it as different kinds."""
        kinds = self._tags[column] & KIND
        kind = int(kinds.max(initial=0))
        if (kinds == kind).all():
            return kind
        others = (kinds != kind) & (np.diff(starts) > 0)
        if others.any():
            alone = self._tags[column] & ALL_NULL != 0
            empty = (self._width[column] == 0) & (self._least[column] == 0)
            if not (alone & empty)[others].all():
                raise damaged()
        return kind


def damaged() -> StateError:
    """Return the error for a damaged block."""
    return damaged_state("a block has another form")
