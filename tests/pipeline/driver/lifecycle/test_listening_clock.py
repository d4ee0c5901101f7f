"""The clock of idleness, and what it keeps from being called idle."""

from __future__ import annotations

import pytest

from spark_cep.pipeline.driver.control.idleness import IdlenessDetector
from spark_cep.pipeline.driver.lifecycle.listening_clock import ListeningClock, awaits_data

FAST, SLOW = ("t", 0), ("t", 1)


class Wall:
    """A clock that goes when told."""

    now = 7_000_000

    def __call__(self) -> int:
        """Milliseconds."""
        return self.now


def test_only_listening_counts() -> None:
    """Time between looks counts when somebody listened; a batch counts with all its time."""
    wall = Wall()
    clock = ListeningClock(wall)
    for elapsed, listening in ((100, True), (5_000, False), (50, True)):
        wall.now += elapsed
        clock.look(listening=listening)
    assert clock() == 150
    wall.now += 3_000
    clock.batch_done(2_500)
    clock.look(listening=True)
    assert clock() == 2_650


@pytest.mark.parametrize(
    ("message", "active", "listening"),
    [
        ("Initializing sources", False, False),
        ("Getting offsets from PythonMicroBatchStream", True, False),
        ("Processing new data", True, False),
        ("Waiting for next trigger", False, True),
        ("Waiting for data to arrive", False, True),
    ],
)
def test_what_is_listening(message: str, active: bool, listening: bool) -> None:
    """Only a query whose last question to Kafka was answered."""
    assert awaits_data({"message": message, "isTriggerActive": active}) is listening


def test_an_outage_makes_no_partition_idle() -> None:
    """After ten minutes without Kafka no lower bound is told: nobody knows what the slow partition
    would have brought. Silence while Kafka answers still counts."""
    wall = Wall()
    clock = ListeningClock(wall)
    idleness = IdlenessDetector("partition_minimum", 0, 60_000, None, clock)
    idleness.batch_done([(FAST, 500), (SLOW, 100)], [FAST, SLOW])
    wall.now += 600_000
    clock.look(listening=False)
    assert idleness.control_record() is None
    wall.now += 60_000
    clock.look(listening=True)
    record = idleness.control_record()
    assert record is not None
    assert record.lower_bound == 499
