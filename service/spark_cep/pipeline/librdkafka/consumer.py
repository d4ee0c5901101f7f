"""Messages of partitions, left where they are, for
:mod:`~spark_cep.pipeline.read.loops.message_loops`."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from ctypes import byref, c_int64
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaException
from numpy.typing import NDArray

from spark_cep.errors import ConfigurationError
from spark_cep.pipeline.librdkafka.library import LIBRARY, client, configuration, refused

_CONSUMER: Final = 1


class PartitionClient:
    """Reads partitions, each from an offset on. ``config``: librdkafka's properties of a consumer.

    Raises KafkaException when librdkafka refuses what it is asked.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._client = client(_CONSUMER, configuration(config))
        self._topics: dict[str, Any] = {}
        # With the last use of it. A process that ends takes it along, a forked one has no threads
        # of it that could be waited for.
        weakref.finalize(self, _destroy, self._client, self._topics).atexit = False

    def begin(self, topic: str, partition: int, offset: int) -> PartitionFetch:
        """Fetch a partition, which is not being fetched, from ``offset`` on."""
        if topic not in self._topics:
            self._topics[topic] = LIBRARY.rd_kafka_topic_new(self._client, topic.encode(), None)
        handle = self._topics[topic]
        queue = LIBRARY.rd_kafka_queue_new(self._client)
        if LIBRARY.rd_kafka_consume_start_queue(handle, partition, offset, queue):
            error = LIBRARY.rd_kafka_last_error()
            LIBRARY.rd_kafka_queue_destroy(queue)
            raise refused(error, topic.encode())
        return PartitionFetch(handle, partition, queue)

    def bounds(self, topic: str, partition: int, timeout_ms: int) -> tuple[int, int]:
        """The offsets that a partition has now: the first, and that behind the last that may be
        read."""
        first, behind = c_int64(), c_int64()
        asked = LIBRARY.rd_kafka_query_watermark_offsets
        place = topic.encode(), partition
        error = asked(self._client, *place, byref(first), byref(behind), timeout_ms)
        if error:
            raise refused(error)
        return first.value, behind.value


class PartitionFetch:
    """A partition that is being fetched, until :meth:`end`."""

    def __init__(self, topic: Any, partition: int, queue: Any) -> None:
        self._topic, self._partition, self._queue = topic, partition, queue

    def fetched(self, messages: NDArray[np.int64], timeout_ms: int) -> int:
        """Fill ``messages`` with the messages that have come, wait for the first ones, and return
        their number. The caller frees them with
        :func:`~spark_cep.pipeline.read.loops.message_loops.destroy`."""
        place = messages.ctypes.data
        take = LIBRARY.rd_kafka_consume_batch_queue
        found = int(take(self._queue, 0, place, len(messages)))
        if not found and timeout_ms:
            found = int(take(self._queue, timeout_ms, place, 1))
        if found < 0:
            raise refused(LIBRARY.rd_kafka_last_error())
        return found

    def end(self) -> None:
        """Let go of the partition, and of what was fetched of it and not asked for."""
        LIBRARY.rd_kafka_consume_stop(self._topic, self._partition)
        LIBRARY.rd_kafka_queue_destroy(self._queue)


def _destroy(client: Any, topics: Mapping[str, Any]) -> None:
    for topic in topics.values():
        LIBRARY.rd_kafka_topic_destroy(topic)
    LIBRARY.rd_kafka_destroy(client)


def check(config: Mapping[str, Any]) -> None:
    """Raise ConfigurationError when librdkafka refuses a property, or its value."""
    try:
        LIBRARY.rd_kafka_conf_destroy(configuration(config))
    except KafkaException as error:
        raise ConfigurationError(f"kafka.source_properties: {error.args[0].str()}") from None
