"""Attempts that time ends one after the other share what they see, and find what each would find by
itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.row_pattern import matcher as compiled_matcher
from spark_cep.matcher.row_pattern.python_calls.calls import RowPatternCalls
from spark_cep.model import Event
from spark_cep.pattern.sql import load_query
from tests.matcher.row_pattern.counted import counted
from tests.matcher.row_pattern.test_compiled import EVENT, ROWS, SKIPS, Both
from tests.reference.row_pattern import Loops, States
from tests.reference.row_pattern.results import TimedOut, objects

#: Conditions that say the same of each attempt.
NEAR = ["n = 1", "n > 0", "n >= PREV(n)", "n <> PREV(n, 2)", "n = 1 OR PREV(n) = 2", "s >= PREV(s)"]
PATTERNS = [
    "A X*? B",
    "A+ X* B",
    "(A | X){1,3} X*? B",
    "A{2,} X+ B",
    "(A X | X A)* B",
    "A (X A)*? {- X* -} B",
    "A {- X -}? {- A* -} X B",
    "PERMUTE(A, X) X* B",
    "A? X?? A* B",
    "^ A X* B | A A X* B",
    "(A* X*)* B B",
]


def _plan(clause: str) -> RowPatternPlan:
    return plan_query(load_query(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", "c.sql", EVENT))


@st.composite
def plans(draw: st.DrawFn) -> RowPatternPlan:
    """Clauses with WITHIN whose conditions read rows at a distance alone."""
    pattern = draw(st.sampled_from(PATTERNS))
    rows = ROWS[0] if "{-" in pattern else draw(st.sampled_from(ROWS))
    defines = [f"{name} AS {draw(st.sampled_from(NEAR))}" for name in "AX" if draw(st.booleans())]
    defines.append(f"B AS {draw(st.sampled_from(['n = 7', 'n = 3', *NEAR]))}")
    within, skip = draw(st.integers(1, 12)), draw(st.sampled_from(["PAST LAST ROW", SKIPS[1]]))
    return _plan(
        f"MEASURES COUNT(*) AS m {rows} AFTER MATCH SKIP {skip} PATTERN ({pattern}) "
        f"WITHIN INTERVAL '{within}' MILLISECONDS DEFINE {', '.join(defines)}"
    )


DRAWN = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from([0, 0, 1, 1, 1, 2, 9]), st.integers(0, 3)),
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=200)
@given(plans(), DRAWN, st.data())
def test_as_the_reference(
    plan: RowPatternPlan, drawn: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """In batches of any size, with the state as objects in between."""
    both, now = Both(plan), 0
    while drawn:
        count, rows = data.draw(st.integers(1, len(drawn))), list[tuple[int, Event]]()
        for key, gap, value in drawn[:count]:
            now += gap
            micros = data.draw(st.sampled_from([0, 0, 500]))
            rows.append((key, both.event(now, {"n": value, "s": "ab"[value % 2]}, micros)))
        del drawn[:count]
        rows.sort(key=lambda pair: (pair[1].time, pair[1].micros))
        both.advance(rows, now + data.draw(st.integers(-1, 3)))
        if data.draw(st.booleans()):
            both.reload()
    both.advance([], now, closed=True)


class _Run:
    """The compiled matcher on one key."""

    def __init__(self, plan: RowPatternPlan) -> None:
        self._loops, self._names, self._plan = Loops(plan), Names(), plan
        self._states = States()
        self.found: list[Any] = []

    def advance(self, rows: list[Event], watermark: int) -> list[list[Any]]:
        """What is remembered behind these rows, but for where attempts have failed."""
        events = EventTable.of(rows, self._names, self._loops.slots)
        key = np.zeros(len(rows), np.int64)
        run = self._loops.apply(self._states, events, key, watermark, self._names)
        self.found += [result for piece in run for _, result in objects(piece)]
        states = self._states = run.states
        keys = states.keys.copy()
        keys["tried"] = 0
        return [keys.tolist(), states.threads.tolist(), states.nodes.tolist()]


@pytest.mark.slow
@settings(max_examples=100)
@given(plans(), DRAWN, st.data())
def test_state_as_without_sharing(
    plan: RowPatternPlan, drawn: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """Threads and nodes are the same numbers, so stored state does not tell what was shared."""
    event, now, rows = Both(plan).event, 0, list[Event]()
    for _, gap, value in drawn:
        now += gap
        rows.append(event(now, {"n": value, "s": "ab"[value % 2]}))
    shared, alone = _Run(plan), _Run(plan)
    while rows:
        count = data.draw(st.integers(1, len(rows)))
        time = rows[count - 1].time
        found = shared.advance(rows[:count], time)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled_matcher, "_MOST_STANDING", 0)
            assert found == alone.advance(rows[:count], time)
        del rows[:count]
    assert repr(shared.found) == repr(alone.found)


@pytest.mark.parametrize("pattern", ["A X*? B", "A X* B", "(A | X){1,3} X*? B", "A {- X* -} B"])
@pytest.mark.parametrize("gap", [1, 300])
def test_rows_are_not_gone_through_for_each_attempt(
    pattern: str, gap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A condition is computed a few times of each row, not once for each attempt of its window,
    also where one row ends them all."""
    calls = counted(monkeypatch, RowPatternCalls, "_call")
    both = Both(
        _plan(
            f"MEASURES COUNT(*) AS m PATTERN ({pattern}) WITHIN INTERVAL '0.1' SECOND "
            "DEFINE A AS n = 1, X AS s >= PREV(s), B AS n < 0"
        )
    )
    rows = [(0, both.event(number, {"s": "a", "n": 1})) for number in range(300)]
    rows += [(0, both.event(299 + gap, {"s": "a", "n": 1}))]
    found = both.advance(rows, 300)
    assert sum(isinstance(each, TimedOut) for _, each in found) >= 200
    assert calls.number < 10 * len(rows)


def test_a_full_table_of_nodes() -> None:
    """Nodes are let go between attempts that share them."""
    both = Both(
        _plan(
            "MEASURES COUNT(*) AS m PATTERN (A X*? B) WITHIN INTERVAL '0.02' SECOND "
            "DEFINE A AS n = 1, B AS n < 0"
        )
    )
    rows = [(0, both.event(number, {"n": 1})) for number in range(2_500)]
    for first in range(0, len(rows), 1_500):
        both.advance(rows[first : first + 1_500], first)
