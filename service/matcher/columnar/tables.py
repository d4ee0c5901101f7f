"""Plans as the arrays that the kernel reads.

What depends on the rules alone is written once. What depends on which conditions are true of an
event (a *class* of events, per rule) is resolved by :mod:`service.matcher.transitions` when the
class is first met; the arrays hold what has occurred, up to a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.compiler.plan import AnyAtom, EventAtom, GapAtom, Kind, Plan
from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning, Slot
from service.matcher.columnar import kernel
from service.matcher.columnar.kernel import FOREVER, NEVER, NONE, Table
from service.matcher.columnar.programs import Program, lane, program, whole_value
from service.matcher.transitions import Outcome, Transitions
from service.pattern.tree import OnLimit, Skip
from service.pattern.types import STRING, SqlType

_MOST_QUESTIONS = 6
#: Outcomes are forgotten, and resolved anew, when there are more.
MOST_ENTRIES = 1 << 20
#: And so is, beyond so many sets of true conditions, which rules they concern.
_MOST_MASKS = 1 << 16

_SKIP = {
    Skip.NO_SKIP: kernel.NO_SKIP,
    Skip.TO_NEXT: kernel.TO_NEXT,
    Skip.PAST_LAST_EVENT: kernel.PAST_LAST_EVENT,
    Skip.TO_FIRST: kernel.TO_FIRST,
    Skip.TO_LAST: kernel.TO_LAST,
}
_ON_LIMIT = {
    OnLimit.DROP_OLDEST: kernel.DROP_OLDEST,
    OnLimit.REJECT_NEW: kernel.REJECT_NEW,
    OnLimit.PAUSE_RULE: kernel.PAUSE_RULE,
}


def beyond(plan: Plan, slots: Sequence[Slot], types: RecordTypes) -> tuple[AnyAtom, ...]:
    """The conditions for which the kernel cannot run the plan: those that look back and that it
    has no program for, or all that look back, when there are more than six."""
    questions = plan.atoms[len(plan.event_atoms) :]
    if len(questions) > _MOST_QUESTIONS:
        return questions
    programs = _programs(plan, slots, types)
    return tuple(a for a, each in zip(questions, programs, strict=True) if each is None)


def can_run(plan: Plan, slots: Sequence[Slot], types: RecordTypes) -> bool:
    """Whether the kernel can run the plan."""
    return not beyond(plan, slots, types)


def _programs(
    plan: Plan, slots: Sequence[Slot], types: RecordTypes
) -> list[Program | GapAtom | None]:
    numbers = {(slot.events, slot.of_type, slot.path): n for n, slot in enumerate(slots)}
    return [
        atom if isinstance(atom, GapAtom) else program(atom, plan, numbers, types)
        for atom in plan.atoms
        if not isinstance(atom, EventAtom)
    ]


class Values(NamedTuple):
    """Events' columns as numbers, and the operations with texts numbered as these are."""

    wholes: NDArray[np.int64]
    doubles: NDArray[np.float64]
    nulls: NDArray[np.uint8]
    operations: Table


