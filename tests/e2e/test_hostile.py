"""The short form of the hostile run: a stream of everything at once that a writer could do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_cep.pipeline.wire.reports import Count
from tests.e2e.scenario import Scenario
from tests.hostile.stream import HostileStream

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ROUNDS, EVENTS, CROWD, LONG, SCHEMAS = 2, 400, 5_000, 2_000, 10


def test_sound_events_are_processed_as_if_alone(new_scenario: Callable[[], Scenario]) -> None:
    """In small batches; each broken record is a dead letter with its reason; nothing ends."""
    scenario = new_scenario()
    stream = HostileStream(scenario, EVENTS, CROWD, LONG)
    for number in range(ROUNDS):
        stream.send(crowd=number == 0, long=number == 1, schemas=SCHEMAS * number)
    scenario.run(source={"max_offsets_per_trigger": stream.records // 5})
    assert stream.compare()["matches"] > 200
    letters = stream.letters.total()
    assert letters >= 3  # a rule of steps, two in SQL
    assert scenario.total(Count.DEAD_LETTERS) - letters == len(stream.broken)
    assert len(stream.broken) > ROUNDS * EVENTS * 0.3
