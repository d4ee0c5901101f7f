"""Plans as the arrays that the kernel reads.

What depends on the rules alone is written once. What depends on which conditions are true of an
event (a *class* of events, per rule) is resolved by :mod:`spark_cep.matcher.steps.transitions` when
the class is first met; the arrays hold what has occurred, up to a bound. A rule with many
conditions that look back has its outcomes resolved answer by answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from spark_cep.columns.compilation import FOREVER, NEVER, NONE, Table
from spark_cep.columns.vectors import Vector
from spark_cep.compiler.plan import GapAtom, LookBackAtom, Plan, StateKind
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, slot_numbers
from spark_cep.errors import damaged_state
from spark_cep.matcher.batch.events import SlotType, slot_types
from spark_cep.matcher.steps.calls import BoundCall, StepCalls
from spark_cep.matcher.steps.conditions import Accumulators, cost
from spark_cep.matcher.steps.held import Held
from spark_cep.matcher.steps.look_back_programs import program
from spark_cep.matcher.steps.loops import check_loop, event_loop, kernel_tables
from spark_cep.matcher.steps.transitions import Outcome, Transitions
from spark_cep.pattern.tree import OnLimit, Skip
from spark_cep.pattern.work import HELD_EVENT
from spark_cep.programs.loops import expression_loop
from spark_cep.programs.programs import Program
from spark_cep.programs.values import Values, values_of

#: Of a rule with more conditions that look back, outcomes are resolved answer by answer.
_MOST_TABLED = 6
#: Outcomes are forgotten, and resolved again, when there are more.
MOST_ENTRIES = 1 << 20
#: And so is, beyond so many sets of true conditions, which rules they concern.
_MOST_MASKS = 1 << 16
#: Rows of the first table of answers.
_FEW_ANSWERS = 64

_SKIP = {
    Skip.NO_SKIP: kernel_tables.NO_SKIP,
    Skip.TO_NEXT: kernel_tables.TO_NEXT,
    Skip.PAST_LAST_EVENT: kernel_tables.PAST_LAST_EVENT,
    Skip.TO_FIRST: kernel_tables.TO_FIRST,
    Skip.TO_LAST: kernel_tables.TO_LAST,
}
_ON_LIMIT = {
    OnLimit.DROP_OLDEST: kernel_tables.DROP_OLDEST,
    OnLimit.REJECT_NEW: kernel_tables.REJECT_NEW,
    OnLimit.PAUSE_RULE: kernel_tables.PAUSE_RULE,
}


class PlanTables:
    """The arrays of a partitioning's rules."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes) -> None:
        self._partitioning = partitioning
        #: The columns of events.
        self.slots: list[SlotType] = slot_types(partitioning.slots, types)
        self._plans = partitioning.step_plans
        self._transitions = [Transitions(plan) for plan in self._plans]
        self._alike = _alike(self._plans)
        self._rules = _rules(self._plans)
        self._states = _states(self._plans)
        counts = [(len(plan.states), len(plan.steps)) for plan in self._plans]
        self._states_and_steps = np.array(counts, np.int64).reshape(-1, 2).T
        self._write_programs(types)
        self._forget()
        self._freeze()

    @property
    def rule_count(self) -> int:
        """The number of rules."""
        return len(self._plans)

    def _write_programs(self, types: RecordTypes) -> None:
        slots = slot_numbers(self._partitioning.slots)
        programs: list[tuple[int, tuple[int, Plan, LookBackAtom, Program] | GapAtom]] = []
        for rule, plan in enumerate(self._plans):
            for atom in plan.atoms:
                if isinstance(atom, GapAtom):
                    programs.append((rule, atom))
                elif isinstance(atom, LookBackAtom):
                    made = program(atom, plan, slots, types)
                    programs.append((rule, (rule, plan, atom, made)))
        written = [each for _, each in programs if not isinstance(each, GapAtom)]
        read = sorted({number for *_, each in written for number in each.columns})
        #: The slots that programs read, in the order of their columns in the kernel.
        self._read = read
        self._orders_texts = any(each.orders_texts for *_, each in written)
        self._texts: list[tuple[int, str]] = []
        #: The calls of Python, by number.
        self.calls: list[BoundCall] = []
        column_of = {number: place for place, number in enumerate(read)} | {NONE: NONE}
        conditions: list[tuple[int, int, int, int, int]] = []
        operations: list[tuple[int, float, int, int]] = []
        looks: list[tuple[int, int, int, int, int, bool]] = []
        #: What each condition that looks back costs, by rule.
        self._cost: list[list[int]] = [[] for _ in self._plans]
        accumulators = Accumulators(len(self._plans))
        for owner, one in programs:
            if isinstance(one, GapAtom):
                conditions.append((one.gap_ms, 0, 0, 0, 0))
                self._cost[owner].append(1)
                continue
            rule, plan, atom, found = one
            self._cost[rule].append(cost(found))
            first = len(operations)
            for operation in found.operations:
                code = operation.code & (expression_loop.DOUBLE - 1)
                whole, double, full, operand = operation.row
                if code == expression_loop.TEXT:
                    self._texts.append((len(operations), found.texts[operand]))
                if code == expression_loop.COLUMN:
                    operand = column_of[operand]
                operations.append((whole, double, full, operand))
            conditions.append((FOREVER, first, len(operations), len(looks), len(self.calls)))
            for look in found.looks:
                function, step, column, offset, as_double = look.row
                place = column_of[column]
                number = accumulators.number(rule, function, step, place, offset, as_double)
                looks.append((function, step, place, offset, number, as_double))
            self.calls += [BoundCall(call, rule, atom, plan, slots, types) for call in found.calls]
        self._conditions = np.array(conditions, expression_loop.CONDITION)
        self._operations = np.array(operations, expression_loop.OPERATION)
        self._looks = np.array(looks, expression_loop.LOOK)
        self._accumulators = accumulators.table(self._rules)
        self._rules["most_cost"] = [1 + sum(costs) for costs in self._cost]
        self.most_accumulators = int(self._rules["accumulators"].max(initial=0))

    def values(self, columns: Sequence[Vector], count: int) -> Values:
        """The columns that programs read, of ``count`` events, as numbers."""
        read = [columns[number] for number in self._read]
        return values_of(read, count, self._operations, self._texts, ordered=self._orders_texts)

    def calls_of(
        self,
        values: Values,
        columns: Sequence[Vector],
        stack: Table,
        nodes: Callable[[], Table],
        moves: Callable[[], int],
    ) -> StepCalls:
        """Return the functions that the kernel calls for expressions that Python computes."""
        return StepCalls(self.calls, columns, self.slots, values.texts, stack, nodes, moves)

    def check(self, held: Held) -> None:
        """Raise StateError where what is remembered is of states or steps that rules do not have,
        or holds events in another order than theirs."""
        states, steps = self._states_and_steps
        rule = held.instances["rule"]
        of_partials = np.repeat(rule, held.instances["partials"])
        of_finished = np.repeat(rule, held.instances["finished"])
        state, nodes = held.partials["state"], held.nodes
        if (
            ((state < 0) | (state >= states[of_partials])).any()
            or check_loop.wrong_node(
                nodes,
                np.concatenate([held.partials["last"], held.finished["last"]]).astype(np.int64),
                steps[np.concatenate([of_partials, of_finished])],
                np.full(len(nodes), steps.max(initial=0)),
            ) != NONE
        ):  # fmt: skip
            raise damaged_state(
                "partial matches have states, steps or an order of events that their rules do not"
                " have"
            )

    def programs(self, values: Values) -> expression_loop.Programs:
        """The programs with the texts of a run."""
        return expression_loop.Programs(self._conditions, values.operations, self._looks)

    def _forget(self) -> None:
        self._touched: dict[int, tuple[Sequence[int], Sequence[int]]] = {}
        self._class_numbers: dict[tuple[int, int], int] = {}
        self._first_outcome: list[int] = []
        self._outcome: list[int] = []
        self._first_asked: list[int] = []
        self._asked: list[int] = []
        self._costs: list[int] = []
        self._outcome_numbers: dict[Outcome, int] = {}
        #: Of rules with many conditions, the rule, state and own bits by number.
        self._sparse: list[tuple[int, int, int]] = []
        self._answered: dict[tuple[int, int], int] = {}

    def touched(self, masks: Sequence[int]) -> list[tuple[Sequence[int], Sequence[int]]]:
        """For each mask of true conditions, the rules that such an event can concern and its
        class for each. What the arrays hold is for these."""
        if len(self._outcome) + len(self._answered) > MOST_ENTRIES:
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
        rule = self._alike[rule]
        number = self._class_numbers.get((rule, own))
        if number is None:
            number = self._class_numbers[rule, own] = len(self._class_numbers)
            plan, transitions = self._plans[rule], self._transitions[rule]
            first_condition = len(plan.event_atoms)
            conditions = len(plan.atoms) - first_condition
            sparse = conditions > _MOST_TABLED
            self._first_outcome.append(len(self._sparse if sparse else self._outcome))
            self._first_asked.append(len(self._asked))
            for state in plan.states:
                if sparse:
                    self._sparse.append((rule, state.number, own))
                else:
                    for answers in range(1 << conditions):
                        outcome = transitions.outcome(
                            state.number, own | answers << first_condition
                        )
                        self._outcome.append(self._number(outcome))
                asked = transitions.conditions(state.number, own) if conditions else 0
                asked >>= first_condition
                self._asked.append(asked)
                costs = enumerate(self._cost[rule])
                self._costs.append(1 + sum(each for place, each in costs if asked >> place & 1))
        return number

    def _number(self, outcome: Outcome) -> int:
        return self._outcome_numbers.setdefault(outcome, len(self._outcome_numbers))

    def resolve(self, state: int, answers: int) -> None:
        """Table the outcome that the kernel has met (``unresolved_…`` of its control)."""
        rule, number, own = self._sparse[state]
        first_condition = len(self._plans[rule].event_atoms)
        outcome = self._transitions[rule].outcome(number, own | answers << first_condition)
        self._answered[state, answers] = self._number(outcome)
        self._freeze()

    def _freeze(self) -> None:
        outcomes = list(self._outcome_numbers)
        self.most_moves = max((len(outcome.moves) for outcome in outcomes), default=1) or 1
        ends = np.cumsum([0, *(len(outcome.moves) for outcome in outcomes)]).tolist()
        firsts = list(zip(self._first_outcome, self._first_asked, strict=True))
        self.plans = kernel_tables.Plans(
            rules=self._rules,
            states=self._states,
            outcomes=np.array(
                [(*span, _flags(o)) for span, o in zip(pairwise(ends), outcomes, strict=True)],
                kernel_tables.OUTCOME,
            ),
            moves=np.array([move for o in outcomes for move in o.moves], kernel_tables.MOVE),
            classes=np.array(firsts, kernel_tables.CLASS),
            outcome_of=np.array(self._outcome, np.int32),
            answered=self._answers(),
            asked=np.array(self._asked, np.int64),
            costs=np.array(self._costs, np.int64),
            accumulators=self._accumulators,
        )

    def _answers(self) -> Table:
        """The outcomes of rules with many conditions, where the kernel looks for them."""
        size = max(_FEW_ANSWERS, 1 << (2 * len(self._answered)).bit_length())
        table = np.zeros(size, kernel_tables.ANSWERED)
        table["outcome"] = NONE
        for (state, answers), outcome in self._answered.items():
            row = int(event_loop.answered_at(state, answers)) & size - 1
            while table["outcome"][row] != NONE:
                row = row + 1 & size - 1
            table[row] = (state, answers, outcome)
        return table


