"""Keeps text from growing without bound.

REPLACE makes text longer by a factor, CONCAT and ARRAY hold the same text many times, and each of
them can stand in another, so that a short rule could ask for terabytes. What a function can make of
its arguments is the ``size`` of its row; every other gives at most as much text as it was given.
The most that each path through the expression can make of an event is limited, so the memory for
one value stays proportional to the event.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_cep.pattern.expressions.functions import FUNCTIONS
from spark_cep.pattern.expressions.nodes import (
    Call,
    Lambda,
    Literal,
    Node,
    Reference,
    RowAggregate,
    RowReference,
    Variable,
    children,
)
from spark_cep.pattern.expressions.problems import TextProblem

MAX_GROWTH = 100
_EVENT_TEXT = 10_000
"""Characters that a column is taken to hold; literals count with their own length."""


def growth_problems(node: Node) -> list[TextProblem]:
    """One problem for an expression that could multiply the length of text too much."""
    factor = -(-_size(node, {}) // _EVENT_TEXT)
    if factor <= MAX_GROWTH:
        return []
    return [
        TextProblem(
            "CONCAT, ARRAY, REPEAT, REPLACE, UPPER, LOWER and the like could make text "
            f"{factor} times as long; the limit is {MAX_GROWTH}",
            node.span,
        )
    ]


def _size(node: Node, variables: Mapping[str, int]) -> int:
    """The most characters that a value of this node, or any beneath it, can have."""
    if isinstance(node, Literal):
        return len(str(node.value))
    if isinstance(node, Variable):
        return variables.get(node.name, _EVENT_TEXT)
    if isinstance(node, Reference):
        argument = node.look_back.argument
        return _EVENT_TEXT if argument is None else _size(argument.node, {})
    if isinstance(node, RowReference):
        arguments = node.value.arguments if isinstance(node.value, RowAggregate) else ()
        return max((_size(argument.node, {}) for argument in arguments), default=_EVENT_TEXT)
    if isinstance(node, Call):
        return _call_size(node, variables)
    return max((_size(child, variables) for child in children(node)), default=_EVENT_TEXT)


def _call_size(node: Call, variables: Mapping[str, int]) -> int:
    sizes: list[int] = []
    for argument in node.arguments:
        if isinstance(argument, Lambda):
            inner = {**variables, argument.parameter: sizes[0]}
            sizes.append(_size(argument.body, inner))
        else:
            sizes.append(_size(argument, variables))
    largest = max(sizes, default=0)
    row = FUNCTIONS.get(node.operator)
    if row is None or row.size is None:
        return largest
    constants = [a.value if isinstance(a, Literal) else None for a in node.arguments]
    return max(largest, row.size(sizes, constants))
