"""The tree of a row pattern, ``PATTERN ( … )``. Its text is the pattern again.

``span``, the place in the statement, takes no part in equality.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PatternVariable:
    """A row for which the variable's condition holds."""

    name: str
    span: Span = field(default=(0, 0), compare=False)

    def __str__(self) -> str:
        plain = self.name.isidentifier() and self.name == self.name.upper()
        return self.name if plain else f'"{self.name}"'


@dataclass(frozen=True, slots=True)
class Empty:
    """No row."""

    span: Span = field(default=(0, 0), compare=False)

    def __str__(self) -> str:
        return "()"


@dataclass(frozen=True, slots=True)
class Anchor:
    """The partition's beginning or end."""

    sign: Literal["^", "$"]
    span: Span = field(default=(0, 0), compare=False)

    def __str__(self) -> str:
        return self.sign


@dataclass(frozen=True, slots=True)
class Concatenation:
    """The parts one after the other."""

    parts: tuple[RowPattern, ...]
    span: Span = field(default=(0, 0), compare=False)

    def __str__(self) -> str:
        return " ".join(f"({p})" if isinstance(p, Alternation) else str(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of the parts, the first preferred."""

    parts: tuple[RowPattern, ...]
    span: Span = field(default=(0, 0), compare=False)

    def __str__(self) -> str:
        return " | ".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Quantified:
    """The part from ``least`` to ``most`` times (``None``: any number): as often as possible, or,
    ``reluctant``, as seldom."""

    part: RowPattern
    least: int
    most: int | None
    reluctant: bool = False
    span: Span = field(default=(0, 0), compare=False)

    def __str__(self) -> str:
        bare = isinstance(self.part, (PatternVariable, Empty, Anchor, Exclusion, Permutation))
        signs = {(0, None): "*", (1, None): "+", (0, 1): "?", (self.least, self.least): None}
        sign = signs.get((self.least, self.most), f"{{{self.least},{self.most or ''}}}")
        sign = f"{{{self.least}}}" if sign is None else sign
        return f"{self.part if bare else f'({self.part})'}{sign}{'?' * self.reluctant}"


@dataclass(frozen=True, slots=True)
class Permutation:
    """The parts in any order, the one written preferred, then the next in the order of places."""

    parts: tuple[RowPattern, ...]
    span: Span = field(default=(0, 0), compare=False)

    def __str__(self) -> str:
        return f"PERMUTE({', '.join(map(str, self.parts))})"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A part whose rows ALL ROWS PER MATCH leaves out."""

    part: RowPattern
    span: Span = field(default=(0, 0), compare=False)

    def __str__(self) -> str:
        return f"{{- {self.part} -}}"


RowPattern = (
    PatternVariable
    | Empty
    | Anchor
    | Concatenation
    | Alternation
    | Quantified
    | Permutation
    | Exclusion
)


def parts_of(node: RowPattern) -> tuple[RowPattern, ...]:
    """The parts directly within."""
    match node:
        case Concatenation(parts=parts) | Alternation(parts=parts) | Permutation(parts=parts):
            return parts
        case Quantified(part=part) | Exclusion(part=part):
            return (part,)
        case PatternVariable() | Empty() | Anchor():
            return ()


def walk(node: RowPattern) -> Iterator[RowPattern]:
    """The pattern and all within it, in the order of the text."""
    yield node
    for part in parts_of(node):
        yield from walk(part)
