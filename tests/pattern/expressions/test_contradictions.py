"""Conditions that no event meets, and those that others imply."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.expressions import bind, parse
from spark_cep.pattern.expressions.contradictions import implies, never_true

NEVER = [
    ("kind = NULL", Code.COMPARED_WITH_NULL),
    ("NULL", Code.COMPARED_WITH_NULL),
    ("kind IN (NULL)", Code.COMPARED_WITH_NULL),
    ("kind NOT IN ('a', NULL)", Code.COMPARED_WITH_NULL),
    ("NOT kind <> NULL", Code.COMPARED_WITH_NULL),
    ("x + NULL > 5", Code.COMPARED_WITH_NULL),
    ("x BETWEEN 22 AND 6", Code.REVERSED_BETWEEN),
    ("1 = 2", Code.NEVER_TRUE),
    ("FALSE", Code.NEVER_TRUE),
    ("NOT TRUE", Code.NEVER_TRUE),
    ("NOT (1 = 1 OR x > 2)", Code.NEVER_TRUE),
    ("UPPER('a') = 'a'", Code.NEVER_TRUE),
    ("kind = 'a' AND kind = 'b'", Code.NEVER_TRUE),
    ("kind = 'a' AND x = 1 AND 'b' = kind", Code.NEVER_TRUE),
    ("kind IN ('a', 'b') AND kind NOT IN ('b', 'c') AND kind <> 'a'", Code.NEVER_TRUE),
    ("kind IN ('a', 'b') AND kind IN ('c', 'd')", Code.NEVER_TRUE),
    ("kind = 'a' AND kind IS NULL", Code.NEVER_TRUE),
    ("kind LIKE 'a%' AND kind IS NULL", Code.NEVER_TRUE),
    ("x > 5 AND x < 5", Code.NEVER_TRUE),
    ("x > 5 AND x <= 5", Code.NEVER_TRUE),
    ("5 < x AND 3 > x", Code.NEVER_TRUE),
    ("NOT x <= 5 AND x < 3", Code.NEVER_TRUE),
    ("x > 5 AND x BETWEEN 1 AND 5", Code.NEVER_TRUE),
    ("x > 5 AND x NOT BETWEEN 1 AND 9 AND x < 8", Code.NEVER_TRUE),
    ("x > 5.5 AND x < 5.25", Code.NEVER_TRUE),
    ("x = 5 AND x <> 5", Code.NEVER_TRUE),
    ("x < y AND x > y", Code.NEVER_TRUE),
    ("x < y AND y <= x", Code.NEVER_TRUE),
    ("x <> x", Code.NEVER_TRUE),
    ("NOT x = x", Code.NEVER_TRUE),
    ("flag AND NOT flag", Code.NEVER_TRUE),
    ("flag = TRUE AND flag = FALSE", Code.NEVER_TRUE),
    ("x > 5 AND (x < 3 OR x = 4)", Code.NEVER_TRUE),
    ("(x > 5 AND x < 3) IS TRUE", Code.NEVER_TRUE),
    ("x IS NULL AND x <=> 5", Code.NEVER_TRUE),
    ("x + 1 > 5 AND x + 1 < 2", Code.NEVER_TRUE),
    ("DATE '2024-01-02' < d AND d < DATE '2024-01-01'", Code.NEVER_TRUE),
]
SOMETIMES = [
    "kind IS NULL",
    "kind <=> NULL",
    "TRUE",
    "NOT FALSE",
    "NOT (x IS NULL)",
    "x NOT BETWEEN 22 AND 6",
    "x >= 5 AND x <= 5",
    "x > 3 AND x < 4",
    "x = 9007199254740992 AND x = 9007199254740993",
    "x > 0.1 AND x < 0.10000000000000000001",
    "kind = 'a' AND kind = x",
    "kind > 'a' AND x < 5",
    "x <= y AND y <= x",
    "NOT flag OR flag",
    "(kind = NULL) IS NULL",
    "COALESCE(kind = NULL, TRUE)",
    "CASE WHEN kind = NULL THEN FALSE ELSE TRUE END",
    "EXISTS(tags, t -> t = 'a') AND EXISTS(tags, t -> t = 'b')",
    "kind IN ('a', NULL)",
    "x > 1D AND x < CAST('NaN' AS DOUBLE)",
]


@pytest.mark.parametrize(("text", "code"), NEVER)
def test_never_true(text: str, code: Code) -> None:
    """The reason names its part."""
    (reason,) = never_true(parse(text).node, text)
    assert (reason.code, reason.whole) == (code, True)
    assert 0 <= reason.span[0] < reason.span[1] <= len(text)
    assert reason.allowed


@pytest.mark.parametrize("text", SOMETIMES)
def test_no_false_alarm(text: str) -> None:
    """What some event meets is not told."""
    assert never_true(parse(text).node, text) == []


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("kind = NULL OR x = 5", "kind = NULL"),
        ("x > 5 AND (x < 3 OR y = 1)", "x < 3"),
        ("y = 1 OR y = 2 OR (x > 5 AND x < 3)", "x < 3"),
    ],
)
def test_a_part_of_or(text: str, part: str) -> None:
    """The alternative that never counts is told, at its place."""
    (reason,) = never_true(parse(text).node, text)
    assert not reason.whole
    assert text[slice(*reason.span)] == part


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("kind = NULL", "kind IS NULL"),
        ("NULL <> a.b", "a.b IS NOT NULL"),
        ("x = 1 AND tags[0] = NULL", "tags[0] IS NULL"),
        ("kind || 'x' = NULL", None),
        ("kind < NULL", None),
    ],
)
def test_fix(text: str, fix: str | None) -> None:
    """Equality with NULL can be written as what is meant."""
    (reason,) = never_true(parse(text).node, text)
    assert reason.fix == fix


@pytest.mark.parametrize(
    ("one", "other", "implied"),
    [
        ("x > 7", "x > 5", True),
        ("x > 5", "x > 7", False),
        ("x = 6", "x BETWEEN 5 AND 7", True),
        ("x BETWEEN 5 AND 6", "x >= 5 AND x < 7", True),
        ("kind = 'a'", "kind IN ('a', 'b')", True),
        ("kind IN ('a', 'b')", "kind <> 'c'", True),
        ("kind IN ('a', 'b')", "kind = 'a'", False),
        ("kind = 'a' AND x > 5", "x > 5", True),
        ("kind = 'a' OR kind = 'b'", "kind IN ('b', 'a')", True),
        ("kind = 'a' OR x = 1", "kind = 'a'", False),
        ("x > 5", "x > 5 OR y > 5", True),
        ("x > 5", "x IS NOT NULL", True),
        ("y = 1", "NOT x > 5", False),
        ("x < y", "x <= y", True),
        ("x = 1", "x = 1 AND y = 2", False),
        ("x > y", "x > y AND y IS NOT NULL", True),
    ],
)
def test_implies(one: str, other: str, implied: bool) -> None:
    """What meets one certainly meets the other."""
    assert implies(parse(one).node, parse(other).node) is implied


def test_implied_by_everything() -> None:
    """No condition is met by each event."""
    node = parse("x = 1").node
    assert implies(node, None)
    assert implies(None, None)
    assert not implies(None, node)


_ATOMS = st.sampled_from(
    [
        *(f"{n} {o} {v}" for n, o, v in product("xy", ("=", "<>", "<", ">=", "<=>"), (1, 2.5, 4))),
        *("x < y", "x = y", "y <= x", "x <> x", "x IS NULL", "y IS NOT NULL", "NULL", "x = NULL"),
        *("x IN (1, 4)", "x IN (2, NULL)", "y NOT IN (1, 2)", "x BETWEEN 2 AND 4", "flag"),
        *("x BETWEEN 4 AND 1", "x NOT BETWEEN 1 AND 2", "x + 1 > 3", "flag IS TRUE", "1 = 2"),
        *("y NOT BETWEEN NULL AND 2", "flag = FALSE", "flag IS FALSE", "TRUE", "y > x + 1"),
    ]
)
_CONDITIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=6,
)
_NUMBERS: list[Any] = [None, 0, 1, 2, Decimal("2.5"), 3, 4, 7]
_ROWS = list(product(_NUMBERS, _NUMBERS, (None, True, False)))


def _holds(text: str) -> list[bool]:
    """Whether the condition holds, by row."""
    value = bind(parse(text), {("x",): 0, ("y",): 1, ("flag",): 2}, {})
    return [value(row, ()) is True for row in _ROWS]


@settings(max_examples=300)
@given(_CONDITIONS)
def test_what_is_never_true(text: str) -> None:
    """No row meets it."""
    reasons = never_true(parse(text).node, text)
    if any(reason.whole for reason in reasons):
        assert not any(_holds(text))


@settings(max_examples=300)
@given(_CONDITIONS, _CONDITIONS)
def test_what_is_implied(one: str, other: str) -> None:
    """Each row that meets the one meets the other."""
    if implies(parse(one).node, parse(other).node):
        assert all(b or not a for a, b in zip(_holds(one), _holds(other), strict=True))
