"""What is put out after each row is what the oracle says is final by then, no more and no less."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from spark_cep.matcher.row_pattern.lowering import RowPatternLimits
from tests.matcher.row_pattern.clauses import (
    CONDITIONS,
    CompiledMachine,
    Machine,
    clauses,
    statement_and_clause,
)
from tests.row_pattern_oracle import Clause, Partition, TooLongError, answer

pytestmark = pytest.mark.slow

VALUES = st.lists(st.integers(0, 2), max_size=6)
MANY = settings(
    max_examples=300,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


MACHINES = pytest.mark.parametrize("kind", [Machine, CompiledMachine])
Kind = type[Machine] | type[CompiledMachine]


def _check_each_row(kind: Kind, text: str, clause: Clause, values: Sequence[int]) -> None:
    machine = kind(text)
    times = range(len(values))
    for count, row in enumerate(zip(values, times, strict=True), 1):
        machine.take([row])
        assert machine.results == answer(clause, Partition(values[:count], times[:count]))
    machine.close()
    assert machine.results == answer(clause, Partition(values, times, closed=True))


@MACHINES
@MANY
@given(clauses(), VALUES)
def test_row_by_row(kind: Kind, both: tuple[str, Clause], values: list[int]) -> None:
    """A match goes out with the row that makes it final; at the end, what the end decides."""
    text, clause = both
    try:
        _check_each_row(kind, text, clause, values)
    except TooLongError:
        assume(False)


def test_no_match_is_open_before_the_start_of_the_partition() -> None:
    """Both know that of a row behind those that they have seen."""
    machine = CompiledMachine(
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES v AS ahead"
        " PATTERN (PERMUTE(A, A, ^) $) DEFINE A AS TRUE)"
    )
    for time in range(3):
        machine.take([(0, time)])
    machine.close()
    assert machine.results == []


@MACHINES
@MANY
@given(clauses(timed=True), st.data())
def test_within(kind: Kind, both: tuple[str, Clause], data: st.DataObject) -> None:
    """WITHIN settles an attempt when its time has passed, by a row or without one."""
    text, clause = both
    machine = kind(text)
    values: list[int] = []
    times: list[int] = []
    now = 0
    for _ in range(data.draw(st.integers(0, 6))):
        now += data.draw(st.integers(0, 4))
        if data.draw(st.booleans()):
            machine.move_time(now)
            time = now
        else:
            values.append(data.draw(st.integers(0, 2)))
            times.append(now)
            machine.take([(values[-1], now)])
            time = max(now, 0) if times else -1
        moved = time if not times or time > times[-1] else times[-1]
        try:
            wanted = answer(clause, Partition(values, times, time=moved))
        except TooLongError:
            assume(False)
        assert machine.results == wanted


@MACHINES
@MANY
@given(clauses(), VALUES, st.data())
def test_cuts(kind: Kind, both: tuple[str, Clause], values: list[int], data: st.DataObject) -> None:
    """However the rows are cut into calls, the results are the same."""
    text, _ = both
    rows = [(value, time) for time, value in enumerate(values)]
    one_by_one, cut = kind(text), kind(text)
    for row in rows:
        one_by_one.take([row])
    while rows:
        count = data.draw(st.integers(1, len(rows)))
        cut.take(rows[:count])
        del rows[:count]
    assert cut.results == one_by_one.results
    one_by_one.close()
    cut.close()
    assert cut.results == one_by_one.results


#: Several ways to take the same rows, which some condition on C, behind them, tells apart.
AMBIGUOUS = ["(A | B)* C", "(B | A)+? C C", "((A B) | (B A) | C) (C | A)+ C", "((A | B | C){2})+ C"]


@MACHINES
@pytest.mark.parametrize("pattern", AMBIGUOUS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_merged_threads(kind: Kind, pattern: str, condition: str) -> None:
    """Threads that a condition can tell apart are not one."""
    text, clause = statement_and_clause(pattern, {"C": condition})
    for values in itertools.product((0, 1, 2), repeat=4):
        machine = kind(text)
        machine.take((value, time) for time, value in enumerate(values))
        machine.close()
        assert machine.results == answer(clause, Partition(values, range(4), closed=True))


@MANY
@given(clauses(timed=True), st.lists(st.integers(0, 2), max_size=12), st.data())
def test_limits(drawn: tuple[str, Clause], values: list[int], data: st.DataObject) -> None:
    """Beyond limits both matchers give up the same attempts, and remember the same."""
    limits = RowPatternLimits(data.draw(st.integers(1, 20)), data.draw(st.integers(1, 6)))
    machine = CompiledMachine(drawn[0], limits)
    cut = data.draw(st.integers(0, len(values)))
    rows = [(value, time) for time, value in enumerate(values)]
    machine.take(rows[:cut])
    machine.take(rows[cut:])
    machine.move_time(len(rows) + data.draw(st.integers(0, 4)))
    machine.close()


SMALL = ["A", "B", "()", "^", "$"]
SIGNS = ["", "*", "+?", "??", "{2,}", "{,2}"]


def _small_patterns() -> list[str]:
    single = [f"{part}{sign}" for part in SMALL for sign in SIGNS]
    pairs = [
        form.format(left, right)
        for left, right in itertools.product(["A*", "A??", "B+", "B", "()", "$"], repeat=2)
        for form in ("{} {}", "({} | {})", "PERMUTE({}, {})", "{} {{- {} -}}")
    ]
    return [*single, *pairs, *(f"({pair}){sign}" for pair in pairs for sign in SIGNS[1:])]


@MACHINES
@pytest.mark.parametrize("chosen", [{"A": "v = 1"}, {"A": "v > 0", "B": "LAST(A.v) < v"}])
def test_small_patterns(kind: Kind, chosen: dict[str, str]) -> None:
    """Every small pattern, on every short partition."""
    partitions = [
        values for length in range(4) for values in itertools.product(range(3), repeat=length)
    ][::3]
    if kind is CompiledMachine:
        # It is compared with the reference, which is tested on all.
        partitions = partitions[::3]
    for pattern in _small_patterns():
        text, clause = statement_and_clause(pattern, chosen)
        for values in partitions:
            _check_each_row(kind, text, clause, values)
