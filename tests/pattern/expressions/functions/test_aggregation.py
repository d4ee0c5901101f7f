"""Values of look-backs from the events that were taken."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from spark_cep.pattern.expressions import aggregate, parse

BIG = 2**63 - 1


@pytest.mark.parametrize(
    ("call", "values", "expected"),
    [
        ("FIRST(a.x)", [1, 2], 1),
        ("FIRST(a.x, 1)", [1, 2], 2),
        ("FIRST(a.x)", [None, 2], None),
        ("FIRST(a.x)", [], None),
        ("LAST(a.x)", [1, 2], 2),
        ("LAST(a.x, 1)", [1, 2], 1),
        ("LAST(a.x, 2)", [1, 2], None),
        ("LAST(a.x)", [1, None], None),
        ("SUM(a.x)", [1, None, 2], 3),
        ("SUM(a.x)", [None], None),
        ("SUM(a.x)", [BIG, 1], None),
        ("SUM(a.x)", [BIG, 1, -1], BIG),
        ("SUM(a.x)", [0.1, 0.2], 0.1 + 0.2),
        ("SUM(a.x)", [Decimal("0.10"), Decimal("0.20")], Decimal("0.30")),
        ("AVG(a.x)", [1, 2, None], 1.5),
        ("AVG(a.x)", [], None),
        ("AVG(a.x)", [Decimal("1.00"), Decimal("0.00"), Decimal("0.00")], Decimal("0.333333")),
        ("MIN(a.x)", [3, None, 1, 2], 1),
        ("MAX(a.x)", ["a", "b"], "b"),
        ("MIN(a.x)", [math.nan, 1.0], 1.0),
        ("MAX(a.x)", [None], None),
        ("COUNT(a.x)", [1, None], 1),
        ("COUNT(a.x)", [], 0),
        ("COUNT(a.*)", [None, None], 2),
        ("COUNT(a.*)", [], 0),
        ("COUNT(DISTINCT a.x)", [1, 2, None, 1], 2),
        ("COUNT(DISTINCT a.x)", [], 0),
        ("COUNT(DISTINCT a.x)", [math.nan, -math.nan, 0.0, -0.0], 2),
        ("COUNT(DISTINCT a.x)", [Decimal("1.0"), Decimal("1.00")], 1),
        ("COUNT(DISTINCT a.x)", ["a", "A", "a"], 2),
        ("COUNT(DISTINCT a.x)", [[1, math.nan], [1, math.nan], [1]], 2),
        ("COLLECT(a.x)", [3, None, 1, 3], [3, 1, 3]),
        ("COLLECT(a.x)", [], []),
        ("COLLECT(a.x, 2)", [None, 1, 2, 3], [1, 2]),
        ("ARRAY_AGG(a.x)", [[1], [2]], [[1], [2]]),
        ("STDDEV(a.x)", [1, None, 3], math.sqrt(2)),
        ("STDDEV(a.x)", [1], None),
        ("STDDEV_POP(a.x)", [1], 0.0),
        ("STDDEV_POP(a.x)", [], None),
        ("VAR_POP(a.x)", [Decimal(1), Decimal(3)], 1.0),
        ("VARIANCE(a.x)", [1e9 + 1, 1e9 + 3], 2.0),
    ],
)
def test_value(call: str, values: list[Any], expected: Any) -> None:
    """NULLs, empty steps, offsets and overflow as in SQL."""
    (look_back,) = parse(call, steps=frozenset({"a"})).look_backs
    found = aggregate(look_back, values)
    assert (type(found), found) == (type(expected), expected)


def test_collect_is_bounded() -> None:
    """The first thousand values are kept, the others are not."""
    (look_back,) = parse("COLLECT(a.x)", steps=frozenset({"a"})).look_backs
    assert aggregate(look_back, range(5_000)) == list(range(1_000))


def test_a_spread_of_what_is_infinite_is_not_a_number() -> None:
    """Infinities make NaN, and raise nothing."""
    for call in ("STDDEV(a.x)", "VAR_POP(a.x)"):
        (look_back,) = parse(call, steps=frozenset({"a"})).look_backs
        assert math.isnan(aggregate(look_back, [math.inf, 1.0]))
        assert aggregate(look_back, [1e200, -1e200]) == math.inf


def test_nan_is_the_greatest() -> None:
    """MAX gives NaN when there is one."""
    (look_back,) = parse("MAX(a.x)", steps=frozenset({"a"})).look_backs
    assert math.isnan(aggregate(look_back, [1.0, math.nan, 2.0]))


def test_sum_of_long_decimals_is_exact() -> None:
    """Sums keep all their digits, up to 38."""
    (look_back,) = parse("SUM(a.x)", steps=frozenset({"a"})).look_backs
    value = Decimal("99999999999999999999999999999999.99")
    assert aggregate(look_back, [value, value]) == Decimal("199999999999999999999999999999999.98")
    assert aggregate(look_back, [Decimal("9" * 38)] * 2) is None
