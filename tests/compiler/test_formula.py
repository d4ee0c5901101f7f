"""Formulas: what is known early is never contradicted later."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.compiler.formula import (
    FALSE,
    TRUE,
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

ATOMS = 4
MASKS = st.integers(0, (1 << ATOMS) - 1)

formulas = st.recursive(
    st.sampled_from([TRUE, FALSE]) | st.builds(Atom, st.integers(0, ATOMS - 1)),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(All, st.lists(inner, max_size=3).map(tuple))
        | st.builds(AnyOf, st.lists(inner, max_size=3).map(tuple))
        | st.builds(negate, inner)
        | st.builds(conjunction, st.lists(inner, max_size=3))
        | st.builds(disjunction, st.lists(inner, max_size=3))
    ),
    max_leaves=8,
)

property_of = settings(max_examples=300, derandomize=True, database=None)


@property_of
@given(formulas, MASKS, MASKS, MASKS)
def test_partial_is_never_contradicted(formula: Formula, true: int, known: int, later: int) -> None:
    """What the known atoms decide holds whatever the unknown ones turn out to be."""
    decided = formula.partial(true & known, known)
    if decided is not None:
        assert formula.evaluate((true & known) | (later & ~known)) is decided


@property_of
@given(formulas, MASKS)
def test_everything_known_decides(formula: Formula, true: int) -> None:
    """With all atoms known there is no open question."""
    assert formula.partial(true, -1) is formula.evaluate(true)
    assert formula.partial(true, (1 << ATOMS) - 1) is formula.evaluate(true)


@property_of
@given(formulas, MASKS)
def test_atoms_are_all_that_matters(formula: Formula, true: int) -> None:
    """Bits of atoms that do not occur change nothing."""
    assert formula.evaluate(true) == formula.evaluate(true & formula.atoms())


@property_of
@given(formulas, MASKS, MASKS)
def test_unguarded_only_weakens(formula: Formula, undecided: int, true: int) -> None:
    """What is left without the undecided atoms is true wherever the formula is, and does not
    read them."""
    weaker = unguarded(formula, undecided)
    assert not weaker.atoms() & undecided
    if formula.evaluate(true):
        assert weaker.evaluate(true & ~undecided)


@property_of
@given(st.lists(formulas, max_size=4), MASKS)
def test_joins_mean_what_they_join(operands: list[Formula], true: int) -> None:
    """Simplifying changes no value."""
    values = [operand.evaluate(true) for operand in operands]
    assert conjunction(operands).evaluate(true) is all(values)
    assert disjunction(operands).evaluate(true) is any(values)
    assert all(negate(o).evaluate(true) is not v for o, v in zip(operands, values, strict=True))


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (conjunction([]), "true"),
        (disjunction([]), "false"),
        (negate(TRUE), "false"),
        (negate(FALSE), "true"),
        (negate(negate(Atom(1))), "c1"),
        (conjunction([TRUE, Atom(0), Atom(0)]), "c0"),
        (conjunction([Atom(0), FALSE]), "false"),
        (disjunction([Atom(0), TRUE]), "true"),
        (conjunction([Atom(0), conjunction([Atom(1), Atom(2)])]), "(c0 and c1 and c2)"),
        (disjunction([Atom(0), negate(disjunction([Atom(1), Atom(2)]))]), "(c0 or not (c1 or c2))"),
    ],
)
def test_simplified_text(formula: Formula, text: str) -> None:
    """Formulas are flat, without repetitions, and print themselves."""
    assert str(formula) == text
