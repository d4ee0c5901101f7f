"""Many rules as one plan: rules that share a key share a partitioning of the stream.

A partitioning numbers the conditions (*atoms*) and columns (*slots*) that its rules need, each
once however many rules use it, so that Spark evaluates them in one pass and an event crosses to
the matcher with one bit mask and one row of columns.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from spark_cep.compiler.key_text import has_null
from spark_cep.compiler.plan import LookBackAtom, Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.row_pattern import RowPatternPlan, plan_rule
from spark_cep.compiler.steps.lowering import lower
from spark_cep.pattern.expressions import ALL_STEPS, ColumnPath, Expression, LookBack, parse
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.tree import Rule

_NOTHING_KNOWN = RecordTypes()
#: A rule of steps, or one in SQL.
AnyPlan = Plan | RowPatternPlan


@dataclass(frozen=True, slots=True)
class Slot:
    """One column that travels with events: ``path`` of record type ``of_type``, or, with
    ``None``, of whichever of the ``events`` inputs has it (all of them when empty)."""

    events: tuple[str, ...]
    of_type: str | None
    path: ColumnPath

    @property
    def name(self) -> str:
        """Identity of the slot's meaning, for state written under another rule set."""
        return "|".join((",".join(self.events), self.of_type or "", ".".join(self.path)))


def slot_numbers(
    slots: Iterable[Slot],
) -> dict[tuple[tuple[str, ...], str | None, ColumnPath], int]:
    """The place of each slot, by its inputs, record type and path."""
    return {(slot.events, slot.of_type, slot.path): at for at, slot in enumerate(slots)}


@dataclass(frozen=True, slots=True)
class Condition:
    """One bit of an event's mask. ``atom`` ``None``: the event is of the ``events`` inputs."""

    events: tuple[str, ...]
    of_type: str | None
    expression: Expression | None

    @property
    def name(self) -> str:
        """Identity of the bit's meaning, for state written under another rule set."""
        text = self.expression.canonical if self.expression is not None else ""
        return "|".join((",".join(self.events), self.of_type or "", text))


@dataclass(frozen=True, slots=True)
class PlannedRule:
    """One rule of a partitioning. ``input_bit`` is set on events of the rule's inputs;
    ``bits[i]`` is the partitioning's bit of the plan's event atom ``i``. ``drains``: a newer
    version has replaced it, and it begins matches with its own events alone
    (:meth:`Partitioning.early`)."""

    plan: AnyPlan
    input_bit: int
    bits: tuple[int, ...]
    drains: bool = False


