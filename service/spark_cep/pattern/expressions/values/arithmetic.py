"""Arithmetic and order of Python values as Spark computes them.

Values are ``None``, ``bool``, ``int``, ``float``, ``Decimal``, ``str``, ``bytes``, ``date``,
time-zone-aware ``datetime`` and intervals (see ``intervals``). Functions here take values that are
not NULL and give ``None`` for what cannot be computed. NaN equals NaN and is greater than every
other number.
"""

from __future__ import annotations

import decimal
import math
import operator as python
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from spark_cep.pattern.expressions.intervals import as_moment, is_temporal, time_arithmetic
from spark_cep.pattern.expressions.values.type_rules import decimal_result
from spark_cep.pattern.types import (
    BIGINT,
    DATE,
    DAY_TIME,
    DOUBLE,
    INT,
    MAX_DECIMAL_DIGITS,
    TIMESTAMP,
    YEAR_MONTH,
    DecimalType,
    SqlType,
)

Binary = Callable[[Any, Any], Any]

# Never the operators of Decimal: they round to the 28 digits of Python's own context.
EXACT = decimal.Context(
    prec=500,
    rounding=decimal.ROUND_HALF_UP,
    Emax=decimal.MAX_EMAX,
    Emin=decimal.MIN_EMIN,
    traps=[],
)
INT_RANGE = (-(2**31), 2**31 - 1)
BIGINT_RANGE = (-(2**63), 2**63 - 1)
_DIVISION_SCALE = MAX_DECIMAL_DIGITS + 1


def fit_decimal(value: Decimal, target: DecimalType) -> Decimal | None:
    """``value`` with the target's scale, rounded half up; ``None`` when it has too many digits."""
    if not value.is_finite() or value.adjusted() >= MAX_DECIMAL_DIGITS + 1:
        return None
    rounded = value.quantize(Decimal((0, (1,), -target.scale)), context=EXACT)
    if rounded and rounded.adjusted() >= target.precision - target.scale:
        return None
    return EXACT.plus(rounded)


def decimal_type_of(value: Decimal | int) -> DecimalType:
    """The smallest decimal type that holds one value."""
    if isinstance(value, int):
        return DecimalType(min(MAX_DECIMAL_DIGITS, len(str(abs(value)))), 0)
    scale = max(0, -int(value.as_tuple().exponent)) if value.is_finite() else 0
    return DecimalType(min(MAX_DECIMAL_DIGITS, max(value.adjusted() + 1, 0) + scale or 1), scale)


def alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values of different Python types brought to one, so that they can be compared."""
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    if isinstance(left, date) and isinstance(right, date):
        return as_moment(left), as_moment(right)
    return left, right


def equal(left: Any, right: Any) -> bool:
    """SQL equality."""
    if type(left) is not type(right):
        left, right = alike(left, right)
    return bool(left == right or (left != left and right != right))  # noqa: PLR0124  # NaN


def less(left: Any, right: Any) -> bool:
    """SQL order: NaN last, text by its UTF-8 bytes (which is the order of code points)."""
    if type(left) is not type(right):
        left, right = alike(left, right)
    return bool(left < right or (right != right and left == left))  # noqa: PLR0124  # NaN


def greater(left: Any, right: Any) -> bool:
    """SQL order, turned round."""
    return less(right, left)


COMPARE: dict[str, Binary] = {
    "=": equal,
    "<>": lambda left, right: not equal(left, right),
    "<": less,
    "<=": lambda left, right: not less(right, left),
    ">": greater,
    ">=": lambda left, right: not less(left, right),
}


def _remainder(left: Any, right: Any) -> Any:
    """The remainder with the sign of ``left``, for integers."""
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


_INTEGER: dict[str, Binary] = {
    "+": python.add,
    "-": python.sub,
    "*": python.mul,
    "%": lambda a, b: _remainder(a, b) if b else None,
}


def _integer(operator: str, bounds: tuple[int, int]) -> Binary:
    compute = _INTEGER[operator]
    low, high = bounds

    def run(left: Any, right: Any) -> Any:
        result = compute(left, right)
        return result if result is not None and low <= result <= high else None

    return run


def _double_remainder(left: Any, right: Any) -> Any:
    left, right = float(left), float(right)
    if right == 0:
        return None
    return math.nan if math.isinf(left) else math.fmod(left, right)


def _double_quotient(left: Any, right: Any) -> Any:
    divisor = float(right)
    return float(left) / divisor if divisor else None


_DOUBLE: dict[str, Binary] = {
    "+": lambda a, b: float(a) + float(b),
    "-": lambda a, b: float(a) - float(b),
    "*": lambda a, b: float(a) * float(b),
    "/": _double_quotient,
    "%": _double_remainder,
}


def _decimal_quotient(left: Decimal, right: Decimal) -> Decimal:
    digits = Decimal((0, (1,), -_DIVISION_SCALE))
    return EXACT.divide(left, right).quantize(digits, context=EXACT)


_DECIMAL: dict[str, Binary] = {
    "+": EXACT.add,
    "-": EXACT.subtract,
    "*": EXACT.multiply,
    "/": _decimal_quotient,
    "%": EXACT.remainder,
}


def _decimal(operator: str, result: DecimalType | None) -> Binary:
    compute = _DECIMAL[operator]

    def run(left: Any, right: Any) -> Any:
        if operator in "/%" and not right:
            return None
        target = result
        if target is None:
            target = decimal_result(operator, decimal_type_of(left), decimal_type_of(right))
        return fit_decimal(compute(Decimal(left), Decimal(right)), target)

    return run


def arithmetic(operator: str, result: SqlType) -> Binary:
    """The computation of ``left operator right`` for a known result type, or for any values."""
    if result == DOUBLE:
        return _DOUBLE[operator]
    if result == INT:
        return _integer(operator, INT_RANGE)
    if result == BIGINT:
        return _integer(operator, BIGINT_RANGE)
    if isinstance(result, DecimalType):
        return _decimal(operator, result)
    temporal = time_arithmetic(operator)
    if result in (DATE, TIMESTAMP, DAY_TIME, YEAR_MONTH):
        return temporal
    double, exact = _DOUBLE[operator], _decimal(operator, None)
    whole = _DOUBLE["/"] if operator == "/" else _integer(operator, BIGINT_RANGE)

    def run(left: Any, right: Any) -> Any:
        if isinstance(left, float) or isinstance(right, float):
            return double(left, right)
        if isinstance(left, int) and isinstance(right, int):
            return whole(left, right)
        if is_temporal(left) or is_temporal(right):
            return temporal(left, right)
        return exact(left, right)

    return run


def negate(value: Any, kind: SqlType) -> Any:
    """``-value``; NULL beyond the type's range."""
    if isinstance(value, Decimal):
        return EXACT.minus(value)
    low = INT_RANGE[0] if kind == INT else BIGINT_RANGE[0]
    return None if isinstance(value, int) and value == low else -value


def absolute(value: Any, kind: SqlType) -> Any:
    """``ABS(value)``; NULL beyond the type's range."""
    if isinstance(value, float):
        return abs(value)
    return negate(value, kind) if value < 0 else value


def _to_bigint(value: float, whole: Callable[[float], int]) -> int:
    if math.isnan(value):
        return 0
    low, high = BIGINT_RANGE
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, whole(value)))


def floor(value: Any) -> Any:
    """The next whole number below; beyond BIGINT the last BIGINT, NaN 0, as in Spark."""
    if isinstance(value, float):
        return _to_bigint(value, math.floor)
    if isinstance(value, Decimal):
        return EXACT.plus(value.to_integral_value(decimal.ROUND_FLOOR))
    return value


def ceil(value: Any) -> Any:
    """The next whole number above; limits as for ``floor``."""
    if isinstance(value, float):
        return _to_bigint(value, math.ceil)
    if isinstance(value, Decimal):
        return EXACT.plus(value.to_integral_value(decimal.ROUND_CEILING))
    return value


def round_half_up(value: Any, digits: int, result: SqlType) -> Any:
    """``ROUND(value, digits)`` away from zero at the middle."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return value
        step = Decimal((0, (1,), -digits))
        return float(Decimal(repr(value)).quantize(step, context=EXACT)) + 0.0
    if isinstance(value, Decimal):
        if isinstance(result, DecimalType):
            return fit_decimal(value, result)
        scale = max(0, -int(value.as_tuple().exponent))
        return value.quantize(Decimal((0, (1,), -min(scale, digits))), context=EXACT)
    return value


def square_root(value: Any) -> float:
    """``SQRT(value)``; NaN below zero."""
    number = float(value)
    return math.sqrt(number) if number >= 0 else math.nan


def sign(value: Any) -> float:
    """-1.0, 0.0, 1.0 or NaN."""
    number = float(value)
    if number > 0:
        return 1.0
    return -1.0 if number < 0 else number
