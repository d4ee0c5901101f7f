"""When batches begin, by a clock that is moved by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.pipeline.driver.input.pacing import Pacing


class Clock:
    """A clock that goes when told."""

    now = 7_000.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


class Spark:
    """Asks for batches one after the other, and runs them."""

    def __init__(self, aim: float) -> None:
        self.clock = Clock()
        self.pacing = Pacing(aim, self.clock)
        self.begun: list[float] = []

    def run(self, seconds: float, *, more_waits: bool = False) -> None:
        """Ask, begin a batch, which takes so long, and ask again."""
        self.pacing.asked()
        self.begun.append(self.clock.now)
        self.pacing.planned(more_waits=more_waits)
        self.clock.now += seconds
        self.pacing.asked()

    def wait(self) -> float:
        """Wait until a batch is due; returns how long that was."""
        left = self.pacing.seconds_left()
        self.clock.now += left
        return left


def test_the_first_batch_begins_at_once() -> None:
    """Records may have waited since long before."""
    assert Spark(5.0).wait() == 0


def test_a_batch_is_done_when_the_aim_is_reached() -> None:
    """For a record that came right after the batch before was planned."""
    spark = Spark(5.0)
    spark.run(0.5)
    assert spark.wait() == pytest.approx(4.0)
    spark.run(0.5)
    assert spark.clock.now - spark.begun[0] == pytest.approx(5.0)


def test_the_slowest_of_the_recent_batches_counts() -> None:
    """Five of them: one that took long is forgotten then."""
    spark = Spark(5.0)
    for seconds in (0.5, 2.0, 0.5, 0.5, 0.5, 0.5):
        spark.run(seconds)
        spark.wait()
    assert [round(later - at, 3) for at, later in pairwise(spark.begun)] == [4.5, 3, 3, 3, 3]
    spark.run(0.5)
    assert spark.wait() == pytest.approx(4.0)


def test_the_first_batch_does_not_count_for_long() -> None:
    """It takes longer than all others, and says nothing of them."""
    spark = Spark(5.0)
    spark.run(12.0)
    assert spark.wait() == 0
    spark.run(0.5)
    assert spark.wait() == pytest.approx(4.0)


def test_after_an_idle_spell_a_batch_begins_at_once() -> None:
    """Whatever the aim is, if the spell was that long."""
    spark = Spark(5.0)
    spark.run(0.5)
    for _ in range(10):
        spark.clock.now += 0.5
        spark.pacing.asked()
    assert spark.wait() == 0


@pytest.mark.parametrize("aim", [0.0, 0.25, 1.0])
def test_an_aim_that_cannot_be_reached(aim: float) -> None:
    """Batches that take more than half of it follow one another at once."""
    spark = Spark(aim)
    for _ in range(3):
        spark.run(0.6)
        assert spark.wait() == 0


def test_what_was_left_does_not_wait_again() -> None:
    """It was there when the batch before was planned."""
    spark = Spark(60.0)
    spark.run(0.5, more_waits=True)
    assert spark.wait() == 0
    spark.run(0.5)
    assert spark.wait() == pytest.approx(59.0)


@given(
    st.floats(0, 100),
    st.lists(st.tuples(st.floats(0, 30), st.booleans(), st.floats(0, 200)), min_size=1),
)
def test_no_batch_begins_later_than_the_aim_allows(
    aim: float, batches: list[tuple[float, bool, float]]
) -> None:
    """Not later than the aim behind the batch before less what that took, or at once; and not
    sooner than the slowest of the recent ones asks for."""
    spark = Spark(aim)
    durations: list[float] = []
    for seconds, more_waits, idle in batches:
        spark.run(seconds, more_waits=more_waits)
        durations.append(seconds)
        spark.clock.now += idle
        spark.pacing.asked()
        due = spark.begun[-1] + aim
        left = spark.pacing.seconds_left()
        assert left == 0 or spark.clock.now + left <= due - seconds + 1e-6
        if not more_waits:
            recent = (durations[1:] or durations)[-5:]
            assert spark.clock.now + left >= due - max(recent) - 1e-6
