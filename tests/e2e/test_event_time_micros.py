"""Event times in microseconds, through the whole job: the order within a millisecond."""

from __future__ import annotations

import pytest

from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import MICROS, record
from tests.e2e.stream import BEGIN, sequence
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

EVENT = record("e2e.Fine", ts=MICROS, k="string", name="string")


@pytest.mark.parametrize("batches", [1, 3])
def test_the_order_within_a_millisecond(scenario: Scenario, batches: int) -> None:
    """It is that of the microseconds, not of the offsets, also when the events come in several
    batches and wait for the watermark between them."""
    scenario.input("fine")
    schema = scenario.register("fine", EVENT)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    disorder = {"allowed_disorder": "1 second"}
    events = [("b", 300), ("a", 200), ("a", 400)]
    sent = [
        Sent(scenario.avro(schema, {"ts": BEGIN * 1_000 + micros, "k": "k", "name": name}))
        for name, micros in events
    ]
    for start in range(0, 3, 3 // batches):
        scenario.send("fine", *sent[start : start + 3 // batches])
        scenario.run(time=disorder)
    outputs = scenario.decide(time=disorder)
    assert outputs.of("ab") == ([found("ab", "k", BEGIN, a=1, b=0)], [])
