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
    if base <= 0 or value <= 0 or base == 1:
        return None
    return math.log(value) / math.log(base)


def power(base: Any, exponent: Any) -> float:
    """``base`` to the power of ``exponent``, as IEEE 754 has it."""
    base, exponent = float(base), float(exponent)
    odd = exponent % 2 == 1 if math.isfinite(exponent) else False
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        if base == 0:
            return math.copysign(math.inf, base) if odd else math.inf
        return math.nan


def _of_real(
    compute: Callable[[float], float], doc: str, example: str, expected: float
) -> Function:
    return Function(
        arguments=(1, 1),
        result=REAL,
        evaluate=_real(compute),
        cheap=True,
        doc=doc,
        example=example,
        expected=expected,
    )


NUMERIC: dict[str, Function] = {
    "ABS": Function(
        arguments=(1, 1),
        result=number(lambda kind: kind),
        cheap=True,
        doc="The number without its sign.",
        example="ABS(-3)",
        expected=3,
    ),
    "ROUND": Function(
        arguments=(1, 2),
        result=_same,
        cheap=True,
        doc="Rounded half up to 0 to 18 digits after the point, by default none.",
        example="ROUND(2.345D, 2)",
        expected=2.35,
    ),
    "FLOOR": Function(
        arguments=(1, 1),
        result=number(_whole),
        evaluate=values.floor,
        cheap=True,
        doc="The next whole number below.",
        example="FLOOR(-2.5D)",
        expected=-3,
    ),
    "CEIL": Function(
        arguments=(1, 1),
        result=number(_whole),
        evaluate=values.ceil,
        cheap=True,
        doc="The next whole number above.",
        example="CEIL(2.1D)",
        expected=3,
    ),
    "SQRT": Function(
        arguments=(1, 1),
        result=number(_double),
        evaluate=values.square_root,
        cheap=True,
        doc="The square root; NaN below zero.",
        example="SQRT(9)",
        expected=3.0,
    ),
    "SIGN": Function(
        arguments=(1, 1),
        result=number(_double),
        evaluate=values.sign,
        cheap=True,
        doc="-1.0, 0.0 or 1.0.",
        example="SIGN(-7)",
        expected=-1.0,
    ),
    "EXP": _of_real(math.exp, "e to the power of the number.", "EXP(0)", 1.0),
    "LN": Function(
        arguments=(1, 1),
        result=REAL,
        evaluate=_logarithm(math.log),
        cheap=True,
        doc="The natural logarithm; NULL unless the number is positive.",
        example="LN(1)",
        expected=0.0,
    ),
    "LOG": Function(
        arguments=(1, 2),
        result=REAL,
        evaluate=_log,
        cheap=True,
        doc="`LOG(base, x)`: the logarithm to a base; `LOG(x)` is `LN(x)`.",
        example="LOG(2, 8)",
        expected=3.0,
    ),
    "LOG10": Function(
        arguments=(1, 1),
        result=REAL,
        evaluate=_logarithm(math.log10),
        cheap=True,
        doc="The logarithm to base 10; NULL unless the number is positive.",
        example="LOG10(1000)",
        expected=3.0,
    ),
    "LOG2": Function(
        arguments=(1, 1),
        result=REAL,
        evaluate=_logarithm(math.log2),
        cheap=True,
        doc="The logarithm to base 2; NULL unless the number is positive.",
        example="LOG2(8)",
        expected=3.0,
    ),
    "POWER": Function(
        arguments=(2, 2),
        result=REAL,
        evaluate=power,
        cheap=True,
        doc="The first number to the power of the second, as DOUBLE.",
        example="POWER(2, 10)",
        expected=1024.0,
    ),
    "PI": Function(
        arguments=(0, 0),
        result=lambda _: DOUBLE,
        evaluate=lambda: math.pi,
        cheap=True,
        doc="π.",
        example="PI()",
        expected=math.pi,
    ),
    "SIN": _of_real(math.sin, "The sine of an angle in radians.", "SIN(0)", 0.0),
    "COS": _of_real(math.cos, "The cosine of an angle in radians.", "COS(0)", 1.0),
    "TAN": _of_real(math.tan, "The tangent of an angle in radians.", "TAN(0)", 0.0),
    "ASIN": _of_real(
        math.asin, "The angle of a sine, in radians; NaN beyond -1 and 1.", "ASIN(0)", 0.0
    ),
    "ACOS": _of_real(
        math.acos, "The angle of a cosine, in radians; NaN beyond -1 and 1.", "ACOS(1)", 0.0
    ),
    "ATAN": _of_real(math.atan, "The angle of a tangent, in radians.", "ATAN(0)", 0.0),
    "ATAN2": Function(
        arguments=(2, 2),
        result=REAL,
        evaluate=lambda y, x: math.atan2(float(y) + 0.0, float(x) + 0.0),
        cheap=True,
        doc="`ATAN2(y, x)`: the angle of the point (x, y), in radians.",
        example="ATAN2(0, 1)",
        expected=0.0,
    ),
    "RADIANS": _of_real(math.radians, "Degrees as radians.", "RADIANS(180)", math.pi),
    "DEGREES": _of_real(math.degrees, "Radians as degrees.", "DEGREES(PI())", 180.0),
}
