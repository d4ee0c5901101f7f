"""Threads run the program: from one row to the next, in the order of preference."""

from __future__ import annotations

from collections.abc import Hashable

from service.compiler.row_pattern import RowPatternPlan
from service.compiler.row_pattern.distinction import Distinction
from service.compiler.row_pattern.program import Done, End, Jump, Label, Save, Split, Start
from service.matcher.row_pattern.evaluation import Binder, NotYetKnownError, View
from service.matcher.row_pattern.state import Attempt, KeyState, Thread


class ThreadRunner:
    """Runs the threads of attempts of one plan."""

    def __init__(self, plan: RowPatternPlan, binder: Binder) -> None:
        self._program = plan.program
        self._within = plan.query.within_ms
        numbers = {variable: number for number, variable in enumerate(plan.query.variables)}
        self._conditions = {
            numbers[variable]: binder.expression(condition)
            for variable, condition in plan.query.defines.items()
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
        """Every thread goes on as far as the rows before number ``until`` let it.

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
            match self._program.instructions[thread.at]:
                case Jump(target=target):
                    stack.append(thread._replace(at=target))
                case Split(first=first, second=second):
                    stack += thread._replace(at=second), thread._replace(at=first)
                case Save():
                    edges = (*thread.edges, len(thread.labels))
                    stack.append(thread._replace(at=thread.at + 1, edges=edges))
                case Start():
                    if row == 0:
                        stack.append(thread._replace(at=thread.at + 1))
                case End():
                    if row >= state.end and state.closed:
                        stack.append(thread._replace(at=thread.at + 1))
                    elif row >= state.end:
                        resting.append(thread)
                case Done():
                    attempt.found = thread
                    break
                case Label(variable=variable):
                    if row >= until and not (row >= state.end and state.closed):
                        resting.append(thread)
                    elif row < state.end:
                        taken = thread._replace(
                            at=thread.at + 1, labels=(*thread.labels, variable)
                        )
                        holds = self._holds(state, attempt, taken, variable)
                        if holds is None:
                            resting.append(thread)
                        elif holds:
                            stack.append(taken)
        attempt.threads = resting

    def _holds(
        self, state: KeyState, attempt: Attempt, thread: Thread, variable: int
    ) -> bool | None:
        """Whether the last row of a thread is one of the variable; ``None``: not yet known."""
        condition = self._conditions.get(variable)
        if condition is None:
            return True
        until = None
        if self._within is not None:
            until = state.row(attempt.start).time + self._within
        current = attempt.start + len(thread.labels) - 1
        view = View(state, attempt.start, thread.labels, current, state.matches + 1, until)
        try:
            return condition(view) is True
        except NotYetKnownError:
            return None

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
