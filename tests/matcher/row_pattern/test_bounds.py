"""What is kept of a key stays small, and what grows all the same is stopped and told."""

from __future__ import annotations

import numpy as np
import pytest

from spark_cep.compiler.row_pattern import plan_query
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.row_pattern.loops.tables import TRIED_AGAIN
from spark_cep.matcher.row_pattern.lowering import RowPatternLimits
from spark_cep.model import Event
from spark_cep.pattern.sql import load_query
from tests.matcher.row_pattern.clauses import EVENT, row
from tests.reference.row_pattern import KeyState, Loops, RowPatternMatcher, States
from tests.reference.row_pattern.results import GivenUp, MatchFound, Unmatched, objects


def _matcher(
    pattern: str, defines: str, limits: RowPatternLimits | None = None, rows: str = ""
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
    """Threads that cannot be one are bounded; the attempt is given up."""
    matcher = _matcher("(A | B)* C", "C AS SUM(A.v) = -1", RowPatternLimits(threads=50))
    state = KeyState()
    results = matcher.advance(state, _rows([1] * 8))
    assert results == [GivenUp(at, row(at, 1), "more than 50 threads") for at in range(4)]
    assert state.next_start == 4


def test_rows_of_an_attempt_given_up() -> None:
    """They are unmatched, each once."""
    matcher = _matcher(
        "A+ B", "B AS v < 0", RowPatternLimits(rows=4), "ALL ROWS PER MATCH WITH UNMATCHED ROWS"
    )
    results = matcher.advance(KeyState(), [row(time, time, 1) for time in range(10)])
    shown = [each.number if isinstance(each, Unmatched) else each.first for each in results]
    assert shown == [at for start in range(6) for at in (start, start)]


def test_the_search_goes_on_behind_an_attempt_given_up() -> None:
    """At the next row: the match from there is within the limit."""
    matcher = _matcher("A+ B", "A AS v > 0, B AS v < 0", RowPatternLimits(rows=4))
    results = matcher.advance(KeyState(), _rows([1, 2, 3, 4, -1]))
    assert [(type(each), each.first) for each in results if not isinstance(each, Unmatched)] == [
        (GivenUp, 0),
        (MatchFound, 1),
    ]


def test_no_match_is_cut_off() -> None:
    """What an attempt has found beyond a limit is not what it would have found; it is not put out.
    The rows are cut anywhere."""
    matcher = _matcher("A+", "A AS v > 0", RowPatternLimits(rows=5))
    at_once, one_by_one = KeyState(), KeyState()
    rows = _rows([1] * 12 + [0])
    results = matcher.advance(at_once, rows)
    assert results == [each for event in rows for each in matcher.advance(one_by_one, [event])]
    kinds = [
        (type(each).__name__, each.first) for each in results if not isinstance(each, Unmatched)
    ]
    assert kinds == [*(("GivenUp", at) for at in range(7)), ("MatchFound", 7)]


def test_many_rows_of_many_threads_are_not_tried_again() -> None:
    """What is given up with all of its threads has cost much in each of its rows; to do that again
    would be in the time of one row."""
    text = (
        "SELECT * FROM t MATCH_RECOGNIZE (MEASURES v AS m PATTERN (A* B* C) "
        "DEFINE C AS COUNT(A.*) = -1)"
    )
    plan = plan_query(load_query(text, "b.sql", EVENT))
    # Each row makes two threads more.
    for threads, wanted in ((800, [0, 399 // TRIED_AGAIN]), (1100, [0])):
        loops, names = Loops(plan, RowPatternLimits(threads=threads)), Names()
        events = EventTable.of([row(time, 1) for time in range(600)], names, loops.slots)
        run = loops.apply(States(), events, np.zeros(600, np.int64), -1, names)
        found = [result for piece in run for _, result in objects(piece)]
        assert [each.first for each in found if isinstance(each, GivenUp)][:2] == wanted


def test_work_behind_attempts_given_up_is_bounded() -> None:
    """Of the rows of a long one, some are tried again, not each: there are as many searches as rows
    by a factor."""
    matcher = _matcher("A+ B", "A AS v > 0, B AS v < 0", RowPatternLimits(rows=160))
    results = matcher.advance(KeyState(), _rows([1] * 1600))
    assert [each.first for each in results if isinstance(each, GivenUp)] == [
        at * 160 // TRIED_AGAIN for at in range((1600 - 160) * TRIED_AGAIN // 160)
    ]
