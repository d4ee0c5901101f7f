"""Rows of a key to results: attempts one after the other, each settled when it is final."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.matcher.row_pattern.failures import SkipFault
from spark_cep.matcher.row_pattern.loops.tables import COUNTED, MOST_AGAIN, OPEN, TRIED_AGAIN
from spark_cep.matcher.row_pattern.lowering import RowPatternLimits
from spark_cep.matcher.row_pattern.python_calls.evaluation import (
    Binder,
    MeasureResults,
    NotYetKnownError,
    View,
)
from spark_cep.model import Event
from spark_cep.pattern.sql.statement import RowsPerMatch, SkipTo
from tests.reference.listed import listed
from tests.reference.row_pattern.results import (
    GivenUp,
    MatchFound,
    OutputRow,
    Result,
    SkipFailed,
    TimedOut,
    Unmatched,
)
from tests.reference.row_pattern.state import Attempt, KeyState, Thread
from tests.reference.row_pattern.threads import ThreadRunner


class _Reads:
    """The rows of a key as measures read them; ``last`` is the last of these."""

    def __init__(self, state: KeyState) -> None:
        self._state, self.last = state, -1
        self.end, self.closed = state.end, state.closed

    def row(self, number: int) -> Event:
        """One that is kept."""
        self.last = max(self.last, number)
        return self._state.row(number)


class RowPatternMatcher:
    """Applies one plan to the rows of any number of keys, whose state the caller keeps."""

    def __init__(self, plan: RowPatternPlan, limits: RowPatternLimits | None = None) -> None:
        binder = Binder(plan)
        self._query = plan.query
        self._reach = plan.reach
        self._limits = limits or RowPatternLimits()
        self._runner = ThreadRunner(plan, binder, self._limits)
        self._measures = [binder.expression(each.expression) for each in plan.query.measures]
        names = plan.query.variables
        self._target = {number for number, name in enumerate(names) if name in plan.query.target}

    def advance(self, state: KeyState, rows: Iterable[Event]) -> list[Result]:
        """What more rows, in their order, make final."""
        state.rows += rows
        return self._results(state)

    def move_time(self, state: KeyState, time: int) -> list[Result]:
        """What it makes final that all further rows come later than ``time``, in milliseconds."""
        state.time = max(state.time, time)
        return self._results(state)

    def close(self, state: KeyState) -> list[Result]:
        """What it makes final that no row will follow."""
        state.closed = True
        return self._results(state)

    def deadline(self, state: KeyState) -> int | None:
        """The time, in milliseconds, at which ``move_time`` will settle the attempt under way."""
        if state.attempt is None or self._query.within_ms is None or not state.attempt.threads:
            return None
        return state.row(state.attempt.start).time + self._query.within_ms

    def _results(self, state: KeyState) -> list[Result]:
        results: list[Result] = []
        while True:
            if state.attempt is None:
                if state.next_start >= state.end:
                    break
                if not self._runner.may_begin(state, state.next_start):
                    results += self._without(state, state.next_start, state.next_start + 1)
                    state.drop_before(state.next_start - self._reach)
                    continue
                self._search(state)
                if self._is_hopeless(state):
                    results += self._without(state, state.next_start, state.next_start + 1)
                    state.drop_before(state.next_start - self._reach)
                    continue
                state.see(state.next_start)
                state.attempt = self._begin(state, state.next_start)
            if not self._is_final(state, state.attempt):
                break
            attempt = state.attempt
            try:
                results += self._settled(state, attempt)
            except NotYetKnownError:
                break
            found = attempt.found if attempt.limit is None else None
            state.failed = attempt.limit is None and found is None and attempt.dropped is None
            if self._runner.near and found is not None:
                # Attempts that time ends share their work.
                state.work += (attempt.next_row - attempt.start) * self._runner.span
            state.attempt = None
            state.drop_before(state.next_start - self._reach)
        return results

    def _begin(self, state: KeyState, start: int) -> Attempt:
        """The attempt at a row that is there, which is given up at once where the work is done."""
        if state.work > self._limits.work:
            limit = f"more than {self._limits.work} steps of work"
            return Attempt(start, start, [], limit=limit)
        attempt = self._runner.begin(state, start)
        if attempt.limit is not None:
            _drop_threads(attempt)
        return attempt

    def _search(self, state: KeyState) -> None:
        """Count what all later attempts cost together behind one that has failed: none goes where
        another has failed."""
        looks_again = not self._runner.near and not self._runner.ahead
        again = state.failed and state.next_start < state.frontier and looks_again
        if again and state.searched == 0:
            state.searched = COUNTED
            state.work += (state.frontier + 1 - state.next_start) * self._runner.span

    def _is_hopeless(self, state: KeyState) -> bool:
        """Whether, behind an attempt that has failed, the next one fails whatever it takes."""
        start = state.next_start
        runner = self._runner
        if not state.failed or runner.near or runner.ahead or start >= state.frontier:
            return False
        if state.work > self._limits.work or state.searched == OPEN:
            return False
        if runner.may_match(state, start, lambda number: self._is_within(state, start, number)):
            state.searched = OPEN
            return False
        return True

    def _is_final(self, state: KeyState, attempt: Attempt) -> bool:
        """Lets the threads of an attempt take all rows that there are; whether none is left."""
        while attempt.threads:
            deadline = self.deadline(state)
            if attempt.next_row < state.end:
                if self._is_within(state, attempt.start, attempt.next_row):
                    self._step(state, attempt)
                else:
                    _drop_threads(attempt)
            elif deadline is not None and deadline <= state.time:
                _drop_threads(attempt)
            elif state.closed:
                self._step(state, attempt)
            else:
                return False
        return True

    def _is_within(self, state: KeyState, start_row: int, number: int) -> bool:
        """Whether a row comes in time; to the microsecond."""
        within = self._query.within_ms
        start, row = state.row(start_row), state.row(number)
        return within is None or (row.time - within, row.micros) < (start.time, start.micros)

    def _step(self, state: KeyState, attempt: Attempt) -> None:
        """Let the threads go on by a row, or by the partition's end, within the limits."""
        state.see(attempt.next_row, self._runner.restored(attempt))
        self._runner.step(state, attempt)
        rows, threads = self._limits.rows, self._limits.threads
        if (
            attempt.limit is None
            and attempt.next_row - attempt.start > rows
            and any(
                len(each.labels) > rows for each in (*attempt.threads, attempt.found or Thread(0))
            )
        ):
            attempt.limit = f"more than {rows} rows"
        elif attempt.limit is None and len(attempt.threads) > threads:
            attempt.limit = f"more than {threads} threads"
        if attempt.limit is not None:
            _drop_threads(attempt)

    def _settled(self, state: KeyState, attempt: Attempt) -> list[Result]:
        """The results of an attempt whose match, or failure, is final."""
        row = state.row(attempt.start)
        results: list[Result] = []
        after = attempt.start + 1
        if attempt.limit is not None:
            # A match so far is not the preferred one as long as threads are left.
            results.append(GivenUp(attempt.start, row, attempt.limit))
            seen = attempt.next_row - attempt.start
            after = attempt.start + max(1, seen // TRIED_AGAIN)
            if attempt.limit.endswith("threads") and seen * self._limits.threads > MOST_AGAIN:
                after = attempt.next_row
            behind = min(state.frontier + 1, state.end)
            if attempt.limit.endswith("work"):
                after = max(after, behind)
            elif self._runner.near:
                left = max(0, self._limits.work - state.work)
                after = max(after, behind - left // self._runner.span)
                state.work += max(0, behind - after) * self._runner.span
        elif attempt.found is not None:
            return self._matched(state, attempt.start, attempt.found)
        elif attempt.dropped is not None:
            assert self._query.within_ms is not None
            deadline = row.time + self._query.within_ms
            labels = self._names(attempt.dropped)
            events = state.rows_from(attempt.start, len(labels))
            kept = listed(labels)
            results.append(
                TimedOut(
                    attempt.start, row, tuple(events[each] for each in kept),
                    tuple(labels[each] for each in kept), deadline, len(labels) - len(kept),
                )
            )  # fmt: skip
        return results + self._without(state, attempt.start, after)

    def _without(self, state: KeyState, start: int, after: int) -> list[Result]:
        """Go on behind rows at which no match begins."""
        results: list[Result] = []
        if self._query.rows is RowsPerMatch.WITH_UNMATCHED:
            for number in range(max(start, state.covered), after):
                nothing = OutputRow(state.row(number), (None,) * len(self._measures))
                results.append(Unmatched(number, (nothing,)))
        state.next_start = after
        return results

    def _matched(self, state: KeyState, start: int, found: Thread) -> list[Result]:
        number = state.matches + 1
        reads = _Reads(state)
        rows = tuple(self._rows(reads, start, found, number))
        state.see(reads.last)
        events = state.rows_from(start, len(found.labels))
        at = state.row(start)
        results: list[Result] = [MatchFound(number, start, at, events, self._names(found), rows)]
        state.matches = number
        state.next_start = start + 1
        if found.labels:
            state.covered = max(state.covered, start + len(found.labels))
            target = self._next_start(start, found)
            if isinstance(target, SkipFault):
                results.append(SkipFailed(number, start, state.row(start), target))
            else:
                state.next_start = target
        return results

    def _names(self, thread: Thread) -> tuple[str, ...]:
        return tuple(self._query.variables[label] for label in thread.labels)

    def _next_start(self, start: int, found: Thread) -> int | SkipFault:
        if self._query.skip is SkipTo.NEXT_ROW:
            return start + 1
        if self._query.skip is SkipTo.PAST_LAST_ROW:
            return start + len(found.labels)
        places = [at for at, label in enumerate(found.labels) if label in self._target]
        if not places:
            return SkipFault.TARGET_ABSENT
        at = places[0] if self._query.skip is SkipTo.FIRST else places[-1]
        return start + at if at else SkipFault.TO_MATCH_START

    def _rows(self, state: _Reads, start: int, found: Thread, number: int) -> Iterable[OutputRow]:
        length, mode = len(found.labels), self._query.rows
        remembered = MeasureResults()
        view = View(state, start, found.labels, start, number, state.end, state.closed, remembered)
        if not length:
            if mode is not RowsPerMatch.OMIT_EMPTY:
                yield self._output(state, view, 0)
        elif mode is RowsPerMatch.ONE_ROW:
            last = self._output(state, view, length - 1)
            yield OutputRow(state.row(start), last.measures)
        else:
            pairs = zip(found.edges[::2], found.edges[1::2], strict=True)
            excluded = {at for begin, end in pairs for at in range(begin, end)}
            for at in range(length):
                if at not in excluded:
                    yield self._output(state, view, at)

    def _output(self, state: _Reads, view: View, place: int) -> OutputRow:
        view.current = view.start + place
        measures: tuple[Any, ...] = tuple(measure(view) for measure in self._measures)
        return OutputRow(state.row(view.current), measures, place)


def _drop_threads(attempt: Attempt) -> None:
    attempt.dropped = attempt.threads[0]._replace(at=0) if attempt.threads else None
    attempt.threads = []
