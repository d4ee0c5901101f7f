"""Values computed in Python, with and without schemas."""

from __future__ import annotations

import math
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from time import perf_counter
from typing import Any

import pytest

from spark_cep.pattern.expressions import bind, check_types, parse
from spark_cep.pattern.types import (
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
        ("cast(d as string)", {"d": 100.0}, "100.0"),
        ("cast(d as string)", {"d": -0.0}, "-0.0"),
        ("cast(d as string)", {"d": 9999999.0}, "9999999.0"),
        ("cast(d as string)", {"d": -12345678.9}, "-1.23456789E7"),
        ("cast(d as string)", {"d": 1e300}, "1.0E300"),
        ("cast(d as string)", {"d": 0.0001}, "1.0E-4"),
        ("cast(d as string)", {"d": -math.inf}, "-Infinity"),
        ("cast(d as string)", {"d": math.nan}, "NaN"),
        ("cast(ts - ts as string)", {"ts": NOON}, "INTERVAL 0 WEEKS"),
        ("cast(s as timestamp)", {"s": "2024-02-29 13:00:00.5+01:00"}, NOON),
        ("cast(s as timestamp)", {"s": "0001-01-01 00:00:00+18:00"}, None),
        ("s like 'a%b_'", {"s": "a\n%bb"}, True),
        ("s like '%ab%ab%'", {"s": "xabx"}, False),
        ("s like 'ab%ab'", {"s": "ab"}, False),
        ("s like '_'", {"s": "\U0001f600"}, True),
        ("datediff(dt, ts)", {"dt": date(2024, 3, 1), "ts": NOON}, 1),
        ("dayofweek(dt)", {"dt": date(2024, 3, 3)}, 1),
        ("unix_millis(ts)", {"ts": NOON}, 1709208000500),
        ("ts - ts2", {"ts": NOON, "ts2": date(2024, 2, 29)}, timedelta(hours=12, seconds=0.5)),
        ("ts - ts2 > interval 12 hours", {"ts": NOON, "ts2": date(2024, 2, 29)}, True),
        ("ts + interval 1 year", {"ts": NOON}, NOON.replace(year=2025, day=28)),
        ("interval 1 month + dt", {"dt": date(2024, 1, 31)}, date(2024, 2, 29)),
        ("dt - interval 13 months", {"dt": date(2024, 3, 31)}, date(2023, 2, 28)),
        ("dt + interval 1 second", {"dt": date(2024, 3, 1)}, datetime(2024, 3, 1, 0, 0, 1, 0, UTC)),
        ("dt + interval 9000 years", {"dt": date(2024, 3, 1)}, None),
        ("ts + interval 99999999 days", {"ts": NOON}, None),
        ("ts - interval 1 day", {"ts": None}, None),
        ("i * interval 1 minute", {"i": 3}, timedelta(minutes=3)),
        ("interval 1 day - interval 1 hour", {}, timedelta(hours=23)),
        ("-interval 1 day < interval 0 seconds", {}, True),
        ("hour(ts, 'America/St_Johns')", {"ts": NOON}, 8),
        ("minute(ts, 'America/St_Johns')", {"ts": NOON}, 30),
        ("day(ts, 'Pacific/Auckland')", {"ts": NOON}, 1),
        ("dayofweek(ts, 'Pacific/Auckland')", {"ts": NOON}, 6),
        ("year(ts, 'Asia/Tokyo')", {"ts": datetime.max.replace(tzinfo=UTC)}, None),
        ("to_date(ts, 'Pacific/Auckland')", {"ts": NOON}, date(2024, 3, 1)),
        (
            "date_trunc(day, ts, 'Pacific/Auckland')",
            {"ts": NOON},
            NOON.replace(hour=11, microsecond=0),
        ),
        ("date_trunc('week', dt)", {"dt": date(2024, 3, 3)}, datetime(2024, 2, 26, tzinfo=UTC)),
        ("date_trunc(quarter, dt)", {"dt": date(2024, 3, 3)}, datetime(2024, 1, 1, tzinfo=UTC)),
        ("date_add(dt, 2147483647)", {"dt": date(2024, 3, 3)}, None),
        ("timestamp_seconds(l)", {"l": 2**62}, None),
        ("timestampdiff(month, dt, ts)", {"dt": date(2024, 1, 31), "ts": NOON}, 0),
        ("timestampdiff(year, ts, dt)", {"dt": date(2020, 2, 29), "ts": NOON}, -4),
        ("timestampdiff(minute, ts, dt)", {"dt": date(2024, 2, 29), "ts": NOON}, -720),
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


@pytest.mark.parametrize(
    ("utc", "clock"),
    [
        (datetime(2026, 3, 29, 0, 30, tzinfo=UTC), datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
        (datetime(2026, 3, 29, 1, 30, tzinfo=UTC), datetime(2026, 3, 29, 3, 30, tzinfo=UTC)),
        (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 2, 30, tzinfo=UTC)),
    ],
)
def test_clocks_are_changed_in_spring_and_autumn(utc: datetime, clock: datetime) -> None:
    """A zone's clock follows its summer time; a reading that comes twice is the first of them."""
    assert value_of("from_utc_timestamp(ts, 'Europe/Berlin')", ts=utc) == clock
    assert value_of("to_utc_timestamp(ts, 'Europe/Berlin')", ts=clock) == utc
    assert value_of("convert_timezone('UTC', 'Europe/Berlin', ts)", ts=utc) == clock
    assert value_of("hour(ts, 'Europe/Berlin')", ts=utc) == clock.hour


def test_a_clock_reading_that_does_not_exist_is_later() -> None:
    """Half past two, when clocks go from two to three, is half past three."""
    missing = datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
    found = value_of("to_utc_timestamp(ts, 'Europe/Berlin')", ts=missing)
    assert found == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def test_lambdas_inside_lambdas() -> None:
    """Each reads its own element, the ones around, and what was computed once for all of them."""
    e = parse("size(filter(xs, x -> x = length(upper(s))))")
    compute = bind(e, {("xs",): 0, ("s",): 1}, {})
    assert compute(([1, 2, 2], "ab"), ()) == 2
    assert value_of("exists(xs, x -> x.y > d and exists(x.ys, z -> z = d + 1))", d=1, xs=[
        {"y": 1, "ys": [2]}, {"y": 2, "ys": [3, 2]}]) is True  # fmt: skip


def test_lambdas_read_look_backs() -> None:
    """The element stands behind the look-backs, wherever these are."""
    e = parse("EXISTS(tags, t -> t = LAST(a.tag) OR t = b.tag)", steps=frozenset({"a", "b"}))
    places = {look_back: place for place, look_back in enumerate(e.look_backs)}
    holds = bind(e, {("tags",): 0}, places)
    assert holds((["x"],), ("y", "x")) is True
    assert holds((["x"],), ["x", "y", "more"]) is True
    assert holds((["x"],), ("y", "y")) is False


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


@pytest.mark.parametrize(
    "text",
    [
        "s like '%a%b%c'",
        "s like '%a_a_a_a%b%c%d%e%'",
        "s ilike '%aaaab%AAAAB%'",
        "s rlike '(a+)+$b'",
        "s rlike '(a|a)*b'",
        "regexp_extract(s, '(a*)*(a*)b|b', 2) = 'x'",
        "regexp_count(s, 'a.*b|a') = 0",
        "regexp_replace(s, 'a.*b|a', 'x') = 'x'",
        "regexp_count(s, '(a{300}b)|a') = 0",
        "instr(s, repeat('a', 90) || 'b') > 0",
        "split_part(s, 'aab', 2) = 'x'",
        "size(split(s, 'a')) = 0",
        "translate(s, 'a', 'b') = s",
        "concat_ws('ab', split(s, 'a')) = s",
        "exists(split(s, 'a'), x -> x like '%b%')",
        "exists(split(s, 'a'), x -> length(x) > length(upper(s)))",
    ],
)
def test_a_long_text_takes_linear_time(text: str) -> None:
    """200,000 characters are no trap, where the square of their number would take minutes."""
    start = perf_counter()
    assert value_of(text, s="a" * 200_000) in (False, None)
    assert perf_counter() - start < 10


def test_regular_expressions_give_up_beyond_their_limits() -> None:
    """A search that looks too far, or finds too much, is NULL; what stays below is counted."""
    assert value_of("regexp_count(s, 'a.*b|a')", s="a" * 9_900) == 9_900
    assert value_of("regexp_count(s, 'a.*b|a')", s="a" * 20_000) is None
    assert value_of("regexp_count(s, '[a-z]+ ')", s="a " * 19_000) == 19_000
    assert value_of("regexp_replace(s, ' [a-z]+', '')", s=" a" * 19_000) == ""
    assert value_of("regexp_count(s, 'a')", s="a" * 20_001) is None


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
