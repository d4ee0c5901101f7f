"""Values of a document and of columns: how a case writes them, and when two are the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from spark_cep.durations import DurationError, format_duration, parse_duration
from spark_cep.event_times import instant_text, instant_us
from spark_cep.pattern.types import (
    BIGINT,
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    RecordType,
    SqlType,
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
#: Doubles that are computed in another order differ so much.
_RELATIVE: Final = 1e-9
#: Bytes are written as Avro's JSON has them: one character for each.
_BYTES: Final = "latin-1"


def column_value(value: Any, kind: SqlType | None) -> Any:
    """The value of a column of type ``kind`` that a document's ``value`` stands for: YAML has no
    decimals and bytes, and JSON no times either. What does not fit is left for the schema to
    refuse."""
    match kind:
        case RecordType(fields=fields) if isinstance(value, Mapping):
            return {name: column_value(each, fields.get(name)) for name, each in value.items()}
        case ArrayType(element=element) if isinstance(value, list):
            return [column_value(each, element) for each in value]
        case MapType(value=element) if isinstance(value, Mapping):
            return {name: column_value(each, element) for name, each in value.items()}
    try:
        return _single(value, kind)
    except (ValueError, InvalidOperation):
        return value


def _single(value: Any, kind: SqlType | None) -> Any:
    if isinstance(kind, DecimalType) and isinstance(value, int | float | str):
        return value if isinstance(value, bool) else Decimal(str(value))
    if kind == TIMESTAMP and isinstance(value, str | date):
        return _EPOCH + instant_us(value) * _MICROSECOND
    if kind == DATE and isinstance(value, str):
        return date.fromisoformat(value)
    if kind == BINARY and isinstance(value, str):
        return value.encode(_BYTES)
    if kind in (DOUBLE, FLOAT) and type(value) is int:
        return float(value)
    return value


def time_value(micros: int, kind: SqlType | None) -> Any:
    """The value of a column with the event's time, ``micros`` since 1970."""
    if kind in (BIGINT, INT):
        return micros // 1_000
    moment = _EPOCH + micros * _MICROSECOND
    return plain(moment) if kind == STRING else moment


def plain(value: Any) -> Any:
    """The value as YAML and JSON write it."""
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            whole = value == value.to_integral_value() and abs(value) < 1 << 53
            return int(value) if whole else str(value)
        case datetime():
            zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return instant_text((zoned - _EPOCH) // _MICROSECOND)
        case date():
            return value.isoformat()
        case timedelta():
            return duration_words(value // _MICROSECOND)
        case bytes():
            return value.decode(_BYTES)
        case Mapping():
            return {str(name): plain(each) for name, each in value.items()}
        case Sequence():
            return [plain(each) for each in value]
    return str(value)


def duration_words(micros: int) -> str:
    """The duration as cases write it: `90 s` is `1 minute 30 seconds`."""
    sign = "-" if micros < 0 else ""
    return sign + format_duration(abs(micros) // 1_000)


def relative(micros: int, start: int) -> str:
    """The time, from the case's start where that says it exactly."""
    since = micros - start
    return instant_text(micros) if since < 0 or since % 1_000 else duration_words(since)


def same(expected: Any, found: Any, start: int) -> bool:
    """Return whether a found value is the one that a document expects. Of records, only the fields
    that are written are compared; ``start``: of the case, in microseconds."""
    match found:
        case bool() | None:
            return expected is found
        case datetime():
            return _same_time(expected, found, start)
        case timedelta():
            return _micros(expected) == found // _MICROSECOND
        case date():
            return str(expected) == found.isoformat()
        case int() | float() | Decimal():
            return _same_number(expected, found)
        case bytes():
            return isinstance(expected, str) and expected.encode(_BYTES, "replace") == found
        case Mapping():
            return isinstance(expected, Mapping) and all(
                name in found and same(each, found[name], start) for name, each in expected.items()
            )
        case str():
            return bool(expected == found) or (
                isinstance(expected, date) and plain(expected) == found
            )
        case Sequence():
            return (
                isinstance(expected, list)
                and len(expected) == len(found)
                and all(same(*pair, start) for pair in zip(expected, found, strict=True))
            )
    return bool(expected == found)


def _same_number(expected: Any, found: float | Decimal) -> bool:
    if isinstance(expected, bool) or not isinstance(expected, int | float | str):
        return False
    try:
        if isinstance(found, Decimal):
            return Decimal(str(expected)) == found
        if isinstance(expected, str):
            return isinstance(found, float) and float(expected) == found
    except (ValueError, InvalidOperation):
        return isinstance(expected, str) and expected == str(found)
    return expected == found or (
        isinstance(found, float) and math.isclose(expected, found, rel_tol=_RELATIVE)
    )


def _same_time(expected: Any, found: datetime, start: int) -> bool:
    zoned = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    micros = (zoned - _EPOCH) // _MICROSECOND
    from_start = _micros(expected)
    if from_start is not None:
        return start + from_start == micros
    try:
        return isinstance(expected, str | date) and instant_us(expected) == micros
    except ValueError:
        return False


def _micros(expected: Any) -> int | None:
    """The microseconds of a duration that a document writes."""
    if not isinstance(expected, str):
        return None
    sign = -1 if expected.strip()[:1] == "-" else 1
    try:
        return sign * parse_duration(expected.strip().lstrip("+-")) * 1_000
    except DurationError:
        return None
