"""Functions of dates and timestamps, in UTC unless a time zone is given."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from spark_cep.pattern.expressions.functions.row import (
    DAY_PART,
    TIME_PART,
    TO_BIGINT,
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
_DAYS_AND_NUMBER = takes((DATE, TIMESTAMP), INT, gives=DATE)
_DAYS = takes((DATE, TIMESTAMP), gives=INT)
_SAMPLE = "TIMESTAMP '2026-01-31 23:30:00'"


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


def _micros(value: datetime) -> int:
    return (value - _EPOCH) // _MICROSECOND


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
        forward = first <= last
        if not forward:
            first, last = last, first
        count = (last.year - first.year) * 12 + last.month - first.month
        if (last.day, last.time()) < (first.day, first.time()):
            count -= 1
        count //= MONTHS[unit]
        return count if forward else -count

    return months


def _in_zone(zone: str) -> Callable[[datetime], Any]:
    return zones.shift("UTC", zone)


def _from_zone(zone: str) -> Callable[[datetime], Any]:
    return zones.shift(zone, "UTC")


def _after(unit: str) -> Callable[[int], Any]:
    length = timedelta(microseconds=MICROSECONDS[unit])
    return _or_null(lambda count: _EPOCH + count * length)


def _calendar(read: Callable[[Any], int], doc: str, example: str, expected: int) -> Function:
    return Function(
        arguments=(1, 2),
        result=_zoned(DAY_PART),
        prepare=_part(read),
        constants={1: str},
        cheap=True,
        doc=doc,
        example=example,
        expected=expected,
    )


def _clock(read: Callable[[Any], int], doc: str, example: str, expected: int) -> Function:
    return Function(
        arguments=(1, 2),
        result=TIME_PART,
        prepare=_part(read),
        constants={1: str},
        cheap=True,
        doc=doc,
        example=example,
        expected=expected,
    )


def _since_epoch(divisor: int, doc: str, example: str, expected: int) -> Function:
    return Function(
        arguments=(1, 1),
        result=TO_BIGINT,
        evaluate=lambda value: _micros(value) // divisor,
        cheap=True,
        doc=doc,
        example=example,
        expected=expected,
    )


def _from_epoch(unit: str, doc: str, example: str, expected: datetime) -> Function:
    return Function(
        arguments=(1, 1),
        result=takes((INT, BIGINT), gives=TIMESTAMP),
        evaluate=_after(unit),
        cheap=True,
        doc=doc,
        example=example,
        expected=expected,
    )


def _shifted_day(sign: int) -> Callable[[Any, int], Any]:
    return _or_null(lambda day, count: _day(day) + timedelta(days=sign * count))


TIMES: dict[str, Function] = {
    "YEAR": _calendar(
        lambda v: int(v.year), "The year, in a time zone if one is given.", f"YEAR({_SAMPLE})", 2026
    ),
    "MONTH": _calendar(
        lambda v: int(v.month),
        "The month, 1 to 12.",
        f"MONTH({_SAMPLE}, 'Europe/Berlin')",
        2,
    ),
    "DAY": _calendar(
        lambda v: int(v.day), "The day of the month.", f"DAY({_SAMPLE}, 'Europe/Berlin')", 1
    ),
    "DAYOFWEEK": _calendar(
        lambda v: int(v.isoweekday()) % 7 + 1,
        "The day of the week: 1 is Sunday, 7 is Saturday.",
        "DAYOFWEEK(DATE '2026-01-31')",
        7,
    ),
    "HOUR": _clock(
        lambda v: int(v.hour),
        "The hour, in a time zone if one is given.",
        f"HOUR({_SAMPLE}, 'Europe/Berlin')",
        0,
    ),
    "MINUTE": _clock(lambda v: int(v.minute), "The minute.", f"MINUTE({_SAMPLE})", 30),
    "SECOND": _clock(lambda v: int(v.second), "The second.", f"SECOND({_SAMPLE})", 0),
    "TO_DATE": Function(
        arguments=(1, 2),
        result=_zoned(takes((DATE, TIMESTAMP), STRING, gives=DATE)),
        prepare=_to_date,
        constants={1: str},
        cheap=True,
        doc="The day of a timestamp, in a time zone if one is given; `TO_DATE(x)` is "
        "`CAST(x AS DATE)`.",
        example=f"TO_DATE({_SAMPLE}, 'Europe/Berlin')",
        expected=date(2026, 2, 1),
    ),
    "DATE_TRUNC": Function(
        arguments=(2, 3),
        result=takes(STRING, (DATE, TIMESTAMP), STRING, gives=TIMESTAMP),
        prepare=_truncating,
        constants={0: str, 2: str},
        words=True,
        cheap=True,
        doc="The start of the unit in which a time lies, in a time zone if one is given. Weeks "
        "begin on Monday.",
        example=f"DATE_TRUNC('MONTH', {_SAMPLE})",
        expected=datetime(2026, 1, 1, tzinfo=UTC),
    ),
    "FROM_UTC_TIMESTAMP": Function(
        arguments=(2, 2),
        result=takes(TIMESTAMP, STRING, gives=TIMESTAMP),
        prepare=_in_zone,
        constants={1: str},
        cheap=True,
        doc="The timestamp whose UTC clock shows what the zone's clock shows.",
        example=f"FROM_UTC_TIMESTAMP({_SAMPLE}, 'Europe/Berlin')",
        expected=datetime(2026, 2, 1, 0, 30, tzinfo=UTC),
    ),
    "TO_UTC_TIMESTAMP": Function(
        arguments=(2, 2),
        result=takes(TIMESTAMP, STRING, gives=TIMESTAMP),
        prepare=_from_zone,
        constants={1: str},
        cheap=True,
        doc="The other way round.",
        example=f"TO_UTC_TIMESTAMP({_SAMPLE}, 'Europe/Berlin')",
        expected=datetime(2026, 1, 31, 22, 30, tzinfo=UTC),
    ),
    "CONVERT_TIMEZONE": Function(
        arguments=(3, 3),
        result=takes(STRING, STRING, TIMESTAMP, gives=TIMESTAMP),
        prepare=zones.shift,
        cheap=True,
        constants={0: str, 1: str},
        doc="`CONVERT_TIMEZONE(from, to, ts)`: what clocks of one zone show when those of another "
        "show the timestamp.",
        example=f"CONVERT_TIMEZONE('Europe/Berlin', 'Asia/Tokyo', {_SAMPLE})",
        expected=datetime(2026, 2, 1, 7, 30, tzinfo=UTC),
    ),
    "DATEDIFF": Function(
        arguments=(2, 2),
        result=_DAYS,
        evaluate=lambda end, start: (_day(end) - _day(start)).days,
        cheap=True,
        doc="`DATEDIFF(end, start)`: days from the second to the first.",
        example="DATEDIFF(DATE '2026-02-01', DATE '2026-01-30')",
        expected=2,
    ),
    "TIMESTAMPDIFF": Function(
        arguments=(3, 3),
        result=takes(STRING, (DATE, TIMESTAMP), gives=BIGINT),
        prepare=_difference,
        constants={0: str},
        words=True,
        cheap=True,
        doc="`TIMESTAMPDIFF(unit, start, end)`: whole units from the first time to the second.",
        example=f"TIMESTAMPDIFF(HOUR, DATE '2026-01-31', {_SAMPLE})",
        expected=23,
    ),
    "DATE_ADD": Function(
        arguments=(2, 2),
        result=_DAYS_AND_NUMBER,
        evaluate=_shifted_day(1),
        cheap=True,
        doc="The day so many days later.",
        example="DATE_ADD(DATE '2026-01-31', 1)",
        expected=date(2026, 2, 1),
    ),
    "DATE_SUB": Function(
        arguments=(2, 2),
        result=_DAYS_AND_NUMBER,
        evaluate=_shifted_day(-1),
        cheap=True,
        doc="The day so many days earlier.",
        example="DATE_SUB(DATE '2026-02-01', 1)",
        expected=date(2026, 1, 31),
    ),
    "ADD_MONTHS": Function(
        arguments=(2, 2),
        result=_DAYS_AND_NUMBER,
        evaluate=lambda day, count: add_months(_day(day), count),
        cheap=True,
        doc="The day so many months later; the month's last day where it has fewer days.",
        example="ADD_MONTHS(DATE '2026-01-31', 1)",
        expected=date(2026, 2, 28),
    ),
    "UNIX_SECONDS": _since_epoch(
        1_000_000,
        "Seconds since 1970, rounded down.",
        "UNIX_SECONDS(TIMESTAMP '1970-01-01 00:00:01.5')",
        1,
    ),
    "UNIX_MILLIS": _since_epoch(
        1_000,
        "Milliseconds since 1970, rounded down.",
        "UNIX_MILLIS(TIMESTAMP '1970-01-01 00:00:01.5')",
        1_500,
    ),
    "UNIX_MICROS": _since_epoch(
        1,
        "Microseconds since 1970.",
        "UNIX_MICROS(TIMESTAMP '1970-01-01 00:00:01.5')",
        1_500_000,
    ),
    "TIMESTAMP_SECONDS": _from_epoch(
        "SECOND",
        "The timestamp so many seconds after 1970.",
        "TIMESTAMP_SECONDS(60)",
        _EPOCH + timedelta(minutes=1),
    ),
    "TIMESTAMP_MILLIS": _from_epoch(
        "MILLISECOND",
        "The timestamp so many milliseconds after 1970.",
        "TIMESTAMP_MILLIS(60000)",
        _EPOCH + timedelta(minutes=1),
    ),
    "TIMESTAMP_MICROS": _from_epoch(
        "MICROSECOND",
        "The timestamp so many microseconds after 1970.",
        "TIMESTAMP_MICROS(60000000)",
        _EPOCH + timedelta(minutes=1),
    ),
}
