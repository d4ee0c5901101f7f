"""The coverage of a rule by its cases: steps, edges, and conditions both true and false.

It is read off what the engine itself remembers before and after each event, and of the conditions
that the decoder has found true of it. Nothing is evaluated again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from spark_cep.cases.coverage.row_edges import edge_text, row_edges
from spark_cep.compiler.explain.wording import condition_text, in_words
from spark_cep.compiler.formula import TRUE
from spark_cep.compiler.plan import Edge, Plan
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.rule_set import AnyPlan, PlannedRule
from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.tree import Rule, walk

STEP: Final = "step"
EDGE: Final = "edge"
CONDITION: Final = "condition"


@dataclass(frozen=True, order=True)
class Item:
    """A part of a rule that cases may take: the step, condition or, in SQL, edge ``number``, or an
    edge of the state ``number``. ``part``: of a condition, the answer; of an edge of a state, its
    place."""

    kind: str
    number: int
    part: int = 0


@dataclass
class RuleCoverage:
    """The parts of one rule, in words, and how often cases have taken each."""

    rule: Rule
    parts: Mapping[Item, str]
    taken: Counter[Item] = field(default_factory=Counter)

    @property
    def missing(self) -> list[Item]:
        """The parts that no case takes."""
        return [item for item in self.parts if not self.taken[item]]

    @property
    def share(self) -> float:
        """The share of parts that some case takes, of 1."""
        return 1 - len(self.missing) / len(self.parts) if self.parts else 1.0

    def count(self, kind: str) -> tuple[int, int]:
        """Return how many parts of a kind some case takes, and how many there are."""
        mine = [item for item in self.parts if item.kind == kind]
        return sum(bool(self.taken[item]) for item in mine), len(mine)


class Coverage:
    """The coverage of rules by the cases that were run with :meth:`matcher`."""

    def __init__(self) -> None:
        self.rules: dict[tuple[str, int], RuleCoverage] = {}

    def of(self, plan: AnyPlan) -> RuleCoverage:
        """The coverage of a rule."""
        name = plan.rule.id, plan.rule.version
        if name not in self.rules:
            parts = _parts_of_rows(plan) if isinstance(plan, RowPatternPlan) else _parts(plan)
            self.rules[name] = RuleCoverage(plan.rule, dict(parts))
        return self.rules[name]

    @property
    def share(self) -> float:
        """The share of all rules' parts that some case takes, of 1."""
        every = sum(len(each.parts) for each in self.rules.values())
        missing = sum(len(each.missing) for each in self.rules.values())
        return 1 - missing / every if every else 1.0

    def lines(self) -> Iterator[str]:
        """The coverage as text for people."""
        for each in sorted(self.rules.values(), key=lambda one: one.rule.id):
            counts = []
            for kind in (STEP, EDGE, CONDITION):
                taken, every = each.count(kind)
                if every:
                    counts.append(f"{kind}s {taken} of {every}")
            yield f"{each.rule.id}: {each.share:.0%} ({', '.join(counts)})"
            for item in each.missing:
                yield f"  no case: {each.parts[item]}"


def _parts(plan: Plan) -> Iterator[tuple[Item, str]]:
    """The parts of a rule of steps."""
    negative = {step.name for step in walk(plan.rule.pattern) if step.negative}
    for number, step in enumerate(plan.steps):
        if step not in negative:
            yield Item(STEP, number), f"step {step}"
    for state in plan.states:
        for number, edge in enumerate(state.edges):
            yield Item(EDGE, state.number, number), _edge_text(plan, state.number, edge)
    for number, atom in enumerate(plan.atoms):
        yield from _both(number, f"{condition_text(atom)} (step {atom.step})")


def _both(number: int, text: str) -> Iterator[tuple[Item, str]]:
    yield Item(CONDITION, number, 1), f"{text} is true"
    yield Item(CONDITION, number, 0), f"{text} is false"


def _parts_of_rows(plan: RowPatternPlan) -> Iterator[tuple[Item, str]]:
    """The parts of a rule in SQL."""
    for number, variable in enumerate(plan.steps):
        yield Item(STEP, number), f"variable {variable}"
    for number, edge in enumerate(row_edges(plan)):
        yield Item(EDGE, number), edge_text(edge)
    for number, (name, expression) in enumerate(row_conditions(plan)):
        yield from _both(number, f"{expression.canonical} ({name})")


def row_conditions(plan: RowPatternPlan) -> list[tuple[str, Expression]]:
    """The conditions of a rule in SQL that coverage is about: WHERE, parts that read the row alone,
    and the whole of a DEFINE that also reads others."""
    found = [
        (atom.step, atom.expression) for atom in plan.event_atoms if atom.expression is not None
    ]
    known = {expression for _, expression in found}
    for variable, expression in plan.query.defines.items():
        if expression not in known and not expression.is_event_only:
            found.append((variable, expression))
    return found


def _edge_text(plan: Plan, number: int, edge: Edge) -> str:
    state, target = plan.states[number], plan.states[edge.target]
    where = "stays" if target is state else f"to {target.number} {target.label}"
    words = in_words(edge.condition, lambda atom: condition_text(plan.atoms[atom]))
    condition = "" if edge.condition == TRUE else f", if {words}"
    return f"edge of state {number} {state.label}: {edge.action.value}, {where}{condition}"


def answers(rule: PlannedRule, mask: int) -> Iterator[Item]:
    """The answers that the conditions on an event alone give, by its ``mask``; none where the rule
    does not read the event's input."""
    if mask >> rule.input_bit & 1:
        for number, bit in enumerate(rule.bits):
            yield Item(CONDITION, number, mask >> bit & 1)
