"""Representations of values in memory, by SQL type.

=========== ==================================================== ==========================
WHOLE       INT, BIGINT, BOOLEAN (0, 1), DATE (days), TIMESTAMP  64-bit numbers
            (µs), DECIMAL of up to 18 digits (times 10 to its
            scale)
DOUBLE      FLOAT, DOUBLE                                        doubles
TEXT        STRING                                               UTF-8
OBJECT      everything else, and types that are not known        Python values, or bytes
                                                                 that are read when needed
=========== ==================================================== ==========================
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any

from spark_cep.pattern.expressions.values.arithmetic import EXACT, fit_decimal
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    SqlType,
)

#: Digits of a decimal that fit into 64 bits, whatever they are.
MOST_WHOLE_DIGITS = 18
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LOCAL_EPOCH = _EPOCH.replace(tzinfo=None)
_EPOCH_DAY = _EPOCH.date().toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)


class Representation(Enum):
    """The representation of a column's values in memory."""

    WHOLE = "whole"
    DOUBLE = "double"
    TEXT = "text"
    OBJECT = "object"


def representation(kind: SqlType | None) -> Representation:
    """The representation of a column of this type; ``None``: the type is not known."""
    if kind in (INT, BIGINT, BOOLEAN, DATE, TIMESTAMP) or is_whole_decimal(kind):
        return Representation.WHOLE
    if kind in (FLOAT, DOUBLE):
        return Representation.DOUBLE
    return Representation.TEXT if kind == STRING else Representation.OBJECT


def is_whole_decimal(kind: SqlType | None) -> bool:
    """Return whether values of a type are decimals that stand as whole numbers."""
    return isinstance(kind, DecimalType) and kind.precision <= MOST_WHOLE_DIGITS


def to_whole(kind: SqlType) -> Callable[[Any], int]:
    """From a Python value of a WHOLE type to its number.

    The function raises TypeError, ValueError, AttributeError or OverflowError for other values.
    """
    if kind == TIMESTAMP:
        return lambda value: (value - _EPOCH) // _MICROSECOND
    if kind == DATE:
        return lambda value: int(value.toordinal()) - _EPOCH_DAY
    if isinstance(kind, DecimalType):
        return lambda value: _scaled(value, kind)
    return int


def _scaled(value: Any, kind: DecimalType) -> int:
    exact = Decimal(value)
    fitted = fit_decimal(exact, kind)
    if fitted is None or fitted != exact:
        raise ValueError(f"{value!r} does not fit")
    return int(EXACT.scaleb(fitted, kind.scale))


def from_whole(kind: SqlType) -> Callable[[int], Any]:
    """From the number of a value of a WHOLE type, or of a TIMESTAMP_NTZ, to the Python value."""
    if kind == TIMESTAMP_NTZ:
        return lambda whole: _LOCAL_EPOCH + whole * _MICROSECOND
    if kind == TIMESTAMP:
        return lambda whole: _EPOCH + whole * _MICROSECOND
    if kind == DATE:
        return lambda whole: dt.date.fromordinal(whole + _EPOCH_DAY)
    if kind == BOOLEAN:
        return bool
    if isinstance(kind, DecimalType):
        exponent = -kind.scale
        return lambda whole: EXACT.scaleb(Decimal(whole), exponent)
    return int
