"""Splits conditions into numbered atoms: what the event alone decides, and what looks back.

A condition is cut at its top-level ANDs and ORs. The parts that read the event alone are evaluated
once per event (by Spark's generated code, for all rules in one pass); the parts that look back are
left to the machine, which asks for them only where the event's own bits leave a question open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spark_cep.compiler.formula import (
    All,
    AnyOf,
    Atom,
    Formula,
    Not,
    conjunction,
    disjunction,
    negate,
    unguarded,
)
from spark_cep.compiler.plan import AnyAtom, EventAtom, GapAtom, LookBackAtom
from spark_cep.pattern import expressions
from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.tree import Rule, Step, walk


class AtomTable:
    """Numbers the atoms of one rule; equal atoms share a number. ``atoms`` are numbered first, in
    their order: with those of a finished plan, formulas use the plan's numbers."""

    def __init__(self, rule: Rule, atoms: Iterable[AnyAtom] = ()) -> None:
        self._rule = rule
        self._numbers: dict[AnyAtom, int] = {}
        self._meaning: dict[tuple[Expression | None, str | None, type[AnyAtom]], AnyAtom] = {}
        for atom in atoms:
            self.add(atom)

    def add(self, atom: AnyAtom) -> Formula:
        """The formula that is this atom."""
        if not isinstance(atom, GapAtom):
            key = (atom.expression, atom.of_type, type(atom))
            atom = self._meaning.setdefault(key, atom)
        return Atom(self._numbers.setdefault(atom, len(self._numbers)))

    def where(self, step: Step) -> Formula:
        """Return the condition under which ``step`` accepts an event; TRUE when it has none."""
        parts = []
        if step.of_type is not None:
            parts.append(self.add(EventAtom(None, step.of_type, step.name)))
        if step.where is not None:
            parts.append(self._split(step.where, step))
        return conjunction(parts)

    def until(self, step: Step) -> Formula:
        """Return the condition that ends the loop over ``step`` or over the group."""
        assert step.until is not None
        return self._split(step.until, step)

    def relevance(self) -> Formula:
        """True of every event on which some condition of the rule could be true."""
        steps = tuple(walk(self._rule.pattern))
        conditions = [self.where(step) for step in steps if step.group is None]
        conditions += [self.until(step) for step in steps if step.until is not None]
        undecided = sum(
            1 << number for atom, number in self._numbers.items() if not isinstance(atom, EventAtom)
        )
        return disjunction(unguarded(condition, undecided) for condition in conditions)

    def ordered(self) -> tuple[tuple[AnyAtom, ...], Callable[[Formula], Formula]]:
        """The atoms with those of the event first, and what renumbers formulas accordingly."""
        rank = {EventAtom: 0, LookBackAtom: 1, GapAtom: 2}
        atoms = sorted(self._numbers, key=lambda atom: (rank[type(atom)], self._numbers[atom]))
        new = {self._numbers[atom]: number for number, atom in enumerate(atoms)}

        def renumber(formula: Formula) -> Formula:
            match formula:
                case Atom(index):
                    return Atom(new[index])
                case Not(operand):
                    return negate(renumber(operand))
                case All(operands):
                    return conjunction(map(renumber, operands))
                case AnyOf(operands):
                    return disjunction(map(renumber, operands))
            return formula

        return tuple(atoms), renumber

    def _split(self, expression: Expression, step: Step) -> Formula:
        def build(part: expressions.And | expressions.Or | expressions.Leaf) -> Formula:
            if isinstance(part, expressions.Leaf):
                kind = EventAtom if part.expression.is_event_only else LookBackAtom
                return self.add(kind(part.expression, step.of_type, step.name))
            operands = [build(operand) for operand in part.parts]
            return (conjunction if isinstance(part, expressions.And) else disjunction)(operands)

        return build(expressions.boolean_structure(expression))
