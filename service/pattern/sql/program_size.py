"""How many instructions a pattern becomes, reckoned without making them.

Copies of what is repeated, and the orders of PERMUTE, can be very many.
"""

from __future__ import annotations

from math import factorial

from service.pattern.sql.row_pattern import (
    Alternation,
    Anchor,
    Concatenation,
    Empty,
    Exclusion,
    Permutation,
    Quantified,
    RowPattern,
    Variable,
)

MAX_PROGRAM = 10_000


def program_size(node: RowPattern) -> int:
    """The number of instructions, DONE left out."""
    match node:
        case Variable() | Anchor():
            return 1
        case Empty():
            return 0
        case Concatenation(parts=parts):
            return sum(map(program_size, parts))
        case Alternation(parts=parts):
            return sum(map(program_size, parts)) + 2 * (len(parts) - 1)
        case Permutation(parts=parts):
            orders = factorial(len(parts))
            return orders * sum(map(program_size, parts)) + 2 * (orders - 1)
        case Exclusion(part=part):
            return program_size(part) + 2
        case Quantified(part=part, least=least, most=most):
            if most is None:
                return program_size(part) * max(1, least) + (1 if least else 2)
            return program_size(part) * most + max(0, most - least)
