"""The conditions of a rule of steps on one event: their truth, and the parts that stood in the
way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from spark_cep.columns.vectors import reader
from spark_cep.compiler.explain.wording import condition_text, in_words
from spark_cep.compiler.formula import FALSE, All, AnyOf, Atom, Formula, Not, conjunction
from spark_cep.compiler.plan import Action, EventAtom, GapAtom, LookBackAtom, Plan, StateKind
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import slot_numbers
from spark_cep.durations import format_duration
from spark_cep.matcher.batch.events import EventTable, Names, slot_types
from spark_cep.matcher.findings.chains import Chains
from spark_cep.matcher.findings.measures import Measures
from spark_cep.matcher.findings.partial import Taken
from spark_cep.model import Event
from spark_cep.pattern.expressions import Expression, LookBack
from spark_cep.pattern.expressions.canonical import expression as expression_of
from spark_cep.pattern.expressions.nodes import Reference
from spark_cep.pattern.tree import Emit
from spark_cep.why.account import Passed, Unmet
from spark_cep.why.parts import ConditionPart, WatchedPlan
from spark_cep.why.probes import Asked, Chain, leaf_atom

#: Of ways from one state, through optional steps, so many are looked at.
_MOST_WAYS = 1_000
#: A condition on the way to a step's taking the event.
Way = tuple[str, Formula]


class StepConditions:
    """The conditions of one plan."""

    def __init__(self, watched: WatchedPlan, types: RecordTypes) -> None:
        assert isinstance(watched.plan, Plan)
        self.watched, self.plan = watched, watched.plan
        self.ways: Callable[[int], tuple[Way, ...]] = cache(lambda at: tuple(self._ways(at)))
        self._types = types
        self._reader: Callable[[LookBack], Callable[[Taken | None], Any]] = cache(self._look_back)

    def _ways(self, start: int) -> Iterator[Way]:
        """The steps that could take an event from a state, and under which condition."""
        states = self.plan.states
        todo: list[tuple[int, tuple[Formula, ...]]] = [(start, ())]
        seen = set(todo)
        while todo:
            number, way = todo.pop()
            for edge in states[number].edges:
                whole = (*way, edge.condition)
                if edge.action is Action.TAKE and conjunction(whole) != FALSE:
                    yield states[number].step, conjunction(whole)
                elif (
                    edge.action is Action.PROCEED
                    and states[edge.target].kind is not StateKind.STOP
                    and (edge.target, whole) not in seen
                    and len(whole) <= len(states)
                    and len(seen) < _MOST_WAYS
                ):
                    seen.add((edge.target, whole))
                    todo.append((edge.target, whole))

    def _look_back(self, look_back: LookBack) -> Callable[[Taken | None], Any]:
        """A function for the value of a look-back, computed as a measure is."""
        emit = Emit({"value": expression_of(Reference(look_back))})
        plan = replace(self.plan, rule=replace(self.plan.rule, emit=emit))
        slots = self.watched.partitioning.slots
        columns = slot_types(slots, self._types)
        measures = Measures(plan, columns, slot_numbers(slots), self._types)

        def value(last: Taken | None) -> Any:
            taken = [] if last is None else list(last.chain())[::-1]
            steps = np.array([each.step for each in taken], np.int32)
            chains = Chains(np.array([len(taken)]), steps, np.arange(len(taken), dtype=np.int32))
            events = EventTable.of([each.event for each in taken], Names(), columns)
            ((measure, uncomputed),) = measures.of(chains, events)
            for failed in uncomputed:
                raise failed.error
            return reader(measure.values, measure.kind)(0)

        return value

    def values(self, leaf: Expression, event: Event, last: Taken | None) -> dict[str, Any]:
        """The values that a part of a condition has read."""
        found = self.watched.values(event, sorted(leaf.columns))
        for each in leaf.look_backs:
            text = expression_of(Reference(each)).canonical
            try:
                found[text] = self._reader(each)(last)
            except Exception as error:  # noqa: BLE001  it is shown, whatever it is
                found[text] = repr(error)
        return found


@dataclass(frozen=True)
class EventTruths:
    """The conditions that are true of ``event``: the bits of ``mask``, and those that look back,
    for the chains in ``probed``."""

    conditions: StepConditions
    event: Event
    mask: int
    probed: Mapping[Asked, frozenset[Chain]]

    def atoms(self, chain: Chain) -> int:
        """The mask of the plan's atoms that are true for a partial match."""
        plan = self.conditions.plan
        rule = self.conditions.watched.partitioning.rules[0]
        true = sum(1 << i for i, bit in enumerate(rule.bits) if self.mask >> bit & 1)
        for number, atom in enumerate(plan.atoms):
            if not isinstance(atom, EventAtom) and chain in self.probed.get(atom, ()):
                true |= 1 << number
        return true

    def passed(
        self, states: Sequence[int], chain: Chain, last: Taken | None, took: frozenset[str]
    ) -> tuple[Passed, ...]:
        """The steps that could have taken the event from these states, and what stood in the way;
        of several ways to a step, the nearest."""
        true = self.atoms(chain)
        nearest: dict[str, list[Unmet]] = {}
        for state in states:
            for step, formula in self.conditions.ways(state):
                if step in took or formula.evaluate(true):
                    continue
                found = self._unmet(formula, true, chain, last)
                unmet = list({(each.text, each.holds): each for each in found}.values())
                if step not in nearest or len(unmet) < len(nearest[step]):
                    nearest[step] = unmet
        order = self.conditions.plan.steps
        return tuple(Passed(step, tuple(nearest[step])) for step in order if step in nearest)

    def tried(self, formula: Formula) -> Iterator[tuple[str, bool, Mapping[str, Any]]]:
        """The parts of a first step's condition: whether each is true, and the values seen."""
        nothing: Chain = frozenset()
        for number in _positive(formula):
            atom = self.conditions.plan.atoms[number]
            if isinstance(atom, GapAtom):
                continue
            if atom.expression is None:
                is_of = bool(self.mask & self.conditions.watched.bit(atom.of_type, None))
                yield condition_text(atom), is_of, {"type": self.event.type}
            else:
                for leaf in ConditionPart.of(atom.expression).leaves:
                    values = self.conditions.values(leaf, self.event, None)
                    yield leaf.canonical, self.holds(atom, ConditionPart(leaf), nothing), values

    def holding(self, formula: Formula, last: Taken | None) -> Unmet:
        """A formula that is true."""
        plan = self.conditions.plan
        values: dict[str, Any] = {}
        for number, atom in enumerate(plan.atoms):
            if formula.atoms() >> number & 1 and not isinstance(atom, GapAtom):
                if atom.expression is None:
                    values["type"] = self.event.type
                else:
                    values |= self.conditions.values(atom.expression, self.event, last)
        text = in_words(formula, lambda number: condition_text(plan.atoms[number]))
        return Unmet(text, values, holds=True)

    def _unmet(
        self, formula: Formula, true: int, chain: Chain, last: Taken | None
    ) -> Iterator[Unmet]:
        match formula:
            case Atom(index) if not true >> index & 1:
                yield from self._of_atom(index, chain, last)
            case Not(operand) if operand.evaluate(true):
                yield self.holding(operand, last)
            case All(operands):
                for each in operands:
                    yield from self._unmet(each, true, chain, last)
            case AnyOf(operands) if not formula.evaluate(true):
                for each in operands:
                    yield from self._unmet(each, true, chain, last)

    def _of_atom(self, number: int, chain: Chain, last: Taken | None) -> Iterator[Unmet]:
        atom, watched = self.conditions.plan.atoms[number], self.conditions.watched
        if isinstance(atom, GapAtom):
            since = 0 if last is None else self.event.time - last.event.time
            yield Unmet(condition_text(atom), {"since then": format_duration(since)})
        elif atom.expression is None:
            yield Unmet(condition_text(atom), {"type": self.event.type})
        elif atom.of_type is None or self.mask & watched.bit(atom.of_type, None):
            part = ConditionPart.of(atom.expression)
            found = list(self._parts(atom, part, chain, last))
            values = self.conditions.values(atom.expression, self.event, last)
            yield from found or [Unmet(atom.expression.canonical, values)]

    def _parts(
        self, atom: EventAtom | LookBackAtom, part: ConditionPart, chain: Chain, last: Taken | None
    ) -> Iterator[Unmet]:
        if part.operator == "OR" and any(self.holds(atom, each, chain) for each in part.parts):
            return
        for each in part.parts:
            yield from self._parts(atom, each, chain, last)
        if not part.parts and not self.holds(atom, part, chain):
            values = self.conditions.values(part.expression, self.event, last)
            yield Unmet(part.expression.canonical, values)

    def holds(self, atom: EventAtom | LookBackAtom, part: ConditionPart, chain: Chain) -> bool:
        """Return whether a part of a condition is true."""
        if part.operator:
            join = all if part.operator == "AND" else any
            return join(self.holds(atom, each, chain) for each in part.parts)
        leaf = part.expression
        if leaf.is_event_only:
            return bool(self.mask & self.conditions.watched.bit(atom.of_type, leaf))
        assert isinstance(atom, LookBackAtom)
        return chain in self.probed.get(leaf_atom(atom, leaf), ())


def _positive(formula: Formula) -> Iterator[int]:
    """The atoms of a formula that are not negated."""
    match formula:
        case Atom(index):
            yield index
        case All(operands) | AnyOf(operands):
            for each in operands:
                yield from _positive(each)
