"""Relevance of events to a partitioning's rules, by the conditions that are true of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spark_cep.compiler.formula import AnyOf, Atom, Formula
from spark_cep.compiler.rule_set import PlannedRule


@dataclass(frozen=True)
class Relevance:
    """The sets of true conditions that concern a rule of a partitioning: ``tests`` of the inputs'
    bit and of bits of which one is enough, as whole masks, and the formulas of all other rules."""

    strict: int
    tests: tuple[tuple[int, int], ...]
    others: tuple[tuple[int, Formula, tuple[int, ...]], ...]

    def of(self, mask: int) -> tuple[bool, bool]:
        """Return whether such an event must go to the matcher, and whether some condition of a rule
        is true."""
        relevant = any(mask & inputs and mask & bits for inputs, bits in self.tests) or any(
            mask >> input_bit & 1
            and formula.evaluate(sum(1 << i for i, bit in enumerate(bits) if mask >> bit & 1))
            for input_bit, formula, bits in self.others
        )
        return relevant or bool(mask & self.strict), relevant


def relevance(rules: Sequence[PlannedRule]) -> Relevance:
    """Return the relevance of events to rules of a partitioning. Rules that need every event with
    any of their conditions are tested together."""
    wanted: dict[int, set[int]] = {}
    others: list[PlannedRule] = []
    for rule in rules:
        if (atoms := _any_of(rule.plan.relevant)) is None:
            others.append(rule)
        else:
            wanted.setdefault(rule.input_bit, set()).update(rule.bits[atom] for atom in atoms)
    return Relevance(
        _mask(rule.input_bit for rule in rules if rule.plan.strict),
        tuple((1 << inputs, _mask(bits)) for inputs, bits in wanted.items()),
        tuple(dict.fromkeys((r.input_bit, r.plan.relevant, r.bits) for r in others)),
    )


def _mask(bits: Iterable[int]) -> int:
    return sum(1 << bit for bit in set(bits))


def _any_of(formula: Formula) -> list[int] | None:
    """The atoms of which one must be true, where that is all that a formula says."""
    match formula:
        case Atom(index):
            return [index]
        case AnyOf(operands) if all(isinstance(operand, Atom) for operand in operands):
            return [operand.index for operand in operands if isinstance(operand, Atom)]
    return None
