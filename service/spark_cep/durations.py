"""Durations as people write them: ``10 seconds``, ``500 ms``, ``1 hour 30 minutes``.

One small language, shared by the settings and by the rules. A duration is one or more pairs of a
number and a unit, largest unit first, each unit at most once; its value is a whole number of
milliseconds. A number alone is refused: it would leave the unit to guesswork.
``parse_duration(format_duration(ms)) == ms`` for every duration.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_UNITS: Final[tuple[tuple[int, tuple[str, ...]], ...]] = (
    (604_800_000, ("week", "weeks", "w")),
    (86_400_000, ("day", "days", "d")),
    (3_600_000, ("hour", "hours", "h")),
    (60_000, ("minute", "minutes", "min", "m")),
    (1_000, ("second", "seconds", "sec", "s")),
    (1, ("ms", "millisecond", "milliseconds", "millis")),
)
_FACTORS: Final = {name: factor for factor, names in _UNITS for name in names}
_PRINTED: Final = tuple((factor, names[0]) for factor, names in _UNITS)
_PAIR: Final = re.compile(r"\s*([0-9]{1,40}(?:\.[0-9]{1,6})?)\s*([A-Za-z]+)")

PATTERN: Final = rf"^\s*([0-9]{{1,40}}(\.[0-9]{{1,6}})?\s*(?i:{'|'.join(_FACTORS)})\s*)+$"
"""What all durations match, as a regular expression for schemas."""

MAX_DURATION_MS: Final = 36_500 * 86_400_000
"""Longest duration: 36,500 days."""

ALLOWED: Final = (
    "a number and a unit, one of ms, seconds, minutes, hours, days, weeks"
    " (10 seconds, 500 ms, 1 hour 30 minutes), at most 36500 days"
)
"""What a duration may look like, as a sentence for messages."""


class DurationError(ValueError):
    """A text is not a duration; ``wrong`` says why, as the end of a sentence about it, and quotes
    nothing of it."""

    def __init__(self, text: str, wrong: str) -> None:
        self.wrong = wrong
        super().__init__(f"{text!r} {wrong}: allowed is {ALLOWED}")


def parse_duration(text: str) -> int:
    """The milliseconds that ``text`` names; ``DurationError`` says what is allowed instead."""
    total = Decimal(0)
    position, last_factor = 0, MAX_DURATION_MS
    stripped = text.strip()
    while position < len(stripped):
        pair = _PAIR.match(stripped, position)
        if pair is None:
            why = ": its unit is missing" if stripped[position:].isdigit() else ""
            raise DurationError(text, f"is not a duration{why}")
        factor = _FACTORS.get(pair.group(2).lower())
        if factor is None:
            raise DurationError(text, "is not a duration: its unit is not known")
        if factor >= last_factor:
            raise DurationError(text, "is not a duration: the largest unit must come first")
        total += Decimal(pair.group(1)) * factor
        position, last_factor = pair.end(), factor
    if total > MAX_DURATION_MS:
        raise DurationError(text, "is too long")
    if not stripped or total != total.to_integral_value():
        raise DurationError(text, "is not a duration")
    return int(total)


def format_duration(ms: int) -> str:
    """The duration as text, in the largest units that give whole numbers."""
    if ms < 0:
        raise ValueError(f"a duration is not negative: {ms} ms")
    parts = []
    rest = ms
    for factor, name in _PRINTED:
        count, rest = divmod(rest, factor)
        if count:
            plural = "" if count == 1 or name == "ms" else "s"
            parts.append(f"{count} {name}{plural}")
    return " ".join(parts) or "0 ms"
