"""Intervals, and the arithmetic of dates, timestamps and intervals.

A day-time interval is a ``timedelta`` (whole microseconds), a year-month interval is ``Months``. A
result beyond the years 1 to 9999 is NULL. Adding months keeps the day of the month, or takes the
month's last day where it has fewer.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
UNITS = (*MICROSECONDS, *MONTHS)
FORM = "INTERVAL 5 MINUTES, INTERVAL '1' DAY or INTERVAL 1 HOUR 30 MINUTES"

_PART = re.compile(r"\s*([+-]?[0-9]{1,18})(?:\.([0-9]{1,6}))?\s+([A-Za-z]+)")
_LONGEST = timedelta.max // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Months:
    """A year-month interval."""

    count: int


def unit_of(word: str) -> str | None:
    """The unit that a word names, in the singular or plural; ``None`` for none."""
    name = word.upper()
    return next((unit for unit in UNITS if name in (unit, f"{unit}S")), None)


def interval(text: str) -> timedelta | Months | str:
    """The interval of a text such as ``1 HOUR 30 MINUTES``; a sentence on what is wrong with it."""
    place = months = micros = 0
    kinds = set()
    while part := _PART.match(text, place):
        count, fraction, word = part.groups()
        unit = unit_of(word)
        if unit is None:
            return f"{word} is not a unit of time; units are {', '.join(UNITS)}"
        if fraction and unit != "SECOND":
            return f"only seconds have a fraction, not {unit}"
        kinds.add(unit in MONTHS)
        if unit in MONTHS:
            months += int(count) * MONTHS[unit]
        else:
            whole = abs(int(count)) * MICROSECONDS[unit] + int(f"{fraction or 0:0<6}")
            micros += -whole if count.startswith("-") else whole
        place = part.end()
    if text[place:].strip() or not kinds:
        return f"{text.strip()!r} is not an interval"
    if len(kinds) > 1:
        return "an interval is of years and months, or of weeks, days and smaller units"
    if abs(micros) > _LONGEST or abs(months) > 12 * 10_000:
        return "the interval is too long"
    return Months(months) if months or kinds == {True} else timedelta(microseconds=micros)


def interval_text(value: timedelta | Months) -> str:
    """The interval in the largest unit that holds it."""
    if isinstance(value, Months):
        unit = "YEAR" if value.count % 12 == 0 else "MONTH"
        return f"INTERVAL {value.count // MONTHS[unit]} {unit}S"
    micros = value // timedelta(microseconds=1)
    unit = next(unit for unit in reversed(MICROSECONDS) if micros % MICROSECONDS[unit] == 0)
    return f"INTERVAL {micros // MICROSECONDS[unit]} {unit}S"


def as_midnight(value: date) -> datetime:
    """The start of a day in UTC."""
    return datetime.combine(value, time.min, UTC)


def as_moment(value: date) -> datetime:
    """A timestamp as it is, a day as its start in UTC."""
    return value if isinstance(value, datetime) else as_midnight(value)


def add_months(value: Any, count: int) -> Any:
    """The day, or point in time, some months later; NULL beyond the years 1 to 9999."""
    years, month = divmod(value.month - 1 + count, 12)
    year = value.year + years
    if not date.min.year <= year <= date.max.year:
        return None
    return value.replace(
        year=year, month=month + 1, day=min(value.day, monthrange(year, month + 1)[1])
    )


def is_temporal(value: Any) -> bool:
    """Return whether a value takes part in the arithmetic of time."""
    return isinstance(value, (date, timedelta, Months))


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, (timedelta, Months)) and isinstance(right, date):
        left, right = right, left
    if isinstance(right, Months):
        if isinstance(left, datetime):
            return add_months(left.astimezone(UTC), right.count)
        return add_months(left, right.count)
    return as_moment(left) + right if isinstance(left, date) else left + right


def _multiply(left: Any, right: Any) -> Any:
    if isinstance(right, Months):
        left, right = right, left
    return Months(left.count * right) if isinstance(left, Months) else left * right


def _subtract(left: Any, right: Any) -> Any:
    if isinstance(right, Months):
        return _add(left, Months(-right.count))
    if isinstance(left, date):
        return as_moment(left) - (as_moment(right) if isinstance(right, date) else right)
    return left - right


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
}


def time_arithmetic(sign: str) -> Callable[[Any, Any], Any]:
    """The computation of ``left sign right`` where one of them is a time or an interval."""
    compute = _ARITHMETIC.get(sign)

    def run(left: Any, right: Any) -> Any:
        if compute is None:
            return None
        try:
            return compute(left, right)
        except (OverflowError, TypeError, AttributeError):
            return None

    return run
