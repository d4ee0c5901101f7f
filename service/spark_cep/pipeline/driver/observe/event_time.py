"""Event times in log and pages."""

from __future__ import annotations

from spark_cep.event_times import FIRST_TIME, LAST_TIME, time_text
from spark_cep.pipeline.match.watermark import BEGINNING, END


def event_time_text(ms: int | None) -> str | None:
    """Return an event time as rules have it; ``None`` for none, and for a watermark before the
    first event or behind the end of the input. What lies beyond the years 1 to 9999 is their
    end."""
    if ms is None or not BEGINNING < ms < END:
        return None
    return time_text(min(max(ms, FIRST_TIME), LAST_TIME))
