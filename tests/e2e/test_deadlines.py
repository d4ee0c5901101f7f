"""Timeouts of keys that fall silent: time moves on without them, exactly to their deadlines."""

from __future__ import annotations

import pytest

from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.wire.reports import Count
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

RULE = sequence("ab", "a", "followed_by b", within="10 seconds")


def test_other_keys_move_the_deadline(scenario: Scenario) -> None:
    """A key with one event times out because another key's events go on; then an idle partition
    no longer holds the others back."""
    stream = Stream(scenario, partitions=2)
    scenario.rule(RULE)
    time = {"partition_idle_after": "3 seconds"}
    stream.send(stream.event("x", "a", 0), stream.event("z", "a", 2, partition=1))
    stream.send(stream.event("y", "a", 5), stream.event("w", "n", 11, partition=1))
    stream.send(stream.event("w", "n", 60))
    with scenario.running(time=time):
        outputs = scenario.wait_for(lambda out: len(out.timeouts) >= 3)
    expected = [
        found("ab", key, at(deadline), a=offset)
        for key, deadline, offset in (("x", 10, 0), ("y", 15, 1), ("z", 12, 0))
    ]
    assert outputs.of("ab") == ([], expected)
    # The slower partition had come to 11 s: x was over, the others waited until it was idle.
    emitted = {t.body["key"]: t.body["emitted_at"] for t in outputs.timeouts}
    assert min(emitted["y"], emitted["z"]) - emitted["x"] >= 3000
    assert outputs.late == []


def test_an_idle_input_moves_the_deadline(scenario: Scenario) -> None:
    """With ``advance_when_idle`` the last event's own timeout fires with no event after it."""
    stream = Stream(scenario)
    scenario.rule(RULE)
    with scenario.running(time={"advance_when_idle": "1 second"}):
        stream.send(("x", "a", 0), ("y", "a", 5))
        outputs = scenario.wait_for(lambda out: len(out.timeouts) >= 2)
    expected = [found("ab", "x", at(10), a=0), found("ab", "y", at(15), a=1)]
    assert outputs.of("ab") == ([], expected)
    assert scenario.total(Count.RECORDS) == 2


def test_without_it_an_idle_input_waits(scenario: Scenario) -> None:
    """A bounded run that ends before a deadline decides nothing about it; a later run does."""
    stream = Stream(scenario)
    scenario.rule(RULE)
    stream.send(("x", "a", 0), ("y", "a", 10))
    assert scenario.run().of("ab") == ([], [])
    stream.send(("y", "n", 10.001))
    assert scenario.run().of("ab") == ([], [found("ab", "x", at(10), a=0)])


def test_records_that_come_while_time_is_brought_to_its_end(scenario: Scenario) -> None:
    """A run that decides everything at the end of its input reads what was there at its start. What
    comes meanwhile is for the next run, and late there."""
    stream = Stream(scenario)
    scenario.rule(RULE)
    stream.send(("x", "a", 0), ("y", "a", 5))

    def meanwhile(report: BatchReport) -> None:
        scenario.reports.append(report)
        if report.batch == 0:
            stream.send(("x", "b", 6))

    trigger = {"mode": "available_now", "at_end_of_input": "decide"}
    scenario.service(on_batch=meanwhile, trigger=trigger).run()
    expected = [found("ab", "x", at(10), a=0), found("ab", "y", at(15), a=1)]
    outputs = scenario.outputs()
    assert outputs.of("ab") == ([], expected)
    assert scenario.total(Count.RECORDS) == 2
    assert outputs.late == []

    assert len(scenario.decide().late) == 1
    assert scenario.total(Count.RECORDS) == 3
