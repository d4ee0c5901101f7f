"""The compiled matcher over many keys is the reference over each of them, state and all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.columns.compilation import FOREVER
from spark_cep.columns.vectors import Objects
from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.errors import StateError
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.row_pattern import matcher as compiled_matcher
from spark_cep.matcher.row_pattern.found import RunFindings
from spark_cep.matcher.row_pattern.loops import found_loops, key_loop
from spark_cep.matcher.row_pattern.lowering import RowPatternLimits
from spark_cep.matcher.row_pattern.prepared import prepare
from spark_cep.matcher.row_pattern.python_calls import thread_views
from spark_cep.matcher.row_pattern.python_calls.calls import RowPatternCalls
from spark_cep.matcher.row_pattern.python_calls.key_rows import KeyRows
from spark_cep.model import Coordinates, Event
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    RecordType,
)
from tests.matcher.row_pattern.counted import counted
from tests.reference.row_pattern import KeyState, Loops, RowPatternMatcher, Run, States
from tests.reference.row_pattern.results import (
    GivenUp,
    MatchFound,
    Result,
    TimedOut,
    objects,
)
from tests.reference.row_pattern.threads import ThreadRunner

EVENT = RecordType(
    {
        "n": BIGINT,
        "i": INT,
        "d": DOUBLE,
        "s": STRING,
        "t": STRING,
        "b": BOOLEAN,
        "c": DecimalType(5, 2),
        "at": TIMESTAMP,
        "list": ArrayType(BIGINT),
    }
)
NAN = float("nan")


def _or_null(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, values, st.none())


VALUES = st.fixed_dictionaries(
    {
        "n": _or_null(st.sampled_from([0, 1, 2, 2**62, -(2**63)])),
        "i": _or_null(st.sampled_from([0, 1, 2**31 - 1])),
        "d": _or_null(st.sampled_from([0.0, 0.5, -1.25, NAN, float("inf")])),
        "s": _or_null(st.sampled_from(["A", "B", "a", "B2", ""])),
        "t": _or_null(st.sampled_from(["A", "a", "é"])),
        "b": _or_null(st.booleans()),
        "c": _or_null(st.sampled_from([Decimal("1.25"), Decimal("0.50"), Decimal("-3.00")])),
        "at": _or_null(
            st.sampled_from([dt.datetime(2024, 1, 1, hour, tzinfo=dt.UTC) for hour in (0, 5)])
        ),
        "list": _or_null(st.lists(st.integers(0, 2), max_size=2)),
    }
)
#: Conditions on B and C, and whether some part of them is computed by Python.
CONDITIONS = {
    "n > 0": False,
    "s = 'A' OR d > PREV(d)": False,
    "d >= PREV(d, 2) AND s <> 'B'": False,
    "NEXT(n) > n OR s = 'a'": False,
    "s = PREV(t)": False,
    "s = LAST(A.t)": False,
    "FIRST(A.s, 1) = s OR FIRST(A.s) = t": False,
    "CLASSIFIER() = s": False,
    "PREV(CLASSIFIER()) = t": False,
    "CLASSIFIER(U) = 'A' AND b": False,
    "SUM(A.n) > 1": False,
    "SUM(n) IS NULL": False,
    "SUM(A.i) < 2 OR SUM(U.d) > 0": False,
    "AVG(U.n) < d": False,
    "AVG(A.d) >= 0": False,
    "MIN(A.d) < d OR MAX(U.n) = n": False,
    "MAX(A.c) > c": False,
    "COUNT(A.d) = 1 OR COUNT(*) > 3": False,
    "COUNT(A.*) + i < MATCH_NUMBER()": False,
    "CASE WHEN LAST(A.n, 1) IS NULL THEN b ELSE n > 0 END": False,
    "at > LAST(A.at) OR HOUR(at) = 5": False,
    "COALESCE(LAST(C.c), c) = c": False,
    "NOT (LAST(B.d) = d)": False,
    "PREV(LAST(A.n), 1) = 1 OR NEXT(FIRST(A.n), 1) = 0": False,
    "LOWER(s) = 'a'": False,
    "list[0] = 1": False,
    "LENGTH(LAST(A.s)) = 1": True,
    "s > LAST(A.s)": True,
    "ARRAY_AGG(A.n)[0] = n AND d > 0": True,
    "SUM(A.c) > 1": True,
    "COUNT(DISTINCT U.s) = 2": True,
    "SUM(A.n + 1) > 2": True,
    "NEXT(s) > s": True,
    "MIN(U.s) = s": True,
    "MAX(s) = s OR ARRAY_AGG(U.d)[0] > 0": True,
    "COUNT(DISTINCT d) + COUNT(DISTINCT A.c) > 2": True,
    "MAX_BY(A.s, A.d) = s OR BOOL_OR(U.b)": True,
    "MIN_BY(CLASSIFIER(), s) = 'A'": True,
    "CONCAT(FIRST(A.s, 1), LAST(B.t, 1)) > s": True,
}
PATTERNS = [
    "A B+ C",
    "A+ (B | C)*",
    "(A | B)+? C",
    "A {- B* -} C?",
    "PERMUTE(A, B) C*",
    "(A? B?)* C",
]
_MEASURES = (
    "MATCH_NUMBER()",
    "CLASSIFIER()",
    "PREV(CLASSIFIER(), 1)",
    "CLASSIFIER(B)",
    "s",
    "d",
    "FINAL LAST(U.n, 1)",
    "FIRST(B.c)",
    "PREV(list, 1)",
    "COUNT(*)",
    "FINAL COUNT(U.*)",
    "SUM(n)",
    "B.at",
    "NEXT(A.b, {ahead})",
    "FINAL COUNT(DISTINCT U.s)",
    "MAX(s)",
    "FINAL ARRAY_AGG(A.c)",
    "MAX_BY(A.t, A.d)",
)
MEASURES = "MEASURES " + ", ".join(f"{m} AS m{number}" for number, m in enumerate(_MEASURES))
ROWS = [
    "ONE ROW PER MATCH",
    "ALL ROWS PER MATCH",
    "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
]
SKIPS = ["PAST LAST ROW", "TO NEXT ROW", "TO FIRST C", "TO LAST U"]


def _plan(clause: str) -> RowPatternPlan:
    return plan_query(load_query(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", "c.sql", EVENT))


class Both:
    """Both matchers on some keys. Behind each call they have to have found the same, and to
    remember the same."""

    def __init__(self, plan: RowPatternPlan, limits: RowPatternLimits | None = None) -> None:
        self._plan = plan
        self.reference, self.compiled = (
            RowPatternMatcher(plan, limits),
            Loops(plan, limits),
        )
        self.names, self.states, self.wanted = Names(), States(), list[KeyState]()
        self._offset = self.pieces = 0

    def event(self, time: int, values: dict[str, Any], micros: int = 0) -> Event:
        """A row behind those there are."""
        self._offset += 1
        columns = tuple(values.get(path[0]) for path in self._plan.columns)
        return Event(time, Coordinates("t", 0, self._offset), 0, columns, micros=micros)

    def advance(
        self, rows: Sequence[tuple[int, Event]], watermark: int, *, closed: bool = False
    ) -> list[tuple[int, Result]]:
        """Rows with the number of their key."""
        rows = sorted(rows, key=lambda pair: pair[0])
        count = max([len(self.wanted), *(key + 1 for key, _ in rows)])
        self.wanted += [KeyState() for _ in range(count - len(self.wanted))]
        wanted: list[tuple[int, Result]] = []
        for key, state in enumerate(self.wanted):
            results = self.reference.advance(state, [event for of, event in rows if of == key])
            results += self.reference.move_time(state, watermark)
            results += self.reference.close(state) if closed else []
            wanted += [(key, result) for result in results]
        events = EventTable.of([event for _, event in rows], self.names, self.compiled.slots)
        run = self.compiled.apply(
            self.states, events, np.array([key for key, _ in rows], np.int64), watermark,
            self.names, closed=closed,
        )  # fmt: skip
        pieces = list(run)
        found = [result for piece in pieces for result in objects(piece)]
        assert repr(found) == repr(wanted)
        assert not any(piece.failures or piece.output.failures for piece in pieces)
        self.pieces = len(pieces)
        self.states = run.states
        if not closed:
            kept = self.compiled.key_states(self.states, self.names)
            assert repr(kept) == repr(self.wanted)
            deadlines = [self.reference.deadline(state) for state in self.wanted]
            assert self.compiled.deadlines(self.states, self.states.events.time).tolist() == [
                FOREVER if each is None else each for each in deadlines
            ]
        return found

    def reload(self) -> None:
        """Make objects of the state, and arrays of these."""
        self.states = self.compiled.states_of(self.wanted, self.names)


@st.composite
def plans(draw: st.DrawFn) -> RowPatternPlan:
    """Clauses with conditions and measures of all kinds."""
    pattern = draw(st.sampled_from(PATTERNS))
    rows = draw(st.sampled_from(ROWS))
    if "{-" in pattern and "UNMATCHED" in rows:
        rows = ROWS[0]
    conditions = st.one_of(st.sampled_from(["n > 0", "b"]), st.sampled_from(list(CONDITIONS)))
    defines = [f"{name} AS {draw(conditions)}" for name in "BC"]
    if draw(st.booleans()):
        defines.append(f"A AS {draw(conditions)}")
    within = draw(st.sampled_from(["", " WITHIN INTERVAL '6' MILLISECONDS"]))
    measures = MEASURES.format(ahead=draw(st.integers(0, 1)))
    return _plan(
        f"{measures} {rows} AFTER MATCH SKIP {draw(st.sampled_from(SKIPS))} "
        f"PATTERN ({pattern}){within} SUBSET U = (A, B) DEFINE {', '.join(defines)}"
    )


@pytest.mark.slow
@settings(max_examples=100)
@given(plans(), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), VALUES), max_size=20),
       st.data(), st.sampled_from([1, 2, 16]))  # fmt: skip
def test_many_keys(
    plan: RowPatternPlan,
    drawn: list[tuple[int, int, dict[str, Any]]],
    data: st.DataObject,
    one_by_one: int,
) -> None:
    """Columns of all types, in batches of any size, with the state as objects in between; what
    Python computes of rows, of all of them or of those beyond so many at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thread_views, "_ONE_BY_ONE", one_by_one)
        _compare(plan, drawn, data)


