"""Constants in conditions, and what comparisons with them leave of a value's range."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.expressions.evaluation.evaluate import bind
from spark_cep.pattern.expressions.nodes import (
    ARITHMETIC,
    COMPARISONS,
    Call,
    Cast,
    Column,
    Literal,
    Node,
    Reference,
    RowReference,
    Variable,
    walk,
)

LIKE = frozenset({"LIKE", "ILIKE", "RLIKE"})
#: Operators that are NULL where an operand is.
STRICT = (COMPARISONS - {"<=>"}) | ARITHMETIC | LIKE | {"NEGATE", "NOT"}
_LONGEST = 80


def is_null(node: Node) -> bool:
    """Return whether a value is NULL in every event."""
    match node:
        case Literal(value=value):
            return value is None
        case Cast(operand=operand):
            return is_null(operand)
        case Call(operator=operator, arguments=arguments) if operator in STRICT:
            return any(map(is_null, arguments))
    return False


def exclusive(one: str, a: Any, other: str, b: Any) -> bool:
    """Return whether no value meets both comparisons."""
    if one == "IN":
        return all(exclusive("=", each, other, b) for each in a)
    if other == "IN":
        return all(exclusive(one, a, "=", each) for each in b)
    if isinstance(a, bool) and isinstance(b, bool):
        return ((one == "=") == a) != ((other == "=") == b) and {one, other} <= {"=", "<>"}
    if "<>" in (one, other):
        return "=" in (one, other) and is_same(a, b)
    return _above(one, a, other, b) or _above(other, b, one, a)


def _above(one: str, a: Any, other: str, b: Any) -> bool:
    """Return whether all that meets the first comparison is above what meets the second."""
    if one not in ("=", ">", ">=") or other not in ("=", "<", "<="):
        return False
    return is_below(b, a) or (is_same(a, b) and (one == ">" or other == "<"))


def _kind(value: Any) -> type | None:
    if isinstance(value, bool):
        return bool
    if isinstance(value, (int, float, Decimal)):
        return None if value != value else Decimal  # noqa: PLR0124  NaN
    return next((k for k in (str, datetime, date, timedelta) if isinstance(value, k)), None)


def is_same(a: Any, b: Any) -> bool:
    """Return whether two constants are equal, whatever is compared with them."""
    kind = _kind(a)
    return kind is not None and kind is _kind(b) and bool(a == b)


def is_below(a: Any, b: Any) -> bool:
    """Return whether a constant is certainly below another one."""
    kind = _kind(a)
    if kind is None or kind is not _kind(b):
        return False
    try:
        return bool(a < b) and (kind is not Decimal or float(a) < float(b))
    except (TypeError, OverflowError):
        return False


def is_constant(node: Node) -> bool:
    """Return whether an expression has one value for all events."""
    return not any(
        isinstance(part, (Column, Reference, RowReference, Variable)) for part in walk(node)
    )


def value_of(node: Node) -> Any:
    """The value of a constant."""
    if isinstance(node, Literal):
        return node.value
    return bind(expression(node), {}, {})((), ())


def text_of(node: Node) -> str:
    """The expression in messages."""
    text = expression(node).canonical
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def quoted(node: Node) -> str:
    """The expression in messages, between backquotes."""
    return f"`{text_of(node)}`"
