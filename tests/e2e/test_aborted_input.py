"""Input written in transactions: what was aborted has not happened."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer

from service.pipeline.wire.reports import Count
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def test_aborted_records_are_not_read(scenario: Scenario) -> None:
    """Neither before nor between what is committed (by offset, end marks of transactions count);
    Kafka's own default would read them."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    producer = Producer(scenario.kafka.config(**{"transactional.id": uuid.uuid4().hex}))
    producer.init_transactions(30)
    for number, kept in enumerate([False, True, False, True]):
        producer.begin_transaction()
        for offset, name in enumerate("ab"):
            event = stream.event("kept" if kept else "aborted", name, 10 * number + offset)
            producer.produce(stream.topic, event.value, partition=0)
        # Flushed, so that the broker has them before they are aborted.
        assert producer.flush(30) == 0
        if kept:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    outputs = scenario.decide()
    assert outputs.of("ab") == (
        [found("ab", "kept", at(11), a=3, b=4), found("ab", "kept", at(31), a=9, b=10)],
        [],
    )
    assert scenario.total(Count.RECORDS) == 4
