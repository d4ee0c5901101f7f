"""Time that goes wrong, through the whole job: partitions hours apart, silent ones that come back,
a clock that jumps back, a partition that is added, topics without records."""

from __future__ import annotations

import shutil
import time

import pytest

from spark_cep.pipeline.driver.checkpoint.local_files import LocalFiles
from spark_cep.pipeline.driver.control.source_offset import SourceOffset
from spark_cep.pipeline.wire.reports import Count
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

HOUR = 3600
AB = sequence("ab", "a", "followed_by b", within="1 minute", events=["events"])


def test_one_job_through_all_of_it(scenario: Scenario) -> None:
    """Nothing is lost: each event is matched or in the late topic, once."""
    stream = Stream(scenario, partitions=2)
    other = Stream(scenario, "other")
    Stream(scenario, "empty", partitions=2)
    scenario.rule(AB)
    with scenario.running(time={"partition_idle_after": "4 seconds"}):
        # One partition is two hours behind, and a topic falls silent an hour behind.
        stream.send(("k", "a", 2 * HOUR), ("k", "b", 2 * HOUR + 1))
        stream.send(stream.event("m", "a", 0, partition=1))
        other.send(("o", "x", HOUR))
        scenario.wait_for_records(4)
        assert scenario.outputs().matches == []
        stream.send(
            stream.event("m", "b", 1, partition=1),
            stream.event("m", "x", 2 * HOUR + 2, partition=1),
        )
        outputs = scenario.wait_for(lambda out: len(out.matches) == 2)
        matches = [
            found("ab", "k", at(2 * HOUR + 1), a=0, b=1),
            found("ab", "m", at(1), a=0, b=1),
        ]
        assert (outputs.of("ab"), outputs.late) == ((matches, []), [])
        # A clock jumps back by two hours, and goes on from there until it is where it was.
        late = stream.send(("k", "a", 10), ("k", "b", HOUR))
        stream.send(("k", "a", 3 * HOUR), ("k", "b", 3 * HOUR + 1), ("k", "x", 3 * HOUR + 2))
        stream.send(stream.event("m", "x", 3 * HOUR + 2, partition=1))
        outputs = scenario.wait_for(lambda out: len(out.matches) == 3)
        matches.append(found("ab", "k", at(3 * HOUR + 1), a=4, b=5))
        assert outputs.of("ab") == (sorted(matches), [])
        # A partition falls silent, the others go on without it, and it comes back with old events
        # (late) and new ones, which are in time.
        stream.send(("k", "a", 5 * HOUR), ("k", "b", 5 * HOUR + 1), ("k", "x", 6 * HOUR))
        outputs = scenario.wait_for(lambda out: len(out.matches) == 4)
        matches.append(found("ab", "k", at(5 * HOUR + 1), a=7, b=8))
        late += stream.send(
            stream.event("m", "a", 4 * HOUR, partition=1),
        )
        stream.send(
            stream.event("m", "a", 7 * HOUR, partition=1),
            stream.event("m", "b", 7 * HOUR + 1, partition=1),
            stream.event("m", "x", 8 * HOUR, partition=1),
            stream.event("k", "x", 8 * HOUR),
        )
        outputs = scenario.wait_for(lambda out: len(out.matches) == 5)
        matches.append(found("ab", "m", at(7 * HOUR + 1), a=5, b=6))
        # A partition is added while the job runs: what is old is late, what is new is not.
        # Spark begins a batch for it that reads nothing.
        scenario.kafka.add_partitions(stream.topic, 3)
        _wait_for_partition(scenario, stream.topic, 2)
        late += stream.send(stream.event("n", "a", 100, partition=2))
        stream.send(
            stream.event("n", "a", 9 * HOUR, partition=2),
            stream.event("n", "b", 9 * HOUR + 1, partition=2),
            *(stream.event("n", "x", 10 * HOUR, partition=number) for number in range(3)),
        )
        outputs = scenario.wait_for(lambda out: len(out.matches) == 6)
        matches.append(found("ab", "n", at(9 * HOUR + 1), a=1, b=2))
    outputs = scenario.outputs()
    assert outputs.of("ab") == (sorted(matches), [])
    offsets = [int(record.headers["spark-cep-offset"] or b"") for record in outputs.late]
    assert sorted(offsets) == sorted(late)
    assert scenario.metric("spark_cep_late_events_total", topic=stream.topic) == len(late)
    newest = "spark_cep_newest_event_timestamp_seconds"
    assert scenario.metric(newest, topic=other.topic, partition="0") == at(HOUR) / 1000
    assert scenario.metric(newest, topic=stream.topic, partition="2") == at(10 * HOUR) / 1000
    assert (outputs.dead_letters, scenario.total(Count.RECORDS)) == ([], 26)


def _wait_for_partition(scenario: Scenario, topic: str, partition: int) -> None:
    """Until a batch is done that knows of it."""
    folder = scenario.folder / "checkpoint"
    deadline = time.monotonic() + 60
    while True:
        done = max((int(each.name) for each in (folder / "commits").glob("[0-9]*")), default=0)
        _, *sources = LocalFiles(folder).parsed(f"offsets/{done}", after=1)
        if (topic, partition) in SourceOffset.of_entry(sources).input:
            return
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.1)


@pytest.mark.parametrize(("policy", "late"), [("partition_minimum", False), ("maximum", True)])
def test_the_policies(scenario: Scenario, policy: str, late: bool) -> None:
    """Events of a partition that lags behind are in time by the minimum, and late by the maximum,
    one without key too: either late or a dead letter. With ``drop`` as many are counted as are
    written otherwise."""
    stream = Stream(scenario, partitions=2)
    scenario.rule(AB | {"key": "NULLIF(k, 'nobody')"})
    time = {"watermark": policy}
    stream.send(("k", "x", HOUR), stream.event("m", "a", 0, partition=1))
    scenario.run(time=time)
    stream.send(
        stream.event("m", "b", 1, partition=1),
        stream.event("nobody", "b", 1, partition=1),
        stream.event("m", "x", 2, partition=1),
    )
    shutil.copytree(scenario.folder / "checkpoint", scenario.folder / "dropping")
    outputs = scenario.run(time=time)
    expected = (0, [(b"1", b"1"), (b"1", b"2")], 0) if late else (1, [], 1)
    written = [
        (record.headers["spark-cep-partition"], record.headers["spark-cep-offset"])
        for record in outputs.late
    ]
    assert (len(outputs.matches), sorted(written), len(outputs.dead_letters)) == expected
    assert scenario.total(Count.LATE_EVENTS) == len(written)
    scenario.run(
        time=time,
        state={"checkpoint": str(scenario.folder / "dropping")},
        outputs={"late_events": "drop"},
    )
    assert len(scenario.outputs().late) == len(written)
    assert scenario.total(Count.LATE_EVENTS) == 2 * len(written)
