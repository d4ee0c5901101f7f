"""What is put out: measures, timeouts, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.matcher.row_pattern.failures import SkipFault
from spark_cep.model import Event
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.sql.query import Computed
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from tests.matcher.row_pattern.clauses import row
from tests.reference.row_pattern import KeyState, RowPatternMatcher
from tests.reference.row_pattern.results import MatchFound, Result, SkipFailed, TimedOut, Unmatched

EVENT = RecordType({"ts": BIGINT, "s": STRING, "v": BIGINT})
MINUTE = 60_000


def _plan(clause: str) -> RowPatternPlan:
    return plan_query(load_query(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", "r.sql", EVENT))


def _row(plan: RowPatternPlan, time: int, text: str, value: int | None = 0) -> Event:
    values = {"ts": time, "s": text, "v": value}
    return row(time, *(values[path[0]] for path in plan.columns))


def rows_of(plan: RowPatternPlan, results: Sequence[Result]) -> list[tuple[Any, ...]]:
    """The rows of the result with the columns of the query."""
    places = {path: place for place, path in enumerate(plan.columns)}
    sources = [each.source for each in plan.query.outputs]
    return [
        tuple(
            output.row.columns[places[source]]
            if isinstance(source, tuple)
            else output.measures[source]
            for source in sources
            if not isinstance(source, Computed)
        )
        for result in results
        if isinstance(result, (MatchFound, Unmatched))
        for output in result.rows
    ]


class _Key:
    """A key of its own, row by row."""

    def __init__(self, clause: str) -> None:
        self.plan = _plan(clause)
        self.matcher = RowPatternMatcher(self.plan)
        self.state = KeyState()

    def row(self, time: int, text: str, value: int | None = 0) -> list[Result]:
        return self.matcher.advance(self.state, [_row(self.plan, time, text, value)])


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [
        ("ANY_VALUE(v)", 4),
        ("BOOL_AND(v > 1)", True),
        ("EVERY(v > 2)", False),
        ("BOOL_OR(v > 5)", True),
        ("COUNT_IF(v > 3)", 2),
        ("COUNT(v)", 3),
        ("COUNT(DISTINCT s)", 3),
        ("ARRAY_AGG(v)", [None, 4, 2, 6]),
        ("MAX_BY(s, v)", "c"),
        ("MIN_BY(CLASSIFIER(B), B.v)", "B"),
        ("MEAN(B.v)", 3.0),
        ("STDDEV_POP(v)", (8 / 3) ** 0.5),
        ("SUM(A.v)", None),
        ("ARRAY_AGG(C.v)", None),
        ("COUNT(C.*)", 0),
        ("CAST(v AS VARCHAR) || s", "6c"),
        ("SUM(v * MATCH_NUMBER())", 12),
    ],
)
def test_aggregates(measure: str, wanted: Any) -> None:
    """Each aggregate over the rows NULL, 4, 2, 6."""
    key = _Key(f"MEASURES {measure} AS m PATTERN (A B+? C? D) DEFINE D AS v = 6, C AS v = 9")
    results = [
        result
        for time, (text, value) in enumerate([("a", None), ("b", 4), ("b", 2), ("c", 6)])
        for result in key.row(time, text, value)
    ]
    assert rows_of(key.plan, results) == [(pytest.approx(wanted) if wanted else wanted,)]


def test_as_soon_as_final() -> None:
    """A fixed tail is out with its row, a greedy one with the row that is not of it."""
    fixed = _Key("MEASURES ts AS t PATTERN (A B) DEFINE A AS s = 'a', B AS s = 'b'")
    assert fixed.row(1, "a") == []
    assert rows_of(fixed.plan, fixed.row(2, "b")) == [(2,)]
    greedy = _Key("MEASURES ts AS t PATTERN (A B+) DEFINE A AS s = 'a', B AS s = 'b'")
    assert [greedy.row(1, "a"), greedy.row(2, "b"), greedy.row(3, "b")] == [[], [], []]
    assert rows_of(greedy.plan, greedy.row(4, "x")) == [(3,)]


def test_within_of_an_idle_key() -> None:
    """At the deadline, and not before, the match so far goes out; without one, a timeout."""
    key = _Key(
        "MEASURES COUNT(*) AS n PATTERN (A B+) WITHIN INTERVAL '1' MINUTE "
        "DEFINE A AS s = 'a', B AS s = 'b'"
    )
    assert key.row(1_000, "a") == []
    assert key.row(2_000, "b") == []
    assert key.matcher.deadline(key.state) == 1_000 + MINUTE
    assert key.matcher.move_time(key.state, MINUTE + 999) == []
    assert rows_of(key.plan, key.matcher.move_time(key.state, MINUTE + 1_000)) == [(2,)]
    assert key.matcher.deadline(key.state) is None
    assert key.row(90_000, "a") == []
    (timeout,) = key.matcher.move_time(key.state, 90_000 + MINUTE)
    assert isinstance(timeout, TimedOut)
    assert (timeout.labels, timeout.deadline) == (("A",), 90_000 + MINUTE)


def test_end_of_within_is_exclusive() -> None:
    """A row at start + WITHIN does not belong to the match, one a millisecond before does."""
    clause = (
        "MEASURES ts AS t PATTERN (A B) WITHIN INTERVAL '1' MINUTE "
        "DEFINE A AS s = 'a', B AS s = 'b'"
    )
    inside, outside = _Key(clause), _Key(clause)
    assert [inside.row(0, "a"), outside.row(0, "a")] == [[], []]
    assert [type(each) for each in inside.row(MINUTE - 1, "b")] == [MatchFound]
    assert [type(each) for each in outside.row(MINUTE, "b")] == [TimedOut]


def test_next_holds_back() -> None:
    """A match waits for the row that a measure reads, and so does what follows it."""
    key = _Key("MEASURES NEXT(v) AS n PATTERN (A) DEFINE A AS s = 'a'")
    assert key.row(1, "a", 1) == []
    assert rows_of(key.plan, key.row(2, "a", 2)) == [(2,)]
    assert rows_of(key.plan, key.row(3, "x", 3)) == [(3,)]


def test_failed_skip() -> None:
    """A skip that fails is told; the match is out all the same, and the next row is tried."""
    key = _Key(
        "MEASURES ts AS t AFTER MATCH SKIP TO LAST B PATTERN (A B? C) "
        "DEFINE A AS s = 'a', B AS s = 'b', C AS s = 'c'"
    )
    assert [key.row(1, "a"), key.row(2, "a")] == [[], []]
    found, failed = key.row(3, "c")
    assert isinstance(found, MatchFound)
    assert isinstance(failed, SkipFailed)
    assert (failed.first, failed.fault) == (1, SkipFault.TARGET_ABSENT)
    assert key.state.next_start == 3
