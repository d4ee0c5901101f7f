"""Time zones: what a clock on the wall shows, and the point in time that it means.

Zones are named as in the IANA database (``Europe/Berlin``). Where clocks are turned back, a local
time that comes twice means the first of the two; where they are turned forward, one that does not
exist means as much later as is left out. Beyond the years 1 to 9999 the answer is NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from difflib import get_close_matches
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

_OF_THE_MACHINE = {"localtime", "posixrules", "Factory"}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}\Z")


@cache
def _known() -> frozenset[str]:
    return frozenset(available_timezones()) - _OF_THE_MACHINE


def zone(name: str) -> tzinfo:
    """The zone of a name; ``ValueError`` with the nearest name when there is none."""
    if name in ("UTC", "Z"):
        return UTC
    if _NAME.match(name) is None or name not in _known():
        near = get_close_matches(name, _known(), 1)
        hint = f"; did you mean {near[0]}?" if near else ", such as 'Europe/Berlin'"
        raise ValueError(f"{name!r} is not the IANA name of a time zone{hint}")
    return ZoneInfo(name)


def at(name: str = "UTC") -> Callable[[datetime], datetime]:
    """The function that gives a point in time as the zone's clock and calendar show it."""
    place = zone(name)
    return lambda value: value.astimezone(place)


def from_clock(value: datetime, place: tzinfo) -> datetime:
    """The point in time when clocks of the zone show what ``value`` shows."""
    return value.replace(tzinfo=place, fold=0).astimezone(UTC)


def shift(source: str, target: str) -> Callable[[datetime], Any]:
    """The function that reads a timestamp as a clock of ``source`` and shows that of ``target``."""
    before, after = zone(source), zone(target)

    def run(value: datetime) -> Any:
        try:
            moment = from_clock(value.astimezone(UTC), before)
            return moment.astimezone(after).replace(tzinfo=UTC)
        except OverflowError:
            return None

    return run
