"""Functions of Aviator that have an equal here, and their form in SQL.

All of them fail on nil, as their counterparts give NULL. ``string.length``, ``indexOf`` and
``substring`` count characters, in Java those beyond U+FFFF as two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_cep.pattern.expressions.nodes import Call, Cast, Literal, Node
from spark_cep.pattern.types import BIGINT, DOUBLE, INT, NULL, STRING
from spark_cep.pattern.ververica.aviator_truth import (
    NoCounterpartError,
    Truth,
    Value,
    ValueKind,
    negated,
    whole,
    wide,
)

_NUMBERS = frozenset({ValueKind.ANY, ValueKind.LONG, ValueKind.DOUBLE, ValueKind.NUMBER})
_TEXTS = frozenset({ValueKind.ANY, ValueKind.TEXT})


@dataclass(frozen=True, slots=True)
class AviatorFunction:
    """A function: the number and kinds of its arguments, and its form in SQL."""

    kinds: frozenset[ValueKind]
    counts: range
    make: Callable[[Sequence[Value]], Value | Truth]


def call(name: str, arguments: Sequence[Value]) -> Value | Truth:
    """A call in SQL; ``NoCounterpartError`` with a sentence where it has none."""
    function = FUNCTIONS[name]
    if len(arguments) not in function.counts:
        least, most = function.counts[0], function.counts[-1]
        counts = f"{least}" if least == most else f"{least} to {most}"
        raise NoCounterpartError(f"{name} takes {counts} arguments, found {len(arguments)}")
    for argument in arguments[: 1 if name == "string.substring" else None]:
        if argument.kind not in function.kinds:
            wanted = "text" if function.kinds is _TEXTS else "a number"
            raise NoCounterpartError(f"{name} of {argument.kind.value} fails; it takes {wanted}")
    return function.make(arguments)


def _test(sql: str) -> AviatorFunction:
    def make(arguments: Sequence[Value]) -> Truth:
        node = Call(sql, tuple(value.node for value in arguments))
        return Truth(node, negated(node))

    return AviatorFunction(_TEXTS, range(2, 3), make)


def _of_number(node: Callable[[Node], Node], kind: ValueKind = ValueKind.DOUBLE) -> AviatorFunction:
    def make(arguments: Sequence[Value]) -> Value:
        return Value(node(arguments[0].node), kind, wide=True)

    return AviatorFunction(_NUMBERS, range(1, 2), make)


def _direct(sql: str) -> AviatorFunction:
    return _of_number(lambda node: Call(sql, (node,)))


def _absolute(arguments: Sequence[Value]) -> Value:
    (value,) = arguments
    kind = ValueKind.NUMBER if value.kind is ValueKind.ANY else value.kind
    return Value(Call("ABS", (wide(value),)), kind, wide=True)


def _long(arguments: Sequence[Value]) -> Value:
    (value,) = arguments
    # Times one, so that text, which Aviator reads more strictly than CAST, is refused by its type.
    node = wide(value) if value.kind is ValueKind.LONG else Cast(wide(value), BIGINT)
    return Value(node, ValueKind.LONG, wide=True)


def _power(arguments: Sequence[Value]) -> Value:
    return Value(Call("POWER", tuple(v.node for v in arguments)), ValueKind.DOUBLE, wide=True)


def _length(arguments: Sequence[Value]) -> Value:
    return Value(Call("LENGTH", (arguments[0].node,)), ValueKind.LONG)


def _index(arguments: Sequence[Value]) -> Value:
    place = Call("INSTR", tuple(value.node for value in arguments))
    return Value(Call("-", (place, whole(1))), ValueKind.LONG, wide=True)


def _part(arguments: Sequence[Value]) -> Value:
    text, *bounds = arguments
    values = [bound.node.value for bound in bounds if isinstance(bound.node, Literal)]
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) < len(bounds) or not 0 <= numbers[0] <= numbers[-1]:
        raise NoCounterpartError(
            "string.substring takes constant positions, from 0, in their order"
        )
    begin, end = numbers[0], numbers[-1]
    positions = [whole(begin + 1, INT)] + [whole(end - begin, INT)] * (len(numbers) - 1)
    # Java fails where the text is too short.
    long_enough = Call(">=", (Call("LENGTH", (text.node,)), whole(end, INT)))
    part: Node = Call("SUBSTRING", (text.node, *positions))
    return Value(Call("CASE", (long_enough, part, Literal(None, NULL))), ValueKind.TEXT)


def _rounded(sql: str) -> AviatorFunction:
    def node(x: Node) -> Node:
        # FLOOR gives BIGINT, which has neither NaN nor all that is beyond; that is whole already.
        small = Call("<", (Call("ABS", (x,)), whole(2**53)))
        rounded = Cast(Call(sql, (x,)), DOUBLE)
        return Call("CASE", (small, rounded, Call("*", (x, Literal(1.0, DOUBLE)))))

    return _of_number(node)


def _logarithm(sql: str) -> AviatorFunction:
    def node(x: Node) -> Node:
        zero = whole(0, INT)
        positive, none = Call(">", (x, zero)), Call("=", (x, zero))
        infinite, nan = (Cast(Literal(text, STRING), DOUBLE) for text in ("-Infinity", "NaN"))
        negative: Node = Call("CASE", (Call("<", (x, zero)), nan, Literal(None, NULL)))
        return Call("CASE", (positive, Call(sql, (x,)), none, infinite, negative))

    return _of_number(node)


FUNCTIONS = {
    "string.contains": _test("CONTAINS"),
    "string.startsWith": _test("STARTSWITH"),
    "string.endsWith": _test("ENDSWITH"),
    "string.length": AviatorFunction(_TEXTS, range(1, 2), _length),
    "string.indexOf": AviatorFunction(_TEXTS, range(2, 3), _index),
    "string.substring": AviatorFunction(_TEXTS, range(2, 4), _part),
    "math.abs": AviatorFunction(_NUMBERS, range(1, 2), _absolute),
    "math.floor": _rounded("FLOOR"),
    "math.ceil": _rounded("CEIL"),
    "math.sqrt": _direct("SQRT"),
    "math.pow": AviatorFunction(_NUMBERS, range(2, 3), _power),
    "math.log": _logarithm("LN"),
    "math.log10": _logarithm("LOG10"),
    "math.sin": _direct("SIN"),
    "math.cos": _direct("COS"),
    "math.tan": _direct("TAN"),
    "math.asin": _direct("ASIN"),
    "math.acos": _direct("ACOS"),
    "math.atan": _direct("ATAN"),
    "long": AviatorFunction(_NUMBERS, range(1, 2), _long),
    "double": _of_number(lambda node: Call("*", (node, Literal(1.0, DOUBLE)))),
}
