"""Keeps lambdas from taking the square of an event's size, or worse.

A lambda is computed for each element of an array. What it compares directly costs the same for
each; what reads a text or an array from end to end does not. So such a call, inside lambdas, may
read one thing: the innermost element that it depends on, or the rest of the event, in which case it
is computed once, before the first element (see ``evaluation``). Then the work for an event stays in
proportion to its size.
"""

from __future__ import annotations

from collections.abc import Iterator

from spark_cep.pattern.expressions.functions import FUNCTIONS, LAMBDAS
from spark_cep.pattern.expressions.nodes import (
    Call,
    Cast,
    Column,
    Lambda,
    Node,
    Reference,
    RowReference,
    Variable,
    children,
    walk,
)
from spark_cep.pattern.expressions.problems import TextProblem

_EVENT = ""
_SEARCHES = frozenset({"LIKE", "ILIKE", "RLIKE"})


def variables_of(node: Node) -> set[str]:
    """The lambda parameters that a part of an expression reads from outside itself."""
    own = {part.parameter for part in walk(node) if isinstance(part, Lambda)}
    return {part.name for part in walk(node) if isinstance(part, Variable)} - own


def lambda_problems(node: Node) -> list[TextProblem]:
    """One problem for each call that reads two things inside a lambda."""
    return list(_problems(node, ()))


def _problems(node: Node, parameters: tuple[str, ...]) -> Iterator[TextProblem]:
    if parameters and _is_costly(node) and not _reads_one(node, parameters):
        name = node.operator if isinstance(node, Call) else "CAST"
        yield TextProblem(
            f"{name} inside a lambda reads both the element and something else: the time for it "
            "would grow with the square of the event",
            node.span,
            "functions of text and arrays read either the element or the rest of the event; "
            "compare their results",
        )
        return
    inner = (*parameters, node.parameter) if isinstance(node, Lambda) else parameters
    for child in children(node):
        yield from _problems(child, inner)


def _is_costly(node: Node) -> bool:
    if isinstance(node, Call):
        row = FUNCTIONS.get(node.operator)
        return node.operator in _SEARCHES or (row is not None and not row.cheap)
    return isinstance(node, Cast)


def _reads_one(node: Node, parameters: tuple[str, ...]) -> bool:
    """Return whether what makes the cost is one thing, and the innermost that the call depends
    on."""
    depends = _sources(node)
    by_cost = node.arguments[0] if isinstance(node, Call) and node.operator in LAMBDAS else node
    innermost = max(depends, key=lambda s: -1 if s == _EVENT else parameters.index(s), default="")
    return _sources(by_cost) <= {innermost}


def _sources(node: Node) -> set[str]:
    event = any(isinstance(part, (Column, Reference, RowReference)) for part in walk(node))
    return variables_of(node) | ({_EVENT} if event else set())
