"""Waiting for records: the broker tells when there are some, instead of being asked all the time.

A fetch at the end of each partition, which the broker answers as soon as a record comes. What is
fetched is thrown away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from spark_cep.pipeline.driver.control.source_offset import Ends
from spark_cep.pipeline.driver.kafka.cluster import OFFSETS_GROUP

#: How often what else may end the waiting is looked at.
_LOOK_SECONDS: Final = 0.05
_OWN: Final = {
    "group.id": OFFSETS_GROUP,
    "enable.auto.commit": False,
    "enable.partition.eof": False,
    "auto.offset.reset": "error",
    # A fetch that is on its way holds up one of other partitions or offsets.
    "fetch.wait.max.ms": 100,
    "fetch.min.bytes": 1,
    # Nothing ahead: one record is enough.
    "fetch.message.max.bytes": 1,
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 1,
    "fetch.queue.backoff.ms": 10,
    "log_level": 0,
    "error_cb": lambda _: None,
}


class Arrivals:
    """Waits for the records of one query; ``config``: librdkafka's properties of its consumers.

    What goes wrong here is not told: the source, which asks Kafka again after each waiting, notices
    it itself.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = {**config, **_OWN}
        self._waits_at: Ends = {}

    def wait(self, ends: Ends, seconds: float, otherwise: Callable[[], bool]) -> None:
        """Return when there is a record behind ``ends``, when ``otherwise`` tells that there is
        something else to do, or after ``seconds``."""
        if ends != self._waits_at:
            self._consumer.assign([TopicPartition(*at, end) for at, end in ends.items()])
            self._waits_at = dict(ends)
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not otherwise():
            message = self._consumer.poll(min(left, _LOOK_SECONDS))
            if message is not None and message.error() is None:
                return

    def rest(self) -> None:
        """Fetch nothing until the next :meth:`wait`."""
        if self._waits_at:
            self._consumer.unassign()
            self._waits_at = {}

    @cached_property
    def _consumer(self) -> Consumer:
        return Consumer(self._config)
