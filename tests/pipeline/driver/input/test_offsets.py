"""What batches read, of a cluster that a test makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.config import Settings
from spark_cep.errors import KafkaUnavailableError, StartError, StateError
from spark_cep.pipeline.driver.input.offsets import InputOffsets, divided, shares, together
from spark_cep.pipeline.driver.kafka.cluster import BEGINNING, END
from spark_cep.pipeline.read.record_range import Range
from spark_cep.pipeline.wire.control import Partition

SIZES = st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), st.integers(0, 10**7))


@dataclass
class Cluster:
    """Partitions, each with where it begins and ends; does not answer ``away`` times."""

    there: dict[Partition, tuple[int, int]]
    away: int = 0
    asked: list[bool] = field(default_factory=list)

    def input_partitions(
        self, topics: Sequence[str], patterns: Sequence[re.Pattern[str]]
    ) -> list[Partition]:
        """As the real one."""
        if self.away:
            self.away -= 1
            raise KafkaUnavailableError("away")
        return sorted(
            at
            for at in self.there
            if at[0] in topics or any(each.fullmatch(at[0]) for each in patterns)
        )

    def offsets(
        self, partitions: Sequence[Partition], place: int, *, committed: bool
    ) -> dict[Partition, int]:
        """As the real one; a record's time is its offset."""
        self.asked.append(committed)
        found = {}
        for at in partitions:
            begin, end = self.there[at]
            if place in (BEGINNING, END):
                found[at] = begin if place == BEGINNING else end
            else:
                found[at] = max(begin, place) if place < end else -1
        return found


def offsets(cluster: Cluster, **source: Any) -> InputOffsets:
    """Of a job with these settings of its source."""
    topics = source.pop("topics", {"topics": ["a"]})
    properties = source.pop("source_properties", {})
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "b:9092", "source_properties": properties},
            "inputs": {"a": topics},
            "registry": {"url": "http://r"},
            "state": {"checkpoint": "/c"},
            "source": source,
        }
    )
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    made: Callable[[], Any] = lambda: cluster  # noqa: E731
    return InputOffsets(settings, made, lambda: now[0], sleep)


def test_where_a_job_starts() -> None:
    """At the beginning, at the end, at a time, or where it is told."""
    cluster = Cluster({("a", 0): (5, 20), ("a", 1): (0, 0), ("b", 0): (0, 9)})
    assert offsets(cluster).initial() == {("a", 0): 5, ("a", 1): 0}
    assert offsets(cluster, starting_offsets="latest").initial() == {("a", 0): 20, ("a", 1): 0}
    moment = offsets(cluster, starting_offsets="1970-01-01T00:00:00.007Z")
    assert moment.initial() == {("a", 0): 7, ("a", 1): 0}
    told = offsets(cluster, starting_offsets={"a": {0: -1, 1: -2}})
    assert told.initial() == {("a", 0): 20, ("a", 1): 0}
    pattern = offsets(cluster, topics={"topic_pattern": "[ab]"})
    assert pattern.initial() == {("a", 0): 5, ("a", 1): 0, ("b", 0): 0}


def test_positions_are_those_of_the_partitions() -> None:
    """All of them, and no others."""
    cluster = Cluster({("a", 0): (5, 20), ("a", 1): (0, 0)})
    with pytest.raises(StartError, match=r"has a 0; the inputs are a 0, 1, and each"):
        offsets(cluster, starting_offsets={"a": {0: 3}}).initial()


def test_the_end_is_that_of_committed_records() -> None:
    """Unless the job is told to read others."""
    for level, committed in (("read_committed", True), ("read_uncommitted", False)):
        cluster = Cluster({("a", 0): (0, 9)})
        planned = offsets(cluster, source_properties={"isolation.level": level})
        planned.latest({("a", 0): 0}, None)
        assert set(cluster.asked) == {committed}


def test_a_batch_has_a_share_of_each_partition() -> None:
    """And says what there is."""
    cluster = Cluster({("a", 0): (0, 900), ("a", 1): (0, 110), ("a", 2): (0, 7)})
    planned = offsets(cluster)
    start = {("a", 0): 0, ("a", 1): 10, ("a", 2): 7}
    assert (
        planned.latest(start, None) == {("a", 0): 900, ("a", 1): 110, ("a", 2): 7} == planned.known
    )
    assert planned.latest(start, 100) == {("a", 0): 90, ("a", 1): 20, ("a", 2): 7}
    assert planned.latest(start, 1) == {("a", 0): 1, ("a", 1): 11, ("a", 2): 7}
    assert planned.known == {("a", 0): 900, ("a", 1): 110, ("a", 2): 7}


