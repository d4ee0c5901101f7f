"""Days and times in texts: odd forms that Spark's CAST reads, and what is NULL here."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from spark_cep.pattern.expressions.values.time_texts import date_of, timestamp_of

_TEN = datetime(2024, 2, 29, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29 10:00:00", date(2024, 2, 29)),
        (" 2024-2-29Tanything\n", date(2024, 2, 29)),
        ("2024-02", date(2024, 2, 1)),
        ("+2024", date(2024, 1, 1)),
        ("2024-02 10:00", None),
        ("2023-02-29", None),
        ("10000-01-01", None),
        ("0000-01-01", None),
        ("٢٠٢٤-02-29", None),
        ("", None),
    ],
)
def test_date(text: str, expected: date | None) -> None:
    """A day may have a clock behind it, and may be a month or a year."""
    assert date_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" 2024-02-29 10:00:00 ", _TEN),
        ("2024-02-29 10", _TEN),
        ("2024-02-29 10:00:00 UTC", _TEN),
        ("2024-02-29 11:00:00+01", _TEN),
        ("2024-02-29 11:00:00+1:00", _TEN),
        ("2024-02-29 11:00:00 Europe/Berlin", _TEN),
        ("2024-02-29 08:30:00.000GMT-0130", _TEN),
        ("2024-02-29 10:00:00.1234567Z", _TEN.replace(microsecond=123456)),
        ("2024-02", datetime(2024, 2, 1, tzinfo=UTC)),
        ("2024-02-29 10:00:00+01:0:30", None),
        ("2024-02-29 10:00:00+18:01", None),
        ("2024-02-29 10:00Z", None),
        ("2024-02-29 24:00:00", None),
        ("10:00:00", None),
        ("2024-02-29 10:00:00 BST", None),
    ],
)
def test_timestamp(text: str, expected: datetime | None) -> None:
    """A point in time may have a zone in any form that Java reads."""
    assert timestamp_of(text) == expected
