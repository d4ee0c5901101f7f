"""How late matches are, from event times in tasks to histograms on the driver."""

from __future__ import annotations

from collections import Counter

import pytest

from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.match.latency import Ages, publish_latency, source_delay
from spark_cep.pipeline.wire.reports import PartitionRead

NOW = 1_800_000_000.0


def test_ages_are_told_to_three_percent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few numbers stand for many times, all of them counted, from a millisecond to a year."""
    monkeypatch.setattr("time.time", lambda: NOW)
    ages = Ages()
    times = [round(NOW * 1000) - age for age in (1, 900, 5_000, 5_001, 86_400_000, 31_536_000_000)]
    ages.add(times)
    told = ages.times()
    assert sum(count for _, count in told) == len(times)
    spread = sorted(at for at, count in told for _ in range(count))
    for near, at in zip(spread, sorted(times), strict=True):
        age = NOW * 1000 - at
        assert abs(near - at) <= max(1, 0.03 * age)
    many = Ages()
    many.add(round(NOW * 1000) - age for age in range(100_000))
    assert len(many.times()) < 400
    assert Ages().times() == ()


def test_an_event_ahead_of_the_clock_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its latency is nothing, not negative."""
    monkeypatch.setattr("time.time", lambda: NOW)
    ages = Ages()
    ages.add([round(NOW * 1000) + 60_000])
    ((at, count),) = ages.times()
    metrics = Metrics()
    publish_latency(
        Counter({at: count}),
        metrics,
        began=NOW,
        committed=NOW + 0.2,
        disorder_ms=0,
        delay_ms=None,
    )
    bucket = "spark_cep_match_latency_seconds_bucket"
    assert metrics.registry.get_sample_value(bucket, {"le": "0.25"}) == 1


@pytest.mark.parametrize(
    ("delay_ms", "expected"),
    [
        (2_000, 10 - 5 - 2),
        (0, 10 - 5),
        # The watermark cannot have waited for events that came after the batch had begun.
        (9_000, 1),
        # No event: the clock decided, when the batch began.
        (None, 1),
    ],
)
def test_decision_latency(delay_ms: int | None, expected: float) -> None:
    """The latency without what the disorder and the source take."""
    metrics = Metrics()
    publish_latency(
        Counter({round(NOW * 1000): 3}),
        metrics,
        began=NOW + 9,
        committed=NOW + 10,
        disorder_ms=5_000,
        delay_ms=delay_ms,
    )
    value = metrics.registry.get_sample_value
    assert value("spark_cep_match_latency_seconds_sum") == pytest.approx(30)
    assert value("spark_cep_match_latency_seconds_count") == 3
    assert value("spark_cep_decision_latency_seconds_sum") == pytest.approx(3 * expected)


def test_delay_of_the_source() -> None:
    """That of the slowest partition holds the watermark; partitions without time have none."""
    read = [
        PartitionRead("t", 0, 1_500, 1_000),
        PartitionRead("t", 1, 9_000, 1_000),
        PartitionRead("t", 2, 7, None),
    ]
    assert source_delay(read, slowest=True) == 8_000
    assert source_delay(read, slowest=False) == 500
    assert source_delay(read[2:], slowest=True) is None
