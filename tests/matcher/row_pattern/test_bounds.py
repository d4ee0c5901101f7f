"""What is kept of a key stays small, and what grows all the same is stopped and told."""

from __future__ import annotations

import pytest

from service.compiler.row_pattern import plan_query
from service.matcher.row_pattern import (
    GivenUp,
    KeyState,
    Limits,
    MatchFound,
    RowPatternMatcher,
)
from service.model import Event
from service.pattern.sql import load_query
from tests.matcher.row_pattern.clauses import EVENT, row


def _matcher(
    pattern: str, defines: str, limits: Limits | None = None, rows: str = ""
) -> RowPatternMatcher:
    clause = f"MEASURES v AS m {rows} PATTERN ({pattern}) DEFINE {defines}"
    text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause})"
    return RowPatternMatcher(plan_query(load_query(text, "b.sql", EVENT)), limits)


def _rows(values: list[int]) -> list[Event]:
    return [row(time, value) for time, value in enumerate(values)]


@pytest.mark.parametrize(
    "pattern",
    ["(A | B)* (A | C)* X", "((A* B*)* C*)* X", "(A? B? C?)* (A | B | C)* X", "((A | A)+ | A)* X"],
)
def test_equal_threads_are_one(pattern: str) -> None:
    """Conditions that look at their row alone: no more threads than instructions."""
    conditions = {"A": "v < 9", "B": "v > PREV(v) AND v < 9", "C": "v < 8", "X": "v > 9"}
    used = ", ".join(f"{name} AS {text}" for name, text in conditions.items() if name in pattern)
    matcher = _matcher(pattern, used)
    state = KeyState()
    for each in _rows([1, 2] * 100):
        matcher.advance(state, [each])
        assert state.attempt is not None
        assert len(state.attempt.threads) <= 20
    (found,) = matcher.advance(state, [row(200, 10)])
    assert isinstance(found, MatchFound)
    assert len(found.labels) == 201


def test_rows_are_dropped() -> None:
    """Of the rows before an attempt, as many are kept as PREV can reach."""
    matcher = _matcher("A B", "A AS v > PREV(v, 3), B AS v > 0")
    state = KeyState()
    for each in _rows([1, 2, 3, 4, 5, 0, 7] * 50):
        matcher.advance(state, [each])
        assert len(state.rows) <= 3 + 2
    assert state.matches > 50


def test_too_many_threads() -> None:
    """Threads that cannot be one are bounded; the attempt ends with what it has."""
    matcher = _matcher("(A | B)* C", "C AS SUM(A.v) = -1", Limits(threads=50))
    state = KeyState()
    results = matcher.advance(state, _rows([1] * 8))
    assert results == [GivenUp(0, row(0, 1), "more than 50 threads")]
    assert state.next_start == 5


def test_rows_of_an_attempt_given_up() -> None:
    """They are unmatched, each once, and are not tried again."""
    matcher = _matcher(
        "A+ B", "B AS v < 0", Limits(rows=4), "ALL ROWS PER MATCH WITH UNMATCHED ROWS"
    )
    results = matcher.advance(KeyState(), [row(time, time, 1) for time in range(10)])
    shown = [each.first if isinstance(each, GivenUp) else each.number for each in results]
    assert shown == [0, 0, 1, 2, 3, 4, 4, 5, 6, 7]


def test_too_many_rows() -> None:
    """An attempt of too many rows ends with the match so far; the rows are cut anywhere."""
    matcher = _matcher("A+", "A AS v > 0", Limits(rows=5))
    at_once, one_by_one = KeyState(), KeyState()
    rows = _rows([1] * 12)
    results = matcher.advance(at_once, rows)
    assert results == [each for event in rows for each in matcher.advance(one_by_one, [event])]
    kinds = [(type(each).__name__, each.first) for each in results if not isinstance(each, str)]
    assert kinds == [("GivenUp", 0), ("MatchFound", 0), ("GivenUp", 5), ("MatchFound", 5)]
    assert all(len(each.labels) == 5 for each in results if isinstance(each, MatchFound))
