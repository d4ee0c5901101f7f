"""Relevance of events to a partitioning's rules, by the conditions that are true of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_cep.compiler.formula import AnyOf, Atom, Formula
from spark_cep.compiler.rule_set import PlannedRule
from spark_cep.pipeline.wire.event_packets import place_of
from spark_cep.pipeline.wire.masks import condition_sets, distinct_masks
from spark_cep.programs.loops.event_mask_loops import relevant_events


@dataclass(frozen=True)
class Relevance:
    """The sets of true conditions that concern a rule of a partitioning. As words: ``strict`` bits
    of inputs; for each test an input's bit (word and mask) in ``inputs``, and in ``bits`` those of
    which one is enough. ``others``: the formulas of all other rules, with their bits."""

    strict: NDArray[np.int64]
    inputs: NDArray[np.int64]
    bits: NDArray[np.int64]
    others: tuple[tuple[int, Formula, tuple[int, ...]], ...]

    def of(self, words: NDArray[np.int64], first: int) -> NDArray[np.bool_]:
        """Return for each event, whose words of the partitioning begin at ``first``, whether it
        must go to the matcher, and whether some condition of a rule is true. Shape: events, 2."""
        out = np.zeros((len(words), 2), np.bool_)
        relevant_events(words, first, self.strict, self.inputs, self.bits, out)
        if self.others:
            rows = np.flatnonzero(~out[:, 1])
            sets = condition_sets(words[rows, first : first + len(self.strict)])
            masks, places = distinct_masks(sets)
            out[rows[np.array([*map(self._wanted, masks)], bool)[places]]] = True
        return out

    def _wanted(self, mask: int) -> bool:
        return any(
            mask >> input_bit & 1
            and formula.evaluate(sum(1 << i for i, bit in enumerate(bits) if mask >> bit & 1))
            for input_bit, formula, bits in self.others
        )


def relevance(rules: Sequence[PlannedRule], words: int) -> Relevance:
    """Return the relevance of events to rules of a partitioning with so many words. Rules that need
    every event with any of their conditions are tested together."""
    wanted: dict[int, set[int]] = {}
    others: list[PlannedRule] = []
    for rule in rules:
        if (atoms := _any_of(rule.plan.relevant)) is None:
            others.append(rule)
        else:
            wanted.setdefault(rule.input_bit, set()).update(rule.bits[atom] for atom in atoms)
    inputs = [place_of(bit) for bit in wanted]
    bits = [_words(each, words) for each in wanted.values()]
    return Relevance(
        _words((rule.input_bit for rule in rules if rule.plan.strict), words),
        np.array(inputs, np.int64).reshape(-1, 2),
        np.array(bits, np.int64).reshape(-1, words),
        tuple(dict.fromkeys((r.input_bit, r.plan.relevant, r.bits) for r in others)),
    )


def _words(bits: Iterable[int], words: int) -> NDArray[np.int64]:
    found = np.zeros(words, np.int64)
    for word, mask in map(place_of, bits):
        found[word] |= mask
    return found


def _any_of(formula: Formula) -> list[int] | None:
    """The atoms of which one must be true, where that is all that a formula says."""
    match formula:
        case Atom(index):
            return [index]
        case AnyOf(operands) if all(isinstance(operand, Atom) for operand in operands):
            return [operand.index for operand in operands if isinstance(operand, Atom)]
    return None