@dataclass(frozen=True)
class Partitioning:
    """Rules with the same key expressions, those in SQL behind the others. ``key`` empty: one
    global partition.

    A key with a part that is NULL is a key to rules in SQL, as their standard has it, and none to
    rules of steps: where there are both, such an event is :attr:`unseen_by_steps`."""

    key: tuple[Expression, ...]
    rules: tuple[PlannedRule, ...]
    conditions: tuple[Condition, ...]
    slots: tuple[Slot, ...]
    keeps_payload: bool

    @cached_property
    def key_name(self) -> str:
        """Identity of the key, part of every state entry's key."""
        return ", ".join(expression.canonical for expression in self.key)

    @cached_property
    def step_plans(self) -> tuple[Plan, ...]:
        """The plans of rules of steps, which have the first numbers."""
        return tuple(rule.plan for rule in self.rules if isinstance(rule.plan, Plan))

    @cached_property
    def row_pattern_rules(self) -> tuple[tuple[int, PlannedRule, RowPatternPlan], ...]:
        """The rules in SQL: number, rule, plan."""
        return tuple(
            (number, rule, rule.plan)
            for number, rule in enumerate(self.rules)
            if isinstance(rule.plan, RowPatternPlan)
        )

    def unseen(self, number: int) -> int:
        """The bit of events that were read before rule ``number`` was there: they are not the
        rule's, though they waited for the watermark until it was."""
        return len(self.conditions) + number

    def has_null(self, key: str | None) -> bool:
        """Return whether a part of a key is NULL."""
        if len(self.key) > 1:
            return key is not None and has_null(key)
        return key is None and bool(self.key)

    @cached_property
    def unseen_by_steps(self) -> int:
        """The :meth:`unseen` bits of all rules of steps, where there are others."""
        if not self.row_pattern_rules:
            return 0
        return sum(1 << self.unseen(number) for number in range(len(self.step_plans)))

    def early(self, number: int) -> int:
        """The bit of events that rule ``number``, which drains, may begin matches with: they were
        read before that, or come before the time at which a newer version begins."""
        return len(self.conditions) + len(self.rules) + number

    def touched(self, mask: int) -> Iterator[tuple[int, int]]:
        """Numbers of the rules of steps that an event with these true conditions can concern, each
        with its :meth:`own_bits`."""
        always, by_bit = self._candidates
        candidates = set(always)
        left = mask
        while left:
            candidates.update(by_bit.get(left & -left, ()))
            left &= left - 1
        for number in sorted(candidates):
            own = self.own_bits(number, mask)
            if own is not None:
                yield number, own

    def own_bits(self, number: int, mask: int) -> int | None:
        """The mask of a rule's own event atoms, and the ``closed`` bit where no match of it may
        start; ``None`` where an event with these true conditions cannot concern the rule."""
        rule = self.rules[number]
        if not mask >> rule.input_bit & 1 or mask >> self.unseen(number) & 1:
            return None
        own = sum(1 << i for i, bit in enumerate(rule.bits) if mask >> bit & 1)
        if not rule.plan.strict and not rule.plan.relevant.evaluate(own):
            return None
        closed = rule.drains and not mask >> self.early(number) & 1
        return own | rule.plan.closed if closed else own

    @cached_property
    def _candidates(self) -> tuple[list[int], dict[int, list[int]]]:
        """Numbers of the rules that an event can concern that meets none of their conditions, and
        of all others by the mask of each of their bits."""
        always: list[int] = []
        by_bit: dict[int, list[int]] = {}
        for number, rule in enumerate(self.rules[: len(self.step_plans)]):
            if rule.plan.strict or rule.plan.relevant.evaluate(0):
                always.append(number)
                continue
            for bit in set(rule.bits):
                by_bit.setdefault(1 << bit, []).append(number)
        return always, by_bit

    def reads(self, name: str) -> bool:
        """Return whether some rule of the partitioning reads input ``name``."""
        return self.needs_key(name) or self.takes_null(name)

    def needs_key(self, name: str) -> bool:
        """Return whether a rule of steps reads input ``name``: without a key, or with a part of it
        that is NULL, an event of it is a dead letter."""
        return _read(self.step_plans, name)

    def takes_null(self, name: str) -> bool:
        """Return whether a rule in SQL reads input ``name``: NULL is a key as any other there."""
        return _read((plan for _, _, plan in self.row_pattern_rules), name)


def _read(plans: Iterable[AnyPlan], name: str) -> bool:
    return any(not plan.rule.events or name in plan.rule.events for plan in plans)


class DrainTime(NamedTuple):
    """The time that a replaced version may go on, in milliseconds of event time. ``until_ms`` is
    where the newer one begins; when that is still to come, the old version has all events before
    it. ``limit_ms`` is the time of the last event with which it may begin a match; ``None``: it
    ends where the newer one begins."""

    limit_ms: int | None
    until_ms: int | None = None

    def __str__(self) -> str:
        limit = "nothing" if self.limit_ms is None else str(self.limit_ms)
        return limit if self.until_ms is None else f"{limit} until {self.until_ms}"


@dataclass(frozen=True)
class RuleSetPlan:
    """All enabled rules, compiled and grouped into partitionings. ``draining``: how long versions
    that drain may go on, by fingerprint. ``carried``: the versions whose partial matches a rule
    takes over, the newest first, by the rule's fingerprint."""

    partitionings: tuple[Partitioning, ...]
    draining: Mapping[str, DrainTime] = field(default_factory=dict)
    carried: Mapping[str, Sequence[AnyPlan]] = field(default_factory=dict)

    @cached_property
    def plans(self) -> tuple[AnyPlan, ...]:
        """Every rule's plan."""
        return tuple(rule.plan for part in self.partitionings for rule in part.rules)


