"""Instants and durations as tests write them, to and from milliseconds since 1970 (UTC)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from spark_cep.durations import ALLOWED, parse_duration
from spark_cep.event_times import instant_us
from spark_cep.pattern.document.plain_data import duration_text

Instant = str | int | date | timedelta
"""A moment of event time: ``"+1 second"`` and ``"-2 minutes"`` from the virtual clock (or a
``timedelta``), ISO 8601 text or a ``datetime`` (UTC where it has no zone), or milliseconds since
1970."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MICROSECOND = timedelta(microseconds=1)
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)


def instant_ms(value: Instant, now_ms: int) -> int:
    """The milliseconds of an instant, rounded down; ``ValueError`` says what is allowed instead."""
    return instant_micros(value, now_ms) // 1_000


def instant_micros(value: Instant, now_ms: int) -> int:
    """Return the instant in microseconds."""
    match value:
        case timedelta():
            return now_ms * 1_000 + value // _MICROSECOND
        case str() if value.strip()[:1] in ("+", "-"):
            sign = -1 if value.strip()[0] == "-" else 1
            return (now_ms + sign * duration_ms(value.strip()[1:])) * 1_000
        case bool():
            pass
        case int():
            return value * 1_000
        case str() | date():
            try:
                return instant_us(value)
            except ValueError:
                pass
    raise ValueError(
        f"{value!r} is not an instant: allowed are '+1 second' and '-1 second' from the clock,"
        " '2026-01-31T12:00:00Z', a datetime, a timedelta from the clock, and milliseconds since"
        " 1970"
    )


def duration_ms(value: str | timedelta) -> int:
    """The milliseconds of a duration; ``ValueError`` or ``TypeError`` says what is allowed."""
    if not isinstance(value, str | timedelta):
        raise TypeError(f"{value!r} is not a duration: allowed is {ALLOWED}, or a timedelta")
    return parse_duration(duration_text(value))


def moment(ms: int) -> datetime:
    """The instant in UTC; what lies beyond the years 1 to 9999 is their first or last one."""
    try:
        return _EPOCH + ms * _MILLISECOND
    except OverflowError:
        return _LATEST if ms > 0 else _EARLIEST


def instant_text(at: datetime) -> str:
    """The instant as people read it, with milliseconds where there are some."""
    precision = "milliseconds" if at.microsecond else "seconds"
    return at.replace(tzinfo=None).isoformat(timespec=precision) + "Z"
