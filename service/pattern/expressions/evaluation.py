"""Expressions as Python functions of the values they read.

``bind`` builds closures once; each event then costs a few of them. Values: see ``values``; arrays
are sequences, maps are mappings, records are mappings or offer ``record["field"]``. With schemas
the types are Spark's. Without, whole numbers count as BIGINT, and a decimal's precision and scale
are those of its value.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from service.pattern.expressions import values
from service.pattern.expressions.casting import caster
from service.pattern.expressions.checking import Typing, round_digits
from service.pattern.expressions.functions import FUNCTIONS, at_index
from service.pattern.expressions.like import like_matcher
from service.pattern.expressions.nodes import (
    ARITHMETIC,
    Call,
    Cast,
    Column,
    ColumnPath,
    Expression,
    Literal,
    LookBack,
    Member,
    Node,
    Reference,
)
from service.pattern.expressions.type_rules import INTEGRAL, common_type
from service.pattern.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    DecimalType,
    RecordType,
    SqlType,
)

Evaluator = Callable[[Sequence[Any], Sequence[Any]], Any]
"""From the columns' values (``c`` below) and the references' values (``r``) to the result."""

_PLAIN = frozenset({STRING, BINARY, BOOLEAN, DATE, TIMESTAMP})
_DIRECT: dict[str, Callable[[Any, Any], Any]] = {
    "=": python.eq,
    "<>": python.ne,
    "<": python.lt,
    "<=": python.le,
    ">": python.gt,
    ">=": python.ge,
}


def bind(
    e: Expression,
    columns: Mapping[ColumnPath, int],
    look_backs: Mapping[LookBack, int],
    event: RecordType | None = None,
    steps: Mapping[str, RecordType] | None = None,
) -> Evaluator:
    """The function ``f(column_values, look_back_values)`` that computes the expression.

    ``columns`` and ``look_backs`` give the place of each value; ``KeyError`` when one is missing.
    """
    return _Binder(columns, look_backs, Typing(event, steps)).bind(e.node)


class _Binder:
    """Turns nodes into closures."""

    def __init__(
        self,
        columns: Mapping[ColumnPath, int],
        look_backs: Mapping[LookBack, int],
        typing: Typing,
    ) -> None:
        self._columns = columns
        self._look_backs = look_backs
        self._typing = typing

    def bind(self, node: Node) -> Evaluator:
        """The closure for one node."""
        match node:
            case Literal(value=value):
                return lambda _c, _r: value
            case Column(path=path):
                column = self._columns[path]
                return lambda c, _r: c[column]
            case Reference(look_back=look_back):
                place = self._look_backs[look_back]
                return lambda _c, r: r[place]
            case Member(operand=operand, name=name):
                return _strict1(lambda record: _member(record, name), self.bind(operand))
            case Cast(operand=operand, target=target):
                return _strict1(caster(target), self.bind(operand))
            case Call():
                return self._call(node)

    def _call(self, node: Call) -> Evaluator:
        operator = node.operator
        arguments = [self.bind(argument) for argument in node.arguments]
        kinds = [self._typing.type_of(argument) for argument in node.arguments]
        if operator in _DIRECT:
            if _same_order(kinds[0], kinds[1]):
                return _strict2(_DIRECT[operator], *arguments)
            return _compared(operator, *arguments)
        if operator in ARITHMETIC:
            result = self._typing.type_of(node)
            if result == DOUBLE:
                arguments = [*map(_constant, node.arguments, arguments)]
            return _strict2(values.arithmetic(operator, result), *arguments)
        if operator in ("AND", "OR"):
            return _junction(arguments, decisive=operator == "OR")
        if operator in _LOGIC:
            return _LOGIC[operator](*arguments)
        if operator == "LIKE":
            return _strict1(like_matcher(arguments[1]((), ())), arguments[0])
        if operator == "IN":
            return _membership(_converted(arguments, kinds, common_type(kinds) or UNKNOWN))
        if operator in ("CASE", "CASE OF"):
            return self._case(node, arguments, kinds)
        return self._function(node, arguments, kinds)

    def _case(self, node: Call, arguments: list[Evaluator], kinds: list[SqlType]) -> Evaluator:
        start = 1 if node.operator == "CASE OF" else 0
        whens = range(start, len(arguments) - 1, 2)
        result = self._typing.type_of(node)
        results = [*(index + 1 for index in whens), len(arguments) - 1]
        values_of = _converted([arguments[i] for i in results], [kinds[i] for i in results], result)
        default = values_of.pop()
        if start:
            tests = [_compared("=", arguments[0], arguments[index]) for index in whens]
        else:
            tests = [arguments[index] for index in whens]
        branches = list(zip(tests, values_of, strict=True))

        def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
            for test, value in branches:
                if test(c, r):
                    return value(c, r)
            return default(c, r)

        return run

    def _function(self, node: Call, arguments: list[Evaluator], kinds: list[SqlType]) -> Evaluator:
        operator = node.operator
        result = self._typing.type_of(node)
        if operator in ("COALESCE", "GREATEST", "LEAST"):
            return _FIRST_OR_EXTREME[operator](_converted(arguments, kinds, result))
        if operator == "ARRAY":
            alike = _converted(arguments, kinds, common_type(kinds) or UNKNOWN)
            return lambda c, r: [argument(c, r) for argument in alike]
        if operator == "NULLIF":
            return _null_if(arguments)
        if operator == "ROUND":
            digits = round_digits(node)
            return _strict1(lambda v: values.round_half_up(v, digits, result), arguments[0])
        if operator in _SIGNED:
            compute = _SIGNED[operator]
            return _strict1(lambda value: compute(value, result), arguments[0])
        return _strict(STRICT[operator], arguments)


STRICT: Mapping[str, Callable[..., Any]] = {
    "[]": at_index,
    **{name: row.evaluate for name, row in FUNCTIONS.items() if row.evaluate is not None},
}
"""What is NULL when an argument is, whatever the types."""
_SIGNED = {"NEGATE": values.negate, "ABS": values.absolute}


def _member(record: Any, name: str) -> Any:
    return record.get(name) if isinstance(record, Mapping) else record[name]


def _same_order(left: SqlType, right: SqlType) -> bool:
    """Whether Python orders the values of two types as SQL does, NULLs aside."""
    exact = all(kind in INTEGRAL or isinstance(kind, DecimalType) for kind in (left, right))
    return exact or (left == right and left in _PLAIN)


def _compared(operator: str, left: Evaluator, right: Evaluator) -> Evaluator:
    """A comparison of values of any types; quick for two of the same type that are no NaN."""
    direct, careful = _DIRECT[operator], values.COMPARE[operator]

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        a, b = left(c, r), right(c, r)
        if a is None or b is None:
            return None
        if type(a) is type(b) and a == a and b == b:  # noqa: PLR0124  # NaN
            return direct(a, b)
        return careful(a, b)

    return run


def _strict1(compute: Callable[[Any], Any], operand: Evaluator) -> Evaluator:
    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        value = operand(c, r)
        return None if value is None else compute(value)

    return run


def _strict2(compute: Callable[[Any, Any], Any], left: Evaluator, right: Evaluator) -> Evaluator:
    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        a = left(c, r)
        if a is None:
            return None
        b = right(c, r)
        return None if b is None else compute(a, b)

    return run


def _strict(compute: Callable[..., Any], operands: list[Evaluator]) -> Evaluator:
    match operands:
        case [only]:
            return _strict1(compute, only)
        case [left, right]:
            return _strict2(compute, left, right)

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        given = [operand(c, r) for operand in operands]
        return None if None in given else compute(*given)

    return run


def _junction(parts: list[Evaluator], *, decisive: bool) -> Evaluator:
    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        unknown = False
        for part in parts:
            value = part(c, r)
            if value is None:
                unknown = True
            elif value is decisive:
                return decisive
        return None if unknown else not decisive

    return run


def _same(left: Evaluator, right: Evaluator) -> Evaluator:
    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        a, b = left(c, r), right(c, r)
        if a is None or b is None:
            return a is b
        return values.equal(a, b)

    return run


def _between(operand: Evaluator, low: Evaluator, high: Evaluator) -> Evaluator:
    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        value, bottom, top = operand(c, r), low(c, r), high(c, r)
        if value is None:
            return None
        above = None if bottom is None else not values.less(value, bottom)
        below = None if top is None else not values.less(top, value)
        if above is False or below is False:
            return False
        return None if above is None or below is None else True

    return run


_LOGIC: dict[str, Callable[..., Evaluator]] = {
    "NOT": lambda operand: _strict1(python.not_, operand),
    "IS NULL": lambda operand: lambda c, r: operand(c, r) is None,
    "IS TRUE": lambda operand: lambda c, r: operand(c, r) is True,
    "IS FALSE": lambda operand: lambda c, r: operand(c, r) is False,
    "<=>": _same,
    "BETWEEN": _between,
}


def _membership(operands: list[Evaluator]) -> Evaluator:
    subject, *items = operands

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        value = subject(c, r)
        if value is None:
            return None
        unknown = False
        for item in items:
            candidate = item(c, r)
            if candidate is None:
                unknown = True
            elif values.equal(value, candidate):
                return True
        return None if unknown else False

    return run


def _coalesce(operands: list[Evaluator]) -> Evaluator:
    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        for operand in operands:
            value = operand(c, r)
            if value is not None:
                return value
        return None

    return run


def _extreme(operands: list[Evaluator], before: Callable[[Any, Any], bool]) -> Evaluator:
    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        best = None
        for operand in operands:
            value = operand(c, r)
            if value is not None and (best is None or before(value, best)):
                best = value
        return best

    return run


_FIRST_OR_EXTREME: dict[str, Callable[[list[Evaluator]], Evaluator]] = {
    "COALESCE": _coalesce,
    "GREATEST": lambda operands: _extreme(operands, values.greater),
    "LEAST": lambda operands: _extreme(operands, values.less),
}


def _null_if(operands: list[Evaluator]) -> Evaluator:
    first, second = operands

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        a, b = first(c, r), second(c, r)
        return None if a is not None and b is not None and values.equal(a, b) else a

    return run


def _converted(operands: list[Evaluator], kinds: list[SqlType], target: SqlType) -> list[Evaluator]:
    """The operands with their values brought to one type, where the types are known."""
    if target not in (DOUBLE, TIMESTAMP) and not isinstance(target, DecimalType):
        return list(operands)
    convert = caster(target)
    return [
        operand if kind == target else _strict1(convert, operand)
        for operand, kind in zip(operands, kinds, strict=True)
    ]


def _constant(node: Node, operand: Evaluator) -> Evaluator:
    """A numeric literal as DOUBLE, once and for all; anything else as it is."""
    if not isinstance(node, Literal) or node.value is None:
        return operand
    value = caster(DOUBLE)(node.value)
    return lambda _c, _r: value
