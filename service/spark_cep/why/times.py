"""Times in accounts."""

from __future__ import annotations

from spark_cep.event_times import time_text


def instant_text(ms: int) -> str:
    """The time as ISO 8601, in UTC; beyond the years 1 to 9999 in words."""
    try:
        return time_text(ms)
    except OverflowError:
        return "the end of time" if ms > 0 else "before all time"
