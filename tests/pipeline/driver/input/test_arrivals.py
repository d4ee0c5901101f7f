"""Waiting for records of a broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from spark_cep.pipeline.driver.control.source_offset import Ends
from spark_cep.pipeline.driver.input.arrivals import Arrivals
from tests.kafka_access import KafkaAccess, Sent

pytestmark = pytest.mark.kafka

TOPIC = "arrivals.records"
#: Longer than anything here takes, on a busy machine too.
_LONG = 60.0
#: Less than that, and more than a busy machine takes.
_SOON = _LONG / 3


def never() -> bool:
    """There is nothing else to do."""
    return False


class Waiting:
    """Waits for records of the topic, which has two partitions."""

    def __init__(self, kafka: KafkaAccess) -> None:
        self._kafka = kafka
        self._arrivals = Arrivals(kafka.config())
        self._ends: Ends = {(TOPIC, 0): 0, (TOPIC, 1): 0}

    def send(self, partition: int) -> None:
        """One more record, which the job knows when it is asked for the next one."""
        self._kafka.send(TOPIC, [Sent(b"x", partition=partition)])
        self._ends[TOPIC, partition] += 1

    def seconds(
        self, limit: float, meanwhile: Callable[[], None] | None = None, *, known: bool = True
    ) -> float:
        """How long it waits, with what is done ``meanwhile``, a moment later. Unless ``known``, the
        last record is not known of."""
        ends = dict(self._ends)
        if not known:
            ends[TOPIC, 0] -= 1
        acts = threading.Timer(0.3, meanwhile or never)
        began = time.monotonic()
        acts.start()
        self._arrivals.wait(ends, limit, never)
        waited = time.monotonic() - began
        # A record is there before who sends it knows.
        acts.join()
        return waited

    def until(self, otherwise: Callable[[], bool]) -> float:
        """How long it waits if something else comes."""
        began = time.monotonic()
        self._arrivals.wait(self._ends, _LONG, otherwise)
        return time.monotonic() - began

    def rest(self) -> None:
        """As Arrivals."""
        self._arrivals.rest()


@pytest.fixture(scope="module")
def waiting(kafka: KafkaAccess) -> Iterator[Waiting]:
    """Of an empty topic."""
    kafka.create_topics({TOPIC: 2})
    made = Waiting(kafka)
    made.seconds(1.0)  # connects
    yield made
    made.rest()


def test_it_waits_as_long_as_it_is_told(waiting: Waiting) -> None:
    """When nothing comes."""
    assert 0.3 <= waiting.seconds(0.3) < _SOON


def test_a_record_ends_the_waiting(waiting: Waiting) -> None:
    """Of any partition, one after the other."""
    for partition in (0, 1, 1, 0):
        assert 0.3 <= waiting.seconds(_LONG, partial(waiting.send, partition)) < _SOON


def test_a_record_that_is_there_ends_it_at_once(waiting: Waiting) -> None:
    """One that came after Kafka had been asked for the ends, also after a rest."""
    waiting.send(0)
    assert waiting.seconds(_LONG, known=False) < _SOON
    waiting.rest()
    assert waiting.seconds(_LONG, known=False) < _SOON
    assert 0.3 <= waiting.seconds(0.3) < _SOON


def test_something_else_ends_it(waiting: Waiting) -> None:
    """As a change of what the driver tells."""
    until = time.monotonic() + 0.3
    assert 0.3 <= waiting.until(lambda: time.monotonic() >= until) < _SOON


def test_without_a_broker_it_waits(kafka: KafkaAccess) -> None:
    """Its failures are nobody's; the source finds out itself."""
    arrivals = Arrivals({**kafka.config(), "bootstrap.servers": "127.0.0.1:1"})
    began = time.monotonic()
    spent = time.process_time()
    arrivals.wait({(TOPIC, 0): 0}, 1.0, never)
    waited = time.monotonic() - began
    assert 1.0 <= waited < _SOON
    assert time.process_time() - spent < 0.5 * waited, "and does not spin"