def _compare(
    plan: RowPatternPlan, drawn: list[tuple[int, int, dict[str, Any]]], data: st.DataObject
) -> None:
    both, now = Both(plan), 0
    while drawn:
        count = data.draw(st.integers(1, len(drawn)))
        rows = []
        for key, gap, values in drawn[:count]:
            now += gap
            rows.append((key, both.event(now, values, data.draw(st.sampled_from([0, 0, 500])))))
        del drawn[:count]
        rows.sort(key=lambda pair: (pair[1].time, pair[1].micros))
        both.advance(rows, now + data.draw(st.integers(-1, 3)))
        if data.draw(st.booleans()):
            both.reload()
    both.advance([], now, closed=True)


@pytest.mark.parametrize(("condition", "by_python"), CONDITIONS.items())
def test_what_python_computes(condition: str, by_python: bool) -> None:
    """Everything else is compiled."""
    plan = _plan(f"MEASURES n AS m PATTERN (A B C) SUBSET U = (A, B) DEFINE B AS {condition}")
    assert bool(Loops(plan).compiled.lowered.calls) is by_python


def test_one_signature() -> None:
    """Whatever the plan, the loops are compiled once."""
    prepare()
    loops = (key_loop.run, found_loops.output_rows, found_loops.find_rows, found_loops.places_of)
    for number, condition in enumerate(["n > 0", "s > LAST(A.s)", "d < PREV(d)"]):
        measures = "MEASURES n AS m, FIRST(s) AS s1" if number else "MEASURES d AS m"
        both = Both(_plan(f"{measures} PATTERN (A B+) DEFINE B AS {condition}"))
        both.advance([(0, both.event(time, {"n": 1})) for time in range(3)], 3)
    assert [len(loop.signatures) for loop in loops] == [1, 1, 1, 1]


