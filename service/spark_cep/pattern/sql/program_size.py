"""An upper bound of the number of instructions in a pattern's program.

Copies of what is repeated, and the orders of PERMUTE, can be very many. ``()`` becomes no
instruction and counts as one: making a program, and whatever else goes through the copies, takes
time for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

from spark_cep.pattern.sql.row_pattern import (
    Alternation,
    Anchor,
    Concatenation,
    Empty,
    Exclusion,
    PatternVariable,
    Permutation,
    Quantified,
    RowPattern,
)

MAX_PROGRAM = 10_000
_MOST_ORDERED = 20


def program_size(node: RowPattern) -> int:
    """The number of instructions, DONE left out."""
    match node:
        case PatternVariable() | Anchor() | Empty():
            return 1
        case Concatenation(parts=parts):
            return sum(map(program_size, parts))
        case Alternation(parts=parts):
            return sum(map(program_size, parts)) + 2 * (len(parts) - 1)
        case Permutation(parts=parts):
            orders = orders_of(parts)
            return orders * sum(map(program_size, parts)) + 2 * (orders - 1)
        case Exclusion(part=part):
            return program_size(part) + 2
        case Quantified(part=part, least=least, most=most):
            if most is None:
                return program_size(part) * max(1, least) + (1 if least else 2)
            return program_size(part) * most + max(0, most - least)


def orders_of(parts: Sequence[RowPattern]) -> int:
    """The number of orders that PERMUTE stands for, of more than twenty parts as many as of
    twenty: no program has room for those, and the number itself would be too long to print."""
    return factorial(min(len(parts), _MOST_ORDERED))
