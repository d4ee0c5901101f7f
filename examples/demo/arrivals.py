"""What arrives in the output topics, read as any other consumer would: committed records only, Avro
by the schemas of the registry, late events by the schemas of their input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from examples.demo.expected import Counts
from spark_cep.codecs.output.outputs import TOPIC_HEADER
from spark_cep.errors import StartError

Kind = Literal["match", "timeout", "late", "dead letter"]

#: The output topics, as ``config.yaml`` names them.
OUTPUT_TOPICS: Mapping[str, Kind] = {
    "cep.matches": "match",
    "cep.timeouts": "timeout",
    "cep.late": "late",
    "cep.dead-letters": "dead letter",
}
_MOST_AT_ONCE = 100
_METADATA_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """One output record, decoded. ``headers`` are texts; ``key`` is the Kafka key as text."""

    kind: Kind
    key: str | None
    value: Mapping[str, Any]
    headers: Mapping[str, str]


class Arrivals:
    """Reads the output topics from their beginning; :attr:`counts` says what was there."""

    def __init__(self, bootstrap: str, registry_url: str) -> None:
        self.counts = Counts()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "demo",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            }
        )
        self._registry = SchemaRegistryClient({"url": registry_url, "max.retries": 2})
        self._decode = AvroDeserializer(self._registry)
        self._assigned = False

    def poll(self, seconds: float) -> Iterator[Arrival]:
        """What came within ``seconds``; nothing as long as the topics do not exist."""
        if not self._assigned and not self._assign():
            return
        for message in self._consumer.consume(_MOST_AT_ONCE, seconds):
            if message.error() is None:
                arrival = self._arrival(message)
                count(self.counts, arrival)
                yield arrival

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()
        self._registry.close()

    def _assign(self) -> bool:
        topics = self._consumer.list_topics(timeout=_METADATA_SECONDS).topics
        if not all(topic in topics and topics[topic].partitions for topic in OUTPUT_TOPICS):
            return False
        self._consumer.assign(
            [
                TopicPartition(topic, partition, OFFSET_BEGINNING)
                for topic in OUTPUT_TOPICS
                for partition in topics[topic].partitions
            ]
        )
        self._assigned = True
        return True

    def _arrival(self, message: Message) -> Arrival:
        topic, key = message.topic(), message.key()
        if topic is None:
            raise StartError("the broker sent a record without a topic")
        value = self._decode(message.value(), SerializationContext(topic, MessageField.VALUE))
        headers = {str(name): _text(content) for name, content in tuple(message.headers() or ())}
        return Arrival(OUTPUT_TOPICS[topic], None if key is None else _text(key), value, headers)


def _text(content: str | bytes | None) -> str:
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else content or ""


def count(counts: Counts, arrival: Arrival) -> None:
    """Add one output record."""
    value = arrival.value
    if arrival.kind == "match":
        counts.matches[value["rule_id"], value["key"]] += 1
    elif arrival.kind == "timeout":
        counts.timeouts[value["rule_id"], value["key"]] += 1
    elif arrival.kind == "late":
        counts.late[arrival.headers[TOPIC_HEADER]] += 1
    else:
        counts.dead_letters[value["reason"]] += 1