def compile_rules(rules: Iterable[Rule], types: RecordTypes = _NOTHING_KNOWN) -> RuleSetPlan:
    """Compile the enabled ``rules`` (validated before) into one plan."""
    return plan_together(compile_rule(rule, types) for rule in rules if rule.enabled)


def compile_rule(rule: Rule, types: RecordTypes = _NOTHING_KNOWN) -> AnyPlan:
    """The plan of one rule. In SQL, what names and ``*`` stand for depends on the types of events;
    RuleSetError where that is nothing."""
    if rule.query is None:
        return lower(rule)
    event = types.of(rule.events, None)
    query = rule.query
    if event != query.event:
        query = load_query(query.text, query.source, event)
    return plan_rule(rule, query)


def plan_together(
    plans: Iterable[AnyPlan],
    draining: Iterable[tuple[AnyPlan, DrainTime]] = (),
    carried: Iterable[AnyPlan] = (),
) -> RuleSetPlan:
    """One plan of several rules' own. ``draining``: plans of versions that drain, and for how long;
    ``carried``: of those that carry over, of one rule the newest first."""
    plans, draining = list(plans), list(draining)
    earlier: dict[str, list[AnyPlan]] = {}
    for plan in carried:
        earlier.setdefault(plan.rule.id, []).append(plan)
    times = {plan.fingerprint: time for plan, time in draining}
    by_key: dict[tuple[str, ...], list[AnyPlan]] = {}
    for plan in chain(plans, (plan for plan, _ in draining)):
        by_key.setdefault(tuple(e.canonical for e in plan.rule.key), []).append(plan)
    return RuleSetPlan(
        tuple(_partitioning(group, times) for group in by_key.values()),
        times,
        {plan.fingerprint: earlier[plan.rule.id] for plan in plans if plan.rule.id in earlier},
    )


def _partitioning(plans: Sequence[AnyPlan], draining: Container[str]) -> Partitioning:
    plans = sorted(plans, key=lambda plan: isinstance(plan, RowPatternPlan))
    conditions: dict[Condition, int] = {}
    slots: dict[Slot, None] = {}
    planned = []
    for plan in plans:
        rule = plan.rule
        input_bit = conditions.setdefault(Condition(rule.events, None, None), len(conditions))
        bits = tuple(
            conditions.setdefault(
                Condition(rule.events, atom.of_type, atom.expression), len(conditions)
            )
            for atom in plan.event_atoms
        )
        planned.append(PlannedRule(plan, input_bit, bits, plan.fingerprint in draining))
        slots.update(dict.fromkeys(slots_of(plan)))
    return Partitioning(
        key=plans[0].rule.key,
        rules=tuple(planned),
        conditions=tuple(conditions),
        slots=tuple(slots),
        keeps_payload=any(plan.rule.emit.events == "all" for plan in plans),
    )


def column_path(name: str) -> ColumnPath:
    """The path of a column as ``emit.events`` names it, ``a.b.c``."""
    (path,) = parse(name).columns
    return path


def slots_of(plan: AnyPlan) -> list[Slot]:
    """The columns that the machine and the measures of ``plan`` read."""
    rule = plan.rule
    if isinstance(plan, RowPatternPlan):
        return [Slot(rule.events, None, path) for path in plan.columns]
    slots: list[Slot] = []

    def add(paths: Iterable[ColumnPath], of_type: str | None) -> None:
        slots.extend(Slot(rule.events, of_type, path) for path in sorted(paths))

    def add_look_backs(look_backs: Iterable[LookBack]) -> None:
        for look_back in look_backs:
            if look_back.argument is not None:
                step = look_back.step
                of_type = None if step == ALL_STEPS else plan.type_of(step)
                add(look_back.argument.columns, of_type)

    for atom in plan.atoms:
        if isinstance(atom, LookBackAtom):
            add(atom.expression.columns, atom.of_type)
            add_look_backs(atom.expression.look_backs)
    for measure in rule.emit.measures.values():
        add_look_backs(measure.look_backs)
    if isinstance(rule.emit.events, tuple):
        add((column_path(name) for name in rule.emit.events), None)
    return slots
