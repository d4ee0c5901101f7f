"""Durations: what is read, what is refused, and that writing and reading agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.durations import MAX_DURATION_MS, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("10 seconds", 10_000),
        ("500 ms", 500),
        ("5 minutes", 300_000),
        ("5min", 300_000),
        ("1 Hour 30 Minutes", 5_400_000),
        ("1.5 s", 1_500),
        (" 2 d ", 172_800_000),
        ("1 week", 604_800_000),
        ("0 ms", 0),
    ],
)
def test_reads_numbers_with_units(text: str, ms: int) -> None:
    """Numbers with units are read, in any case and with or without spaces."""
    assert parse_duration(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "seconds",
        "-1 s",
        "1 fortnight",
        "1 month",
        "PT10S",
        "1 s 1 h",
        "1 s 2 s",
        "0.5 ms",
        "1 s,",
        "10 seconds later",
        "1e3 s",
        "99999999 weeks",
    ],
)
def test_refuses_everything_else(text: str) -> None:
    """Whatever is not a whole number of milliseconds with units is refused, naming the units."""
    with pytest.raises(ValueError, match="ms, seconds, minutes, hours, days, weeks"):
        parse_duration(text)


@given(st.integers(0, MAX_DURATION_MS))
def test_written_durations_read_back(ms: int) -> None:
    """Reading what was written gives the same duration, for every duration."""
    assert parse_duration(format_duration(ms)) == ms


def test_writes_the_largest_units() -> None:
    """Durations are written as people would, singular and plural."""
    assert [format_duration(ms) for ms in (0, 1, 60_000, 5_400_000, 1_500)] == [
        "0 ms",
        "1 ms",
        "1 minute",
        "1 hour 30 minutes",
        "1 second 500 ms",
    ]
    with pytest.raises(ValueError, match="not negative"):
        format_duration(-1)
