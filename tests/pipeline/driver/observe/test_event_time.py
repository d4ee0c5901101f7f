"""Event times as pages and log have them."""

from __future__ import annotations

from spark_cep.pipeline.decode.decoder import FIRST_TIME, LAST_TIME
from spark_cep.pipeline.driver.observe.event_time import time_text
from spark_cep.pipeline.match.watermark import BEGINNING, END


def test_times_beyond_the_calendar() -> None:
    """A watermark may lie before the year 1, or behind 9999."""
    assert time_text(FIRST_TIME - 10_001) == "0001-01-01T00:00:00Z"
    assert time_text(LAST_TIME + 60_000) == "9999-12-31T23:59:59.999Z"
    assert (time_text(None), time_text(BEGINNING), time_text(END)) == (None, None, None)
