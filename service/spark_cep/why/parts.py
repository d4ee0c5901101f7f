"""A rule's plan with the parts of its conditions as conditions of their own.

The decoder answers them in the pass in which it answers the rule's, and the columns that they read
travel with the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from spark_cep.compiler.plan import EventAtom, LookBackAtom, Plan
from spark_cep.compiler.row_pattern.plan import columns_of
from spark_cep.compiler.rule_set import (
    AnyPlan,
    Condition,
    Partitioning,
    RuleSetPlan,
    Slot,
    plan_together,
)
from spark_cep.model import Event
from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.expressions.canonical import expression as expression_of
from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.expressions.nodes import Call

#: A condition that a step asks for: of a record type, and the expression.
Asked = tuple[str | None, Expression]


@dataclass(frozen=True)
class ConditionPart:
    """A condition, as the parts that AND or OR (``operator``) join; without parts it is computed in
    one piece."""

    expression: Expression
    operator: str = ""
    parts: tuple[ConditionPart, ...] = ()

    @classmethod
    def of(cls, expression: Expression) -> ConditionPart:
        """The parts of a condition."""
        node = expression.node
        if isinstance(node, Call) and node.operator in ("AND", "OR"):
            inner = tuple(cls.of(expression_of(each)) for each in node.arguments)
            return cls(expression, node.operator, inner)
        return cls(expression)

    @property
    def leaves(self) -> Iterator[Expression]:
        """The parts that are computed in one piece."""
        if not self.parts:
            yield self.expression
        for part in self.parts:
            yield from part.leaves


@dataclass(frozen=True)
class WatchedPlan:
    """A rule's plan, and the ``partitioning`` that has it alone, with more conditions and columns
    than the rule needs."""

    plan: AnyPlan
    partitioning: Partitioning

    @classmethod
    def of(cls, plan: AnyPlan, *, drains: bool = False) -> WatchedPlan:
        """The plan with the parts of its conditions. ``drains``: it is of a version that drains."""
        (partitioning,) = plan_together([plan]).partitionings
        (rule,) = partitioning.rules
        events = plan.rule.events
        asked = list(_asked(plan))
        leaves = [
            (of_type, leaf) for of_type, whole in asked for leaf in ConditionPart.of(whole).leaves
        ]
        conditions = (Condition(events, t, leaf) for t, leaf in leaves if leaf.is_event_only)
        slots = (
            Slot(events, of_type, path)
            for of_type, leaf in asked
            for path in sorted(set(columns_of(leaf)))
        )
        widened = replace(
            partitioning,
            rules=(replace(rule, drains=drains),),
            conditions=tuple(dict.fromkeys((*partitioning.conditions, *conditions))),
            slots=tuple(dict.fromkeys((*partitioning.slots, *slots))),
        )
        return cls(plan, widened)

    @property
    def together(self) -> RuleSetPlan:
        """The plan that a runner runs."""
        return RuleSetPlan((self.partitioning,))

    @cached_property
    def bits(self) -> Mapping[Condition, int]:
        """The bit of each condition."""
        return {each: 1 << number for number, each in enumerate(self.partitioning.conditions)}

    def bit(self, of_type: str | None, leaf: Expression | None) -> int:
        """The bit of a part on the event alone, or of a record type."""
        return self.bits[Condition(self.plan.rule.events, of_type, leaf)]

    @cached_property
    def _columns(self) -> Mapping[tuple[str, ...], tuple[int, ...]]:
        places: dict[tuple[str, ...], list[int]] = {}
        for number, slot in enumerate(self.partitioning.slots):
            places.setdefault(slot.path, []).append(number)
        return {path: tuple(numbers) for path, numbers in places.items()}

    def values(
        self, event: Event, paths: Iterable[tuple[str, ...]] | None = None
    ) -> dict[str, Any]:
        """The values of an event's columns, by name: of these ``paths``, or of all there are."""
        wanted = self._columns if paths is None else paths
        return {name(path): self._value(event, path) for path in wanted}

    def _value(self, event: Event, path: tuple[str, ...]) -> Any:
        # A column of several record types is in the place of the event's own.
        values = (event.columns[place] for place in self._columns.get(path, ()))
        return next((value for value in values if value is not None), None)


def _asked(plan: AnyPlan) -> Iterator[Asked]:
    """The conditions of a plan's steps or variables."""
    if isinstance(plan, Plan):
        for atom in plan.atoms:
            if isinstance(atom, EventAtom | LookBackAtom) and atom.expression is not None:
                yield atom.of_type, atom.expression
        return
    for condition in plan.query.defines.values():
        yield None, condition
    if plan.query.where is not None:
        yield None, plan.query.where
