"""A broker from a test's side: topics, records in a chosen order, and everything a topic holds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from examples.embedded.topics import create_topics

_SECONDS = 30.0


@dataclass(frozen=True)
class Sent:
    """One record to produce. ``timestamp``: that of the Kafka record, in milliseconds."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp: int | None = None
    headers: list[tuple[str, str | bytes | None]] = field(default_factory=list)


@dataclass(frozen=True)
class KafkaAccess:
    """One broker, or several, known by their bootstrap servers. ``replication``: copies of each
    partition of a new topic."""

    bootstrap: str
    replication: int = 1

    def config(self, **more: Any) -> dict[str, Any]:
        """A client's configuration."""
        return {"bootstrap.servers": self.bootstrap, "log_level": 0, **more}

    def admin(self) -> AdminClient:
        """A new administration client."""
        return AdminClient(self.config())

    def create_topics(
        self, partitions: Mapping[str, int], config: Mapping[str, str] | None = None
    ) -> None:
        """Create topics by name with a number of partitions."""
        create_topics(self.bootstrap, partitions, config, copies=self.replication)

    def delete_topics(self, topics: list[str]) -> None:
        """Delete topics and wait until they are gone."""
        admin = self.admin()
        for deleted in admin.delete_topics(topics, operation_timeout=_SECONDS).values():
            deleted.result(_SECONDS)
        # The controller has; a broker that has not yet would still take records for them.
        deadline = time.monotonic() + _SECONDS
        while not _producer(self.bootstrap).list_topics().topics.keys().isdisjoint(topics):
            assert time.monotonic() < deadline, f"{topics} are still there"
            time.sleep(0.01)

    def add_partitions(self, topic: str, count: int) -> None:
        """Let the topic have ``count`` partitions; wait until records can go to all of them."""
        admin = self.admin()  # must outlive the future
        (added,) = admin.create_partitions([NewPartitions(topic, count)]).values()
        added.result(_SECONDS)
        deadline = time.monotonic() + _SECONDS
        while len(_producer(self.bootstrap).list_topics(topic).topics[topic].partitions) < count:
            assert time.monotonic() < deadline, f"{topic} has no {count} partitions"

    def send(self, topic: str, records: Iterable[Sent]) -> None:
        """Produce records in this order and wait until the broker has them."""
        failures: list[str] = []

        def delivered(error: Any, _: Message) -> None:
            if error is not None:
                failures.append(str(error))

        producer = _producer(self.bootstrap)
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=delivered,
                timestamp=record.timestamp or 0,  # 0: now
                headers=record.headers,
            )
        assert producer.flush(_SECONDS) == 0
        assert not failures, failures

    def read(self, *topics: str) -> list[Message]:
        """Every committed record that the topics hold now, partition by partition; a topic that
        does not exist holds none."""
        return sorted(self.each(*topics), key=lambda m: (m.topic(), m.partition(), m.offset()))

    def each(self, *topics: str) -> Iterator[Message]:
        """The same as they come, for topics that are too large to be held."""
        reader = Consumer(
            self.config(
                **{
                    "group.id": "tests",
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "earliest",
                    "fetch.wait.max.ms": 10,
                }
            )
        )
        try:
            known = reader.list_topics(timeout=_SECONDS).topics
            wanted = [(t, p) for t in topics if t in known for p in known[t].partitions]
            reader.assign([TopicPartition(topic, number, 0) for topic, number in wanted])
            open_ends = set(wanted)
            deadline = time.monotonic() + _SECONDS
            while open_ends:
                assert time.monotonic() < deadline, f"{topics} could not be read to their ends"
                for message in reader.consume(1000, 0.05):
                    if message.error() is None:
                        yield message
                    else:
                        open_ends.discard((message.topic(), message.partition()))
                    deadline = time.monotonic() + _SECONDS
        finally:
            reader.close()


@cache
def _producer(bootstrap: str) -> Producer:
    """One producer for all of a run's records: each new one costs a connection."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "enable.idempotence": True,
            "linger.ms": 0,
        }
    )
