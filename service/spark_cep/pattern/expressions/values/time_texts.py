"""Days and points in time written as text, read as Spark's CAST reads them.

A day is ``2024-02-29``, ``2024-02`` or ``2024``; what follows the first behind a space or ``T``
does not matter. A point in time may end with a clock and a zone; without a zone it is in UTC. What
is none of these is NULL, and so is what lies beyond the years 1 to 9999, a clock without a day,
which would mean today, and a zone of three letters that is none of the IANA database: ``BST`` is
Bangladesh to Java.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

from spark_cep.pattern.expressions.values import zones

BLANK_AND_CONTROL = "".join(map(chr, range(0x21))) + "\x7f"
_DATE = re.compile(
    r"\+?([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL | re.ASCII
)
_TIMESTAMP = re.compile(
    r"\+?([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(?:([^0-9.].*|\..+))?)?)?)?"
    r")?)?",
    re.DOTALL | re.ASCII,
)
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:([0-9]{1,2})(?::([0-9]{2}|[0-9]$)(?::([0-9]{2}))?)?"
    r"|([0-9]{2})([0-9]{2})([0-9]{2})?)"
)
_UTC_NAMES = ("Z", "UTC", "GMT", "UT")
_LAST_OF_SIXTY = 59
_LONGEST_OFFSET = timedelta(hours=18)


def date_of(text: str) -> date | None:
    """The day that a text is."""
    found = _DATE.fullmatch(text.strip(BLANK_AND_CONTROL))
    return None if found is None else _day(*found.groups())


def timestamp_of(text: str) -> datetime | None:
    """The point in time that a text is."""
    found = _TIMESTAMP.fullmatch(text.strip(BLANK_AND_CONTROL))
    if found is None:
        return None
    year, month, number, hour, minute, second, fraction, zone = found.groups()
    place = UTC if zone is None else _zone(zone.strip(BLANK_AND_CONTROL))
    day = _day(year, month, number)
    if day is None or place is None:
        return None
    micros = int(f"{fraction or '0':0<6}"[:6])
    try:
        clock = time(int(hour or 0), int(minute or 0), int(second or 0), micros)
        return zones.from_clock(datetime.combine(day, clock), place)
    except (ValueError, OverflowError):
        return None


def _day(year: str, month: str | None, number: str | None) -> date | None:
    try:
        return date(int(year), int(month or 1), int(number or 1))
    except ValueError:
        return None


def _zone(name: str) -> tzinfo | None:
    if name in _UTC_NAMES:
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        return _offset(*offset.groups())
    try:
        return zones.zone(name)
    except ValueError:
        return None


def _offset(sign: str, *parts: str | None) -> tzinfo | None:
    hours, minutes, seconds = (int(a or b or 0) for a, b in zip(parts[:3], parts[3:], strict=True))
    shift = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if max(minutes, seconds) > _LAST_OF_SIXTY or shift > _LONGEST_OFFSET:
        return None
    return timezone(-shift if sign == "-" else shift)
