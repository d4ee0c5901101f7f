"""Functions of dates and timestamps, in UTC unless a time zone is given."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from spark_cep.pattern.expressions.functions.row import (
    Function,
    Kinds,
    Result,
    takes,
)
from spark_cep.pattern.expressions.intervals import (
    MICROSECONDS,
    MONTHS,
    UNITS,
    add_months,
    as_moment,
    unit_of,
)
from spark_cep.pattern.expressions.values import zones
from spark_cep.pattern.types import BIGINT, DATE, INT, STRING, TIMESTAMP, SqlType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1)
_DAYS_AND_NUMBER = takes((DATE, TIMESTAMP), INT, gives=DATE)
_DAYS = takes((DATE, TIMESTAMP), gives=INT)
_DAY_PART = takes((DATE, TIMESTAMP), STRING, gives=INT)
_TIME_PART = takes(TIMESTAMP, STRING, gives=INT)


def _or_null(compute: Callable[..., Any]) -> Callable[..., Any]:
    """NULL beyond the years 1 to 9999."""

    def run(*given: Any) -> Any:
        try:
            return compute(*given)
        except OverflowError:
            return None

    return run


def _day(value: date) -> date:
    return value.astimezone(UTC).date() if isinstance(value, datetime) else value


def _part(read: Callable[[Any], int]) -> Callable[..., Callable[[Any], Any]]:
    """A part of the calendar or the clock, in a zone where the value is a point in time."""

    def prepare(zone: str = "UTC") -> Callable[[Any], Any]:
        at = zones.at(zone)
        return _or_null(lambda value: read(at(value) if isinstance(value, datetime) else value))

    return prepare


def _zoned(rule: Result) -> Result:
    """A day has no clock, so a zone needs a TIMESTAMP."""

    def result(kinds: Kinds) -> SqlType | str:
        if len(kinds) > 1 and kinds[0] == DATE:
            return "a DATE is the same in every time zone; the zone needs a TIMESTAMP"
        return rule(kinds)

    return result


def _to_date(zone: str = "UTC") -> Callable[[datetime], Any]:
    at = zones.at(zone)
    return _or_null(lambda value: at(value).date())


def _unit(word: str) -> str:
    unit = unit_of(word)
    if unit is None:
        raise ValueError(f"{word!r} is not a unit of time; units are {', '.join(UNITS)}")
    return unit


_FIRST_MONTH = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}


def _truncating(word: str, zone: str = "UTC") -> Callable[[Any], Any]:
    unit, place = _unit(word), zones.zone(zone)
    step = MICROSECONDS.get(unit, 0)

    def run(value: Any) -> Any:
        local = as_moment(value).astimezone(place)
        day = local.replace(hour=0, minute=0, second=0, microsecond=0)
        if unit in _FIRST_MONTH:
            months = _FIRST_MONTH[unit]
            first = day.replace(month=(day.month - 1) // months * months + 1, day=1)
            return zones.from_clock(first, place)
        if unit == "WEEK":
            return zones.from_clock(day - timedelta(days=day.weekday()), place)
        if unit == "DAY":
            return zones.from_clock(day, place)
        # Within the day the hands go round whole units, whatever the day's length.
        clock = local.replace(tzinfo=UTC) - day.replace(tzinfo=UTC)
        return local.astimezone(UTC) - timedelta(microseconds=clock // _MICROSECOND % step)

    return _or_null(run)


def _in_months(day: date) -> int:
    return (day.year * 12 + day.month) * 32 + day.day


def _difference(word: str) -> Callable[[Any, Any], int]:
    unit = _unit(word)
    if unit in MICROSECONDS:
        length = MICROSECONDS[unit]

        def run(start: Any, end: Any) -> int:
            micros = (as_moment(end) - as_moment(start)) // _MICROSECOND
            return -(-micros // length) if micros < 0 else micros // length

        return run

    def months(start: Any, end: Any) -> int:
        first, last = as_moment(start).astimezone(UTC), as_moment(end).astimezone(UTC)
        day = last.date()
        if day > first.date() and last.time() < first.time():
            day -= _DAY
        elif day < first.date() and last.time() > first.time():
            day += _DAY
        # A month has no more than 31 days, so this counts whole months.
        passed = _in_months(day) - _in_months(first)
        return (abs(passed) // (32 * MONTHS[unit])) * (1 if passed > 0 else -1)

    return months


def _calendar(read: Callable[[Any], int]) -> Function:
    return Function((1, 2), _zoned(_DAY_PART), prepare=_part(read), constants={1: str}, cheap=True)


def _clock(read: Callable[[Any], int]) -> Function:
    return Function((1, 2), _TIME_PART, prepare=_part(read), constants={1: str}, cheap=True)


def _in_zone(shift: Callable[[str], Callable[[datetime], Any]]) -> Function:
    result = takes(TIMESTAMP, STRING, gives=TIMESTAMP)
    return Function((2, 2), result, prepare=shift, constants={1: str}, cheap=True)


def _since_epoch(unit: str) -> Function:
    length = timedelta(microseconds=MICROSECONDS[unit])
    result = takes(TIMESTAMP, gives=BIGINT)
    return Function((1, 1), result, lambda value: (value - _EPOCH) // length, cheap=True)


def _from_epoch(unit: str) -> Function:
    length = timedelta(microseconds=MICROSECONDS[unit])
    result = takes((INT, BIGINT), gives=TIMESTAMP)
    return Function((1, 1), result, _or_null(lambda count: _EPOCH + count * length), cheap=True)


def _shifted_day(sign: int) -> Callable[[Any, int], Any]:
    return _or_null(lambda day, count: _day(day) + timedelta(days=sign * count))


TIMES: dict[str, Function] = {
    "YEAR": _calendar(lambda v: int(v.year)),
    "MONTH": _calendar(lambda v: int(v.month)),
    "DAY": _calendar(lambda v: int(v.day)),
    "DAYOFWEEK": _calendar(lambda v: int(v.isoweekday()) % 7 + 1),
    "HOUR": _clock(lambda v: int(v.hour)),
    "MINUTE": _clock(lambda v: int(v.minute)),
    "SECOND": _clock(lambda v: int(v.second)),
    "TO_DATE": Function(
        (1, 2),
        _zoned(takes((DATE, TIMESTAMP), STRING, gives=DATE)),
        prepare=_to_date,
        constants={1: str},
        cheap=True,
    ),
    "DATE_TRUNC": Function(
        (2, 3),
        takes(STRING, (DATE, TIMESTAMP), STRING, gives=TIMESTAMP),
        prepare=_truncating,
        constants={0: str, 2: str},
        words=True,
        cheap=True,
    ),
    "FROM_UTC_TIMESTAMP": _in_zone(lambda zone: zones.shift("UTC", zone)),
    "TO_UTC_TIMESTAMP": _in_zone(lambda zone: zones.shift(zone, "UTC")),
    "CONVERT_TIMEZONE": Function(
        (3, 3),
        takes(STRING, STRING, TIMESTAMP, gives=TIMESTAMP),
        prepare=zones.shift,
        cheap=True,
        constants={0: str, 1: str},
    ),
    "DATEDIFF": Function(
        (2, 2), _DAYS, lambda end, start: (_day(end) - _day(start)).days, cheap=True
    ),
    "TIMESTAMPDIFF": Function(
        (3, 3),
        takes(STRING, (DATE, TIMESTAMP), gives=BIGINT),
        prepare=_difference,
        constants={0: str},
        words=True,
        cheap=True,
    ),
    "DATE_ADD": Function((2, 2), _DAYS_AND_NUMBER, _shifted_day(1), cheap=True),
    "DATE_SUB": Function((2, 2), _DAYS_AND_NUMBER, _shifted_day(-1), cheap=True),
    "ADD_MONTHS": Function(
        (2, 2), _DAYS_AND_NUMBER, lambda day, count: add_months(_day(day), count), cheap=True
    ),
    "UNIX_SECONDS": _since_epoch("SECOND"),
    "UNIX_MILLIS": _since_epoch("MILLISECOND"),
    "UNIX_MICROS": _since_epoch("MICROSECOND"),
    "TIMESTAMP_SECONDS": _from_epoch("SECOND"),
    "TIMESTAMP_MILLIS": _from_epoch("MILLISECOND"),
    "TIMESTAMP_MICROS": _from_epoch("MICROSECOND"),
}
