"""A broker from a test's side: topics, records in a chosen order, and everything a topic holds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

_SECONDS = 30.0


@dataclass(frozen=True)
class Sent:
    """One record to produce. ``timestamp``: that of the Kafka record, in milliseconds."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    timestamp: int | None = None
    headers: list[tuple[str, bytes]] = field(default_factory=list)


@dataclass(frozen=True)
class KafkaAccess:
    """One broker, known by its bootstrap servers."""

    bootstrap: str

    def config(self, **more: Any) -> dict[str, Any]:
        """A client's configuration."""
        return {"bootstrap.servers": self.bootstrap, "log_level": 0, **more}

    def admin(self) -> AdminClient:
        """A new administration client."""
        return AdminClient(self.config())

    def create_topics(self, partitions: Mapping[str, int]) -> None:
        """Create topics by name with a number of partitions."""
        admin = self.admin()
        new = [NewTopic(name, count, 1) for name, count in partitions.items()]
        for created in admin.create_topics(new, operation_timeout=_SECONDS).values():
            created.result(_SECONDS)

    def send(self, topic: str, records: Iterable[Sent]) -> None:
        """Produce records in this order and wait until the broker has them."""
        failures: list[str] = []

        def delivered(error: Any, _: Message) -> None:
            if error is not None:
                failures.append(str(error))

        producer = Producer(self.config(**{"enable.idempotence": True, "linger.ms": 0}))
        for record in records:
            given = {} if record.timestamp is None else {"timestamp": record.timestamp}
            producer.produce(
                topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=delivered,
                headers=record.headers,
                **given,
            )
        assert producer.flush(_SECONDS) == 0
        assert not failures, failures

    def read(self, topic: str) -> list[Message]:
        """Every committed record that the topic holds now, partition by partition."""
        consumer = Consumer(
            self.config(
                **{
                    "group.id": "tests",
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "earliest",
                }
            )
        )
        try:
            partitions = consumer.list_topics(topic, _SECONDS).topics[topic].partitions
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
            found: list[Message] = []
            open_ends = set(partitions)
            deadline = time.monotonic() + _SECONDS
            while open_ends:
                assert time.monotonic() < deadline, f"{topic} could not be read to its end"
                for message in consumer.consume(1000, 0.2):
                    if message.error() is None:
                        found.append(message)
                    else:
                        open_ends.discard(message.partition())
            return sorted(found, key=lambda m: (m.partition(), m.offset()))
        finally:
            consumer.close()
