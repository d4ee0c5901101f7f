"""When batches begin in a running job."""

from __future__ import annotations

import time

import pytest

from spark_cep.pipeline.wire.reports import Count
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

AIM_SECONDS = 10.0
#: A record each tenth of a second, for so long.
LOAD_SECONDS = 20.0


def test_a_long_aim_makes_few_batches(scenario: Scenario) -> None:
    """A batch begins at once after an idle spell; then one for all that comes within the aim."""
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream = Stream(scenario)
    trigger = {"mode": "continuous", "latency": f"{AIM_SECONDS:g} seconds"}
    with scenario.running(trigger=trigger):
        stream.send(("k", "x", 0))
        scenario.wait_for_records(1, seconds=300)
        time.sleep(AIM_SECONDS + 1)

        sent = time.monotonic()
        stream.send(("k", "x", 1))
        scenario.wait_for_records(2)
        waited = time.monotonic() - sent - scenario.reports[-1].seconds
        assert waited < AIM_SECONDS / 2, "nothing had come for as long as the aim"

        before, number = len(scenario.reports), 0
        began = time.monotonic()
        while time.monotonic() - began < LOAD_SECONDS:
            number += 1
            stream.send(("k", "x", 1 + number))
            time.sleep(0.1)
        scenario.wait_for_records(2 + number)
        late = time.monotonic() - began - LOAD_SECONDS
        slowest = max(report.seconds for report in scenario.reports[before:])
        assert late < 1.5 * AIM_SECONDS + slowest, "about as old as the aim at most"
        batches = len(scenario.reports) - before
        # They begin less than the aim apart, by what they take. Without an aim there are dozens.
        assert 2 <= batches <= 4 + LOAD_SECONDS / max(AIM_SECONDS - slowest, 1.0), "few batches"
    assert scenario.total(Count.RECORDS) == 2 + number
