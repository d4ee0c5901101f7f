"""Column vectors: values in and out, rows taken, parts together, bytes and back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.columns.packed_columns import PackedColumn, PackedColumns, blocks
from spark_cep.columns.representation import Representation, representation
from spark_cep.columns.vectors import (
    Bytes,
    Numbers,
    Objects,
    Vector,
    concatenated,
    nulls_like,
    nulls_of,
    reader,
    values_at,
    vector,
)
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    SqlType,
)

property_of = settings(max_examples=100, derandomize=True, database=None)

#: A strategy for each type, and for a type that is not known.
VALUES: dict[SqlType | None, st.SearchStrategy[Any]] = {
    INT: st.integers(-(1 << 31), (1 << 31) - 1),
    BIGINT: st.integers(-(1 << 63), (1 << 63) - 1),
    BOOLEAN: st.booleans(),
    DATE: st.dates(),
    TIMESTAMP: st.datetimes(timezones=st.just(dt.UTC)),
    DecimalType(18, 3): st.decimals(-(10**14), 10**14, places=3),
    DecimalType(38, 3): st.decimals(-(10**30), 10**30, places=3),
    FLOAT: st.floats(width=32, allow_nan=False),
    DOUBLE: st.floats(allow_nan=False),
    STRING: st.text(max_size=5),
    ArrayType(INT): st.lists(st.integers(0, 3), max_size=2),
    None: st.integers() | st.text(max_size=2) | st.binary(max_size=2),
}
KINDS = st.sampled_from(list(VALUES))


def values_of(column: Vector, kind: SqlType | None) -> list[Any]:
    """All values of a vector."""
    return list(map(reader(column, kind), range(len(column))))


def written(column: Vector) -> bytes:
    """A vector as bytes."""
    (block,) = blocks(1, [PackedColumn(0, column)], [np.array([len(column)])])
    return block


def read(data: bytes) -> Vector:
    """The vector that :func:`written` wrote."""
    packed = PackedColumns(1, [data], [0])
    return packed.vector(0, packed.rows(0))


def some(data: st.DataObject, kind: SqlType | None) -> list[Any]:
    """Some values of a type, NULL among them."""
    return data.draw(st.lists(st.none() | VALUES[kind], max_size=5))


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_representations(kind: SqlType | None) -> None:
    """Numbers up to 64 bits stand as such; of no other type are they arrays."""
    kinds = {
        Representation.WHOLE: (Numbers, np.int64), Representation.DOUBLE: (Numbers, np.float64),
        Representation.TEXT: (Bytes, None), Representation.OBJECT: (Objects, None),
    }  # fmt: skip
    expected, numbers = kinds[representation(kind)]
    for column in (vector([None], kind, "x"), nulls_of(kind, 1)):
        assert type(column) is expected
        assert not isinstance(column, Numbers) or column.values.dtype == numbers
        assert values_of(column, kind) == [None]


def _told(value: Any) -> tuple[type, str]:
    return type(value), str(value)


@property_of
@given(KINDS, st.data())
def test_values_come_back(kind: SqlType | None, data: st.DataObject) -> None:
    """As they were, with their types and the digits of decimals; through bytes too."""
    values = some(data, kind)
    column = vector(values, kind, "x")
    for each in (column, read(written(column))):
        assert len(each) == len(values)
        assert values_of(each, kind) == values
        assert list(map(_told, values_of(each, kind))) == list(map(_told, values))


@property_of
@given(KINDS, st.data())
def test_rows_taken_and_parts_together(kind: SqlType | None, data: st.DataObject) -> None:
    """Rows in any order, some twice, or a slice; then vectors as one, also those of NULLs; through
    bytes there is no more than what was taken."""
    wanted: list[Any] = []
    parts: list[Vector] = []
    for _ in range(data.draw(st.integers(1, 3))):
        values = some(data, kind)
        column = vector(values, kind, "x")
        places = st.integers(0, len(values) - 1) if values else st.nothing()
        rows = data.draw(st.lists(places, max_size=4 if values else 0))
        cut = slice(*sorted(data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5)))))
        parts += [column.take(np.array(rows, np.int64)), column.take(cut), nulls_like(column, 1)]
        wanted += [*(values[row] for row in rows), *values[cut], None]
    whole = concatenated(parts)
    assert values_of(whole, kind) == wanted
    places = st.integers(0, len(wanted) - 1)
    rows = data.draw(st.lists(places, max_size=6))
    found = values_at(whole, kind, np.array(rows, np.int64))
    assert list(map(_told, found)) == [_told(wanted[row]) for row in rows]
    packed = written(whole)
    assert packed == written(vector(wanted, kind, "x"))
    assert values_of(read(packed), kind) == wanted


@property_of
@given(st.lists(st.none() | st.binary(max_size=3), max_size=5), st.data())
def test_compacted(values: list[bytes | None], data: st.DataObject) -> None:
    """No bytes but those of the values, one behind the other, in their order."""
    rows = data.draw(st.permutations(range(len(values)))) if values else []
    taken = Bytes.of(values).take(np.array(rows, np.int64))
    whole = taken.compacted()
    wanted = [values[row] for row in rows]
    assert [whole.value(row) for row in range(len(whole))] == wanted
    assert whole.data.tobytes() == b"".join(value or b"" for value in wanted)
    assert whole.lengths.tolist() == [len(value or b"") for value in wanted]


def test_what_a_text_was_cut_out_of_is_not_copied_along() -> None:
    """A vector that uses little of its bytes does not keep them when it is put together."""
    large = Bytes.of([b"x" * 10_000, b"y"])
    small = large.take(slice(1, 2))
    assert len(small.data) == 10_001
    together = concatenated([small, small])
    assert isinstance(together, Bytes)
    assert together.data.tobytes() == b"yy"


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (INT, "1x"), (BIGINT, 1 << 63), (DecimalType(4, 2), Decimal("1.234")),
        (DecimalType(4, 2), Decimal(100)), (DATE, 5), (TIMESTAMP, dt.date(2024, 1, 1)),
        (STRING, 5), (DOUBLE, "x"),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_of_another_type(kind: SqlType, wrong: Any) -> None:
    """The column is named, and the type that it has."""
    with pytest.raises(ValueError, match="column price has a value that is no ") as found:
        vector([None, wrong], kind, "price")
    assert str(kind) in str(found.value)


def test_vectors_of_different_representations() -> None:
    """They are not put together."""
    with pytest.raises(TypeError, match="a column is Bytes and Numbers"):
        concatenated([vector([1], INT, "x"), vector(["a"], STRING, "x")])


def test_a_column_of_bytes_that_is_too_large_is_refused() -> None:
    """Places have 31 bits for the start of a value: a larger one would stand for another place."""
    data = np.broadcast_to(np.uint8(0), (1 << 31,))
    with pytest.raises(OverflowError, match="less than 2 GiB, and here are 2147483648 bytes"):
        Bytes(np.zeros(0, np.int64), np.zeros(0, bool), data)
