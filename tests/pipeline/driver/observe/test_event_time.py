"""Event times as pages and log have them."""

from __future__ import annotations

from spark_cep.event_times import FIRST_TIME, LAST_TIME
from spark_cep.pipeline.driver.observe.event_time import event_time_text
from spark_cep.pipeline.match.watermark import BEGINNING, END


def test_times_beyond_the_calendar() -> None:
    """A watermark may lie before the year 1, or behind 9999."""
    assert event_time_text(FIRST_TIME - 10_001) == "0001-01-01T00:00:00Z"
    assert event_time_text(LAST_TIME + 60_000) == "9999-12-31T23:59:59.999Z"
    for none in (None, BEGINNING, END):
        assert event_time_text(none) is None
