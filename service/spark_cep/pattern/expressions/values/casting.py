"""CAST in Python, equal to Spark's TRY_CAST: what does not fit is NULL."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from spark_cep.pattern.expressions.canonical import timestamp_text
from spark_cep.pattern.expressions.intervals import as_midnight, interval_text
from spark_cep.pattern.expressions.values.arithmetic import (
    BIGINT_RANGE,
    EXACT,
    INT_RANGE,
    fit_decimal,
)
from spark_cep.pattern.expressions.values.time_texts import (
    BLANK_AND_CONTROL,
    date_of,
    timestamp_of,
)
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    DecimalType,
    SqlType,
)

_INTEGER = re.compile(r"([+-]?)0*([0-9]+)\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_SPECIAL = {
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
    "nan": math.nan,
}
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_BLANK = "".join(map(chr, range(0x21)))
_BIGINT_DIGITS = 19
_PLAIN_FROM, _PLAIN_TO = 1e-3, 1e7
"""Doubles between these are written without an exponent."""


def caster(target: SqlType) -> Callable[[Any], Any]:
    """The function that casts a value that is not NULL to ``target``."""
    if isinstance(target, DecimalType):
        return lambda value: _to_decimal(value, target)
    return _CASTS[target]


def _in_range(value: int, bounds: tuple[int, int]) -> int | None:
    return value if bounds[0] <= value <= bounds[1] else None


def _to_integer(value: Any, bounds: tuple[int, int]) -> int | None:
    if isinstance(value, str):
        match = _INTEGER.match(value.strip(BLANK_AND_CONTROL))
        if match is None or len(match[2]) > _BIGINT_DIGITS:
            return None
        return _in_range(int(match[1] + match[2]), bounds)
    if isinstance(value, float):
        if math.isnan(value):
            return None
        low, high = float(bounds[0]), float(bounds[1])
        if math.isinf(value) or math.floor(value) > high or math.ceil(value) < low:
            return None
        return max(bounds[0], min(bounds[1], int(value)))
    return _in_range(int(value), bounds)


def _to_double(value: Any) -> float | None:
    if not isinstance(value, str):
        return float(value)
    text = value.strip(_BLANK)
    special = _SPECIAL.get(text.lower())
    if special is not None:
        return special
    if text[-1:] in ("d", "D", "f", "F"):
        text = text[:-1]
    return float(text) if _NUMBER.match(text) else None


def _to_decimal(value: Any, target: DecimalType) -> Decimal | None:
    if isinstance(value, str):
        text = value.strip(_BLANK)
        return fit_decimal(EXACT.create_decimal(text), target) if _NUMBER.match(text) else None
    if isinstance(value, float):
        return fit_decimal(Decimal(repr(value)), target) if math.isfinite(value) else None
    return fit_decimal(Decimal(value), target)


def _to_boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        word = value.strip(BLANK_AND_CONTROL).lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return bool(value != 0)


def _to_string(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, timedelta):
        return interval_text(value)
    if isinstance(value, datetime):
        text = timestamp_text(value)
        return text.rstrip("0") if "." in text else text
    if isinstance(value, date):
        return value.isoformat()
    return repr(value)


def _double_text(value: float) -> str:
    """The shortest text that gives the number again, written as Java does."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign, digits, _ = (exact := Decimal(repr(value))).normalize().as_tuple()
    if not value or _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        text = f"{exact:f}"
        return text if "." in text else f"{text}.0"
    if len(digits) == 1:
        # Java writes two digits at least, and the nearest that have two.
        sign, digits, _ = (exact := Decimal(f"{value:.1e}")).normalize().as_tuple()
    behind = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{behind}E{exact.adjusted()}"


def _to_date(value: Any) -> date | None:
    if isinstance(value, datetime):
        return value.astimezone(UTC).date()
    if isinstance(value, date):
        return value
    return date_of(value)


def _to_timestamp(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return as_midnight(value)
    return timestamp_of(value)


_CASTS: dict[SqlType, Callable[[Any], Any]] = {
    INT: partial(_to_integer, bounds=INT_RANGE),
    BIGINT: partial(_to_integer, bounds=BIGINT_RANGE),
    DOUBLE: _to_double,
    BOOLEAN: _to_boolean,
    STRING: _to_string,
    DATE: _to_date,
    TIMESTAMP: _to_timestamp,
}
