"""The stream of a soak: record *n* is a function of *n*, so that it can be made again at any time
and none of it has to be kept.

Record *n* goes to partition ``n mod PARTITIONS`` at offset ``n div PARTITIONS``. Users live for
half a minute: the key space is new again and again. One record in a hundred is late by ten minutes,
one in a thousand is broken.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any

import fastavro

from spark_cep.codecs.registry.framing import frame
from spark_cep.model import Coordinates
from spark_cep.runner.values import ValueRecord

TOPIC = "soak"
INPUT = "soak"
PARTITIONS = 4
ALLOWED_DISORDER_MS = 2_000
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Action",
    "fields": [
        {"name": "user", "type": ["null", "string"]},
        {"name": "device", "type": "string"},
        {"name": "kind", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
_PARSED = fastavro.parse_schema(SCHEMA)
_DISORDER_MS = 1_500
_LATE_MS = 600_000
_USERS = 400
_USERS_CHANGE_MS = 30_000
_KINDS = ("view",) * 8 + ("fail",) * 4 + ("cart",) * 3 + ("pay",) * 2 + ("ok",) * 2 + ("leave",)
#: The end: so far after the last event that every window has passed.
_END_MS = 3_600_000


class Fate(Enum):
    """What is to become of a record."""

    EVENT = "event"
    LATE = "late"
    NOT_FRAMED = "not_framed"
    UNDECODABLE = "undecodable"
    MISSING_KEY = "missing_key"


_BROKEN = (Fate.NOT_FRAMED, Fate.UNDECODABLE, Fate.MISSING_KEY)


@dataclass(frozen=True)
class Planned:
    """One record: where it goes, what it says, what is to become of it."""

    at: Coordinates
    fate: Fate
    event: dict[str, Any]

    def value(self, schema_id: int) -> bytes:
        """The bytes to produce."""
        body = io.BytesIO()
        fastavro.schemaless_writer(body, _PARSED, self.event)
        framed = frame(schema_id, body.getvalue())
        if self.fate is Fate.NOT_FRAMED:
            return b"\x01" + framed[1:]
        return framed[:8] if self.fate is Fate.UNDECODABLE else framed

    def record(self, number: int) -> ValueRecord:
        """The record as the runner reads it; ``number``: of the record type."""
        return ValueRecord.of(self.at, number, self.event["ts"] * 1_000, self.event)


@dataclass(frozen=True)
class Stream:
    """``count`` records from ``start_ms`` on, ``rate`` a second, and one more for each partition
    that ends it. Before record ``late_from`` none is late: the job knows no time yet."""

    start_ms: int
    rate: int
    late_from: int
    count: int = 0

    def records(self, first: int, end: int) -> Iterator[Planned]:
        """Records ``first`` to ``end``, that one left out."""
        for number in range(first, end):
            yield self.record(number)

    def due_ms(self, number: int) -> int:
        """When the record is to be produced."""
        return self.start_ms + number * 1000 // self.rate

    def record(self, number: int) -> Planned:
        """Record ``number``."""
        at = Coordinates(TOPIC, number % PARTITIONS, number // PARTITIONS)
        drawn = int.from_bytes(blake2b(number.to_bytes(8, "big"), digest_size=16).digest(), "big")

        def draw(below: int) -> int:
            nonlocal drawn
            drawn, value = divmod(drawn, below)
            return value

        broken, late = draw(1_000) == 0, draw(100) == 0
        time = self.due_ms(number)
        generation = time // _USERS_CHANGE_MS
        event: dict[str, Any] = {
            "user": f"user-{generation}-{draw(_USERS)}",
            "device": f"device-{draw(3)}",
            "kind": _KINDS[draw(len(_KINDS))],
            "amount": draw(10_000) / 100,
            "ts": time - draw(_DISORDER_MS),
        }
        if broken:
            fate = _BROKEN[draw(len(_BROKEN))]
            if fate is Fate.MISSING_KEY:
                event["user"] = None
        elif late and number >= self.late_from:
            fate = Fate.LATE
            event |= {"kind": "fail", "ts": event["ts"] - _LATE_MS}
        else:
            fate = Fate.EVENT
        return Planned(at, fate, event)

    def end(self) -> list[Planned]:
        """A last record for each partition, of no use to any rule, far ahead in time."""
        assert self.count % PARTITIONS == 0
        event = {"user": "end", "device": "", "kind": "end", "amount": 0.0, "ts": self.end_ms}
        return [
            Planned(Coordinates(TOPIC, partition, self.count // PARTITIONS), Fate.EVENT, event)
            for partition in range(PARTITIONS)
        ]

    @property
    def end_ms(self) -> int:
        """Event time of the end."""
        return self.due_ms(self.count) + _END_MS
