"""Values computed in Python, with and without schemas."""

from __future__ import annotations

import math
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from time import perf_counter
from typing import Any

import pytest

from service.pattern.expressions import bind, check_types, parse
from service.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    DecimalType,
    SqlType,
)
from tests.pattern.expressions.samples import EVENT, EXPRESSIONS, in_python

STEPS = frozenset({"a"})
NOON = datetime(2024, 2, 29, 12, 0, 0, 500000, UTC)


def value_of(text: str, *, typed: bool = False, **columns: Any) -> Any:
    """The value of an event-only expression."""
    e = parse(text)
    paths = {path: number for number, path in enumerate(sorted(e.columns))}
    read = [columns[path[0]] for path in paths]
    return bind(e, paths, {}, EVENT if typed else None)(read, ())


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("i + 1", {"i": 1}, 2),
        ("i + 1", {"i": None}, None),
        ("i / 2", {"i": 3}, 1.5),
        ("i / 0", {"i": 3}, None),
        ("d / 0", {"d": 3.0}, None),
        ("i % 0", {"i": 3}, None),
        ("-i % 3", {"i": 7}, -1),
        ("d % 2", {"d": math.inf}, "nan"),
        ("l + 1", {"l": 2**63 - 1}, None),
        ("-l", {"l": -(2**63)}, None),
        ("abs(l)", {"l": -(2**63)}, None),
        ("d * 1.1", {"d": 2.0}, 2.2),
        ("m * 2", {"m": Decimal("1.25")}, Decimal("2.50")),
        ("m / 3", {"m": Decimal("1.00")}, Decimal("0.333333")),
        ("d = d", {"d": math.nan}, True),
        ("d > 1e308", {"d": math.nan}, True),
        ("greatest(d, 1)", {"d": math.nan}, "nan"),
        ("i = 1.0", {"i": 1}, True),
        ("d = 1.1", {"d": 1.1}, True),
        ("s < '\U0001f600'", {"s": "\uffff"}, True),
        ("ts > dt", {"ts": NOON, "dt": date(2024, 2, 29)}, True),
        ("b and false", {"b": None}, False),
        ("b and true", {"b": None}, None),
        ("b or true", {"b": None}, True),
        ("b or false", {"b": None}, None),
        ("not b", {"b": None}, None),
        ("b is true", {"b": None}, False),
        ("i in (1, null)", {"i": 2}, None),
        ("i not in (1, null)", {"i": 1}, False),
        ("i between null and 1", {"i": 2}, False),
        ("i <=> null", {"i": None}, True),
        ("nullif(i, 1)", {"i": 1}, None),
        ("coalesce(i, 5)", {"i": None}, 5),
        ("case i when 1 then 'one' else 'more' end", {"i": 2}, "more"),
        ("round(d, 2)", {"d": 2.345}, 2.35),
        ("round(d)", {"d": -2.5}, -3.0),
        ("round(m, 1)", {"m": Decimal("2.25")}, Decimal("2.3")),
        ("floor(d)", {"d": 1e30}, 2**63 - 1),
        ("ceil(d)", {"d": math.nan}, 0),
        ("sqrt(d)", {"d": -1.0}, "nan"),
        ("arr[5]", {"arr": [1]}, None),
        ("arr[-1]", {"arr": [1]}, None),
        ("element_at(arr, -1)", {"arr": [1, 2]}, 2),
        ("element_at(arr, 0)", {"arr": [1, 2]}, None),
        ("mp['k']", {"mp": {}}, None),
        ("array_contains(arr, 2)", {"arr": [1, None]}, None),
        ("size(arr)", {"arr": None}, None),
        ("cast(s as int)", {"s": "12a"}, None),
        ("cast(s as int)", {"s": " 12 "}, 12),
        ("cast(s as int)", {"s": "0" * 30 + "5"}, 5),
        ("cast(s as int)", {"s": "９"}, None),
        ("cast(s as double)", {"s": "1_0"}, None),
        ("cast(s as decimal(5, 2))", {"s": "1e999999999999"}, None),
        ("cast(d as string)", {"d": 1.5}, "1.5"),
        ("cast(s as timestamp)", {"s": "2024-02-29 13:00:00.5+01:00"}, NOON),
        ("cast(s as timestamp)", {"s": "0001-01-01 00:00:00+18:00"}, None),
        ("s like 'a%b_'", {"s": "a\n%bb"}, True),
        ("s like '%ab%ab%'", {"s": "xabx"}, False),
        ("s like 'ab%ab'", {"s": "ab"}, False),
        ("s like '_'", {"s": "\U0001f600"}, True),
        ("datediff(dt, ts)", {"dt": date(2024, 3, 1), "ts": NOON}, 1),
        ("dayofweek(dt)", {"dt": date(2024, 3, 3)}, 1),
        ("unix_millis(ts)", {"ts": NOON}, 1709208000500),
    ],
)
def test_value(text: str, columns: dict[str, Any], expected: Any) -> None:
    """Without schemas the values decide; the result is SQL's."""
    found = value_of(text, **columns)
    if expected == "nan":
        assert math.isnan(found)
    else:
        assert (type(found), found) == (type(expected), expected)