#: Attempts that need more threads, nodes, registers and labels than there is room for at first.
LONG = {
    "threads that a sum tells apart": ("(A | B)* C", "C AS SUM(A.n) = -1", 8),
    "and some of which are one": ("(A | B | D)* C", "C AS LAST(A.n, 2) = -1", 12),
    "labels that tell apart": ("(A | B)* C", "C AS COUNT(DISTINCT CLASSIFIER()) = 9", 7),
    "too many threads": ("(A | B)* C", "C AS SUM(A.n) = -1", 12),
    "many rows": ("(A | B)* C", "A AS n > 0, B AS n > 0, C AS n < 0", 3_000),
    "too many rows": ("(A | B)* C", "A AS n > 0, B AS n > 0, C AS n < 0", 4_100),
    "a sum of many rows": ("A* C", "A AS SUM(n) > 0, C AS n < LAST(A.n)", 500),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("batch", [5, 700])
@pytest.mark.slow
def test_tables_grow(name: str, batch: int) -> None:
    """The attempt of a key goes on over batches; the other key has another one."""
    pattern, defines, length = LONG[name]
    both = Both(
        _plan(f"MEASURES COUNT(*) AS m PATTERN ({pattern}) DEFINE {defines}"),
        RowPatternLimits(rows=4_000, threads=1_000),
    )
    values = [1] * length + [-1, 1, 1]
    if batch == 5:
        values = values[-40:]
    rows = [(number % 2, both.event(number, {"n": value})) for number, value in enumerate(values)]
    rows += [(2, both.event(number, {"n": value})) for number, value in enumerate(values)]
    while rows:
        both.advance(rows[:batch], len(values))
        del rows[:batch]


@pytest.mark.parametrize(
    "condition",
    [
        "COUNT(DISTINCT U.s) < 9",
        "MAX(A.s) < 'x'",
        "ARRAY_AGG(s)[0] = 'A'",
        "MIN_BY(s, n) > ''",
        "CONCAT(FIRST(A.s, 1), LAST(A.s)) <> 'x'",
    ],
)
def test_a_batch_takes_the_rows_before_it_at_once(
    condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the rows of a long attempt, only the last are read one by one."""
    read = counted(monkeypatch, KeyRows, "row")
    pattern = "PATTERN (A+ B) SUBSET U = (A, B)"
    both = Both(_plan(f"MEASURES n AS m {pattern} DEFINE A AS {condition}, B AS n < 0"))
    values = [{"s": "ABé"[number % 3], "n": number % 5} for number in range(300)]
    both.advance([(0, both.event(at, each)) for at, each in enumerate(values)], 300)
    read.number = 0
    both.advance([(0, both.event(301, values[0]))], 301)
    assert 1 <= read.number <= 40


@pytest.mark.parametrize("batch", [1, 500])
def test_failed_attempts_are_not_repeated(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one has failed, later ones fail: a condition is computed once or twice of each row, not
    of all rows for each before them."""
    calls = counted(monkeypatch, RowPatternCalls, "_call")
    both = Both(_plan("MEASURES COUNT(*) AS m PATTERN (A+ C) DEFINE A AS s >= PREV(s), C AS n < 0"))
    rows = [(0, both.event(number, {"s": "A", "n": 1})) for number in range(200)]
    rows += [(0, both.event(200, {"s": "", "n": 1}))]
    while rows:
        both.advance(rows[:batch], 200)
        del rows[:batch]
    assert 200 <= calls.number <= 500


@pytest.mark.parametrize("most_tried", [1 << 22, 8])
def test_failed_attempts_are_not_repeated_in_later_batches(
    most_tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row ends an attempt, and the next one does not go through all of its rows again in all
    ways, though rows come one by one; unless there is room for few rows only."""
    monkeypatch.setattr(compiled_matcher, "_MOST_TRIED", most_tried)
    calls = counted(monkeypatch, RowPatternCalls, "_call")
    both = Both(
        _plan(
            f"MEASURES COUNT(*) AS m {ROWS[3]} PATTERN ((A{{0,5}}){{0,5}} B) "
            "DEFINE A AS s >= PREV(s), B AS n < 0"
        )
    )
    for number in range(60):
        both.advance([(0, both.event(number, {"s": "A", "n": 1}))], number)
    found = both.advance([(0, both.event(60, {"n": -1}))], 60)
    assert [type(each).__name__ for _, each in found] == ["MatchFound"]
    assert (calls.number > 5_000) is (most_tried == 8)


def test_damaged_instructions_tried() -> None:
    """State that says of other rows and instructions than there are where attempts have failed is
    refused."""
    both = Both(_plan("MEASURES n AS m PATTERN ((A B?){0,3} C) DEFINE A AS n > 0, C AS n < 0"))
    both.advance([(0, both.event(number, {"n": 1})) for number in range(4)], 4)
    instructions = len(both.compiled.plan.program.instructions)
    tried = both.states.tried
    assert int(tried["at"].max()) > 0
    rows = np.flatnonzero(tried["at"] < 0)
    for place, wrong in ((0, instructions), (0, -2), (slice(None), -1)):
        states = deepcopy(both.states)
        states.tried["at"][place] = wrong
        with pytest.raises(StateError, match="damaged"):
            both.compiled.apply(
                states, EventTable.empty(), np.zeros(0, np.int64), 5, both.names, closed=False
            )
    states = deepcopy(both.states)
    states.keys["tried"] += 1
    with pytest.raises(StateError, match="damaged"):
        both.compiled.apply(
            states, EventTable.empty(), np.zeros(0, np.int64), 5, both.names, closed=False
        )
    assert len(rows) == 4


@pytest.mark.parametrize(
    ("name", "wrong"), [("work", -1), ("work", 1 << 61), ("frontier", -2), ("frontier", 4)]
)
def test_damaged_counts(name: str, wrong: int) -> None:
    """State is refused whose work is less than none or beyond all limits, or whose newest row that
    was seen is not there."""
    both = Both(_plan("MEASURES n AS m PATTERN (A+ B) DEFINE A AS SUM(A.n) > 0, B AS n < 0"))
    both.advance([(0, both.event(number, {"n": 1})) for number in range(4)], 4)
    (key,) = both.states.keys
    assert (key["frontier"], key["work"] > 0) == (3, True)
    both.states.keys[name] = wrong
    with pytest.raises(StateError, match="damaged"):
        both.compiled.apply(
            both.states, EventTable.empty(), np.zeros(0, np.int64), 5, both.names, closed=False
        )


@pytest.mark.parametrize(
    ("batch", "pattern"),
    [(1, "A X*? B"), (37, "A X*? B"), (160, "A X*? B"), (160, "(A | X){1,3} X*? B")],
)
def test_timeouts_list_few_of_their_rows(batch: int, pattern: str) -> None:
    """Of each variable the first and the last."""
    both = Both(
        _plan(
            f"MEASURES n AS m PATTERN ({pattern}) WITHIN INTERVAL '0.125' SECOND "
            "DEFINE A AS n = 1, B AS n < 0"
        )
    )
    rows = [(0, both.event(number, {"n": 1})) for number in range(160)]
    found: list[tuple[int, Result]] = []
    for first in range(0, len(rows), batch):
        found += both.advance(rows[first : first + batch], first)
    found += both.advance([], 1_000)
    timeouts = [each for _, each in found if isinstance(each, TimedOut)]
    assert [each.first for each in timeouts] == list(range(160))
    assert max(len(each.labels) for each in timeouts) <= 103
    assert max(each.omitted for each in timeouts) >= 20


@pytest.mark.parametrize("condition", ["SUM(A.n) >= 0", "COALESCE(LAST(A.n, 2), 1) > 0",
                                       "COUNT(DISTINCT A.s) < 3"])  # fmt: skip
@pytest.mark.parametrize("batch", [1, 9, 500])
def test_the_work_of_a_row_is_bounded(condition: str, batch: int) -> None:
    """However rows are cut: an attempt is given up where a row costs more, its other starts with
    it."""
    clause = (
        f"MEASURES n AS m {ROWS[3]} PATTERN (A+ C) DEFINE A AS n > 0 AND "
        f"{condition} AND SUM(A.d) < 10, C AS n < 0"
    )
    both = Both(_plan(clause), RowPatternLimits(work=20_000))
    rows = [(0, both.event(number, {"n": 1, "s": "a", "d": 0.0})) for number in range(150)]
    rows += [(0, both.event(150, {"n": 1, "s": "a", "d": 20.0}))]
    rows += [(0, both.event(151, {"n": 1, "s": "a", "d": 0.0})), (0, both.event(152, {"n": -1}))]
    found: list[tuple[int, Result]] = []
    while rows:
        found += both.advance(rows[:batch], 200)
        del rows[:batch]
    (given_up,) = [each for _, each in found if isinstance(each, GivenUp)]
    assert given_up.limit == "more than 20000 steps of work"
    assert 0 < given_up.first < 150
    assert [each.first for _, each in found if isinstance(each, MatchFound)] == [151]


@pytest.mark.slow
@pytest.mark.parametrize("within", ["", "WITHIN INTERVAL '1' SECOND"])
def test_later_attempts_of_a_failed_one_are_not_run(within: str) -> None:
    """Where a row ends every attempt whatever it has taken, the rows before it are not gone through
    for each of them."""
    both = Both(
        _plan(
            f"MEASURES n AS m {ROWS[3]} PATTERN ((A | B)+ C) {within} DEFINE A AS n = 1 AND "
            "COUNT(DISTINCT A.s) < 3, B AS n = 2 AND s = PREV(s) AND SUM(B.n) > 0, C AS n < 0"
        ),
        RowPatternLimits(work=3_000_000),
    )
    values = [2, *[1] * 300, 3, 1, -1]
    rows = [(0, both.event(number, {"n": n, "s": "a"})) for number, n in enumerate(values)]
    kinds = [type(each).__name__ for _, each in both.advance(rows, 0)]
    assert kinds == ["Unmatched"] * 302 + ["MatchFound"]


def test_rows_are_not_searched_for_each_attempt_that_look_backs_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where each attempt may match by what its rows are, the rows behind its start are not searched
    before it is made. The compiled matcher notes that as the reference does."""
    searches = counted(monkeypatch, ThreadRunner, "may_match")
    both = Both(
        _plan("MEASURES COUNT(*) AS m PATTERN (A+ B) DEFINE A AS FIRST(A.n) = 1, B AS n < 0"),
        RowPatternLimits(rows=250),
    )
    values = [1, *[0] * 299]
    rows = [(0, both.event(number, {"s": "a", "n": n})) for number, n in enumerate(values)]
    found = both.advance(rows, 300)
    assert [each.limit for _, each in found if isinstance(each, GivenUp)] == ["more than 250 rows"]
    assert searches.number == 1


@pytest.mark.parametrize("condition", ["COUNT(A.*) = -1", "COUNT(DISTINCT A.s) = -1"])
@pytest.mark.parametrize("batch", [1, 7, 100])
def test_what_threads_keep_of_their_rows_is_work(condition: str, batch: int) -> None:
    """With each row, perhaps the only one of its batch, it is made again of all rows of each
    thread: however rows are cut, an attempt whose threads keep too much is given up at the same
    one."""
    clause = f"MEASURES n AS m PATTERN (A* B* C) DEFINE C AS {condition} AND n < 0"
    both = Both(_plan(clause), RowPatternLimits(work=5_000))
    rows = [(0, both.event(number, {"n": 1, "s": "a"})) for number in range(100)]
    found: list[tuple[int, Result]] = []
    while rows:
        found += both.advance(rows[:batch], 100)
        del rows[:batch]
    given_up = [each for _, each in found if isinstance(each, GivenUp)]
    assert {each.limit for each in given_up} == {"more than 5000 steps of work"}
    assert 0 < given_up[1].first < 40


@pytest.mark.slow
@settings(max_examples=300)
@given(plans(), st.lists(st.tuples(st.sampled_from([0, 1, 1, 2, 9]), VALUES), max_size=14),
       st.data(), st.integers(3, 300))  # fmt: skip
def test_work_does_not_depend_on_batches(
    plan: RowPatternPlan,
    drawn: list[tuple[int, dict[str, Any]]],
    data: st.DataObject,
    work: int,
) -> None:
    """A limit of work is met at the same rows and deadlines, however these are cut, and in the
    reference."""
    limits = RowPatternLimits(rows=data.draw(st.sampled_from([2, 5, 10_000])), work=work)
    at_once, cut = Both(plan, limits), Both(plan, limits)
    now = 0
    rows: list[tuple[int, Event]] = []
    for gap, values in drawn:
        now += gap
        rows.append((0, at_once.event(now, values)))
    end = now + data.draw(st.sampled_from([0, 3, 20]))
    wanted = at_once.advance(rows, end)
    parts: list[tuple[int, Result]] = []
    while rows:
        count = data.draw(st.integers(1, len(rows)))
        time, later = rows[count - 1][1].time, rows[count:]
        parts += cut.advance(rows[:count], time)
        # Deadlines that pass before the next row, some of them in batches without one.
        for _ in range(data.draw(st.integers(0, 2))):
            time = data.draw(st.integers(time, max(time, later[0][1].time - 1 if later else end)))
            parts += cut.advance([], time)
        if data.draw(st.booleans()):
            cut.reload()
        rows = later
    parts += cut.advance([], end)
    assert repr(parts) == repr(wanted)
    assert repr(cut.wanted) == repr(at_once.wanted)
    closed = at_once.advance([], end, closed=True)
    assert repr(cut.advance([], end, closed=True)) == repr(closed)


@pytest.mark.parametrize("rows", [150, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("batches", [1, 7])
def test_the_work_of_a_row_with_its_deadlines_is_bounded(rows: int, batches: int) -> None:
    """A late row passes the deadlines of all attempts of a window, which cannot share their work:
    after some timeouts the rest are given up together. So it is where other keys' rows pass the
    deadlines before."""
    most = 100 * rows
    plan = _plan(
        "MEASURES n AS m PATTERN (A X*? B) WITHIN INTERVAL '1' HOUR "
        "DEFINE A AS n = 1, X AS n = FIRST(A.n), B AS n = 2"
    )
    both = Both(plan, RowPatternLimits(work=most))
    given = [(0, both.event(number, {"n": 1})) for number in range(rows)]
    late = [(0, both.event(7_200_000 + number, {"n": n})) for number, n in enumerate([1, 1, 2])]
    assert both.advance(given[:70], 69) == []
    assert both.advance(given[70:], rows - 1) == []
    found: list[Result] = []
    for place in range(batches - 1):
        found += [each for _, each in both.advance([], 3_600_000 + place)]
    found += [each for _, each in both.advance(late[:1], late[0][1].time)]
    *timeouts, last = found
    assert [each.first for each in timeouts if isinstance(each, TimedOut)] == [0, 1, 2, 3]
    assert last == GivenUp(4, given[4][1], f"more than {most} steps of work")
    (state,) = both.wanted
    assert state.next_start == rows
    (match,) = [each for _, each in both.advance(late[1:], late[2][1].time)]
    assert isinstance(match, MatchFound)
    assert (match.first, match.labels) == (rows, ("A", "X", "B"))


def test_deadlines_of_attempts_that_share_are_no_work() -> None:
    """Conditions that read nothing but their row: all of them time out."""
    plan = _plan(
        "MEASURES n AS m PATTERN (A X*? B) WITHIN INTERVAL '1' HOUR DEFINE A AS n = 1, B AS n = 2"
    )
    both = Both(plan, RowPatternLimits(work=1_000))
    both.advance([(0, both.event(number // 2, {"n": 1})) for number in range(200)], 99)
    found = both.advance([(0, both.event(7_200_000, {"n": 1}))], 7_200_000)
    assert [type(each) for _, each in found] == [TimedOut] * 200


@pytest.mark.parametrize("batch", [1, 40, 500])
def test_the_work_of_a_row_that_ends_very_many_matches_is_bounded(batch: int) -> None:
    """Each of its rows begins a match of those behind it: together that is the square."""
    skip = "AFTER MATCH SKIP TO NEXT ROW"
    plan = _plan(f"MEASURES n AS m {skip} PATTERN (A+ C) DEFINE A AS n > 0, C AS n < 0")
    rows = 100
    # All of them but for the last few.
    both = Both(plan, RowPatternLimits(work=plan.program.width * 4 * (rows * rows // 2 - 50)))
    given = [(0, both.event(number, {"n": 1})) for number in range(rows)]
    given += [(0, both.event(rows, {"n": -1})), (0, both.event(rows + 1, {"n": 1}))]
    found: list[Result] = []
    while given:
        found += [each for _, each in both.advance(given[:batch], rows + 1)]
        del given[:batch]
    (given_up,) = [each for each in found if isinstance(each, GivenUp)]
    matches = [each.first for each in found if isinstance(each, MatchFound)]
    assert matches == list(range(len(matches)))
    assert 80 < len(matches) == given_up.first < rows


@pytest.mark.parametrize("batch", [1, 40, 500])
def test_rows_searched_again_behind_too_many_are_work(batch: int) -> None:
    """Behind an attempt that is given up for its rows, no more of them are searched again than the
    work of a row allows."""
    plan = _plan("MEASURES n AS m PATTERN ((A | B)+ C) DEFINE A AS n > 0, B AS n >= 0, C AS n < 0")
    both = Both(plan, RowPatternLimits(rows=64, work=plan.program.width * 4 * 10))
    given = [(0, both.event(number, {"n": 1})) for number in range(200)]
    given += [(0, both.event(200, {"n": -1}))]
    found: list[Result] = []
    while given:
        found += [each for _, each in both.advance(given[:batch], 200)]
        del given[:batch]
    assert [(type(each).__name__, getattr(each, "first", None)) for each in found] == [
        ("GivenUp", 0), ("GivenUp", 55), ("GivenUp", 110), ("MatchFound", 165),
    ]  # fmt: skip


@pytest.mark.parametrize("batch", [1, 40, 500])
def test_the_work_of_a_row_that_ends_a_wide_attempt_is_bounded(batch: int) -> None:
    """Behind it the search would go through the rows of the attempt once more."""
    plan = _plan("MEASURES n AS m PATTERN ((A | B | A B)* C) DEFINE A AS n > 0, B AS n > 0 AND"
                 " SUM(n) > 0, C AS n < 0")  # fmt: skip
    # What threads keep of 40 rows, and these rows, but not those of 60.
    both = Both(plan, RowPatternLimits(work=plan.program.width * 4 * 60))
    values = [*[1] * 40, 0, *[1] * 60, 0, 1, -1]
    given = [(0, both.event(number, {"n": value})) for number, value in enumerate(values)]
    found: list[Result] = []
    while given:
        found += [each for _, each in both.advance(given[:batch], len(values))]
        del given[:batch]
    assert [each.first for each in found if isinstance(each, GivenUp)] == [42]
    assert [each.first for each in found if isinstance(each, MatchFound)] == [102]


def test_dropped_thread_beside_a_match() -> None:
    """A match that waits for a row of its measures, and the thread that time has ended before it,
    are both remembered."""
    both = Both(
        _plan(
            "MEASURES NEXT(n, 3) AS m PATTERN (A B C | A A) WITHIN INTERVAL '3' MILLISECONDS "
            "DEFINE A AS n = 1, B AS n = 1, C AS n = 2"
        )
    )
    for number in range(6):
        rows = [(key, both.event(number, {"n": 1})) for key in (0, 1)][: 2 - number % 2]
        found = both.advance(rows, number + 3 * (number == 1))
        (state, *_) = both.wanted
        if number == 1:
            assert state.attempt is not None
            assert None not in (state.attempt.found, state.attempt.dropped)
        assert any(key == 0 for key, _ in found) is (number == 4)
        both.reload()


def test_found_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Much that is found is handed out before the run is done."""
    monkeypatch.setattr(compiled_matcher, "_DRAIN_AT", 100)
    for rows in (ROWS[0], ROWS[3]):
        both = Both(_plan(f"MEASURES n AS m {rows} PATTERN (A B) DEFINE A AS n = 1, B AS n = 1"))
        given = [
            (key, both.event(n, {"n": int(n % 5 < 3)})) for key in (0, 1) for n in range(1_000)
        ]
        found = both.advance(given, 1_000)
        assert len(found) == (400 if rows == ROWS[0] else 1_600)
        assert both.pieces > len(found) // 200


@pytest.mark.parametrize("condition", ["n > 1", "n + LAST(A.n) > 1", "n > 1 AND s = LAST(A.s)"])
def test_failed_condition(condition: str) -> None:
    """Without types a value may be of a wrong one: the condition is not true of that row, and that
    is told; the row is matched otherwise."""
    matcher = _untyped(f"MEASURES n AS m PATTERN (A (B | C)) DEFINE A AS s = 'a', B AS {condition}")
    rows = [("a", 1), ("a", "much"), ("a", 1), ("a", 2)]
    found = _found(matcher, rows)
    ((told,), results) = found.failures, [each for _, each in objects(found)]
    assert [each.labels for each in results if isinstance(each, MatchFound)] == [
        ("A", "C"),
        ("A", "B"),
    ]
    assert (told.variable, told.row.at.offset) == ("B", 1)
    assert "Error(" in told.error


def test_failed_measure() -> None:
    """It is NULL, and that is told; the match is there all the same."""
    matcher = _untyped("MEASURES SUM(n) AS total, LAST(s) AS s PATTERN (A A) DEFINE A AS TRUE")
    found = _found(matcher, [("a", 1), ("b", "much"), ("c", 3), ("d", 4)])
    total, text = (each.values for each in found.output.measures)
    assert (total, text) == (Objects([None, 7]), Objects(["b", "d"]))
    ((name, result, error),) = found.output.failures
    assert (name, result) == ("total", 0)
    assert "Error(" in error


def _untyped(clause: str) -> Loops:
    return Loops(plan_query(load_query(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", "c.sql")))


def _found(matcher: Loops, rows: Sequence[tuple[str, Any]]) -> RunFindings:
    names = Names()
    events = [
        Event(
            time,
            Coordinates("t", 0, time),
            0,
            tuple({"s": s, "n": n}[path[0]] for path in matcher.plan.columns),
        )
        for time, (s, n) in enumerate(rows)
    ]
    table = EventTable.of(events, names, matcher.slots)
    bits, failures = matcher.row_bits_of(table, names)
    key = np.zeros(len(rows), np.int64)
    (found,) = Run(matcher, States(), table, bits, key, 10, names)
    return replace(found, failures=[*failures, *found.failures])
