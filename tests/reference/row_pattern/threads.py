"""Threads run the program: from one row to the next, in the order of preference."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.row_pattern.distinction import Distinction
from spark_cep.compiler.row_pattern.program import Done, End, Jump, Label, Save, Split, Start
from spark_cep.matcher.row_pattern.lowering import RowPatternLimits, is_near, lower
from spark_cep.matcher.row_pattern.python_calls.evaluation import Binder, View
from spark_cep.pattern.expressions import And, Expression, Leaf, Or, boolean_structure
from spark_cep.pattern.work import THREAD
from tests.reference.row_pattern.conditions import condition, truth
from tests.reference.row_pattern.state import Attempt, KeyState, Thread


class ThreadRunner:
    """Runs the threads of attempts of one plan."""

    def __init__(self, plan: RowPatternPlan, binder: Binder, limits: RowPatternLimits) -> None:
        lowered = lower(plan, limits)
        self._program = plan.program
        self._most_work = limits.work
        self._costs = lowered.program.variables["cost"].tolist()
        #: The steps of work of a row that a thread has taken: of its registers, and of the
        #: variable that it waits for.
        self._of_registers = int(lowered.program.clause[0]["restored"])
        self._of_python = lowered.program.variables["restored"].tolist()
        #: Whether all conditions say the same of each attempt; the steps of work are not counted.
        self.near = bool(lowered.program.clause[0]["near"])
        #: The steps of work of a row where they are not counted one by one.
        self.span = int(lowered.program.clause[0]["span"])
        #: Whether conditions read rows behind theirs.
        self.ahead = bool(lowered.program.clause[0]["ahead"])
        numbers = {variable: number for number, variable in enumerate(plan.query.variables)}
        self._conditions = {
            numbers[variable]: condition(binder, defined)
            for variable, defined in plan.query.defines.items()
        }
        self._bits = {
            numbers[variable]: [truth(binder, part) for part in _bits(defined, lowered.bits)]
            for variable, defined in plan.query.defines.items()
        }
        #: A row for which none of these conditions holds begins no match; none: any row may.
        wanted = int(lowered.program.clause[0]["first_bits"])
        self._first = [
            truth(binder, Leaf(each))
            for number, each in enumerate(lowered.bits)
            if wanted >> number & 1
        ]
        self._alike = {
            numbers[variable]: [
                truth(binder, part) for part in _alike(variable, defined, lowered.calls)
            ]
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

    def restored(self, attempt: Attempt) -> int:
        """What it costs to restore what threads keep of their rows."""
        work = 0
        for thread in attempt.threads:
            instruction, steps = self._program.instructions[thread.at], self._of_registers
            if isinstance(instruction, Label):
                steps += self._of_python[instruction.variable]
            work += 0 if self.near else len(thread.labels) * steps
        return work

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
            if not self.near:
                state.work += THREAD
                if state.work > self._most_work:
                    attempt.limit = f"more than {self._most_work} steps of work"
                    return
            if isinstance(self._program.instructions[thread.at], Done):
                attempt.found = thread._replace(at=0)
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
        end, ended = min(until, state.end), until > state.end
        view = View(state, attempt.start, taken.labels, row, state.matches + 1, end, ended)
        if not self.near and all(holds(view) for holds in self._bits.get(variable, ())):
            state.work += self._costs[variable]
        condition = self._conditions.get(variable)
        if condition is None:
            return (taken,)
        holds = condition(view)
        if holds is None:
            return (thread,)
        return (taken,) if holds else ()

    def may_match(self, state: KeyState, start: int, is_within: Callable[[int], bool]) -> bool:
        """Whether a match may begin at a row, or is open behind the rows seen, as far as conditions
        say the same of each attempt."""
        places, row = self._closure({0}, start), start
        while places:
            if any(isinstance(self._program.instructions[at], Done | End) for at in places):
                return True
            if not any(isinstance(self._program.instructions[at], Label) for at in places):
                return False
            if row > state.frontier or row >= state.end or not is_within(row):
                return True
            view = View(state, start, (0,) * (row - start + 1), row, 0, row + 1, False)
            after = set()
            for at in places:
                instruction = self._program.instructions[at]
                if isinstance(instruction, Label) and all(
                    holds(view) for holds in self._alike.get(instruction.variable, ())
                ):
                    after.add(at + 1)
            row += 1
            places = self._closure(after, row)
        return False

    def may_begin(self, state: KeyState, start: int) -> bool:
        """Whether a match may begin at a row, by what is true of the row alone."""
        view = View(state, start, (0,), start, 0, start + 1, False)
        return not self._first or any(holds(view) for holds in self._first)

    def _closure(self, places: set[int], row: int) -> set[int]:
        """The instructions that threads come to without a row."""
        found, pending = set(places), list(places)
        while pending:
            at = pending.pop()
            match self._program.instructions[at]:
                case Label() | End() | Done():
                    continue
                case Start() if row:
                    continue
            new = set(self._program.successors(at)) - found
            found |= new
            pending += new
        return found

    def _distinct(self, thread: Thread) -> Hashable:
        """What the conditions ahead can read of the thread's past, where it may differ."""
        return tuple(_past(thread.labels, *each) for each in self._distinctions[thread.at])


def _alike(
    variable: str, defined: Expression, calls: Sequence[tuple[str, Expression]]
) -> Iterator[Leaf | And | Or]:
    """The parts of a condition that say the same of each attempt, but for calls of Python."""
    whole = boolean_structure(defined)
    parts = whole.parts if isinstance(whole, And) else (whole,)
    bits = [part for part in parts if isinstance(part, Leaf) and part.expression.is_event_only]
    yield from bits
    for part in parts:
        if part not in bits and is_near(part):
            if any((variable, each) in calls for each in _leaves(part)):
                return
            yield part


def _bits(defined: Expression, bits: Sequence[Expression]) -> Iterator[Leaf]:
    """The parts of a condition that read their row alone, and are evaluated before."""
    whole = boolean_structure(defined)
    for part in whole.parts if isinstance(whole, And) else (whole,):
        if isinstance(part, Leaf) and part.expression in bits:
            yield part


def _leaves(part: Leaf | And | Or) -> Iterator[Expression]:
    if isinstance(part, Leaf):
        yield part.expression
    else:
        for each in part.parts:
            yield from _leaves(each)


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
