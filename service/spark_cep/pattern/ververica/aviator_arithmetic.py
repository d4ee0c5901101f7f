"""Arithmetic of Aviator in SQL: whole numbers stay whole, and nothing of it can be done with nil.

What a column holds is not known here. Where Aviator's answer depends on that and SQL's does not
(``/``, which drops the remainder of whole numbers; division by zero, which fails for whole numbers
alone), the types must be plain from the expression.
"""

from __future__ import annotations

from spark_cep.pattern.expressions.nodes import Call, Cast, Literal, Node
from spark_cep.pattern.types import BIGINT, STRING, DecimalType
from spark_cep.pattern.ververica.aviator_truth import (
    TRUE,
    NoCounterpartError,
    Value,
    ValueKind,
    whole,
    wide,
)

_NUMBERS = frozenset({ValueKind.ANY, ValueKind.LONG, ValueKind.DOUBLE, ValueKind.NUMBER})
_EXACT = DecimalType(19, 0)


def arithmetic(operator: str, left: Value, right: Value) -> Value:
    """``left operator right``; ``NoCounterpartError`` where SQL has nothing that is always the
    same."""
    if operator == "+" and ValueKind.TEXT in (left.kind, right.kind):
        return Value(Call("CONCAT", (_text(left), _text(right))), ValueKind.TEXT)
    for value in (left, right):
        if value.kind not in _NUMBERS:
            raise NoCounterpartError(f"`{operator}` of {value.kind.value} fails")
    if operator in "/%":
        return _divided(operator, left, right)
    # One wide operand makes the result wide.
    nodes = (left.node, wide(right)) if right.wide else (wide(left), right.node)
    return Value(Call(operator, nodes), _kind(left, right), wide=True)


def negative(value: Value) -> Value:
    """``-value``."""
    if isinstance(value.node, Literal) and isinstance(value.node.value, int | float):
        return Value(
            Literal(-value.node.value, value.node.type), value.kind, certain=True, wide=value.wide
        )
    return arithmetic("*", Value(whole(-1), ValueKind.LONG, certain=True, wide=True), value)


def _kind(left: Value, right: Value) -> ValueKind:
    if ValueKind.DOUBLE in (left.kind, right.kind):
        return ValueKind.DOUBLE
    return ValueKind.LONG if {left.kind, right.kind} == {ValueKind.LONG} else ValueKind.NUMBER


def _divided(operator: str, left: Value, right: Value) -> Value:
    kind = _kind(left, right)
    divisor = right.node.value if isinstance(right.node, Literal) else None
    if kind is not ValueKind.LONG:
        if divisor is None:
            raise NoCounterpartError(
                f"`{operator}` by something that may be 0 has an answer for some types alone",
                "a constant to divide by; or whole numbers, said by `long(a)`",
            )
        if operator == "/" and kind is not ValueKind.DOUBLE:
            raise NoCounterpartError(
                "`/` drops the remainder of whole numbers, and this may be one",
                "`long(a) / 2` for whole numbers, `a / 2.0` for others",
            )
    if divisor == 0:
        raise NoCounterpartError(f"`{operator}` by 0")
    if operator == "%":
        return Value(Call("%", (wide(left), wide(right))), kind, wide=True)
    if kind is ValueKind.DOUBLE:
        return Value(Call("/", (left.node, right.node)), kind, wide=True)
    dividend, divisor_node = wide(left), wide(right)
    even: Node = Call("-", (dividend, Call("%", (dividend, divisor_node))))
    exact = Call("/", (Cast(even, _EXACT), Cast(divisor_node, _EXACT)))
    return Value(Cast(exact, BIGINT), ValueKind.LONG, wide=True)


def _text(value: Value) -> Node:
    """The value as ``+`` adds it to text: nil is the text ``null``."""
    if value.kind is ValueKind.TEXT:
        return value.node
    if value.kind is ValueKind.LONG:
        return Cast(value.node, STRING)
    if value.kind is not ValueKind.ANY:
        raise NoCounterpartError(f"`+` of text and {value.kind.value} is not supported")
    text = Call("COALESCE", (value.node, Literal("null", STRING)))
    if value.guard == TRUE:
        return text
    return Call("CASE", (value.guard, text, value.node))
