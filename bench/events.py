"""The stream that is measured: log-ins of 50,000 users, 18 % of them of interest to the rule.

About 100 bytes an event, 10,000 events to the second of event time, up to one second out of order.
The same seed gives the same events, so the number of matches is known: Flink CEP finds 2,995 in
the first million and 12,678 in the first three million.
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Iterator
from typing import Any

import fastavro
from confluent_kafka import KafkaError, Message, Producer

from service.codecs.framing import frame

KNOWN_MATCHES = {1_000_000: 2_995, 3_000_000: 12_678}

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "LoginEvent",
    "fields": [
        {"name": "user_id", "type": "string"},
        {"name": "event_type", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "ip", "type": "string"},
        {"name": "session", "type": "string"},
    ],
}
_FIRST_MS = 1_700_000_000_000
_DISORDER_MS = 1_000
# librdkafka's name for it: the key decides.
_ANY_PARTITION = -1
_TYPES = {"login_ok": 10, "login_fail": 8, "view": 40, "click": 30, "purchase": 7, "logout": 5}


def events(count: int, users: int = 50_000) -> Iterator[dict[str, Any]]:
    """The first ``count`` events."""
    source = random.Random(7)
    types, weights = list(_TYPES), list(_TYPES.values())
    for number in range(count):
        user = source.randrange(users)
        time = _FIRST_MS + number // 10 + source.randrange(-_DISORDER_MS, 0)
        yield {
            "user_id": f"user-{user:07d}",
            "event_type": source.choices(types, weights)[0],
            "amount": source.random() * 500,
            "ts": time,
            "ip": f"10.{user % 256}.{number % 256}.7",
            "session": f"{source.getrandbits(64):016x}",
        }


def last_time(count: int) -> int:
    """No event of the first ``count`` is later."""
    return _FIRST_MS + count // 10


def closing(partition: int, time: int) -> dict[str, Any]:
    """An event that begins no match, and that moves time in its partition."""
    return {
        "user_id": f"closing-{partition}",
        "event_type": "closing",
        # For Flink time goes to its end behind it, for us it stays there: what it began would time
        # out on one side alone.
        "amount": 1_000.0,
        "ts": time,
        "ip": "",
        "session": "",
    }


class Feed:
    """Writes events to a topic. Without a partition, their user decides."""

    def __init__(self, bootstrap: str, topic: str, schema_id: int, linger_ms: int = 20) -> None:
        self._topic = topic
        self._schema_id = schema_id
        self._schema = fastavro.parse_schema(SCHEMA)
        self._failures: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": linger_ms,
                "batch.size": 1_000_000,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 1_000_000,
                "log_level": 0,
            }
        )

    def send(self, event: dict[str, Any], partition: int | None = None) -> None:
        """Write one event."""
        body = io.BytesIO()
        fastavro.schemaless_writer(body, self._schema, event)
        self.send_value(frame(self._schema_id, body.getvalue()), event["user_id"], partition)

    def send_value(self, value: bytes, user: str, partition: int | None = None) -> None:
        """Write one event that is encoded already."""
        where = _ANY_PARTITION if partition is None else partition
        while True:
            try:
                self._producer.produce(
                    self._topic, value, user.encode(), where, on_delivery=self._delivered
                )
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


def produce(
    bootstrap: str,
    topic: str,
    schema_id: int,
    stream: Iterable[dict[str, Any]],
    partitions: int,
    end: int,
) -> int:
    """Write ``stream``, then, at ``end``, an event to each partition that lets time pass there, so
    that all is decided and no partition waits; how many records that were."""
    feed = Feed(bootstrap, topic, schema_id)
    count = 0
    for event in stream:
        feed.send(event)
        count += 1
    # Behind everything else of their partitions.
    feed.flush()
    for partition in range(partitions):
        feed.send(closing(partition, end), partition)
    feed.flush()
    return count + partitions
