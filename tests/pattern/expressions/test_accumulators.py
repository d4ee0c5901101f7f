"""Accumulators take many values at once as they take one after the other."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.pattern.expressions.functions.accumulators import Accumulator
from spark_cep.pattern.expressions.functions.aggregation import (
    COUNT_DISTINCT,
    ROW_AGGREGATES,
    Aggregate,
)

_DOUBLES = st.sampled_from([0.0, -0.0, 1.5, -2.0, float("nan"), float("inf")])
_WHOLES = st.integers(-3, 3) | st.sampled_from([2**62, -(2**63)])
_DECIMALS = st.sampled_from([Decimal(text) for text in ("0", "1.50", "1.5", "-2.25")])
_TEXTS = st.sampled_from(["", "a", "B", "é", "𝄞", "\ufffd"])
_OTHERS = [
    st.booleans(),
    st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 3)),
    st.lists(st.integers(0, 1) | _DOUBLES, max_size=2),
]
_NUMBERS = [_WHOLES, _DOUBLES, _DECIMALS]
_ANY = [*_NUMBERS, _TEXTS, *_OTHERS]
_ORDERED = [*_NUMBERS, _TEXTS, _OTHERS[0], _OTHERS[1]]
_OF = {
    **dict.fromkeys(("SUM", "AVG"), _NUMBERS),
    **dict.fromkeys(("STDDEV_SAMP", "STDDEV_POP", "VAR_SAMP", "VAR_POP"), _NUMBERS),
    **dict.fromkeys(("MIN", "MAX"), _ORDERED),
    **dict.fromkeys(("BOOL_AND", "BOOL_OR", "COUNT_IF"), _OTHERS[:1]),
}


def _values(name: str, data: st.DataObject) -> list[Any]:
    function = ROW_AGGREGATES[name]
    values = data.draw(st.sampled_from(_OF.get(name, _ANY)))
    if function.arguments == 2:
        values = st.tuples(values, st.none() | data.draw(st.sampled_from(_ORDERED)))
    if function.takes_nulls:
        values = st.none() | values
    return data.draw(st.lists(values, max_size=12))


def _one_by_one(function: Aggregate, values: list[Any]) -> Accumulator:
    found = function.start()
    for value in values:
        found.add(value)
    return found


@pytest.mark.parametrize("name", ROW_AGGREGATES)
@settings(max_examples=50)
@given(st.data())
def test_many_values_at_once(name: str, data: st.DataObject) -> None:
    """In pieces of any size, of which some are taken one by one; a copy goes on by itself."""
    function = ROW_AGGREGATES[name]
    values, found, at = _values(name, data), function.start(), 0
    while at < len(values):
        piece = values[at : at + data.draw(st.integers(1, 12))]
        other = found.copied()
        if data.draw(st.booleans()):
            found.extend(piece)
        else:
            for value in piece:
                found.add(value)
        assert repr(other.result()) == repr(_one_by_one(function, values[:at]).result())
        at += len(piece)
        assert repr(found.result()) == repr(_one_by_one(function, values[:at]).result())


@pytest.mark.parametrize("name", [name for name, row in ROW_AGGREGATES.items() if row.different])
@settings(max_examples=50)
@given(st.data())
def test_values_that_were_there(name: str, data: st.DataObject) -> None:
    """They change nothing, as the table says."""
    function = ROW_AGGREGATES[name]
    values = _values(name, data)
    new = [value for at, value in enumerate(values) if repr(value) not in map(repr, values[:at])]
    wanted = _one_by_one(function, values).result()
    assert repr(_one_by_one(function, new).result()) == repr(wanted)


def test_many_different_values() -> None:
    """As many as there are, whatever the pieces."""
    found = ROW_AGGREGATES[COUNT_DISTINCT].start()
    for size in (1, 700, 2, 30, 300):
        found.extend([number % 1_000 for number in range(size)])
        found.add(size)
    # The sizes themselves: 700 was not among them.
    assert found.result() == 701
