"""The stream that is measured: log-ins of 50,000 users, 18 % of them of interest to the rule.

About 100 bytes an event, 10,000 events to the second of event time, up to one second out of order.
The same seed gives the same events, so the number of matches is known: Flink CEP finds 2,995 in
the first million and 12,678 in the first three million.
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Mapping
from typing import Any

import fastavro

from bench.feed import Encoded, Stream

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
#: So far behind the last event everything of the rules with short windows is decided.
_HOUR_MS = 3_600_000
_PARSED = fastavro.parse_schema(SCHEMA)
#: How often events are of which type.
TYPES = {"login_ok": 10, "login_fail": 8, "view": 40, "click": 30, "purchase": 7, "logout": 5}


def events(
    count: int, users: int = 50_000, weights: Mapping[str, int] = TYPES
) -> Iterator[dict[str, Any]]:
    """The first ``count`` events, of types as often as their ``weights`` say."""
    source = random.Random(7)
    types, shares = list(weights), list(weights.values())
    for number in range(count):
        user = source.randrange(users)
        time = _FIRST_MS + number // 10 + source.randrange(-_DISORDER_MS, 0)
        yield {
            "user_id": f"user-{user:07d}",
            "event_type": source.choices(types, shares)[0],
            "amount": source.random() * 500,
            "ts": time,
            "ip": f"10.{user % 256}.{number % 256}.7",
            "session": f"{source.getrandbits(64):016x}",
        }


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


def encoded(event: dict[str, Any]) -> Encoded:
    """Key and Avro body."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _PARSED, event)
    return event["user_id"], body.getvalue()


def logins(count: int, users: int = 50_000, weights: Mapping[str, int] = TYPES) -> Stream:
    """The first ``count`` events of so many users and such types, closed an hour later."""
    end = _FIRST_MS + count // 10 + _HOUR_MS
    return Stream(
        SCHEMA,
        (encoded(event) for event in events(count, users, weights)),
        lambda partition: encoded(closing(partition, end)),
    )