_PYTHON: dict[SqlType, type] = {
    BOOLEAN: bool,
    INT: int,
    BIGINT: int,
    DOUBLE: float,
    STRING: str,
    DATE: date,
    TIMESTAMP: datetime,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_sample(text: str) -> None:
    """No sample raises on any event, and values are of the checked type; schema or not."""
    e = parse(text)
    kind = check_types(e, EVENT, {})
    expected = Decimal if isinstance(kind, DecimalType) else _PYTHON.get(kind, object)
    assert all(value is None or isinstance(value, expected) for value in in_python(e))
    in_python(e, None)


def test_schema_decides_the_range() -> None:
    """INT arithmetic stays within INT when the schema is known, else within BIGINT."""
    assert value_of("i + 1", typed=True, i=2**31 - 1) is None
    assert value_of("i + 1", i=2**31 - 1) == 2**31


def test_look_backs_are_read_by_place() -> None:
    """Columns and look-backs come from the two sequences, at the places given."""
    e = parse("price > LAST(a.price) * 2 AND COUNT(a.*) = n", steps=STEPS)
    places = {look_back: place for place, look_back in enumerate(e.look_backs)}
    holds = bind(e, {("price",): 1, ("n",): 0}, places)
    assert holds((3, 10.5), (5.0, 3)) is True
    assert holds((3, 9.5), (5.0, 3)) is False
    assert holds((3, None), (5.0, 3)) is None
    with pytest.raises(KeyError):
        bind(e, {}, places)


def test_records_are_mappings_or_rows() -> None:
    """A field of a computed record is read from mappings and from anything with its name."""

    class Row:
        def __getitem__(self, name: str) -> int:
            return {"x": 7}[name]

    assert value_of("arr[0].x", arr=[{"x": 7}]) == 7
    assert value_of("arr[0].x", arr=[Row()]) == 7
    assert value_of("arr[0].x", arr=[]) is None
    assert value_of("arr[0].x", arr=[{}]) is None


def test_like_takes_linear_time() -> None:
    """A pattern with many near matches is no trap."""
    start = perf_counter()
    assert value_of("s like '%aaaab%aaaab%'", s="a" * 200_000) is False
    assert perf_counter() - start < 1


@pytest.mark.skipif(sys.gettrace() is not None, reason="tracing takes longer than the work")
def test_simple_condition_is_fast() -> None:
    """One comparison with a look-back costs well below a microsecond (loosely checked)."""
    e = parse("price > LAST(a.price)", steps=STEPS)
    holds = bind(e, {("price",): 0}, {e.look_backs[0]: 0})
    columns, look_backs = (2.0,), (1.0,)
    best = math.inf
    for _ in range(5):
        start = perf_counter()
        for _ in range(10_000):
            holds(columns, look_backs)
        best = min(best, (perf_counter() - start) / 10_000)
    assert best < 3e-6
