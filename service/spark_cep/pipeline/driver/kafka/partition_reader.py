"""Reading of one partition of a topic, for commands that show it.

Read backwards it comes in stretches of offsets that double until there are enough records: what is
asked for is at the end most often, and transactions leave offsets without records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from spark_cep.config import Settings
from spark_cep.documents.nearest import instead
from spark_cep.errors import ConfigurationError, KafkaUnavailableError
from spark_cep.pipeline.driver.kafka.cluster import Cluster

_ANSWER_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.05
_FIRST_STRETCH: Final = 1_000


@contextmanager
def partitions_of(settings: Settings, setting: str, topic: str) -> Iterator[list[PartitionReader]]:
    """The partitions of an output ``topic``, the one of a ``setting``. Raises ConfigurationError
    where there is no such topic, and what :class:`PartitionReader` does."""
    missing = (
        f"{setting}: {topic} does not exist on {settings.kafka.bootstrap_servers}; the job creates"
        " it when it starts"
    )
    with _partitions(settings, topic, lambda _: missing) as partitions:
        yield partitions


@contextmanager
def partitions_of_input(settings: Settings, topic: str) -> Iterator[list[PartitionReader]]:
    """The partitions of a ``topic`` that somebody else fills; raises as :func:`partitions_of`."""

    def missing(existing: list[str]) -> str:
        servers = settings.kafka.bootstrap_servers
        names = [each for each in existing if not each.startswith("_")]
        return f"there is no topic {topic} on {servers}; {instead(topic, names, 'topics')}"

    with _partitions(settings, topic, missing) as partitions:
        yield partitions


@contextmanager
def _partitions(
    settings: Settings, topic: str, missing: Callable[[list[str]], str]
) -> Iterator[list[PartitionReader]]:
    """The partitions of a topic; ``missing``: what to say where it is none of those there are."""
    cluster = Cluster(settings)
    existing = cluster.topics()
    if topic not in existing:
        raise ConfigurationError(missing(existing))
    # The end of a partition is told, and soon.
    soon = {"enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = cluster.consumer(f"spark-cep-{topic}", **soon)
    try:
        known = cluster.ask(lambda: consumer.list_topics(topic, _ANSWER_SECONDS)).topics[topic]
        yield [
            PartitionReader(cluster, consumer, topic, number) for number in sorted(known.partitions)
        ]
    finally:
        consumer.close()


class PartitionReader:
    """A partition of a topic, read to its end as it is now. Each method raises what
    :meth:`Cluster.ask <spark_cep.pipeline.driver.kafka.cluster.Cluster.ask>` does, and
    KafkaUnavailableError."""

    def __init__(self, cluster: Cluster, consumer: Consumer, topic: str, number: int) -> None:
        self._cluster = cluster
        self._consumer = consumer
        self._at = TopicPartition(topic, number)

    def backwards(self) -> Iterator[Iterator[Message]]:
        """Stretches of records, the newest first, each in the order of offsets."""
        low, end = self._bounds()
        stretch = _FIRST_STRETCH
        while end > low:
            begin = max(low, end - stretch)
            yield self._between(begin, end)
            end, stretch = begin, stretch * 2

    def forwards(self) -> Iterator[Message]:
        """All records, in the order of offsets."""
        low, end = self._bounds()
        if end > low:
            yield from self._between(low, end)

    def _bounds(self) -> tuple[int, int]:
        return self._cluster.ask(
            lambda: self._consumer.get_watermark_offsets(self._at, _ANSWER_SECONDS)
        )

    def _between(self, begin: int, end: int) -> Iterator[Message]:
        topic, number = self._at.topic, self._at.partition
        self._consumer.assign([TopicPartition(topic, number, begin)])
        while messages := self._cluster.ask(self._polled):
            for message in messages:
                error = message.error()
                # Behind the last committed record there is nothing to read yet.
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    return
                if (message.offset() or 0) >= end:
                    return
                yield message

    def _polled(self) -> list[Message]:
        """The next messages, at least one."""
        for _ in range(int(_ANSWER_SECONDS / _POLL_SECONDS)):
            messages = self._consumer.consume(500, _POLL_SECONDS)
            for message in messages:
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
            if messages:
                return messages
        said = f"Kafka did not send {self._at.topic} for {_ANSWER_SECONDS:g} s"
        raise KafkaUnavailableError(said)
