"""Event times in log and pages."""

from __future__ import annotations

from spark_cep.pattern.document.canonical import instant
from spark_cep.pipeline.decode.decoder import FIRST_TIME, LAST_TIME
from spark_cep.pipeline.match.watermark import BEGINNING, END


def time_text(ms: int | None) -> str | None:
    """Return an event time as rules have it; ``None`` for none, and for a watermark before the
    first event or behind the end of the input. What lies beyond the years 1 to 9999 is their
    end."""
    if ms is None or not BEGINNING < ms < END:
        return None
    return instant(min(max(ms, FIRST_TIME), LAST_TIME))
