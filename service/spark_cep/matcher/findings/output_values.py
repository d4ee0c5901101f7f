"""Column and measure values as output records carry them.

The output schemas know null, boolean, long, double, string, bytes and arrays of these. What Spark
knows beyond that travels as text: decimals in plain digits, timestamps and dates in ISO 8601 (UTC
with ``Z`` where the type has a zone, bare where it has none), durations in ISO 8601, integers
beyond 64 bits in digits, and structs, maps and nested arrays as JSON (bytes in it in base64, NaN
and infinities as strings).
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TypeGuard
from uuid import UUID

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.errors import OutputError

Scalar = bool | int | float | str | bytes | None
OutputValue = Scalar | list[Scalar]

#: Classes of most values: they are asked for first, as abstract classes take longer.
_SCALARS = frozenset({type(None), bool, int, float, str, bytes})
_LONG = range(-(2**63), 2**63)


def output_value(value: object) -> OutputValue:
    """``value`` as one of the types of the output schemas' value union."""
    if type(value) in _SCALARS:
        return _scalar(value)
    if isinstance(value, Mapping):
        return _json_text(value)
    if _is_array(value):
        if any(isinstance(item, Mapping) or _is_array(item) for item in value):
            return _json_text(value)
        return [_scalar(item) for item in value]
    return _scalar(value)


def text_of(value: object) -> str:
    """``value`` as it stands inside of a text: as JSON has it, without quotes around a text, and
    nothing for NULL."""
    plain = _json(output_value(value))
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def time_texts(times: Sequence[int] | I64) -> list[str]:
    """Event times as ISO 8601 in UTC, with milliseconds."""
    moments = np.asarray(times, np.int64).view("datetime64[ms]")
    texts: list[str] = np.datetime_as_string(moments, unit="ms").tolist()
    return [f"{text}Z" for text in texts]


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(
        value, str | bytes | bytearray | memoryview
    )


def _scalar(value: object) -> Scalar:
    match value:
        case None | bool() | float() | str() | bytes():
            return value
        case int():
            return value if value in _LONG else str(value)
        case bytearray() | memoryview():
            return bytes(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return _timestamp(value)
        case date() | time():
            return value.isoformat()
        case timedelta():
            return _duration(value)
        case UUID():
            return str(value)
        case _:
            raise OutputError(
                f"a value of type {type(value).__name__} cannot be written to an output record;"
                " allowed are what Spark SQL's columns hold"
            )


def _timestamp(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _duration(value: timedelta) -> str:
    """ISO 8601 in seconds, ``PT90.5S``; exact to the microsecond."""
    sign = "-" if value < timedelta(0) else ""
    size = abs(value)
    seconds = str(size.days * 86_400 + size.seconds)
    fraction = f".{size.microseconds:06d}".rstrip("0") if size.microseconds else ""
    return f"{sign}PT{seconds}{fraction}S"


def _json_text(value: object) -> str:
    return json.dumps(_json(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _json(value: object) -> object:
    if isinstance(value, Mapping):
        return {_json_name(name): _json(item) for name, item in value.items()}
    if _is_array(value):
        return [_json(item) for item in value]
    plain = _scalar(value)
    if isinstance(plain, bytes):
        return b64encode(plain).decode("ascii")
    if isinstance(plain, float) and not math.isfinite(plain):
        return "NaN" if math.isnan(plain) else "Infinity" if plain > 0 else "-Infinity"
    return plain


def _json_name(name: object) -> str:
    text = _json(name)
    return text if isinstance(text, str) else json.dumps(text)
