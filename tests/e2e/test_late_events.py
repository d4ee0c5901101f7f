"""Late events: where the line is, and which of them are written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import NamedTuple

import pytest

from spark_cep.pipeline.wire.reports import Count
from tests.e2e.outputs import Outputs, found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

MODES = ("relevant", "all", "drop")

#: Offsets of what Flink CEP 2.2.0's side output of late events held after the same events and
#: watermarks, ``a b`` within a minute: irrelevant ones too.
FLINK_LATE = [2, 3, 5]


class Run(NamedTuple):
    """What a run wrote, and how many late events it counted."""

    outputs: Outputs
    late: int


@pytest.fixture(scope="module")
def runs(new_scenario: Callable[[], Scenario]) -> dict[str, Run]:
    """The same second run from the same checkpoint, once for each setting."""
    scenario = new_scenario()
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    stream = Stream(scenario)
    time = {"allowed_disorder": "10 seconds"}
    stream.send(("k", "a", 0), ("k", "x", 30))  # the watermark: 30 s - 10 s - 1 ms
    scenario.run(time=time)
    stream.send(
        ("k", "b", 19.998),
        ("k", "b", 19.999),
        ("k", "b", 20),
        ("k", "x", 5),
        ("k", "b", 20.001),
        ("k", "x", 100),
    )
    runs = {}
    for mode in MODES:
        shutil.copytree(scenario.folder / "checkpoint", scenario.folder / mode)
        topics = {kind: scenario.topic(f"{kind}-{mode}") for kind in Outputs.KINDS}
        before = scenario.total(Count.LATE_EVENTS)
        scenario.run(
            time=time,
            state={"checkpoint": str(scenario.folder / mode)},
            outputs={"late_events": mode, "topics": topics},
        )
        runs[mode] = Run(scenario.outputs(**topics), scenario.total(Count.LATE_EVENTS) - before)
    return runs


@pytest.mark.parametrize("mode", MODES)
def test_the_watermark_itself_is_late(runs: dict[str, Run], mode: str) -> None:
    """An event at the watermark and one below take no part; those above it do."""
    matches, _ = runs[mode].outputs.of("ab")
    assert matches == [found("ab", "k", at(20), a=0, b=4)]


def test_late_events_that_a_rule_could_use_are_written(runs: dict[str, Run]) -> None:
    """By default an event that no condition wants is not in the late topic."""
    late = runs["relevant"].outputs.late
    assert [record.headers["spark-cep-offset"] for record in late] == [b"2", b"3"]
    assert {record.headers["spark-cep-watermark"] for record in late} == {b"%d" % (at(20) - 1)}


def test_all_late_events_are_written(runs: dict[str, Run]) -> None:
    """With ``all`` the irrelevant one is there too, and all are counted."""
    late = runs["all"].outputs.late
    assert [record.headers["spark-cep-offset"] for record in late] == [b"2", b"3", b"5"]
    assert runs["all"].late == 3


def test_flink_writes_every_late_event(runs: dict[str, Run]) -> None:
    """With ``all`` the late topic is Flink's; by default it lacks what no rule could use."""
    late = {
        mode: [int(record.headers["spark-cep-offset"] or b"") for record in run.outputs.late]
        for mode, run in runs.items()
    }
    assert late["all"] == FLINK_LATE
    assert late["relevant"] == [offset for offset in FLINK_LATE if offset != 5]
    assert late["drop"] == []


def test_dropped_late_events_are_counted(runs: dict[str, Run]) -> None:
    """With ``drop`` nothing is written, and the count is there all the same."""
    assert (runs["drop"].outputs.late, runs["drop"].late) == ([], 2)
