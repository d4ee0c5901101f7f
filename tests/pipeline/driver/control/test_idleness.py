"""What the driver says of idle partitions and an idle input."""

import pytest

from spark_cep.pipeline.driver.control.idleness import IdlenessDetector
from spark_cep.pipeline.wire.control import ControlRecord

A, B, C = ("t", 0), ("t", 1), ("t", 2)


class Wall:
    """A clock that is moved by hand, in milliseconds."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def wall() -> Wall:
    """Processing time."""
    return Wall()


def detector(
    wall: Wall, policy: str = "partition_minimum", when_idle: int | None = None
) -> IdlenessDetector:
    """Ten milliseconds of disorder, a partition idle after a second."""
    return IdlenessDetector(policy, 10, 1_000, when_idle, wall)  # type: ignore[arg-type]


def test_all_partitions_alive_need_no_record(wall: Wall) -> None:
    """While every partition delivers, the input alone moves time."""
    one = detector(wall)
    one.batch_started()
    one.batch_done([(A, 500), (B, 100)], {A, B})
    wall.now = 900
    assert one.control_record() is None


def test_an_idle_partition_lets_go(wall: Wall) -> None:
    """After the limit the others decide; the same is not stated twice."""
    one = detector(wall)
    one.batch_done([(A, 500), (B, 100)], {A, B})
    wall.now = 900
    one.batch_done([(A, 700), (B, 100)], {A})
    wall.now = 1_500
    assert one.control_record() == ControlRecord((), 700 - 10 - 1)
    assert one.control_record() is None


def test_nothing_is_idle_while_a_batch_runs(wall: Wall) -> None:
    """What a running batch reads is not known yet."""
    one = detector(wall)
    one.batch_done([(A, 500), (B, 100)], {A, B})
    one.batch_started()
    wall.now = 5_000
    assert one.control_record() is None


def test_records_that_come_during_a_batch_are_not_silence(wall: Wall) -> None:
    """A batch may take longer than the limit: what came meanwhile is read by the next."""
    one = IdlenessDetector("partition_minimum", 10, 1_000, None, wall, unnoticed_ms=300)
    one.batch_started()
    one.batch_done([(A, 500), (B, 100)], {A, B})
    wall.now = 100
    one.batch_started()
    wall.now = 5_000
    one.batch_done([(A, 900), (B, 100)], {A})
    assert (
        one.control_record() is None
    )  # up to 100 nothing had come for B; since then nobody looked
    one.batch_started()
    wall.now = 5_100
    one.batch_done([(A, 950), (B, 100)], {A})
    assert one.control_record() == ControlRecord((), 950 - 10 - 1)


def test_a_record_may_be_there_before_a_batch_starts_for_it(wall: Wall) -> None:
    """Between batches, silence counts up to when a batch would have started."""
    one = IdlenessDetector("partition_minimum", 10, 1_000, None, wall, unnoticed_ms=300)
    one.batch_done([(A, 500), (B, 100)], {A, B})
    wall.now = 1_299
    assert one.control_record() is None
    wall.now = 1_300
    assert one.control_record() == ControlRecord((), 489)


def test_all_idle_takes_the_furthest(wall: Wall) -> None:
    """With every partition idle, the furthest says how far event time has come."""
    one = detector(wall)
    one.batch_done([(A, 500), (B, 100)], {A, B})
    wall.now = 1_000
    assert one.control_record() == ControlRecord((), 489)


def test_an_expected_partition_is_waited_for_until_it_is_idle(wall: Wall) -> None:
    """A partition that holds records but was never read lets go after the limit too."""
    one = detector(wall)
    assert one.expect([A, C]) == ControlRecord((A, C))
    wall.now = 900
    one.batch_done([(A, 500), (C, None)], {A})
    assert one.control_record() is None
    wall.now = 1_100
    assert one.control_record() == ControlRecord((), 489)


def test_partitions_that_hold_the_watermark(wall: Wall) -> None:
    """The ones not read yet, then the one that is behind, until it is idle; none where no
    partition is ahead, and none of a watermark that follows the newest event."""
    one = detector(wall)
    one.expect([A, B, C])
    assert one.holding() == {}
    one.batch_done([(A, 500), (B, None), (C, 100)], {A, C})
    assert one.holding() == {B: None}
    wall.now = 900
    one.batch_done([(A, 500), (B, 500), (C, 100)], {A, B})
    assert one.holding() == {C: 100}
    wall.now = 1_100
    assert one.holding() == {}
    one.batch_done([(A, 700), (B, 500), (C, 100)], {A})
    assert one.holding() == {B: 500}
    newest = detector(wall, "maximum")
    newest.batch_done([(A, 500), (B, 100)], {A, B})
    assert newest.holding() == {}


def test_a_partition_with_broken_records_alone(wall: Wall) -> None:
    """A partition that is read but never gives a time is no error."""
    one = detector(wall)
    one.batch_done([(A, 500)], {A, B})
    assert one.control_record() is None
    wall.now = 1_000
    assert one.control_record() == ControlRecord((), 489)


def test_a_partition_without_times_holds_up_no_other(wall: Wall) -> None:
    """The key groups do not wait for a partition all of whose records lack a time: with it alive, a
    partition that falls silent lets go all the same. It counts from its first time on."""
    one = detector(wall)
    one.expect([A, B, C])
    one.batch_done([(A, 500), (C, 100)], {A, B, C})
    wall.now = 1_100
    one.batch_done([(A, 700), (C, 100)], {A, B})
    assert one.control_record() == ControlRecord((), 700 - 10 - 1)
    assert one.holding() == {}
    one.batch_done([(A, 900), (B, 300), (C, 100)], {A, B})
    assert one.control_record() is None
    assert one.holding() == {B: 300}


def test_an_idle_input_goes_on_with_the_wall_clock(wall: Wall) -> None:
    """With advance_when_idle, event time moves as much as processing time since the last record."""
    one = detector(wall, when_idle=2_000)
    one.batch_done([(A, 500)], {A})
    wall.now = 2_500
    assert one.control_record() == ControlRecord((), 500 + 2_500 - 11)
    wall.now = 3_000
    assert one.control_record() == ControlRecord((), 500 + 3_000 - 11)


def test_the_maximum_policy_knows_no_idle_partitions(wall: Wall) -> None:
    """Under the maximum policy a silent partition never mattered."""
    one = detector(wall, policy="maximum")
    one.batch_done([(A, 500), (B, 100)], {A, B})
    wall.now = 9_000
    assert one.control_record() is None


def test_up_to_when_events_may_be_late(wall: Wall) -> None:
    """Up to the watermark of the last batch, or to a lower bound told since; before the first one,
    and after one that told nothing, nobody knows."""
    one = detector(wall, when_idle=2_000)
    assert one.late_until() is None
    one.batch_done([(A, 500)], {A}, 489)
    assert one.late_until() == 489
    wall.now = 3_000
    stated = one.control_record()
    assert stated is not None
    assert one.late_until() == stated.lower_bound == 500 + 3_000 - 10 - 1
    one.batch_done([(A, 500)], set(), 400)
    assert one.late_until() == stated.lower_bound
    one.batch_done([(A, 9_000)], {A}, 8_989)
    assert one.late_until() == 8_989
    one.batch_done([], set())
    assert one.late_until() is None
