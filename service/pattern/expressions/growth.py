"""Keeps text from growing without bound.

REPLACE makes text longer by a factor, CONCAT and ARRAY hold the same text many times, and each of
them can stand in another, so that a short rule could ask for terabytes. Every other function gives
at most as much text as it was given (case mapping up to three times). The most that each path
through the expression can make of an event is limited, so the memory for one value stays
proportional to the event.
"""

from __future__ import annotations

from service.pattern.expressions.nodes import Call, Literal, Node, Reference, children
from service.pattern.expressions.problems import ExpressionProblem

MAX_GROWTH = 100
_CASE_MAPPING = 3
_EVENT_TEXT = 10_000
"""Characters that a column is taken to hold; literals count with their own length."""


def growth_problems(node: Node) -> list[ExpressionProblem]:
    """One problem for an expression that could multiply the length of text too much."""
    factor = -(-_size(node) // _EVENT_TEXT)
    if factor <= MAX_GROWTH:
        return []
    return [
        ExpressionProblem(
            f"CONCAT, ARRAY, REPLACE, UPPER and LOWER could make text {factor} times as long; "
            f"the limit is {MAX_GROWTH}",
            *node.span,
        )
    ]


def _size(node: Node) -> int:
    """The most characters that a value of this node can have."""
    if isinstance(node, Literal):
        return len(str(node.value))
    if isinstance(node, Reference):
        argument = node.look_back.argument
        return _EVENT_TEXT if argument is None else _size(argument.node)
    sizes = [_size(child) for child in children(node)]
    largest = max(sizes, default=_EVENT_TEXT)
    if not isinstance(node, Call):
        return largest
    if node.operator in ("CONCAT", "ARRAY"):
        return sum(sizes)
    if node.operator in ("UPPER", "LOWER"):
        return largest * _CASE_MAPPING
    if node.operator == "REPLACE":
        old, new = node.arguments[1:]
        if isinstance(old, Literal) and isinstance(new, Literal):
            lengths = len(str(old.value)), len(str(new.value))
            return largest * max(1, -(-lengths[1] // max(1, lengths[0])))
    return largest