@given(SIZES, st.none() | st.integers(1, 10**7))
def test_shares(sizes: dict[Partition, int], most: int | None) -> None:
    """They keep to the bound but for a record of each partition, and each goes on."""
    made = shares(sizes, most)
    assert made.keys() == sizes.keys()
    assert all((size > 0) == (made[at] > 0) and made[at] <= size for at, size in sizes.items())
    if most is not None:
        assert sum(made.values()) <= most + len(sizes)
        if sum(sizes.values()) <= most:
            assert made == sizes


@given(SIZES, st.integers(1, 40))
def test_ranges_are_divided(sizes: dict[Partition, int], least: int) -> None:
    """Into as many as are asked for, of the same records, none of them empty."""
    whole = [Range(*at, 5, 5 + size) for at, size in sizes.items() if size]
    found = divided(whole, least)
    total = sum(sizes.values())
    assert len(found) >= min(least, total)
    assert all(each.start < each.end for each in found)
    joined: dict[Partition, int] = {}
    for each in found:
        at = (each.topic, each.partition)
        assert joined.setdefault(at, 5) == each.start
        joined[at] = each.end
    assert joined == {at: 5 + size for at, size in sizes.items() if size}
    if len(whole) >= least:
        assert found == whole


@given(st.lists(st.integers(1, 5_000), max_size=40), st.integers(1, 8))
def test_small_ranges_share_tasks(sizes: list[int], least: int) -> None:
    """Each range is in one task; none is empty; a task more than there must be has its thousand
    records to itself, and no task has much more than its share."""
    ranges = [Range("a", number, 0, size) for number, size in enumerate(sizes)]
    tasks = together(ranges, least)
    assert sorted(each for task in tasks for each in task) == ranges
    assert all(tasks)
    assert len(tasks) >= min(least, len(ranges))
    total = sum(sizes)
    assert len(tasks) <= max(least, total // 1_000, 1)
    if tasks:
        largest = max(sum(each.end for each in task) for task in tasks)
        assert largest <= total / len(tasks) + max(sizes)


def test_a_partition_that_is_added() -> None:
    """Is read from its beginning."""
    cluster = Cluster({("a", 0): (0, 9), ("a", 1): (3, 7)})
    planned = offsets(cluster)
    start = {("a", 0): 4}
    end = planned.latest(start, None)
    assert end == {("a", 0): 9, ("a", 1): 7}
    assert planned.ranges(start, end) == [[Range("a", 0, 4, 9), Range("a", 1, 3, 7)]]
    assert planned.latest(start, 2) == {("a", 0): 5, ("a", 1): 4}


def test_records_that_are_gone() -> None:
    """A partition that ends before what was read, and one that is there no more, end the job; or
    it goes on with what there is."""
    back, less = {("a", 0): (0, 5)}, {("b", 0): (0, 5)}
    start = {("a", 0): 9}
    with pytest.raises(StateError, match=r"a, partition 0: ends at offset 5 now, .* up to 9"):
        offsets(Cluster(back)).latest(start, None)
    with pytest.raises(StateError, match=r"a, partition 0: is there no more"):
        offsets(Cluster(less)).latest(start, None)
    planned = offsets(Cluster(back), fail_on_data_loss=False)
    end = planned.latest(start, None)
    assert end == {("a", 0): 5}
    assert planned.ranges(start, end) == []
    assert offsets(Cluster(less), fail_on_data_loss=False).latest(start, None) == {}


def test_to_the_end_of_input() -> None:
    """What comes later is left to the next run."""
    cluster = Cluster({("a", 0): (0, 5)})
    planned = offsets(cluster)
    planned.stop_at_present_ends()
    cluster.there = {("a", 0): (0, 50), ("a", 1): (3, 4)}
    assert planned.latest({("a", 0): 2}, None) == {("a", 0): 5}
    # A start behind it, of a batch that was planned before: it is the end.
    assert planned.latest({("a", 0): 7}, None) == {("a", 0): 7}


def test_a_moment_without_kafka_is_bridged() -> None:
    """For a minute."""
    cluster = Cluster({("a", 0): (0, 5)}, away=20)
    assert offsets(cluster).latest({("a", 0): 2}, None) == {("a", 0): 5}
    with pytest.raises(KafkaUnavailableError):
        offsets(Cluster({}, away=1_000)).latest({("a", 0): 2}, None)
