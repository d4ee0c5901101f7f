"""The clock of idleness, and what it keeps from being called idle."""

from __future__ import annotations

from spark_cep.pipeline.driver.control.idleness import IdlenessDetector
from spark_cep.pipeline.driver.lifecycle.listening_clock import ListeningClock

FAST, SLOW = ("t", 0), ("t", 1)


class Wall:
    """A clock that goes when told."""

    now = 7_000_000

    def __call__(self) -> int:
        """Milliseconds."""
        return self.now


def test_only_listening_counts() -> None:
    """Time between two answers of Kafka, if they are not far apart; a batch counts with all its
    time."""
    wall = Wall()
    clock = ListeningClock(wall)
    for elapsed, counted in ((100, 100), (5_000, 100), (50, 150)):
        wall.now += elapsed
        assert clock.answered(wall.now)
        assert not clock.answered(wall.now), "it is known already"
        assert clock() == counted
    wall.now += 3_000
    clock.batch_done(2_500)
    assert clock() == 2_650
    assert not clock.answered(wall.now - 10), "before the batch was done"
    assert clock() == 2_650


def test_nobody_listens_between_two_queries() -> None:
    """The first answer of the next one counts from its start."""
    wall = Wall()
    clock = ListeningClock(wall)
    wall.now += 1_500
    clock.forget()
    wall.now += 200
    assert clock.answered(wall.now)
    assert clock() == 200


def test_an_outage_makes_no_partition_idle() -> None:
    """After ten minutes without Kafka no lower bound is told: nobody knows what the slow partition
    would have brought. Silence while Kafka answers still counts."""
    wall = Wall()
    clock = ListeningClock(wall)
    idleness = IdlenessDetector("partition_minimum", 0, 60_000, None, clock)
    idleness.batch_done([(FAST, 500), (SLOW, 100)], [FAST, SLOW])
    wall.now += 600_000
    clock.answered(wall.now)
    assert idleness.control_record() is None
    for _ in range(120):
        wall.now += 500
        clock.answered(wall.now)
    record = idleness.control_record()
    assert record is not None
    assert record.lower_bound == 499
