"""Aggregates of columns over the events of results, next to those of Python values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.columns.vectors import Numbers, Objects, reader, vector
from spark_cep.matcher.findings.aggregates import aggregate_column
from spark_cep.matcher.findings.chains import SomeEvents
from spark_cep.pattern.expressions import aggregate, parse
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    DecimalType,
    SqlType,
)

_NUMBERS = ("SUM", "AVG", "STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP", "MIN", "MAX", "COUNT")
_VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    INT: st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5),
    FLOAT: st.floats(width=32),
    DOUBLE: st.floats() | st.sampled_from([0.0, -0.0]),
    DecimalType(18, 2): st.decimals(
        -(10**16) + 1, 10**16 - 1, allow_nan=False, allow_infinity=False, places=2
    ),
    STRING: st.text("aäß\x00😀￿", max_size=4),
    DATE: st.dates(),
    TIMESTAMP: st.datetimes(timezones=st.just(dt.UTC)),
    BOOLEAN: st.booleans(),
}
#: Computed of Python values.
_NOT_COMPILED: dict[SqlType, set[str]] = {
    DecimalType(18, 2): set(_NUMBERS) - {"SUM", "MIN", "MAX", "COUNT"}
}
_ORDERED: dict[SqlType, tuple[str, ...]] = {STRING: ("MIN", "MAX")}


def _of(lengths: list[int], rows: list[int]) -> SomeEvents:
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return SomeEvents(np.array(rows, np.int64), bounds[:-1], bounds[1:])


def _expected(function: str, values: list[Any], of: SomeEvents) -> list[Any]:
    (look_back,) = parse(f"{function}(a.v) = 1", steps=frozenset("a")).look_backs
    taken = [values[row] for row in of.events.tolist()]
    bounds = [*of.first.tolist(), len(taken)]
    return [aggregate(look_back, taken[first:end]) for first, end in pairwise(bounds)]


def _alike(one: Any, other: Any) -> bool:
    return type(one) is type(other) and str(one) == str(other)


@pytest.mark.parametrize("kind", _VALUES, ids=str)
@given(st.data())
def test_aggregates_of_columns(kind: SqlType, data: st.DataObject) -> None:
    """Each value is that of Python, digit by digit, also where a result has no event, or NULL."""
    values = data.draw(st.lists(st.none() | _VALUES[kind], min_size=1, max_size=8))
    lengths = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    count = sum(lengths)
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=count, max_size=count))
    of, column = _of(lengths, rows), vector(values, kind, "v")
    numbers = kind in (INT, BIGINT, FLOAT, DOUBLE) or isinstance(kind, DecimalType)
    for function in _NUMBERS if numbers else _ORDERED.get(kind, ("MIN", "MAX", "COUNT")):
        found = aggregate_column(function, column, kind, of)
        wanted = _expected(function, values, of)
        if found is None:
            beyond = function == "SUM" and any(
                each is not None and abs(each) >= Decimal(10) ** 16 for each in wanted
            )
            assert beyond or function in _NOT_COMPILED[kind]
        else:
            read = reader(*found)
            assert all(_alike(read(row), each) for row, each in enumerate(wanted)), function


@pytest.mark.parametrize(
    "digits", ["9" * 16 + ".99", "9" * 16 + ".00"], ids=["beyond 64 bits", "beyond the digits"]
)
def test_large_sums_of_decimals(digits: str) -> None:
    """They are computed of Python values, which have no end."""
    kind = DecimalType(18, 2)
    count = 20 if digits.endswith("99") else 2
    column = vector([Decimal(digits)] * count, kind, "v")
    assert aggregate_column("SUM", column, kind, _of([count], [*range(count)])) is None
    assert aggregate_column("SUM", column, kind, _of([1], [0])) is not None


def test_not_compiled() -> None:
    """Values whose type is not known, and functions without a loop."""
    of, numbers = _of([1], [0]), Numbers(np.array([1]), np.array([False]))
    assert aggregate_column("SUM", Objects([1]), None, of) is None
    assert aggregate_column("COLLECT", numbers, BIGINT, of) is None
    assert aggregate_column("COUNT", vector(["a"], STRING, "v"), STRING, of) is None
