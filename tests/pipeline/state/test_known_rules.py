"""What stored events are under another rule set: bits and columns by name, types brought along."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.columns.vectors import texts_of
from spark_cep.matcher.batch.events import EventTable, Names, SlotType
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.batch.meaning import Meaning
from spark_cep.matcher.keys import KeysState
from spark_cep.model import Coordinates, Event
from spark_cep.pattern.expressions.values.casting import caster
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
from spark_cep.pipeline.state.known_rules import Translation

AMOUNT, WIDER, WIDE = DecimalType(12, 2), DecimalType(14, 4), DecimalType(38, 4)
DAY, MOMENT = dt.date(1969, 12, 31), dt.datetime(2024, 2, 29, 12, 0, 0, 5, dt.UTC)
INTS = ArrayType(INT)


def events(rows: list[tuple[Any, ...]], slots: list[SlotType]) -> EventTable:
    """An event for each row of columns."""
    made = [
        Event(time, Coordinates("t", 0, time), 0, row, None, None) for time, row in enumerate(rows)
    ]
    return EventTable.of(made, Names(), slots)


def rows_of(table: EventTable, slots: list[SlotType]) -> list[tuple[Any, ...]]:
    """The columns of events as Python values."""
    event = table.objects(Names(["t"], [None]), slots)
    return [tuple(event(row).columns) for row in range(len(table))]


def meaning(slots: list[SlotType], *conditions: str) -> Meaning:
    """What columns and bits mean."""
    return Meaning(tuple(conditions), tuple(slot.meaning for slot in slots))


def translated(values: list[Any], was: SqlType | None, now: SqlType | None) -> list[Any]:
    """The values of a column whose type has changed."""
    before, after = [SlotType("||x", was)], [SlotType("||x", now)]
    state = KeysState(events=events([(value,) for value in values], before))
    Translation(meaning(before), meaning(after), after).state(state)
    return [value for (value,) in rows_of(state.events, after)]


@pytest.mark.parametrize(
    ("was", "now", "values", "expected"),
    [
        (INT, BIGINT, [-1, 1 << 30], [-1, 1 << 30]),
        (BIGINT, INT, [-1, 1 << 31], [-1, None]),
        (INT, STRING, [-5, 0], ["-5", "0"]),
        (INT, DOUBLE, [-5, 0], [-5.0, 0.0]),
        (INT, AMOUNT, [7, 1 << 30], [Decimal("7.00"), Decimal("1073741824.00")]),
        (AMOUNT, WIDER, [Decimal("-12.34")], [Decimal("-12.3400")]),
        (WIDER, AMOUNT, [Decimal("1.2350"), Decimal("9999999999.9999")], [Decimal("1.24"), None]),
        (AMOUNT, WIDE, [Decimal("-12.34")], [Decimal("-12.3400")]),
        (WIDE, AMOUNT, [Decimal("-12.3400"), Decimal(10) ** 20], [Decimal("-12.34"), None]),
        (STRING, INT, ["12", "x", ""], [12, None, None]),
        (STRING, DATE, ["1969-12-31", "?"], [DAY, None]),
        (DOUBLE, STRING, [2.5], ["2.5"]),
        (DATE, TIMESTAMP, [DAY], [dt.datetime(1969, 12, 31, tzinfo=dt.UTC)]),
        (DATE, INT, [DAY], [None]),
        (BOOLEAN, INT, [True, False], [1, 0]),
        (FLOAT, DOUBLE, [0.5], [0.5]),
        (INT, INTS, [1], [None]),
        (None, INT, [3, "4", 1 << 40, DAY, [1]], [3, 4, None, None, None]),
        (None, STRING, ["ü"], ["ü"]),
        (None, FLOAT, [0.5], [0.5]),
        (None, INTS, [[1, 2]], [[1, 2]]),
        (None, TIMESTAMP, [MOMENT], [MOMENT]),
        *(
            (kind, None, [value], [value])
            for kind, value in [
                (INT, 3), (AMOUNT, Decimal("1.20")), (DATE, DAY), (TIMESTAMP, MOMENT),
                (BOOLEAN, True), (STRING, "ü"), (DOUBLE, -0.5), (WIDE, Decimal("1.2345")),
            ]
        ),
    ],
    ids=str,
)  # fmt: skip
def test_a_type_that_changed(
    was: SqlType | None, now: SqlType | None, values: list[Any], expected: list[Any]
) -> None:
    """Values are brought to the new type, each NULL alone where that cannot be; NULL stays NULL."""
    found = translated([*values, None], was, now)
    assert found == [*expected, None]
    assert [type(value) for value in found] == [type(value) for value in (*expected, None)]
    assert list(map(str, found)) == list(map(str, (*expected, None)))  # scales of decimals too


KINDS: dict[SqlType, st.SearchStrategy[Any]] = {
    INT: st.integers(-(1 << 31), (1 << 31) - 1),
    BIGINT: st.integers(-(1 << 63), (1 << 63) - 1),
    AMOUNT: st.decimals(-(10**9), 10**9, places=2),
    WIDE: st.decimals(-(10**20), 10**20, places=4),
    STRING: st.text(max_size=3) | st.integers().map(str),
    DOUBLE: st.floats(allow_nan=False),
    BOOLEAN: st.booleans(),
}


@settings(max_examples=150, derandomize=True, database=None)
@given(st.sampled_from(list(KINDS)), st.sampled_from(list(KINDS)), st.data())
def test_any_types(was: SqlType, now: SqlType, data: st.DataObject) -> None:
    """What comes of a value is what CAST makes of it, and the way over an unknown type is the
    same."""
    values = data.draw(st.lists(st.none() | KINDS[was], min_size=1, max_size=4))
    expected = [None if value is None else caster(now)(value) for value in values]
    if was == now:
        expected = values
    assert translated(values, was, now) == expected
    assert translated(translated(values, was, None), None, now) == expected


def test_columns_and_bits_by_name() -> None:
    """They move to where they are now; what is new is NULL or not true; what went is left out."""
    before = [SlotType("||a", INT), SlotType("||b", STRING), SlotType("||gone", INT)]
    after = [SlotType("||b", STRING), SlotType("||new", AMOUNT), SlotType("||a", INT)]
    batch = InputBatch(
        texts_of(["k"]), [0b111, 1 << 2, 0b10], *(events([], before).time,) * 2,
        events([(1, "x", 5), (2, None, 6)], before),
    )  # fmt: skip
    translation = Translation(
        meaning(before, "one", "left", "three"), meaning(after, "three", "new", "one"), after
    )
    translation.batch(batch)
    assert batch.masks == [0b101, 0b001, 0]
    assert rows_of(batch.events, after) == [("x", None, 1), (None, None, 2)]


def test_no_columns_any_more() -> None:
    """Nor are there any where nothing reads them, or where all were NULL."""
    slot = [SlotType("||a", INT)]
    state = KeysState(events=events([(1,)], slot))
    Translation(meaning(slot), meaning([]), []).state(state)
    assert state.events.columns is None
    state = KeysState(events=events([()], []))
    Translation(meaning([]), meaning(slot), slot).state(state)
    assert rows_of(state.events, slot) == [(None,)]
