"""Relevance of events by their true conditions, next to each rule's formula."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spark_cep.compiler.formula import All, AnyOf, Atom, Formula
from spark_cep.pipeline.decode.relevance import relevance
from spark_cep.pipeline.wire.event_packets import WORD_BITS

FORMULAS = [Atom(0), AnyOf((Atom(0), Atom(1))), All((Atom(0), AnyOf((Atom(1), Atom(2)))))]


def rule(random: Random, formulas: list[Formula], inputs: list[int], bits: int) -> Any:
    """As much of a planned rule as relevance is about."""
    return SimpleNamespace(
        plan=SimpleNamespace(strict=random.random() < 0.2, relevant=random.choice(formulas)),
        input_bit=random.choice(inputs),
        bits=tuple(random.sample(range(bits), 3)),
    )


def asked(rules: list[Any], true: set[int]) -> tuple[bool, bool]:
    """The answers by each rule's own formula."""
    read = [each for each in rules if each.input_bit in true]
    holds = [
        each.plan.relevant.evaluate(sum(1 << i for i, bit in enumerate(each.bits) if bit in true))
        for each in read
    ]
    return any(holds) or any(each.plan.strict for each in read), any(holds)


@pytest.mark.parametrize("formulas", [FORMULAS[:2], FORMULAS])
@pytest.mark.parametrize("words", [1, 2, 5])
def test_every_rule_is_asked(formulas: list[Formula], words: int) -> None:
    """Also where the words of other partitionings stand around its own."""
    random = Random(words)
    bits = words * WORD_BITS - 7
    inputs = [0, bits - 1]
    for count in range(12):
        rules = [rule(random, formulas, inputs, bits) for _ in range(count)]
        sets = [set(random.sample(range(bits), random.choice([0, 1, 5, 30]))) for _ in range(60)]
        sets += [{*few, *inputs} for few in sets]
        table = np.full((len(sets), words + 2), -1, np.int64)
        table[:, 1:-1] = 0
        for row, true in enumerate(sets):
            for bit in true:
                table[row, 1 + bit // WORD_BITS] |= 1 << bit % WORD_BITS
        found = relevance(rules, words).of(table, 1)
        assert [(a, b) for a, b in found.tolist()] == [asked(rules, true) for true in sets]


def test_no_rule_and_no_event() -> None:
    """No rule wants anything."""
    assert relevance([], 1).of(np.ones((2, 1), np.int64), 0).tolist() == [[False, False]] * 2
    assert relevance([], 1).of(np.ones((0, 1), np.int64), 0).tolist() == []
