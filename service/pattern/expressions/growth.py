"""Keeps text from growing without bound.

REPLACE can make text longer by a factor, and nested REPLACEs multiply. Every other function gives
at most as much text as it was given (case mapping up to three times). The product along each path
through the expression is limited, so the memory for one value stays proportional to the event.
"""

from __future__ import annotations

from service.pattern.expressions.nodes import Call, Literal, Node, Reference, children
from service.pattern.expressions.problems import ExpressionProblem

MAX_GROWTH = 1000
_CASE_MAPPING = 3


def growth_problems(node: Node) -> list[ExpressionProblem]:
    """One problem for an expression that could multiply the length of text too much."""
    factor = _growth(node)
    if factor <= MAX_GROWTH:
        return []
    return [
        ExpressionProblem(
            f"REPLACE, UPPER and LOWER could make text {factor} times as long; "
            f"the limit is {MAX_GROWTH}",
            *node.span,
        )
    ]


def _growth(node: Node) -> int:
    if isinstance(node, Reference):
        argument = node.look_back.argument
        return 1 if argument is None else _growth(argument.node)
    largest = max(map(_growth, children(node)), default=1)
    if not isinstance(node, Call):
        return largest
    if node.operator in ("UPPER", "LOWER"):
        return largest * _CASE_MAPPING
    if node.operator == "REPLACE":
        old, new = node.arguments[1:]
        if isinstance(old, Literal) and isinstance(new, Literal):
            sizes = len(str(old.value)), len(str(new.value))
            return largest * max(1, -(-sizes[1] // max(1, sizes[0])))
    return largest
