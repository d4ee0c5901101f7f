"""Plans as the arrays that the kernel reads.

What depends on the rules alone is written once. What depends on which conditions are true of an
event (a *class* of events, per rule) is resolved by :class:`service.matcher.transitions.Transitions`
when the class is first met; the arrays hold what has occurred, up to a bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.compiler.plan import GapAtom, Kind, Plan
from service.compiler.rule_set import Partitioning
from service.matcher.columnar import kernel
from service.matcher.columnar.kernel import FOREVER, NEVER, Classes, Outcomes, Rules, States
from service.matcher.transitions import Outcome, Transitions
from service.pattern.tree import OnLimit, Skip

_MOST_QUESTIONS = 6
_MOST_ENTRIES = 1 << 20

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


def can_run(plan: Plan) -> bool:
    """Whether the kernel can run the plan: it has few conditions that look back, all of them on
    the time since the last event taken."""
    questions = plan.atoms[len(plan.event_atoms) :]
    return len(questions) <= _MOST_QUESTIONS and all(isinstance(a, GapAtom) for a in questions)


class Tables:
    """The arrays of a partitioning's rules."""

    def __init__(self, partitioning: Partitioning) -> None:
        self._partitioning = partitioning
        self._plans = [rule.plan for rule in partitioning.rules]
        self._transitions = [Transitions(plan) for plan in self._plans]
        self.rules = _rules(self._plans)
        self.states = _states(self._plans)
        gaps = [a.gap_ms for plan in self._plans for a in plan.atoms if isinstance(a, GapAtom)]
        self.gaps = np.array(gaps, np.int64)
        self._forget()
        self._freeze()

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
        class for each. What ``classes`` and ``outcomes`` hold is for these."""
        if len(self._outcome) > _MOST_ENTRIES:
            self._forget()
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
        self.classes = Classes(
            np.array(self._first_outcome, np.int32),
            np.array(self._outcome, np.int32),
            np.array(self._first_asked, np.int32),
            np.array(self._asked, np.int32),
        )
        outcomes = list(self._outcome_numbers)
        takes = [take for outcome in outcomes for take in outcome.takes]
        self.most_takes = max((len(o.takes) for o in outcomes), default=1) or 1
        self.most_moves = max((len(o.takes) + len(o.passes) for o in outcomes), default=1) or 1
        self.outcomes = Outcomes(
            flags=np.array([_flags(o) for o in outcomes], np.uint8),
            first_take=_ends([len(o.takes) for o in outcomes]),
            take_step=np.array([take.step for take in takes], np.int32),
            take_target=np.array([take.target for take in takes], np.int32),
            take_completes=np.array([take.completes for take in takes], np.uint8),
            first_pass=_ends([len(o.passes) for o in outcomes]),
            pass_target=np.array([p for o in outcomes for p in o.passes], np.int32),
        )


def _flags(outcome: Outcome) -> int:
    return (
        (kernel.UNCHANGED if outcome.unchanged else 0)
        | (kernel.STOPS if outcome.stops else 0)
        | (kernel.PASSES_TO_MATCH if outcome.passes_to_match else 0)
    )


def _ends(counts: Sequence[int]) -> kernel.I32:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _or_forever(duration: int | None) -> int:
    return FOREVER if duration is None else duration


def _rules(plans: Sequence[Plan]) -> Rules:
    questions = [len(plan.atoms) - len(plan.event_atoms) for plan in plans]
    limits = [plan.rule.limits for plan in plans]
    skips = [plan.after_match for plan in plans]
    effective = [plan.rule.effective_from_ms for plan in plans]
    return Rules(
        start=np.array([plan.start for plan in plans], np.int32),
        first_state=_ends([len(plan.states) for plan in plans]),
        first_question=_ends(questions),
        questions=np.array(questions, np.int32),
        window=np.array([_or_forever(plan.window_ms) for plan in plans], np.int64),
        skip=np.array([_SKIP[skip.strategy] for skip in skips], np.int32),
        skip_step=np.array(
            [
                kernel.NONE if skip.step is None else plan.steps.index(skip.step)
                for plan, skip in zip(plans, skips, strict=True)
            ],
            np.int32,
        ),
        error_on_miss=np.array([skip.error_on_miss for skip in skips], np.uint8),
        cooldown=np.array([_or_forever(plan.rule.cooldown_ms) for plan in plans], np.int64),
        effective_from=np.array([NEVER if e is None else e for e in effective], np.int64),
        most_partials=np.array([limit.partial_matches for limit in limits], np.int64),
        most_events=np.array([limit.events for limit in limits], np.int64),
        on_limit=np.array([_ON_LIMIT[limit.on_limit] for limit in limits], np.int32),
        step_gaps=np.array([q > 0 for q in questions], np.uint8),
    )


def _states(plans: Sequence[Plan]) -> States:
    states = [state for plan in plans for state in plan.states]
    live = (Kind.START, Kind.NORMAL)
    return States(
        gap=np.array([_or_forever(state.gap_ms) for state in states], np.int64),
        taking_gap=np.array([_or_forever(state.taking_gap_ms) for state in states], np.int64),
        absence=np.array([state.absence for state in states], np.uint8),
        live=np.array([state.kind in live for state in states], np.uint8),
        final=np.array([state.kind is Kind.FINAL for state in states], np.uint8),
    )