def _flags(outcome: Outcome) -> int:
    return (
        (kernel_tables.UNCHANGED if outcome.unchanged else 0)
        | (kernel_tables.STOPS if outcome.stops else 0)
        | (kernel_tables.TAKES if outcome.takes else 0)
    )


def _alike(plans: Sequence[Plan]) -> list[int]:
    """Return for each rule the first one that has the same states and no condition that looks back,
    or its own number: such rules have the same classes of events."""
    first: dict[tuple[Any, ...], int] = {}
    return [
        first.setdefault((plan.states, plan.start, plan.steps, len(plan.event_atoms)), rule)
        if len(plan.event_atoms) == len(plan.atoms)
        else rule
        for rule, plan in enumerate(plans)
    ]


def _or_forever(duration: int | None) -> int:
    return FOREVER if duration is None else duration


def _rules(plans: Sequence[Plan]) -> Table:
    table = np.zeros(len(plans), kernel_tables.RULE)
    first_state = first_condition = 0
    for row, plan in zip(table, plans, strict=True):
        rule, skip, limits = plan.rule, plan.after_match, plan.rule.limits
        conditions = len(plan.atoms) - len(plan.event_atoms)
        effective = rule.effective_from_ms
        row["start"] = plan.start
        row["first_state"] = first_state
        row["first_condition"] = first_condition
        row["conditions"] = conditions
        row["window"] = _or_forever(plan.window_ms)
        row["cooldown"] = _or_forever(rule.cooldown_ms)
        row["effective_from"] = NEVER if effective is None else effective
        row["skip"] = _SKIP[skip.strategy]
        row["skip_step"] = NONE if skip.step is None else plan.steps.index(skip.step)
        row["error_on_miss"] = skip.error_on_miss
        row["most_partials"] = limits.partial_matches
        row["most_events"] = limits.events
        row["most_matches"] = limits.matches
        row["most_work"] = limits.work
        row["held_cost"] = HELD_EVENT
        row["on_limit"] = _ON_LIMIT[limits.on_limit]
        row["step_gaps"] = any(isinstance(atom, GapAtom) for atom in plan.atoms)
        row["sparse"] = conditions > _MOST_TABLED
        first_state += len(plan.states)
        first_condition += conditions
    return table


def _states(plans: Sequence[Plan]) -> Table:
    live = (StateKind.START, StateKind.NORMAL)
    return np.array(
        [
            (
                _or_forever(state.gap_ms),
                _or_forever(state.taking_gap_ms),
                state.absence,
                state.kind in live,
                state.kind is StateKind.FINAL,
            )
            for plan in plans
            for state in plan.states
        ],
        kernel_tables.STATE,
    )
