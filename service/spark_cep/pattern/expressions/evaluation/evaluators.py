"""Evaluators put together from evaluators: NULLs, AND and OR, comparisons, membership."""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Sequence
from typing import Any

from spark_cep.pattern.expressions.values import arithmetic as values

Evaluator = Callable[[Sequence[Any], Sequence[Any]], Any]
"""From the columns' values (``c`` below) and the references' values (``r``) to the result."""

DIRECT: dict[str, Callable[[Any, Any], Any]] = {
    "=": python.eq,
    "<>": python.ne,
    "<": python.lt,
    "<=": python.le,
    ">": python.gt,
    ">=": python.ge,
}


def compared(operator: str, left: Evaluator, right: Evaluator) -> Evaluator:
    """A comparison of values of any types; quick for two of the same type that are no NaN."""
    direct, careful = DIRECT[operator], values.COMPARE[operator]

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        a, b = left(c, r), right(c, r)
        if a is None or b is None:
            return None
        if type(a) is type(b) and a == a and b == b:  # noqa: PLR0124  # NaN
            return direct(a, b)
        return careful(a, b)

    return run


def strict1(compute: Callable[[Any], Any], operand: Evaluator) -> Evaluator:
    """A function of one value; NULL of NULL."""

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        value = operand(c, r)
        return None if value is None else compute(value)

    return run


def strict2(compute: Callable[[Any, Any], Any], left: Evaluator, right: Evaluator) -> Evaluator:
    """A function of two values; NULL where one is NULL."""

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        a = left(c, r)
        if a is None:
            return None
        b = right(c, r)
        return None if b is None else compute(a, b)

    return run


def strict(compute: Callable[..., Any], operands: list[Evaluator]) -> Evaluator:
    """A function of any number of values; NULL where one is NULL."""
    match operands:
        case [only]:
            return strict1(compute, only)
        case [left, right]:
            return strict2(compute, left, right)

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        given = [operand(c, r) for operand in operands]
        return None if None in given else compute(*given)

    return run


def junction(parts: list[Evaluator], *, decisive: bool) -> Evaluator:
    """AND (false decides) or OR (true decides)."""

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


def same(left: Evaluator, right: Evaluator) -> Evaluator:
    """``<=>``: equal, NULL being equal to NULL."""

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        a, b = left(c, r), right(c, r)
        if a is None or b is None:
            return a is b
        return values.equal(a, b)

    return run


def between(operand: Evaluator, low: Evaluator, high: Evaluator) -> Evaluator:
    """``low <= value AND value <= high``."""

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


LOGIC: dict[str, Callable[..., Evaluator]] = {
    "NOT": lambda operand: strict1(python.not_, operand),
    "IS NULL": lambda operand: lambda c, r: operand(c, r) is None,
    "IS TRUE": lambda operand: lambda c, r: operand(c, r) is True,
    "IS FALSE": lambda operand: lambda c, r: operand(c, r) is False,
    "<=>": same,
    "BETWEEN": between,
}


def membership(operands: list[Evaluator]) -> Evaluator:
    """IN: the first operand is looked for among the others."""
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


def coalesce(operands: list[Evaluator]) -> Evaluator:
    """The first that is not NULL."""

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        for operand in operands:
            value = operand(c, r)
            if value is not None:
                return value
        return None

    return run


def extreme(operands: list[Evaluator], before: Callable[[Any, Any], bool]) -> Evaluator:
    """The first in an order, NULLs aside."""

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        best = None
        for operand in operands:
            value = operand(c, r)
            if value is not None and (best is None or before(value, best)):
                best = value
        return best

    return run


FIRST_OR_EXTREME: dict[str, Callable[[list[Evaluator]], Evaluator]] = {
    "COALESCE": coalesce,
    "GREATEST": lambda operands: extreme(operands, values.greater),
    "LEAST": lambda operands: extreme(operands, values.less),
}


def null_if(operands: list[Evaluator]) -> Evaluator:
    """NULL when two values are equal, else the first."""
    first, second = operands

    def run(c: Sequence[Any], r: Sequence[Any]) -> Any:
        a, b = first(c, r), second(c, r)
        return None if a is not None and b is not None and values.equal(a, b) else a

    return run
