"""What is said and shown of a watermark that stands while events wait, or is ahead of the clock."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_cep.config import Settings
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.observe import event_time_watch
from spark_cep.pipeline.driver.observe.event_time_watch import EventTimeWatch
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.match.watermark import BEGINNING

HELD = {("t", 1): 990_000}


class Watched:
    """A watch of a run, whose clocks the test moves."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **time: Any) -> None:
        settings = Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": "localhost:9092"},
                "inputs": {"t": {"topics": ["t"]}},
                "registry": {"url": "http://localhost"},
                "state": {"checkpoint": str(folder / "checkpoint")},
                "rules": {"folder": str(folder / "rules")},
                "time": time,
            }
        )
        self.now = 1_000.0
        self.lines: list[tuple[str, dict[str, Any]]] = []
        clock = SimpleNamespace(monotonic=lambda: self.now - 500, time=lambda: self.now)
        monkeypatch.setattr(event_time_watch, "time", clock)
        for level in ("info", "warning"):
            monkeypatch.setattr(event_time_watch._log, level, self._line)
        self.metrics = Metrics()
        self.watch = EventTimeWatch(settings, self.metrics)

    def _line(self, name: str, **values: Any) -> None:
        self.lines.append((name, values))

    def batch(
        self, watermark: int, newest: int = 1_000_000, waiting: int = 2, seconds: float = 0.5
    ) -> None:
        """A batch that takes so long."""
        self.watch.batch_started()
        self.now += seconds
        maxima: list[tuple[tuple[str, int], int | None]] = [
            (("t", 0), newest), (("t", 1), None)
        ]  # fmt: skip
        report = BatchReport(1, watermark=watermark, maxima=maxima, waiting=waiting)
        self.watch.batch_done(report)

    def told(self, holding: dict[tuple[str, int], int | None]) -> list[dict[str, Any]]:
        """The lines about events that wait, after a look."""
        self.watch.look(holding)
        return [values for name, values in self.lines if name == "events_wait"]

    def value(self, name: str, **labels: str) -> float | None:
        """The value of a metric."""
        return self.metrics.registry.get_sample_value(name, labels)


@pytest.mark.parametrize("idle", [None, "1 minute"])
def test_events_that_wait_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle: str | None
) -> None:
    """Five seconds after the watermark has moved last, and again in ten minutes, with what moves
    it; not when none waits."""
    watched = Watched(tmp_path, monkeypatch, advance_when_idle=idle)
    watched.batch(989_999)
    watched.now += 4
    assert watched.told({}) == []
    assert watched.watch.page()["note"] is None
    watched.now += 2
    (line,) = watched.told({})
    moved_by = (
        "an event that is more than 1 second newer; with time.advance_when_idle the clock, too"
        if idle is None
        else "a newer event, or the clock after 1 minute without any"
    )
    assert line == {
        "events": 2,
        "stands_seconds": 6,
        "newest": "1970-01-01T00:16:40Z",
        "watermark": "1970-01-01T00:16:29.999Z",
        "held_by": [],
        "moved_by": moved_by,
    }
    assert watched.watch.page()["note"] == (
        f"2 events wait for the watermark, which has stood for 6 seconds; it is moved by {moved_by}"
    )
    watched.now += 599
    assert len(watched.told({})) == 1
    watched.now += 2
    assert len(watched.told({})) == 2
    watched.now += 601
    watched.batch(2_000_000, waiting=0)
    watched.now += 6
    assert len(watched.told({})) == 2
    assert watched.value("spark_cep_watermark_unmoved_seconds") == 0


