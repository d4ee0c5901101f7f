"""Random clauses with what the oracle needs to know of them, and runs of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.row_pattern.lowering import RowPatternLimits
from spark_cep.matcher.row_pattern.states import new_keys
from spark_cep.model import Coordinates, Event
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.sql.query import Query
from spark_cep.pattern.types import BIGINT, RecordType
from tests.reference.row_pattern import KeyState, Loops, RowPatternMatcher, States
from tests.reference.row_pattern.results import (
    MatchFound,
    Result,
    SkipFailed,
    TimedOut,
    Unmatched,
    objects,
)
from tests.row_pattern_oracle import Clause, Condition, OpenError, Seen


def row(time: int, *columns: Any) -> Event:
    """A row of a time, with the columns of the plan."""
    return Event(time, Coordinates("t", 0, time), 0, columns)


EVENT = RecordType({"ts": BIGINT, "v": BIGINT})


def _compared(test: Callable[[Any, Any], bool], left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else test(left, right)


def _sum(seen: Seen, *variables: str) -> int | None:
    values = [seen.at(row) for row in seen.rows(*variables)]
    return sum(values) if values else None


def _before(row: int | None) -> int | None:
    return None if row is None else row - 1


def _all(*tests: Callable[[], bool | None], decisive: bool = False) -> bool:
    """AND, and with ``decisive`` OR, of parts of which some may not be known yet."""
    unknown = False
    for test in tests:
        try:
            if (test() is True) is decisive:
                return decisive
        except OpenError:
            unknown = True
    if unknown:
        raise OpenError
    return not decisive


#: What a variable may be defined as, and what that means.
CONDITIONS: dict[str, Condition] = {
    "v > 0": lambda s: s.v > 0,
    "v = 1": lambda s: s.v == 1,
    "v <> 1": lambda s: s.v != 1,
    "v >= PREV(v)": lambda s: _compared(int.__ge__, s.v, s.at(s.here - 1)),
    "NEXT(v) > 0": lambda s: _compared(int.__gt__, s.at(s.here + 1), 0),
    "NEXT(v) > 0 AND v > 0": lambda s: _all(
        lambda: _compared(int.__gt__, s.at(s.here + 1), 0), lambda: s.v > 0
    ),
    "NEXT(v, 2) = 1 OR (v = 1 AND NEXT(v) = 1) OR PREV(v) = 2": lambda s: _all(
        lambda: _compared(int.__eq__, s.at(s.here + 2), 1),
        lambda: _all(lambda: s.v == 1, lambda: _compared(int.__eq__, s.at(s.here + 1), 1)),
        lambda: _compared(int.__eq__, s.at(s.here - 1), 2),
        decisive=True,
    ),
    "NEXT(v, 2) IS NULL": lambda s: s.at(s.here + 2) is None,
    "COUNT(A.*) < 2": lambda s: len(s.rows("A")) < 2,
    "SUM(B.v) < 3": lambda s: _compared(int.__lt__, _sum(s, "B"), 3),
    "SUM(v) < 4": lambda s: _compared(int.__lt__, _sum(s), 4),
    "LAST(A.v) < v": lambda s: _compared(int.__lt__, s.at(s.last("A")), s.v),
    "LAST(B.v, 1) < v": lambda s: _compared(int.__lt__, s.at(s.last("B", offset=1)), s.v),
    "FIRST(B.v, 1) = v": lambda s: _compared(int.__eq__, s.at(s.first("B", offset=1)), s.v),
    "FIRST(v, 1) >= v": lambda s: _compared(int.__ge__, s.at(s.first(offset=1)), s.v),
    "PREV(LAST(C.v), 1) = 1": lambda s: _compared(int.__eq__, s.at(_before(s.last("C"))), 1),
    "CLASSIFIER(U) = 'B'": lambda s: _compared(str.__eq__, s.classifier(s.last("A", "B")), "B"),
    "PREV(CLASSIFIER()) = 'A'": lambda s: _compared(str.__eq__, s.classifier(s.here - 1), "A"),
    "PREV(CLASSIFIER(C), 1) = 'B'": lambda s: _compared(
        str.__eq__, s.classifier(_before(s.last("C"))), "B"
    ),
    "PREV(FIRST(CLASSIFIER(A)), 1) = 'B'": lambda s: _compared(
        str.__eq__, s.classifier(_before(s.first("A"))), "B"
    ),
    "COUNT(DISTINCT CLASSIFIER()) < 2": lambda s: len(set(s.labels)) < 2,
    "MATCH_NUMBER() % 2 = 1": lambda s: s.number % 2 == 1,
}
_SKIPS = {
    "PAST LAST ROW": ("PAST", None),
    "TO NEXT ROW": ("NEXT", None),
    "TO FIRST B": ("FIRST", "B"),
    "TO LAST A": ("LAST", "A"),
}
_ROWS = {
    "ONE ROW PER MATCH": "ONE",
    "ALL ROWS PER MATCH": "SHOW",
    "ALL ROWS PER MATCH OMIT EMPTY MATCHES": "OMIT",
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS": "UNMATCHED",
}
_QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{2,}", "{,3}"]


def _grown(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(parts, min_size=2, max_size=3)
    quantifiers = st.builds(
        str.__add__, st.sampled_from(_QUANTIFIERS), st.sampled_from(["", "", "?"])
    )
    return st.one_of(
        several.map(" ".join),
        several.map(lambda each: f"({' | '.join(each)})"),
        st.builds("({}){}".format, parts, quantifiers),
        st.lists(parts, min_size=2, max_size=3).map(lambda each: f"PERMUTE({', '.join(each)})"),
        parts.map("{{- {} -}}".format),
    )


patterns = st.recursive(
    st.sampled_from(["A", "B", "C", "A", "B", "()", "^", "$"]), _grown, max_leaves=6
)


@st.composite
def clauses(draw: st.DrawFn, *, timed: bool = False) -> tuple[str, Clause]:
    """A statement, and the same for the oracle."""
    pattern = draw(patterns)
    rows = draw(st.sampled_from(list(_ROWS)))
    if "{-" in pattern and _ROWS[rows] == "UNMATCHED":
        rows = "ALL ROWS PER MATCH"
    skip = draw(st.sampled_from(list(_SKIPS)))
    chosen = draw(
        st.dictionaries(st.sampled_from("ABC"), st.sampled_from(list(CONDITIONS)), max_size=3)
    )
    within = draw(st.integers(1, 6)) if timed else None
    ahead = draw(st.sampled_from([0, 0, 1, 2]))
    return statement_and_clause(pattern, chosen, skip, rows, within, ahead)


def statement_and_clause(
    pattern: str,
    chosen: dict[str, str],
    skip: str = "PAST LAST ROW",
    rows: str = "ONE ROW PER MATCH",
    within: int | None = None,
    ahead: int = 0,
) -> tuple[str, Clause]:
    """Both forms of a clause. The pattern gets every variable behind it, where none can be."""
    whole = f"({pattern}) | ^ ^ $ (A B C) $"
    defines = ", ".join(f"{name} AS {text}" for name, text in chosen.items()) or "A AS TRUE"
    interval = "" if within is None else f" WITHIN INTERVAL '{within}' MILLISECONDS"
    text = (
        f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES NEXT(v, {ahead}) AS ahead "
        f"{rows} AFTER MATCH SKIP {skip} PATTERN ({whole}){interval} "
        f"SUBSET U = (A, B) DEFINE {defines})"
    )
    query = _query(text)
    conditions = {name: CONDITIONS[condition] for name, condition in chosen.items()}
    clause = Clause(query.pattern, conditions, _SKIPS[skip], _ROWS[rows], within, ahead)
    return text, clause


@lru_cache(maxsize=10)
def _query(text: str) -> Query:
    return load_query(text, "random", EVENT)


@lru_cache(maxsize=10)
def _compiled(
    text: str, limits: RowPatternLimits | None = None
) -> tuple[RowPatternPlan, RowPatternMatcher]:
    plan = plan_query(_query(text))
    return plan, RowPatternMatcher(plan, limits)


class Machine:
    """The reference matcher on one key; between two calls its state is copied."""

    def __init__(self, text: str) -> None:
        self._plan, self._matcher = _compiled(text)
        self._state = KeyState()
        self.results: list[tuple[Any, ...]] = []

    def take(self, rows: Iterable[tuple[int, int]]) -> None:
        """Values and times."""
        given = [
            row(time, *({"ts": time, "v": value}[path[0]] for path in self._plan.columns))
            for value, time in rows
        ]
        self._add(self._matcher.advance(self._state, given))

    def move_time(self, time: int) -> None:
        self._add(self._matcher.move_time(self._state, time))

    def close(self) -> None:
        self._add(self._matcher.close(self._state))

    @property
    def rows_kept(self) -> int:
        return len(self._state.rows)

    def _add(self, results: Sequence[Result]) -> None:
        if not self._state.closed:
            self._state = deepcopy(self._state)
        self.results += map(_shown, results)


@lru_cache(maxsize=10)
def _with_loops(text: str, limits: RowPatternLimits | None = None) -> Loops:
    return Loops(plan_query(_query(text)), limits)


class CompiledMachine:
    """The compiled matcher, beside the reference; behind each call both have to remember the same.
    Every other time the state of one goes on as that of the other."""

    def __init__(self, text: str, limits: RowPatternLimits | None = None) -> None:
        self._plan, self._matcher = _compiled(text, limits)
        self._loops = _with_loops(text, limits)
        self._names = Names()
        self._states = States(new_keys(1))
        self._state = KeyState()
        self.results: list[tuple[Any, ...]] = []

    def take(self, rows: Iterable[tuple[int, int]]) -> None:
        """Values and times."""
        given = [
            row(time, *({"ts": time, "v": value}[path[0]] for path in self._plan.columns))
            for value, time in rows
        ]
        wanted = self._matcher.advance(self._state, given)
        self._run(given, -1, wanted)

    def move_time(self, time: int) -> None:
        wanted = self._matcher.move_time(self._state, time)
        self._run([], time, wanted)

    def close(self) -> None:
        wanted = self._matcher.close(self._state)
        self._run([], -1, wanted, closed=True)

    def _run(
        self, rows: Sequence[Event], time: int, wanted: list[Result], *, closed: bool = False
    ) -> None:
        events = EventTable.of(rows, self._names, self._loops.slots)
        key = np.zeros(len(rows), np.int64)
        run = self._loops.apply(self._states, events, key, time, self._names, closed=closed)
        found = [result for piece in run for _, result in objects(piece)]
        assert found == wanted
        self.results += map(_shown, found)
        self._states = run.states
        (state,) = self._loops.key_states(run.states, self._names)
        self._state.time = state.time = max(state.time, self._state.time)
        if not closed:
            assert state == self._state
            if len(self.results) % 2:
                self._states = self._loops.states_of([state], self._names)


def _shown(result: Result) -> tuple[Any, ...]:
    match result:
        case MatchFound(number=number, first=first, labels=labels, rows=rows):
            measures = tuple(row.measures[0] for row in rows)
            return ("match", number, first, labels, measures)
        case Unmatched(number=number):
            return ("unmatched", number)
        case TimedOut(first=first, labels=labels):
            return ("timeout", first, labels)
        case SkipFailed(fault=fault):
            return ("fault", str(fault))
        case _:
            return ("other", result)
