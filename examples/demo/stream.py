"""What the demo produces, as plain values: the same in every run, to the last record.

The stream is a list of waves; each is produced in a few seconds, and the next one begins when the
job has caught up. Every record has an event time and a *delay*, by which it arrives later than its
time says: up to ``LARGEST_DISORDER_MS`` for ordinary records, minutes for late ones. Within a wave
records stand in the order of arrival.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Self

#: The event time at which the stream begins.
BEGINNING: Final = int(datetime(2025, 3, 3, 9, tzinfo=UTC).timestamp() * 1000)
#: ``time.allowed_disorder`` in ``config.yaml``.
ALLOWED_DISORDER_MS: Final = 2_000
#: How much later than its time says an ordinary record arrives at most.
LARGEST_DISORDER_MS: Final = 1_500
#: Partitions of each input topic.
TOPICS: Final = {"logs": 2, "sensors": 2, "logins": 2, "orders": 2}
#: An id that the registry never gave out.
UNKNOWN_SCHEMA_ID: Final = 999_999


class Damage(StrEnum):
    """What is wrong with a record; ``reason`` is the one that its dead letter must give."""

    reason: str

    def __new__(cls, word: str, reason: str) -> Self:
        """A member from its word and the reason."""
        damage = str.__new__(cls, word)
        damage._value_ = word
        damage.reason = reason
        return damage

    PLAIN_JSON = ("plain_json", "not_framed")
    UNKNOWN_SCHEMA = ("unknown_schema", "unknown_schema_id")
    CUT_SHORT = ("cut_short", "undecodable")
    RANDOM_BYTES = ("random_bytes", "undecodable")
    NO_KEY = ("no_key", "missing_key")
    WRONG_CLOCK = ("wrong_clock", "event_time_out_of_bounds")


@dataclass(frozen=True, slots=True)
class Schema:
    """A writer schema: the file in ``schemas/`` and the topic that it is registered for."""

    name: str
    topic: str


LOG_LINE: Final = Schema("log-line", "logs")
SENSOR_READING: Final = Schema("sensor-reading", "sensors")
LOGIN_1: Final = Schema("login-event-1", "logins")
LOGIN_2: Final = Schema("login-event-2", "logins")
LOGIN_3: Final = Schema("login-event-3", "logins")
ORDER: Final = Schema("order-event", "orders")


@dataclass(frozen=True, slots=True)
class Item:
    """One record. ``time`` is the event time in milliseconds; ``fields`` is without it, and None
    for a tombstone. ``type`` names the record type in a topic that has several."""

    schema: Schema
    key: str | None
    time: int
    fields: Mapping[str, Any] | None
    delay: int = 0
    type: str | None = None
    damage: Damage | None = None

    @property
    def topic(self) -> str:
        """Where it is produced to."""
        return self.schema.topic

    @property
    def arrival(self) -> int:
        """Event time at which it is produced."""
        return self.time + self.delay

    @property
    def late(self) -> bool:
        """Whether it arrives when its time has passed."""
        return self.delay > ALLOWED_DISORDER_MS

    @property
    def sound(self) -> bool:
        """Whether it is an event that the rules get to see."""
        return self.fields is not None and self.damage is None and not self.late


@dataclass(frozen=True, slots=True)
class Wave:
    """Records that are produced together. ``registers``: schemas that are new with this wave;
    ``adds``: the rule that is added before it."""

    title: str
    items: tuple[Item, ...]
    registers: tuple[Schema, ...] = ()
    adds: str | None = None

    @property
    def waits_for(self) -> int | None:
        """The watermark that must be reached first, so that what is to be late is late."""
        return max((item.time for item in self.items if item.late), default=None)


def wave(
    title: str,
    items: Iterable[Item],
    seed: int,
    registers: tuple[Schema, ...] = (),
    adds: str | None = None,
) -> Wave:
    """A wave of ``items`` in their order of arrival, a third of them delayed a little."""
    chance = random.Random(seed)
    delayed = []
    for item in items:
        little = chance.randrange(LARGEST_DISORDER_MS + 1) if chance.random() < 1 / 3 else 0
        delayed.append(item if item.late else replace(item, delay=little))
    return Wave(title, tuple(sorted(delayed, key=lambda item: item.arrival)), registers, adds)


def later(first: Wave, ms: int) -> Wave:
    """A wave that comes again, with what is new in the first one known by then."""
    items = tuple(replace(item, time=item.time + ms) for item in first.items)
    return Wave(first.title, items)
