"""Boolean formulas over numbered atoms, evaluated on a bit mask.

Every condition on an edge is such a formula. Atoms are positive facts ("condition *i* is true",
NULL counts as not true), so a formula is two-valued and may be negated freely.
:meth:`Formula.evaluate` takes the bits that are true; :meth:`Formula.partial` also takes the bits
that are known and answers ``None`` where the unknown ones decide (Kleene's strong logic).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce


class Formula(ABC):
    """A boolean formula; immutable, hashable, prints itself."""

    __slots__ = ()

    @abstractmethod
    def partial(self, true: int, known: int) -> bool | None:
        """The value as far as the ``known`` bits decide it."""

    def evaluate(self, true: int) -> bool:
        """The value when every bit outside ``true`` is false."""
        return bool(self.partial(true, -1))

    @abstractmethod
    def atoms(self) -> int:
        """Mask of the atoms that occur."""


@dataclass(frozen=True, slots=True)
class Constant(Formula):
    """TRUE or FALSE."""

    value: bool

    def partial(self, true: int, known: int) -> bool | None:  # noqa: ARG002
        """See :class:`Formula`."""
        return self.value

    def atoms(self) -> int:
        """See :class:`Formula`."""
        return 0

    def __str__(self) -> str:
        return "true" if self.value else "false"


TRUE = Constant(True)
FALSE = Constant(False)


@dataclass(frozen=True, slots=True)
class Atom(Formula):
    """Atom number ``index``."""

    index: int

    def partial(self, true: int, known: int) -> bool | None:
        """See :class:`Formula`."""
        bit = 1 << self.index
        if not known & bit:
            return None
        return bool(true & bit)

    def atoms(self) -> int:
        """See :class:`Formula`."""
        return 1 << self.index

    def __str__(self) -> str:
        return f"c{self.index}"


@dataclass(frozen=True, slots=True)
class Not(Formula):
    """Negation."""

    operand: Formula

    def partial(self, true: int, known: int) -> bool | None:
        """See :class:`Formula`."""
        value = self.operand.partial(true, known)
        return None if value is None else not value

    def atoms(self) -> int:
        """See :class:`Formula`."""
        return self.operand.atoms()

    def __str__(self) -> str:
        return f"not {self.operand}"


@dataclass(frozen=True, slots=True)
class All(Formula):
    """Conjunction."""

    operands: tuple[Formula, ...]

    def partial(self, true: int, known: int) -> bool | None:
        """See :class:`Formula`."""
        values = [operand.partial(true, known) for operand in self.operands]
        if False in values:
            return False
        return None if None in values else True

    def atoms(self) -> int:
        """See :class:`Formula`."""
        return reduce(int.__or__, (operand.atoms() for operand in self.operands), 0)

    def __str__(self) -> str:
        return "(" + " and ".join(map(str, self.operands)) + ")"


@dataclass(frozen=True, slots=True)
class AnyOf(Formula):
    """Disjunction."""

    operands: tuple[Formula, ...]

    def partial(self, true: int, known: int) -> bool | None:
        """See :class:`Formula`."""
        values = [operand.partial(true, known) for operand in self.operands]
        if True in values:
            return True
        return None if None in values else False

    def atoms(self) -> int:
        """See :class:`Formula`."""
        return reduce(int.__or__, (operand.atoms() for operand in self.operands), 0)

    def __str__(self) -> str:
        return "(" + " or ".join(map(str, self.operands)) + ")"


def negate(formula: Formula) -> Formula:
    """``not formula``, simplified."""
    match formula:
        case Constant(value):
            return FALSE if value else TRUE
        case Not(operand):
            return operand
    return Not(formula)


def conjunction(operands: Iterable[Formula]) -> Formula:
    """AND of all, flattened and without repetitions."""
    return _join(operands, neutral=TRUE, kind=All)


def disjunction(operands: Iterable[Formula]) -> Formula:
    """OR of all, flattened and without repetitions."""
    return _join(operands, neutral=FALSE, kind=AnyOf)


def _join(operands: Iterable[Formula], *, neutral: Constant, kind: type[All | AnyOf]) -> Formula:
    absorbing = negate(neutral)
    parts: dict[Formula, None] = {}
    for operand in operands:
        if operand == absorbing:
            return absorbing
        if operand == neutral:
            continue
        nested = operand.operands if isinstance(operand, kind) else (operand,)
        parts.update(dict.fromkeys(nested))
    if not parts:
        return neutral
    if len(parts) == 1:
        return next(iter(parts))
    return kind(tuple(parts))


def unguarded(formula: Formula, decided_later: int) -> Formula:
    """Return what ``formula`` says before the atoms of mask ``decided_later`` are known: a formula
    over the others that is true whenever ``formula`` could still become true.

    Sound because it only weakens: in positive position an undecided atom becomes TRUE, under a
    negation FALSE.
    """
    return _weaken(formula, decided_later, positive=True)


def _weaken(formula: Formula, undecided: int, *, positive: bool) -> Formula:
    match formula:
        case Atom(index) if undecided >> index & 1:
            return TRUE if positive else FALSE
        case Not(operand):
            return negate(_weaken(operand, undecided, positive=not positive))
        case All(operands):
            return conjunction(_weaken(each, undecided, positive=positive) for each in operands)
        case AnyOf(operands):
            return disjunction(_weaken(each, undecided, positive=positive) for each in operands)
    return formula