class Tables:
    """The arrays of a partitioning's rules."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes) -> None:
        self._partitioning = partitioning
        self._plans = [rule.plan for rule in partitioning.rules]
        self._transitions = [Transitions(plan) for plan in self._plans]
        self.rules = _rules(self._plans)
        self.states = _states(self._plans)
        questions = [
            each for plan in self._plans for each in _programs(plan, partitioning.slots, types)
        ]
        self._write_programs(questions)
        #: The columns, by number, that programs read, with their types.
        self._lanes: dict[int, SqlType] = {}
        for each in questions:
            if isinstance(each, Program):
                self._lanes.update(each.columns)
        self._forget()
        self._freeze()

    def _write_programs(self, questions: Sequence[Program | GapAtom | None]) -> None:
        rows: list[tuple[int, ...]] = []
        operations: list[tuple[int, float, int, int]] = []
        looks: list[tuple[int, int, int, int, bool]] = []
        self._texts: list[tuple[int, str]] = []
        for question in questions:
            assert question is not None
            if isinstance(question, GapAtom):
                rows.append((question.gap_ms, 0, 0, 0))
                continue
            first = len(operations)
            for each in question.operations:
                if each.code == kernel.TEXT:
                    self._texts.append((len(operations), question.texts[each.operand]))
                operations.append(each.row)
            rows.append((FOREVER, first, len(operations), len(looks)))
            looks += [
                (look.function, look.step, look.column, look.offset, look.double)
                for look in question.looks
            ]
        self.questions = np.array(rows, kernel.QUESTION)
        self._operations = np.array(operations, kernel.OPERATION)
        self.looks = np.array(looks, kernel.LOOK)

    def values(self, columns: Sequence[Sequence[Any]] | None, count: int) -> Values:
        """The columns that programs read, of ``count`` events, as numbers."""
        if not self._lanes:
            none = np.zeros((count, 1), np.int64)
            return Values(none, none.view(np.float64), none.astype(np.uint8), self._operations)
        width = len(self._partitioning.slots)
        columns = [(None,) * width] * count if columns is None else columns
        wholes = np.zeros((count, width), np.int64)
        doubles = wholes.view(np.float64)
        nulls = np.ones((count, width), np.uint8)
        texts = {text for _, text in self._texts}
        written = [number for number, kind in self._lanes.items() if kind == STRING]
        for number in written:
            texts.update(row[number] for row in columns if row[number] is not None)
        places = {text: place for place, text in enumerate(sorted(texts))}
        for number, kind in self._lanes.items():
            column = [row[number] for row in columns]
            nulls[:, number] = [value is None for value in column]
            target = doubles if lane(kind) is np.float64 else wholes
            whole = places.__getitem__ if kind == STRING else whole_value(kind)
            convert: Callable[[Any], Any] = float if target is doubles else whole
            try:
                target[:, number] = [0 if value is None else convert(value) for value in column]
            except (TypeError, ValueError, OverflowError, AttributeError) as error:
                path = ".".join(self._partitioning.slots[number].path)
                raise ValueError(f"column {path} has a value that is no {kind}: {error}") from error
        operations = self._operations.copy()
        for row, text in self._texts:
            operations["whole"][row] = places[text]
        return Values(wholes, doubles, nulls, operations)

    def _forget(self) -> None:
        self._touched: dict[int, tuple[Sequence[int], Sequence[int]]] = {}
        self._class_numbers: dict[tuple[int, int], int] = {}
        self._first_outcome: list[int] = []
        self._outcome: list[int] = []
        self._first_asked: list[int] = []
        self._asked: list[int] = []
        self._outcome_numbers: dict[Outcome, int] = {}

    def touched(self, masks: Sequence[int]) -> list[tuple[Sequence[int], Sequence[int]]]:
        """For each mask of true conditions, the rules that such an event can concern and its
        class for each. What the arrays hold is for these."""
        if len(self._outcome) > MOST_ENTRIES:
            self._forget()
        if len(self._touched) > _MOST_MASKS:
            self._touched.clear()
        known = len(self._class_numbers)
        found = []
        for mask in masks:
            each = self._touched.get(mask)
            if each is None:
                each = self._touched[mask] = self._resolve(mask)
            found.append(each)
        if len(self._class_numbers) > known:
            self._freeze()
        return found

    def _resolve(self, mask: int) -> tuple[Sequence[int], Sequence[int]]:
        touched = list(self._partitioning.touched(mask))
        return [rule for rule, _ in touched], [self._class(rule, own) for rule, own in touched]

    def _class(self, rule: int, own: int) -> int:
        number = self._class_numbers.get((rule, own))
        if number is None:
            number = self._class_numbers[rule, own] = len(self._class_numbers)
            plan, transitions = self._plans[rule], self._transitions[rule]
            first_question = len(plan.event_atoms)
            questions = len(plan.atoms) - first_question
            self._first_outcome.append(len(self._outcome))
            self._first_asked.append(len(self._asked))
            for state in plan.states:
                for answers in range(1 << questions):
                    outcome = transitions.outcome(state.number, own | answers << first_question)
                    self._outcome.append(
                        self._outcome_numbers.setdefault(outcome, len(self._outcome_numbers))
                    )
                asked = transitions.questions(state.number, own) if questions else 0
                self._asked.append(asked >> first_question)
        return number

    def _freeze(self) -> None:
        firsts = list(zip(self._first_outcome, self._first_asked, strict=True))
        self.classes = np.array(firsts, kernel.CLASS)
        self.outcome_of = np.array(self._outcome, np.int32)
        self.asked = np.array(self._asked, np.int32)
        outcomes = list(self._outcome_numbers)
        self.most_moves = max((len(outcome.moves) for outcome in outcomes), default=1) or 1
        self.moves = np.array([move for o in outcomes for move in o.moves], kernel.MOVE)
        ends = np.cumsum([0, *(len(outcome.moves) for outcome in outcomes)]).tolist()
        self.outcomes = np.array(
            [(*span, _flags(o)) for span, o in zip(pairwise(ends), outcomes, strict=True)],
            kernel.OUTCOME,
        )


def _flags(outcome: Outcome) -> int:
    return (
        (kernel.UNCHANGED if outcome.unchanged else 0)
        | (kernel.STOPS if outcome.stops else 0)
        | (kernel.TAKES if outcome.takes else 0)
    )


def _or_forever(duration: int | None) -> int:
    return FOREVER if duration is None else duration


def _rules(plans: Sequence[Plan]) -> Table:
    table = np.zeros(len(plans), kernel.RULE)
    first_state = first_question = 0
    for row, plan in zip(table, plans, strict=True):
        rule, skip, limits = plan.rule, plan.after_match, plan.rule.limits
        questions = len(plan.atoms) - len(plan.event_atoms)
        effective = rule.effective_from_ms
        row["start"] = plan.start
        row["first_state"] = first_state
        row["first_question"] = first_question
        row["questions"] = questions
        row["window"] = _or_forever(plan.window_ms)
        row["cooldown"] = _or_forever(rule.cooldown_ms)
        row["effective_from"] = NEVER if effective is None else effective
        row["skip"] = _SKIP[skip.strategy]
        row["skip_step"] = NONE if skip.step is None else plan.steps.index(skip.step)
        row["error_on_miss"] = skip.error_on_miss
        row["most_partials"] = limits.partial_matches
        row["most_events"] = limits.events
        row["on_limit"] = _ON_LIMIT[limits.on_limit]
        row["step_gaps"] = any(isinstance(atom, GapAtom) for atom in plan.atoms)
        first_state += len(plan.states)
        first_question += questions
    return table


def _states(plans: Sequence[Plan]) -> Table:
    live = (Kind.START, Kind.NORMAL)
    return np.array(
        [
            (
                _or_forever(state.gap_ms),
                _or_forever(state.taking_gap_ms),
                state.absence,
                state.kind in live,
                state.kind is Kind.FINAL,
            )
            for plan in plans
            for state in plan.states
        ],
        kernel.STATE,
    )
