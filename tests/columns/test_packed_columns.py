"""Packed columns: what was written in blocks is read back, whichever rows are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.columns.compilation import FOREVER, NEVER
from spark_cep.columns.loops.packed_loops import WITH_BYTES
from spark_cep.columns.packed_columns import PackedColumn, PackedColumns, blocks
from spark_cep.columns.texts import TextSet
from spark_cep.columns.vectors import Bytes, Vector, reader, texts_of, vector
from spark_cep.errors import StateError
from spark_cep.pattern.types import BIGINT, DOUBLE, STRING

property_of = settings(max_examples=200, derandomize=True, database=None)

WHOLE = st.integers(NEVER, FOREVER) | st.integers(-3, 300) | st.just(FOREVER)
KINDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (BIGINT, WHOLE),
    (DOUBLE, st.floats(allow_nan=False) | st.just(1.0)),
    (STRING, st.text(max_size=3) | st.just("same")),
    (None, st.lists(st.integers(), max_size=2) | st.text(max_size=2)),
]
#: Bytes in front of a block's columns, for one table.
HEADER = 3 + 4


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[int]], list[tuple[int, Any, list[Any]]]]:
    """Rows of each of two tables by block, and columns: table, type, values."""
    count = draw(st.integers(1, 4))
    sizes = [draw(st.lists(st.integers(0, 6), min_size=count, max_size=count)) for _ in range(2)]
    columns = [(0, BIGINT, draw(st.lists(WHOLE, min_size=sum(sizes[0]), max_size=sum(sizes[0]))))]
    for _ in range(draw(st.integers(1, 4))):
        kind, values = draw(st.sampled_from(KINDS))
        cells = draw(st.sampled_from([values, st.none() | values, st.none()]))
        rows = sum(sizes[1])
        columns.append((1, kind, draw(st.lists(cells, min_size=rows, max_size=rows))))
    return sizes, columns


def values_of(column: Vector, kind: Any) -> list[Any]:
    """All values of a vector."""
    return list(map(reader(column, kind), range(len(column))))


@property_of
@given(tables(), st.data())
def test_any_rows_come_back(
    given_: tuple[list[list[int]], list[tuple[int, Any, list[Any]]]], data: st.DataObject
) -> None:
    """Of all blocks together, in their order; each block alone holds its own."""
    sizes, columns = given_
    ends = [np.cumsum(each, dtype=np.int64) for each in sizes]
    made = [PackedColumn(table, vector(values, kind, "x")) for table, kind, values in columns]
    stored = blocks(7, made, ends)
    assert len(stored) == len(sizes[0])
    packed = PackedColumns(7, stored, [table for table, *_ in columns])
    assert packed.counts.tolist() == sizes
    for place, (table, kind, values) in enumerate(columns):
        rows = packed.rows(table)
        wanted = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
        some = rows[np.array(wanted, bool)]
        assert values_of(packed.vector(place, some), kind) == [values[row] for row in some]
        of_row = np.repeat(np.arange(len(stored)), sizes[table]).tolist()
        if kind is BIGINT and None not in values:
            starts = packed.starts[table].tolist()
            before = [7 * b + sum(values[starts[b] : r]) for r, b in enumerate(of_row)]
            found = packed.sums(place, 7 * np.arange(len(stored)), some).tolist()
            assert all(
                (one - before[row]) % (1 << 64) == 0 for one, row in zip(found, some, strict=True)
            )
            numbers, of_block = packed.different(place)
            assert {*zip(numbers.tolist(), of_block.tolist(), strict=True)} == {
                *zip(values, of_row, strict=True)
            }
        if kind is STRING:
            among: Any = data.draw(st.lists(st.sampled_from([*values, "same", "", None])))
            asked = TextSet(texts_of(among))
            found, numbers = packed.search(place, asked)
            column = packed.vector(place, rows)
            assert isinstance(column, Bytes)
            every = asked.find(column)
            assert found.tolist() == np.flatnonzero(every >= 0).tolist()
            assert numbers.tolist() == every[found].tolist()
    for number, block in enumerate(stored):
        alone = PackedColumns(7, [block], [table for table, *_ in columns])
        for place, (table, kind, values) in enumerate(columns):
            start, end = packed.starts[table, number : number + 2]
            read = values_of(alone.vector(place, alone.rows(table)), kind)
            assert read == values[start:end]


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ([], 0), ([7], 1), ([0] * 9, 0), ([FOREVER] * 9, 8), ([NEVER] * 9, 8), ([0, 255], 2),
        ([-128, 127], 1 + 2), ([1 << 60, (1 << 60) + 255], 8 + 2), ([0, 256], 4),
        ([0, (1 << 16) - 1], 4), ([0, 1 << 16], 8), ([0, (1 << 32) - 1], 8), ([0, 1 << 32], 16),
        ([NEVER, FOREVER], 8 + 16), ([-129, 0], 2 + 2), ([-(1 << 15) - 1] * 3, 4),
    ],
)  # fmt: skip
def test_numbers_take_the_bytes_of_their_range(values: list[int], size: int) -> None:
    """However large they are themselves."""
    column = np.array(values, np.int64)
    (block,) = blocks(1, [PackedColumn(0, column)], [np.array([len(values)])])
    assert len(block) == HEADER + 2 + size
    packed = PackedColumns(1, [block], [0])
    assert packed.numbers(0, packed.rows(0)).tolist() == values


def test_a_block_with_fewer_columns() -> None:
    """What it lacks is NULL."""
    full = blocks(
        1,
        [PackedColumn(0, np.array([1, 2])), PackedColumn(0, Bytes.of([b"a", b"b"]))],
        [np.array([2])],
    )
    less = blocks(1, [PackedColumn(0, np.array([3]))], [np.array([1])])
    packed = PackedColumns(1, [*less, *full, *less], [0])
    assert packed.columns == 2
    texts = packed.vector(1, packed.rows(0))
    assert isinstance(texts, Bytes)
    assert [texts.value(row) for row in range(4)] == [None, b"a", b"b", None]


@property_of
@given(tables(), st.data())
def test_blocks_of_another_form(
    given_: tuple[list[list[int]], list[tuple[int, Any, list[Any]]]], data: st.DataObject
) -> None:
    """What is cut, lengthened, or of another format is a StateError."""
    sizes, columns = given_
    ends = [np.cumsum(each, dtype=np.int64) for each in sizes]
    made = [PackedColumn(table, vector(values, kind, "x")) for table, kind, values in columns]
    places = [table for table, *_ in columns]
    for block in blocks(7, made, ends):
        cut = data.draw(st.integers(0, len(block) - 1))
        for wrong in (block[:cut], block + b"\x00", b"\x08" + block[1:]):
            with pytest.raises(StateError, match="damaged"):
                PackedColumns(7, [wrong], places)
    with pytest.raises(StateError, match="damaged"):
        PackedColumns(7, blocks(7, made[:1], ends)[:1] or [b""], places)


@pytest.mark.parametrize(
    ("lengths", "size"),
    [
        ([1 << 63] * 2, 0),
        ([(1 << 64) - 1, 1], 0),
        ([(1 << 64) - 2, 2, 2], 2),
        ([3, (1 << 64) - 1], 2),
    ],
)
def test_lengths_of_a_forged_block_that_wrap(lengths: list[int], size: int) -> None:
    """Their sum in 64 bits is the number of bytes that follow, and one of them is far beyond."""
    numbers = b"".join(length.to_bytes(8, "little") for length in lengths)
    head = bytes([1, 1, 0]) + len(lengths).to_bytes(4, "little")
    with pytest.raises(StateError, match="damaged"):
        PackedColumns(1, [head + bytes([WITH_BYTES, 8]) + numbers + b"x" * size], [0])


@pytest.mark.parametrize(("least", "count"), [(1 << 62, 4), (-1, 2), (1 << 60, 1 << 20)])
def test_equal_lengths_of_a_forged_block_that_wrap(least: int, count: int) -> None:
    """The same where each row has the least length."""
    head = bytes([1, 1, 0]) + count.to_bytes(4, "little")
    number = bytes([WITH_BYTES, 8 << 4]) + least.to_bytes(8, "little", signed=True)
    with pytest.raises(StateError, match="damaged"):
        PackedColumns(1, [head + number], [0])
