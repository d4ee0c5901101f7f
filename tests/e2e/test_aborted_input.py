"""Input written in transactions: what was aborted has not happened."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pytest
from confluent_kafka import Producer

from spark_cep.pipeline.wire.reports import Count
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


class Transactions:
    """A producer of transactions."""

    def __init__(self, scenario: Scenario) -> None:
        self._producer = Producer(scenario.kafka.config(**{"transactional.id": uuid.uuid4().hex}))
        self._producer.init_transactions(30)

    def write(self, topic: str, events: Sequence[Sent], *, kept: bool) -> None:
        """One transaction, committed or aborted."""
        producer = self._producer
        producer.begin_transaction()
        for event in events:
            producer.produce(topic, event.value, partition=0)
        # Flushed, so that the broker has them before they are aborted.
        assert producer.flush(30) == 0
        if kept:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)


def test_aborted_records_are_not_read(scenario: Scenario) -> None:
    """Neither before nor between what is committed (by offset, end marks of transactions count);
    Kafka's own default would read them."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    transactions = Transactions(scenario)
    for number, kept in enumerate([False, True, False, True]):
        key = "kept" if kept else "aborted"
        events = [stream.event(key, name, 10 * number + n) for n, name in enumerate("ab")]
        transactions.write(stream.topic, events, kept=kept)
    outputs = scenario.decide()
    assert outputs.of("ab") == (
        [found("ab", "kept", at(11), a=3, b=4), found("ab", "kept", at(31), a=9, b=10)],
        [],
    )
    assert scenario.total(Count.RECORDS) == 4


def test_a_batch_of_aborted_records_alone(scenario: Scenario) -> None:
    """It has offsets and no records, and the state goes on from it as from any other batch."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    transactions = Transactions(scenario)
    with scenario.running(time={"partition_idle_after": "1 hour"}):
        stream.send(("k", "a", 0))
        scenario.wait_for_records(1)
        batches = len(scenario.reports)
        transactions.write(stream.topic, [stream.event("k", "b", 1)], kept=False)
        scenario.wait_for(lambda _: len(scenario.reports) > batches)
        stream.send(("k", "b", 2), ("k", "x", 9))
        scenario.wait_for(lambda outputs: outputs.matches)
    assert scenario.outputs().of("ab") == ([found("ab", "k", at(2), a=0, b=3)], [])
