"""Functions of numbers.

What has no value is NaN or an infinity as in IEEE 754, and a logarithm of what is not positive is
NULL. The last digit is that of the C library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from spark_cep.pattern.expressions.functions.row import REAL, Function, Kinds, number
from spark_cep.pattern.expressions.values import arithmetic as values
from spark_cep.pattern.types import BIGINT, DOUBLE, DecimalType, SqlType


def _whole(kind: SqlType) -> SqlType:
    if isinstance(kind, DecimalType):
        if kind.scale == 0:
            return kind
        return DecimalType(min(38, kind.precision - kind.scale + 1), 0)
    return BIGINT


def _same(kinds: Kinds) -> SqlType | str:
    return number(lambda kind: kind)(kinds[:1])


def _double(_: SqlType) -> SqlType:
    return DOUBLE


def _real(compute: Callable[[float], float]) -> Callable[[Any], float]:
    """The function on doubles; NaN outside its domain, infinite beyond DOUBLE."""

    def run(value: Any) -> float:
        try:
            return compute(float(value))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return run


def _logarithm(compute: Callable[[float], float]) -> Callable[[Any], float | None]:
    def run(value: Any) -> float | None:
        given = float(value)
        return None if given <= 0 else compute(given)

    return run


def _log(first: Any, second: Any = None) -> float | None:
    if second is None:
        return _logarithm(math.log)(first)
    base, value = float(first), float(second)
    if base <= 0 or value <= 0:
        return None
    dividend, divisor = math.log(value), math.log(base)
    if divisor:
        return dividend / divisor
    return dividend * math.inf


def power(base: Any, exponent: Any) -> float:
    """``base`` to the power of ``exponent``, as Java has it."""
    base, exponent = float(base), float(exponent)
    if abs(base) == 1 and exponent and not math.isfinite(exponent):
        return math.nan
    odd = exponent % 2 == 1 if math.isfinite(exponent) else False
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        if base == 0:
            return math.copysign(math.inf, base) if odd else math.inf
        return math.nan


def _of_real(compute: Callable[[float], float]) -> Function:
    return Function((1, 1), REAL, _real(compute), cheap=True)


NUMERIC: dict[str, Function] = {
    "ABS": Function((1, 1), number(lambda kind: kind), cheap=True),
    "ROUND": Function((1, 2), _same, cheap=True),
    "FLOOR": Function((1, 1), number(_whole), values.floor, cheap=True),
    "CEIL": Function((1, 1), number(_whole), values.ceil, cheap=True),
    "SQRT": Function((1, 1), number(_double), values.square_root, cheap=True),
    "SIGN": Function((1, 1), number(_double), values.sign, cheap=True),
    "EXP": _of_real(math.exp),
    "LN": Function((1, 1), REAL, _logarithm(math.log), cheap=True),
    "LOG": Function((1, 2), REAL, _log, cheap=True),
    "LOG10": Function((1, 1), REAL, _logarithm(math.log10), cheap=True),
    "LOG2": Function((1, 1), REAL, _logarithm(math.log2), cheap=True),
    "POWER": Function((2, 2), REAL, power, cheap=True),
    "PI": Function((0, 0), lambda _: DOUBLE, lambda: math.pi, cheap=True),
    "SIN": _of_real(math.sin),
    "COS": _of_real(math.cos),
    "TAN": _of_real(math.tan),
    "ASIN": _of_real(math.asin),
    "ACOS": _of_real(math.acos),
    "ATAN": _of_real(math.atan),
    "ATAN2": Function(
        (2, 2), REAL, lambda y, x: math.atan2(float(y) + 0.0, float(x) + 0.0), cheap=True
    ),
    "RADIANS": _of_real(math.radians),
    "DEGREES": _of_real(math.degrees),
}
