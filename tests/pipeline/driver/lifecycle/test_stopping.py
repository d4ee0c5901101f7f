"""When a query may be stopped, by its status alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_cep.pipeline.driver.lifecycle.retry import StopRequestedError
from spark_cep.pipeline.driver.lifecycle.stopping import Stopping


class Query:
    """What Spark says of a query, and how often it was stopped."""

    def __init__(self, message: str, *, active: bool) -> None:
        self.status = {"message": message, "isTriggerActive": active}
        self.stops = 0

    def stop(self) -> None:
        """Count."""
        self.stops += 1


class Clock:
    """A clock that goes when told."""

    now = 50.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


def _requested(clock: Clock) -> Stopping:
    stopping = Stopping(20_000, clock)
    stopping.request()
    return stopping


@pytest.mark.parametrize(
    ("message", "active", "stops"),
    [
        ("Waiting for next trigger", False, 1),
        ("Waiting for data to arrive", False, 1),
        ("Initializing sources", False, 1),
        ("Getting offsets from PythonMicroBatchStream", True, 1),
        ("Processing new data", True, 0),
    ],
)
def test_only_a_batch_is_waited_for(message: str, active: bool, stops: int) -> None:
    """Nothing is lost between batches, nor while Spark asks Kafka what is new."""
    query: Any = Query(message, active=active)
    stopping = _requested(Clock())
    stopping.end(query)
    assert query.stops == stops
    assert not stopping.grace_ran_out


def test_the_grace_period() -> None:
    """It counts from the first request; then the batch is given up, once."""
    clock, query = Clock(), Query("Processing new data", active=True)
    running: Any = query
    stopping = _requested(clock)
    clock.now += 19
    stopping.request()
    stopping.end(running)
    assert (query.stops, stopping.grace_ran_out) == (0, False)
    clock.now += 1
    stopping.end(running)
    stopping.end(running)
    assert (query.stops, stopping.grace_ran_out) == (1, True)


def test_a_batch_is_held_only_when_told_to_stop() -> None:
    """A batch that is about to begin then sleeps in Java, and the query may be stopped, though it
    says that it processes data. What is raised is what Spark takes for its own interruption."""
    slept: list[int] = []
    jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace()))
    jvm.java.lang.Thread = SimpleNamespace(sleep=slept.append)
    spark: Any = SimpleNamespace(_jvm=jvm)
    stopping = Stopping(20_000, Clock())
    stopping.hold(spark)
    stopping.check()
    assert slept == []
    stopping.request()
    with pytest.raises(StopRequestedError, match=r"Py4JJavaError: .*java\.lang\.Interrupted"):
        stopping.hold(spark)
    assert len(slept) == 1
    query: Any = Query("Processing new data", active=True)
    stopping.end(query)
    assert query.stops == 1
    with pytest.raises(StopRequestedError):
        stopping.check()
