"""Measures of ALL ROWS PER MATCH: each row is what it is alone, and long matches stay linear."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.row_pattern.python_calls import thread_views
from spark_cep.matcher.row_pattern.python_calls.evaluation import Binder, View
from spark_cep.matcher.row_pattern.python_calls.key_rows import KeyRows
from spark_cep.model import Event
from spark_cep.pattern.expressions.functions.aggregation import MAX_COLLECTED, ROW_AGGREGATES
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.types import BIGINT, DOUBLE, RecordType
from tests.matcher.row_pattern.clauses import row
from tests.reference.row_pattern import KeyState, Loops, RowPatternMatcher, States
from tests.reference.row_pattern.results import MatchFound, objects

EVENT = RecordType({"ts": BIGINT, "v": BIGINT, "x": DOUBLE})
_TRUTHS = {"BOOL_AND", "BOOL_OR", "COUNT_IF"}


def _measures() -> Iterator[str]:
    for name, function in ROW_AGGREGATES.items():
        for scope in ("", "A.", "B.", "u."):
            inner = f"{scope}v > 1" if name in _TRUTHS else f"{scope}x"
            inner += f", {scope}v" if function.arguments == 2 else ""
            call = f"COUNT(DISTINCT {inner})" if " " in name else f"{name}({inner})"
            yield from (call, f"FINAL {call}")
    yield from ("COUNT(*) + 0", "COUNT(A.*)", "FINAL COUNT(B.*)", "SUM(v * MATCH_NUMBER())")
    yield "MAX_BY(CLASSIFIER(), v)"
    for call in ("{}(A.v)", "{}(B.v, 1)", "{}(v, 2)", "{}(u.v, 3)", "PREV({}(B.v, 1), 1)"):
        for pick in ("FIRST", "LAST", "FINAL LAST", "FINAL FIRST"):
            if "PREV" not in call or "FINAL" not in pick:
                yield call.format(pick)
                yield f"{call.format(pick)} + 1"


def _plan(measures: list[str], pattern: str = "(A | B)+ C") -> RowPatternPlan:
    shown = ", ".join(f"{text} AS m{number}" for number, text in enumerate(measures))
    return plan_query(
        load_query(
            f"SELECT * FROM t MATCH_RECOGNIZE (MEASURES {shown} ALL ROWS PER MATCH "
            f"PATTERN ({pattern}) SUBSET u = (A, B) DEFINE A AS v > 1, B AS v IS NULL OR v >= 0, "
            "C AS v < 0)",
            "r.sql",
            EVENT,
        )
    )


def _rows(plan: RowPatternPlan, given: Sequence[tuple[int | None, float | None]]) -> list[Event]:
    return [
        row(time, *({"ts": time, "v": v, "x": x}[path[0]] for path in plan.columns))
        for time, (v, x) in enumerate(given)
    ]


def _compiled(matcher: Loops, rows: list[Event]) -> list[MatchFound]:
    names = Names()
    events = EventTable.of(rows, names, matcher.slots)
    key = np.zeros(len(rows), np.int64)
    run = matcher.apply(States(), events, key, -1, names)
    found = [result for piece in run for _, result in objects(piece)]
    return [each for each in found if isinstance(each, MatchFound)]


def _reference(matcher: RowPatternMatcher, rows: list[Event]) -> list[MatchFound]:
    return [each for each in matcher.advance(KeyState(), rows) if isinstance(each, MatchFound)]


PLAN = _plan(list(_measures()))
LOOPS, REFERENCE = Loops(PLAN), RowPatternMatcher(PLAN)
VALUES = st.tuples(
    st.none() | st.integers(-1, 4),
    st.none() | st.sampled_from([0.1, -2.5, 1e9, float("nan"), 0.0, -0.0, 7.25]),
)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(VALUES, max_size=12), st.sampled_from([0, 3, 16]))
def test_each_row_is_what_it_is_alone(
    given: list[tuple[int | None, float | None]], one_by_one: int
) -> None:
    """As evaluated without what was found for the rows before, and a row at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thread_views, "_ONE_BY_ONE", one_by_one)
        _compare(given)


def _compare(given: list[tuple[int | None, float | None]]) -> None:
    rows = _rows(PLAN, [*given, (-1, None)])
    binder = Binder(PLAN)
    measures = [binder.expression(each.expression) for each in PLAN.query.measures]
    found = _reference(REFERENCE, rows)
    every = KeyState(rows=rows)
    for match in found:
        labels = [PLAN.query.variables.index(label) for label in match.labels]
        for output in match.rows:
            current = match.first + output.place
            wanted = tuple(
                each(View(every, match.first, labels, current, match.number, len(rows), False))
                for each in measures
            )
            assert repr(output.measures) == repr(wanted)
    assert repr(_compiled(LOOPS, rows)) == repr(found)


@pytest.mark.parametrize(
    "measure", ["AVG(v)", "FINAL MAX(x)", "LAST(B.v) + 1", "STDDEV(A.v) + FINAL SUM(v)"]
)
def test_work_grows_with_the_length(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the rows: rows are read four times as often, not sixteen times."""
    plan = _plan([measure])
    read = 0

    def counted(real: Any) -> Any:
        def run(self: Any, number: int) -> Event:
            nonlocal read
            read += 1
            found: Event = real(self, number)
            return found

        return run

    monkeypatch.setattr(KeyState, "row", counted(KeyState.row))
    monkeypatch.setattr(KeyRows, "row", counted(KeyRows.row))
    loops, reference = Loops(plan), RowPatternMatcher(plan)
    runs: list[Callable[[list[Event]], list[MatchFound]]] = [
        lambda rows: _compiled(loops, rows),
        lambda rows: _reference(reference, rows),
    ]
    for run in runs:
        reads = []
        for count in (100, 400):
            read = 0
            (match,) = run(_rows(plan, [(2, 0.5)] * count + [(-1, None)]))
            assert len(match.rows) == count + 1
            reads.append(read)
        assert reads[1] <= 5 * reads[0]


def test_arrays_are_bounded() -> None:
    """ARRAY_AGG keeps the first so many, so that a long match is not the square of its rows."""
    plan = _plan(["ARRAY_AGG(v)"])
    rows = _rows(plan, [(at, None) for at in range(1, MAX_COLLECTED + 20)] + [(-1, None)])
    (match,) = _compiled(Loops(plan), rows)
    arrays = [each.measures[0] for each in match.rows]
    assert [len(each) for each in arrays[MAX_COLLECTED - 2 : MAX_COLLECTED + 1]] == [
        MAX_COLLECTED - 1,
        *[MAX_COLLECTED] * 2,
    ]
    assert arrays[-1] == list(range(1, MAX_COLLECTED + 1))


def test_an_empty_match_has_no_rows() -> None:
    """It is shown at a row that is not its own: aggregates are those of no rows."""
    plan = _plan(["SUM(v)", "FINAL SUM(A.v)", "COUNT(v)", "ARRAY_AGG(v)", "LAST(v)"], "(A B C)??")
    rows = _rows(plan, [(5, 1.0)])
    found = _compiled(Loops(plan), rows)
    assert [output.measures for match in found for output in match.rows] == [
        (None, None, 0, None, None)
    ]
    assert repr(found) == repr(_reference(RowPatternMatcher(plan), rows))
