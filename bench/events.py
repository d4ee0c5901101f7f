"""The stream that is measured: log-ins of 50,000 users, 18 % of them of interest to the rule.

About 100 bytes an event, 10,000 events to the second of event time, up to one second out of order.
The same seed gives the same events, so the number of matches is known: Flink CEP finds 2,995 in
the first million and 12,678 in the first three million.
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from typing import Any

import fastavro
from confluent_kafka import Producer

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


def produce(bootstrap: str, topic: str, schema_id: int, count: int) -> None:
    """Write the first ``count`` events to ``topic``, keyed by user."""
    schema = fastavro.parse_schema(SCHEMA)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for event in events(count):
        body = io.BytesIO()
        fastavro.schemaless_writer(body, schema, event)
        value = frame(schema_id, body.getvalue())
        while True:
            try:
                producer.produce(topic, value, event["user_id"].encode())
            except BufferError:
                producer.poll(0.1)
            else:
                break
    producer.flush()
