"""Writes streams of events to topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from spark_cep.codecs.registry.framing import frame

# librdkafka's name for it: the key decides.
_ANY_PARTITION = -1
#: Of what the client has been given, so much is let go of at once.
_EVENTS_BETWEEN_POLLS = 10_000

#: What topics of the benchmarks take at most, in bytes.
LARGEST_RECORD = 10_000_000

Encoded = tuple[str, bytes]
"""An event's key and its body: of Avro, in JSON, or of Protobuf, its message's index in front."""


@dataclass(frozen=True)
class Stream:
    """Events with the schema that wrote them, ``framed`` or as they are.

    ``closing`` makes, for a partition, an event that begins no match and is so late that all others
    are decided: it comes last in its partition.
    """

    schema: Any
    events: Iterable[Encoded]
    closing: Callable[[int], Encoded]
    framed: bool = True


class Feed:
    """Writes events to a topic."""

    def __init__(self, bootstrap: str, topic: str, linger_ms: int = 20) -> None:
        self._topic = topic
        self._failures: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": linger_ms,
                "batch.size": 1_000_000,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 1_000_000,
                "queue.buffering.max.kbytes": 1 << 18,
                "message.max.bytes": LARGEST_RECORD,
                "delivery.report.only.error": True,
                "log_level": 0,
            }
        )

    def send(self, value: bytes, key: str, partition: int | None = None) -> None:
        """Write one event, framed. Without a partition, its key decides."""
        where = _ANY_PARTITION if partition is None else partition
        while True:
            try:
                self._producer.produce(self._topic, value, key, where, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def serve(self) -> None:
        """Let go of what was acknowledged."""
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until all is written; RuntimeError when something was not."""
        self._producer.flush(300)
        if len(self._producer) or self._failures:
            said = self._failures[0] if self._failures else "not acknowledged in 300 s"
            raise RuntimeError(f"topic {self._topic} could not be written: {said}")

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failures.append(error.str())


def produce(bootstrap: str, topic: str, schema_id: int, stream: Stream, partitions: int) -> int:
    """Write ``stream``, then to each partition the event that lets time pass there, so that all is
    decided and no partition waits; how many records that were."""
    feed = Feed(bootstrap, topic)
    prefix = frame(schema_id, b"") if stream.framed else b""
    count = 0
    for key, body in stream.events:
        feed.send(prefix + body, key)
        count += 1
        if not count % _EVENTS_BETWEEN_POLLS:
            feed.serve()
    # Behind everything else of their partitions.
    feed.flush()
    for partition in range(partitions):
        key, body = stream.closing(partition)
        feed.send(prefix + body, key, partition)
    feed.flush()
    return count + partitions
