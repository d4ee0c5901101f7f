"""The top-level ANDs and ORs of a condition, with what needs only the event gathered into leaves.

A condition holds when it is true; NULL does not hold. AND and OR of parts hold exactly when all or
any of the parts hold, so the parts can be computed in different places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.expressions.nodes import (
    Call,
    Cast,
    Column,
    Expression,
    Lambda,
    Literal,
    Member,
    Node,
)
from spark_cep.pattern.types import NULL, RecordType, column_type


@dataclass(frozen=True, slots=True)
class Leaf:
    """A condition that is computed in one piece."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class And:
    """Holds when every part holds; at least two parts."""

    parts: tuple[Leaf | And | Or, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Holds when any part holds; at least two parts."""

    parts: tuple[Leaf | And | Or, ...]


def boolean_structure(e: Expression) -> Leaf | And | Or:
    """Splits a condition at its top-level ANDs and ORs.

    Parts under one AND or OR that need only the event become one leaf, at the place of the first
    of them. NOT, and whatever else stands above a look-back, is a leaf.
    """
    if e.is_event_only:
        return Leaf(e)
    return _split(e.node, e)


def _split(node: Node, whole: Expression | None = None) -> Leaf | And | Or:
    if not isinstance(node, Call) or node.operator not in ("AND", "OR"):
        return Leaf(whole or expression(node))
    event_only = [part for part in node.arguments if expression(part).is_event_only]
    parts: list[Leaf | And | Or] = []
    merged = False
    for part in node.arguments:
        if part not in event_only:
            parts.append(_split(part))
        elif not merged:
            merged = True
            single = len(event_only) == 1
            parts.append(
                Leaf(expression(part if single else Call(node.operator, tuple(event_only))))
            )
    return And(tuple(parts)) if node.operator == "AND" else Or(tuple(parts))


def with_columns_of(node: Node, event: RecordType) -> Node:
    """Return the node for events of one type: a column that they do not have is the constant
    NULL."""
    match node:
        case Column(path=path) if column_type(event, path) in (None, NULL):
            return Literal(None, NULL)
        case Call(arguments=arguments):
            inner = tuple(with_columns_of(argument, event) for argument in arguments)
            return node if inner == arguments else replace(node, arguments=inner)
        case Cast(operand=operand) | Member(operand=operand):
            return replace(node, operand=with_columns_of(operand, event))
        case Lambda(body=body):
            return replace(node, body=with_columns_of(body, event))
    return node
