"""The watermark is a pure function of what was read and of control records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.pipeline.match.watermark import BEGINNING, Clock
from spark_cep.pipeline.wire.control import ControlRecord

A, B = ("t", 0), ("t", 1)


def clock(policy: str = "partition_minimum", disorder: int = 10) -> Clock:
    """A fresh clock."""
    return Clock(policy, disorder)  # type: ignore[arg-type]


def test_the_slowest_partition_leads() -> None:
    """With the minimum policy the partition that is furthest behind decides."""
    one = clock()
    one.read([("t", 0, 1_000), ("t", 1, 500)])
    assert one.advance() == 500 - 10 - 1


def test_the_fastest_partition_leads() -> None:
    """With the maximum policy the partition that is furthest ahead decides."""
    one = clock("maximum")
    one.read([("t", 0, 1_000), ("t", 1, 500)])
    assert one.advance() == 1_000 - 10 - 1


def test_a_partition_with_records_is_waited_for() -> None:
    """A partition that holds records, but was not read yet, holds the watermark back."""
    one = clock()
    one.control(ControlRecord((A, B)))
    one.read([("t", 0, 1_000)])
    assert one.advance() == BEGINNING
    one.read([("t", 1, 900)])
    assert one.advance() == 889


def test_a_partition_without_any_time_is_not_waited_for() -> None:
    """Records without a time (broken ones, tombstones) end the waiting for their partition."""
    one = clock()
    one.control(ControlRecord((A, B)))
    one.read([("t", 0, 1_000), ("t", 1, None)])
    assert one.advance() == 989
    one.read([("t", 0, None)])
    assert one.maxima == {A: 1_000}


def test_a_lower_bound_moves_it() -> None:
    """What the driver states is reached whatever the input says."""
    one = clock()
    one.read([("t", 0, 100)])
    one.control(ControlRecord((), 5_000))
    assert one.advance() == 5_000


@pytest.mark.parametrize("policy", ["partition_minimum", "maximum"])
def test_a_clock_that_is_set_back(policy: str) -> None:
    """It stands at the new watermark, whatever was read before, until newer events come; times of
    before the new one stay."""
    one = clock(policy)
    one.control(ControlRecord((("t", 2),)))
    one.read([("t", 0, 90_000), ("t", 1, 300), ("t", 2, 90_500)])
    one.advance()
    assert one.set_back(1_000) == 1_011
    assert one.newest == 1_011
    assert one.maxima == {A: 1_011, B: 300, ("t", 2): 1_011}
    assert one.advance() == 1_000
    one.read([("t", 0, 1_400), ("t", 1, 1_500), ("t", 2, 1_450)])
    assert one.advance() == {"partition_minimum": 1_389, "maximum": 1_489}[policy]


@given(
    st.lists(st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 2), st.integers(-50, 50))),
    st.integers(0, 20),
    st.sampled_from(["partition_minimum", "maximum"]),
)
def test_it_never_goes_back_and_cuts_do_not_matter(
    read: list[tuple[str, int, int]], cut: int, policy: str
) -> None:
    """However reads are cut into batches, with state written between, the end is the same under
    the maximum policy, and under the minimum once all partitions are known."""
    whole, parts = clock(policy), clock(policy)
    known = [(topic, partition) for topic, partition, _ in read]
    for one in (whole, parts):
        one.control(ControlRecord(tuple(dict.fromkeys(known))))
    whole.read(read)
    seen = []
    for batch in (read[:cut], read[cut:]):
        parts.read(batch)
        seen.append(parts.advance())
        restored = clock(policy)
        restored.restore(parts.packed())
        parts = restored
    assert seen == sorted(seen)
    assert parts.watermark == whole.advance()