def test_records_that_come_hide_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One partition holds the watermark while batches with records of others follow each other:
    log, metrics and page name it within seconds, until it has moved."""
    watched = Watched(tmp_path, monkeypatch)
    watched.batch(979_999, newest=999_000)
    for second in range(5):
        assert watched.told(dict(HELD)) == []
        watched.batch(979_999, newest=1_000_000 + second, waiting=3 + second, seconds=1)
    watched.watch.batch_started()  # the next one is on its way
    (line,) = watched.told(dict(HELD))
    assert (line["events"], line["held_by"], line["stands_seconds"]) == (7, ["t/1"], 5)
    assert line["moved_by"] == (
        "newer events there, or 1 minute without any record there (time.partition_idle_after)"
    )
    held = {"topic": "t", "partition": "1"}
    assert watched.value("spark_cep_watermark_held_info", **held) == 1
    assert watched.value("spark_cep_watermark_unmoved_seconds") == 5
    page = watched.watch.page()
    assert page == {
        "watermark": "1970-01-01T00:16:19.999Z",
        "newest_event": "1970-01-01T00:16:40.004Z",
        "ahead_seconds": 0,
        "events_waiting": 7,
        "stands_since": "1970-01-01T00:16:40+00:00",
        "held_by": ["t/1"],
        "note": page["note"],
    }
    assert "has stood for 5 seconds, held back by t/1; it is moved by newer" in str(page["note"])
    watched.batch(1_000_000, newest=1_020_000)
    assert len(watched.told({})) == 1
    assert watched.value("spark_cep_watermark_held_info", **held) is None
    assert (watched.watch.page()["held_by"], watched.watch.page()["note"]) == ([], None)


def test_a_long_batch_is_no_standstill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it runs, nobody knows how far time is; and when it ends, time has moved."""
    watched = Watched(tmp_path, monkeypatch)
    for watermark in range(100_000, 103_000, 1_000):
        watched.watch.batch_started()
        watched.now += 30
        assert watched.told(dict(HELD)) == []
        watched.batch(watermark, seconds=0)


def test_another_standstill_is_told_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that come one by one and far apart make no line each."""
    watched = Watched(tmp_path, monkeypatch)
    times: list[float] = []
    for watermark in range(100_000, 120_000, 1_000):
        watched.batch(watermark)
        watched.now += 7.5
        if len(watched.told(dict(HELD))) > len(times):
            times.append(watched.now)
    assert [later - sooner for sooner, later in pairwise(times)] == [64, 64]


def test_a_watermark_ahead_of_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is warned about once, and shown; one that is behind is not, nor one by a difference of
    clocks."""
    watched = Watched(tmp_path, monkeypatch)
    assert math.isnan(watched.value("spark_cep_watermark_ahead_seconds") or 0)
    assert watched.watch.page()["ahead_seconds"] is None
    for seconds, lines in [(940, 0), (1_030, 0), (4_600, 1), (4_700, 1)]:
        watched.batch(seconds * 1_000, seconds * 1_000 + 1, waiting=0, seconds=0)
        ahead = max(0, seconds - 1_000)
        assert watched.value("spark_cep_watermark_ahead_seconds") == ahead
        assert watched.watch.page()["ahead_seconds"] == ahead
        assert len(watched.lines) == lines
        assert (watched.watch.page()["note"] is None) == (lines == 0)
    assert watched.lines == [
        ("watermark_ahead", {
            "watermark": "1970-01-01T01:16:40Z", "ahead_seconds": 3_600, "partitions": ["t/0"],
        })
    ]  # fmt: skip
    assert watched.value("spark_cep_watermark_lag_seconds") == 0
    assert watched.watch.page()["note"] == (
        "the watermark is 1 hour 1 minute 40 seconds ahead of the clock, so events of now are late:"
        " correct the producer's clock, then wait, or stop the job and run spark-cep reset-clock"
    )


def test_seconds_that_are_read_as_milliseconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log warns once of times in January 1970."""
    watched = Watched(tmp_path, monkeypatch)
    for newest in (1_764_500_000_000, 1_764_500_000, 1_764_500_100):
        watched.batch(BEGINNING, newest, waiting=0)
    assert watched.lines == [
        ("event_time_in_1970", {
            "newest": "1970-01-21T10:08:20Z",
            "partitions": ["t/0"],
            "instead": "event_time_unit: seconds of the input, if these are seconds since 1970",
        })
    ]  # fmt: skip
