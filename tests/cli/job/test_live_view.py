"""The compact view of a running job: what it says, and that the log goes on above it."""

from __future__ import annotations

import io
import logging
import sys

import pytest
from rich.console import Console

from spark_cep.cli.job.live_view import LiveView, shown
from spark_cep.observability import metric_names as names
from spark_cep.observability.metrics import Metrics


@pytest.fixture
def metrics() -> Metrics:
    """Of a job with two rules that has read a little."""
    made = Metrics()
    made.increment(names.RECORDS_CONSUMED, 1_000, topic="logins")
    made.increment(names.MATCHES, 3, rule="brute-force")
    made.increment(names.TIMEOUTS, 2, rule="[red]never")
    made.replace(names.PARTIAL_MATCHES, {("brute-force",): 7})
    made.replace(names.CONSUMER_LAG, {("logins", "0"): 40, ("logins", "1"): 2})
    return made


def rendered(view: LiveView) -> list[str]:
    """The lines, without the widths of columns."""
    console = Console(width=120, file=io.StringIO(), color_system=None)
    with console.capture() as captured:
        console.print(view())
    return [" ".join(line.split()) for line in captured.get().splitlines()[1:]]


def test_what_it_says(metrics: Metrics) -> None:
    """State, rate of the last seconds, lag, watermark, counts; rules by their matches."""
    seconds = iter((0.0, 2.0, 20.0))
    view = LiveView(metrics.registry, lambda: "ready", lambda: next(seconds), lambda: 100.0)
    first, *rules = rendered(view)
    assert first == "ready 0 records/s lag 42 watermark not yet late 0 dead letters 0"
    assert rules == ["rule matches timeouts open", "brute-force 3 0 7", "[red]never 0 2 0"]
    metrics.increment(names.RECORDS_CONSUMED, 5_000, topic="logins")
    metrics.follow(names.WATERMARK, lambda: 40.0)
    first, *_ = rendered(view)
    assert first == (
        "ready 2,500 records/s lag 42 watermark 1970-01-01 00:00:40 (1 minute behind)"
        " late 0 dead letters 0"
    )
    # What was read long ago is no rate any more.
    assert rendered(view)[0].startswith("ready 0 records/s")


def test_many_rules(metrics: Metrics) -> None:
    """The first ten, and how many more there are."""
    for number in range(15):
        metrics.increment(names.MATCHES, 100 - number, rule=f"r{number}")
    *_, last = rendered(LiveView(metrics.registry, lambda: "ready"))
    assert last == "and 7 more rules"


def test_the_log_goes_on_above_it(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines are whole, and its handler is what it was afterwards."""
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stdout", terminal)
    console = Console(file=terminal, force_terminal=True, width=100)
    handler = logging.StreamHandler(terminal)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [handler])
    with shown(LiveView(metrics.registry, lambda: "starting"), console):
        root.error("a line of the log")
        assert handler.stream is not terminal
    assert handler.stream is terminal
    assert sys.stdout is terminal
    assert "a line of the log\n" in terminal.getvalue()
    assert "starting" in terminal.getvalue()
