"""The program of a row pattern: seven instructions, run by threads.

===========  =====================================================================================
LABEL v      takes the next row as variable *v*, if its condition holds
SPLIT p, q   goes on at *p*, and, less preferred, at *q*
JUMP p       goes on at *p*
START        goes on if no row of the partition lies before the next one (``^``)
END          goes on if no row of the partition is left (``$``)
SAVE         notes the place as an edge of an exclusion
DONE         the rows taken are a match
===========  =====================================================================================

It is the design of Thompson and Pike for regular expressions, as Trino has it for rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

#: Of a program that comes to more instructions in more rows, any row may come to all of them.
_MOST_FOLLOWED = 100_000


@dataclass(frozen=True, slots=True)
class Label:
    """Takes a row as the variable of that number."""

    variable: int


@dataclass(frozen=True, slots=True)
class Split:
    """Two ways on, the first preferred."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Jump:
    """Goes on elsewhere."""

    target: int


@dataclass(frozen=True, slots=True)
class Start:
    """Passes at the partition's beginning."""


@dataclass(frozen=True, slots=True)
class End:
    """Passes at the partition's end."""


@dataclass(frozen=True, slots=True)
class Save:
    """An edge of an exclusion."""


@dataclass(frozen=True, slots=True)
class Done:
    """A match."""


Instruction = Label | Split | Jump | Start | End | Save | Done


@dataclass(frozen=True)
class RowPatternProgram:
    """Instructions; ``str()`` is the listing. Execution begins at 0."""

    instructions: tuple[Instruction, ...]
    variables: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @property
    def lines(self) -> list[str]:
        """The listing, a line an instruction."""
        return [f"{at} {self._text(each)}" for at, each in enumerate(self.instructions)]

    def _text(self, instruction: Instruction) -> str:
        match instruction:
            case Label(variable=variable):
                return f"LABEL {self.variables[variable]}"
            case Split(first=first, second=second):
                return f"SPLIT {first}, {second}"
            case Jump(target=target):
                return f"JUMP {target}"
            case Start() | End() | Save() | Done():
                return type(instruction).__name__.upper()

    def successors(self, at: int) -> tuple[int, ...]:
        """Return the instructions at which a thread may continue."""
        match self.instructions[at]:
            case Split(first=first, second=second):
                return (first, second)
            case Jump(target=target):
                return (target,)
            case Done():
                return ()
            case _:
                return (at + 1,)

    @cached_property
    def width(self) -> int:
        """The most instructions that the threads of an attempt come to before one row, where every
        condition holds."""
        places = self.closure({0})
        width, followed = 0, 0
        seen: set[frozenset[int]] = set()
        while places and places not in seen:
            seen.add(places)
            width = max(width, len(places))
            followed += len(places)
            if followed > _MOST_FOLLOWED:
                return len(self.instructions)
            labels = (at for at in places if isinstance(self.instructions[at], Label))
            places = self.closure({at + 1 for at in labels})
        return width

    def closure(self, places: Iterable[int]) -> frozenset[int]:
        """Return these instructions and those that threads come to from them without a row."""
        found, pending = set(places), list(places)
        while pending:
            at = pending.pop()
            if not isinstance(self.instructions[at], Label):
                new = set(self.successors(at)) - found
                found |= new
                pending += new
        return frozenset(found)
