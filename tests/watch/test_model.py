"""The model of the page: what is kept of lines and figures, and which records are read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from spark_cep.errors import StartError
from spark_cep.observability import metric_names as names
from spark_cep.observability.metrics import Metrics
from spark_cep.watch.figures import Figures, Trend, quantile, read_figures
from spark_cep.watch.newest_records import NewestPart, newest_parts
from spark_cep.watch.readers import Read, Readers
from spark_cep.watch.recent_lines import RecentLines, ShownLine


def test_each_page_sees_a_line_once() -> None:
    """The newest lines are kept; a page that comes late sees those, and how many there were."""
    lines = RecentLines(3)
    lines.add(ShownLine("match", text) for text in "ab")
    first, count = lines.since(0)
    assert [each.text for each in first] == ["a", "b"]
    assert lines.since(count) == ([], 2)
    lines.add(ShownLine("match", text) for text in "cdef")
    assert [each.text for each in lines.since(count)[0]] == ["d", "e", "f"]
    assert lines.since(5)[0] == [ShownLine("match", "f")]
    assert lines.since(0)[1] == 6


def test_figures_are_read_from_a_page() -> None:
    """As from the registry of the job's own process."""
    metrics = Metrics()
    metrics.increment(names.RECORDS_CONSUMED, 1_000, topic="logins")
    metrics.increment(names.MATCHES, 3, rule="brute-force")
    metrics.replace(names.CONSUMER_LAG, {("logins", "0"): 40, ("logins", "1"): 2})
    text = generate_latest(metrics.registry).decode()
    read = read_figures(text_string_to_metric_families(text))
    assert read == read_figures(metrics.registry.collect())
    assert (read.records, read.lag, read.matches["brute-force"]) == (1_000, 42, 3)
    assert set(read.latency) == {*names.DECISION_LATENCY.buckets, math.inf}


def test_the_trend() -> None:
    """The rate is that of the last seconds, the latency that of the last minute's matches; a job
    that has started again counts anew."""
    trend = Trend()
    trend.add(0, Figures(records=0, latency={1.0: 5, 2.0: 5, math.inf: 5}))
    trend.add(1, Figures(records=100, lag=7, latency={1.0: 5, 2.0: 5, math.inf: 5}))
    trend.add(10, Figures(records=100, latency={1.0: 5, 2.0: 7, math.inf: 7}))
    trend.add(20, Figures(records=50, batches={1.0: 4, math.inf: 4}))
    trend.add(21, Figures(records=50, batches={1.0: 6, math.inf: 6}))
    first, second, third, fourth, fifth = trend.points
    assert (first.rate, first.median) == (0, None)
    assert (second.rate, second.lag, second.median) == (100, 7, None)
    assert (third.rate, third.median, third.percentile_95) == (0, 1.5, 1.95)
    assert (fourth.rate, fourth.batch, fifth.batch) == (0, None, 0.5)


@pytest.mark.parametrize(
    ("counts", "share", "wanted"),
    [
        ({}, 0.5, None),
        ({1.0: 0, math.inf: 0}, 0.5, None),
        ({1.0: 10, 2.0: 10, math.inf: 10}, 0.5, 0.5),
        ({1.0: 5, 2.0: 10, math.inf: 10}, 0.75, 1.5),
        ({1.0: 1, 2.0: 2, math.inf: 10}, 0.95, None),
    ],
)
def test_quantiles(counts: dict[float, float], share: float, wanted: float | None) -> None:
    """In between as Prometheus has it; behind the last bound it is not known."""
    assert quantile(counts, share) == wanted


def test_of_many_records_the_newest_are_read() -> None:
    """At most ten of a partition, and those passed over are counted; at first none are."""
    one, two, three = ("t", 0), ("t", 1), ("t", 2)
    assert newest_parts({one: 1_000, two: 3, three: 0}, {}) == {
        one: NewestPart(990, 1_000, 0),
        two: NewestPart(0, 3, 0),
    }
    assert newest_parts({one: 1_050, two: 4, three: 0}, {one: 1_000, two: 3, three: 0}) == {
        one: NewestPart(1_040, 1_050, 40),
        two: NewestPart(3, 4, 0),
    }
    # The topic was made again.
    assert newest_parts({one: 5}, {one: 1_000}) == {}


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_feed_is_followed_while_a_page_is_open() -> None:
    """It is closed half a minute after the last page; what goes wrong is noted until it is over."""
    clock, log = Clock(), list[str]()

    @contextmanager
    def feed() -> Iterator[Read]:
        def read() -> float:
            clock.now += 10
            log.append("read")
            return 0.0

        log.append("open")
        yield read
        log.append("closed")

    readers = Readers({"results": feed}, clock)
    readers.notes["results"] = "no answer"
    readers.ask()
    readers._read("results", feed)
    assert log == ["open", "read", "read", "read", "closed"]
    assert readers.notes == {}
    assert not readers._is_asked


def test_what_goes_wrong_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    """An error of ours as it is; one of a client on standard error, with a word where it is shown.
    The thread goes on."""
    errors = iter([StartError("no broker"), ValueError("odd\nline")])

    @contextmanager
    def feed() -> Iterator[Read]:
        raise next(errors)
        yield lambda: 0.0

    readers = Readers({})
    readers.ask()
    readers._ended.set()  # no pause
    readers._read("records", feed)
    assert readers.notes == {"records": "no broker"}
    readers._read("records", feed)
    assert readers.notes["records"].startswith("unexpected error. The terminal")
    assert "ValueError: odd\nline" in capsys.readouterr().err
