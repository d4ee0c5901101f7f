"""One function of the language as a row of the table: arguments, types, evaluation.

``result`` gives the type of a call, or a sentence saying what is wrong with its arguments.
``evaluate`` computes it from values that are not NULL (a NULL argument makes NULL), unless
``nulls`` says that it takes them too; it is ``None`` for the few that ``evaluation`` writes itself.

Where ``constants`` names arguments, these are written in the text, not NULL, and of the Python type
named; ``prepare`` makes the evaluation of the others from them, once, and raises ``ValueError``
with a sentence when they make no sense. ``words`` says that the first may stand without quotes.

``cheap`` functions take the same time whatever the size of texts and arrays; the others may not
read two things inside a lambda (see ``lambdas``). ``size`` is the most characters of a value, from
those of the arguments and the constants; by default the largest argument's (see ``growth``).

``docs/expressions.md`` explains each function with an example, which a test runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from spark_cep.pattern.expressions.values.type_rules import is_number, is_open
from spark_cep.pattern.types import (
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    UNKNOWN,
    SqlType,
)

Kinds = Sequence[SqlType]
Result = Callable[[Kinds], SqlType | str]
Size = Callable[[Sequence[int], Sequence[Any]], int]


@dataclass(frozen=True, slots=True)
class Function:
    """One function; see the module."""

    arguments: tuple[int, int | None]
    result: Result
    evaluate: Callable[..., Any] | None = None
    _: KW_ONLY
    prepare: Callable[..., Callable[..., Any]] | None = None
    constants: Mapping[int, type] = field(default_factory=dict)
    words: bool = False
    nulls: bool = False
    cheap: bool = False
    size: Size | None = None

    @property
    def count(self) -> str:
        """The number of arguments in words: ``1 argument``, ``2 or more arguments``."""
        least, most = self.arguments
        if least == most:
            return f"{least or 'no'} argument{'s' * (least != 1)}"
        if most is None:
            return f"at least {least} argument{'s' * (least != 1)}"
        return f"{least} {'or' if most == least + 1 else 'to'} {most} arguments"


NUMBER: tuple[SqlType, ...] = ()
"""Stands for every type of number in ``takes``."""


def takes(*expected: SqlType | tuple[SqlType, ...], gives: SqlType) -> Result:
    """The rule for arguments of given types, the last for all that follow."""

    def result(kinds: Kinds) -> SqlType | str:
        for position, kind in enumerate(kinds):
            allowed = expected[min(position, len(expected) - 1)]
            choices = allowed if isinstance(allowed, tuple) else (allowed,)
            fits = kind in choices or (allowed == NUMBER and is_number(kind))
            if not fits and not is_open(kind):
                wanted = " or ".join(map(str, choices)) or "a number"
                return f"argument {position + 1} is {kind}; it must be {wanted}"
        return gives

    return result


def number(gives: Callable[[SqlType], SqlType]) -> Result:
    """The rule for one number; the type follows its type."""

    def result(kinds: Kinds) -> SqlType | str:
        kind = kinds[0]
        if is_open(kind):
            return kind
        return gives(kind) if is_number(kind) else f"argument 1 is {kind}; it must be a number"

    return result


def any_type(_: Kinds) -> SqlType | str:
    """The rule of what ``checking`` types itself."""
    return UNKNOWN


TEXTS = takes(STRING, gives=STRING)
TEXT_TEST = takes(STRING, gives=BOOLEAN)
TEXT_NUMBER = takes(STRING, gives=INT)
TEXT_AND_NUMBER = takes(STRING, INT, gives=STRING)
REAL = takes(NUMBER, gives=DOUBLE)


def summed(sizes: Sequence[int], _: Sequence[Any]) -> int:
    """Return the number of characters of all arguments."""
    return sum(sizes)


def case_mapped(sizes: Sequence[int], _: Sequence[Any]) -> int:
    """Three times as many: some letters have three in the other case."""
    return sizes[0] * 3
