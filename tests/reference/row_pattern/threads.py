"""Threads run the program: from one row to the next, in the order of preference."""

from __future__ import annotations

from collections.abc import Hashable

from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.row_pattern.distinction import Distinction
from spark_cep.compiler.row_pattern.program import Done, End, Jump, Label, Save, Split, Start
from spark_cep.matcher.row_pattern.evaluation import Binder, View
from tests.reference.row_pattern.conditions import condition
from tests.reference.row_pattern.state import Attempt, KeyState, Thread


class ThreadRunner:
    """Runs the threads of attempts of one plan."""

    def __init__(self, plan: RowPatternPlan, binder: Binder) -> None:
        self._program = plan.program
        numbers = {variable: number for number, variable in enumerate(plan.query.variables)}
        self._conditions = {
            numbers[variable]: condition(binder, defined)
            for variable, defined in plan.query.defines.items()
        }
        self._distinctions = [
            [(each, frozenset(map(numbers.__getitem__, each.variables))) for each in of_place]
            for of_place in plan.distinctions
        ]

    def begin(self, state: KeyState, start: int) -> Attempt:
        """The attempt at a row that is there: its threads stand before it."""
        attempt = Attempt(start, start, [Thread(0)])
        self._run(state, attempt, start)
        return attempt

    def step(self, state: KeyState, attempt: Attempt) -> None:
        """Lets the threads take one more row, or, at the partition's end, none."""
        attempt.next_row += 1
        self._run(state, attempt, attempt.next_row)

    def _run(self, state: KeyState, attempt: Attempt, until: int) -> None:
        """Every thread goes on as far as the rows before number ``until`` let it; no others are
        seen, so that it makes no difference which are there. Beyond the last row, the partition has
        ended.

        Threads on a stack: what comes of one is done before what comes of the next.
        """
        stack = attempt.threads[::-1]
        resting: list[Thread] = []
        seen: set[tuple[int, int, Hashable]] = set()
        while stack:
            thread = stack.pop()
            row = attempt.start + len(thread.labels)
            place = thread.at, row, self._distinct(thread)
            if place in seen:
                continue
            seen.add(place)
            if isinstance(self._program.instructions[thread.at], Done):
                attempt.found = thread
                break
            onward = self._onward(state, attempt, thread, until)
            if onward == (thread,):
                resting.append(thread)
            else:
                stack += reversed(onward)
        attempt.threads = resting

    def _onward(
        self, state: KeyState, attempt: Attempt, thread: Thread, until: int
    ) -> tuple[Thread, ...]:
        """What becomes of a thread at its instruction, preferred first; itself where it waits."""
        at, row = thread.at, attempt.start + len(thread.labels)
        match self._program.instructions[at]:
            case Jump(target=target):
                return (thread._replace(at=target),)
            case Split(first=first, second=second):
                return (thread._replace(at=first), thread._replace(at=second))
            case Save():
                return (thread._replace(at=at + 1, edges=(*thread.edges, len(thread.labels))),)
            case Start():
                return (thread._replace(at=at + 1),) if row == 0 else ()
            case End():
                if row < min(until, state.end):
                    return ()
                return (thread._replace(at=at + 1),) if until > state.end else (thread,)
            case Label(variable=variable):
                return self._take(state, attempt, thread, variable, until)
            case Done():
                return ()

    def _take(
        self, state: KeyState, attempt: Attempt, thread: Thread, variable: int, until: int
    ) -> tuple[Thread, ...]:
        """The thread with its next row, if that is one of the variable."""
        row = attempt.start + len(thread.labels)
        if row >= state.end < until:
            return ()
        if row >= until:
            return (thread,)
        taken = thread._replace(at=thread.at + 1, labels=(*thread.labels, variable))
        condition = self._conditions.get(variable)
        if condition is None:
            return (taken,)
        end, ended = min(until, state.end), until > state.end
        view = View(state, attempt.start, taken.labels, row, state.matches + 1, end, ended)
        holds = condition(view)
        if holds is None:
            return (thread,)
        return (taken,) if holds else ()

    def _distinct(self, thread: Thread) -> Hashable:
        """What the conditions ahead can read of the thread's past, where it may differ."""
        return tuple(_past(thread.labels, *each) for each in self._distinctions[thread.at])


def _past(labels: tuple[int, ...], distinction: Distinction, of: frozenset[int]) -> Hashable:
    rows = [at for at, label in enumerate(labels) if not of or label in of]
    if distinction.pick == "FIRST":
        rows = rows[: distinction.count]
    elif distinction.pick == "LAST":
        rows = rows[-distinction.count :]
    if not distinction.labels:
        return tuple(rows)
    near = [at + distinction.shift for at in rows]
    seen = [labels[at] if 0 <= at < len(labels) else None for at in near]
    back = labels[distinction.shift :] if distinction.shift < 0 else ()
    return tuple(rows), tuple(seen), back
