"""A stream in which each second's records are a function of its number, made as columns.

So it can be produced at tens of thousands of records a second, and made again for the comparison,
and none of it is kept. Record *n* goes to partition ``n mod PARTITIONS`` at offset
``n div PARTITIONS``. Most records are of no use to any rule, as in production: only their time
counts.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from confluent_kafka import KafkaError, Message, Producer
from numpy.typing import NDArray

from bench.avro_pieces import longs, text
from bench.soak.stream import PARTITIONS, TOPIC
from spark_cep.codecs.registry.framing import frame
from spark_cep.model import Coordinates
from tests.reference.local import Record

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "kind", "type": "string"},
        {"name": "v", "type": "int"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": "string"},
    ],
}
ALLOWED_DISORDER_MS = 2_000
#: Kinds of events that rules read; all others are of the last one.
KINDS = "abcdef"
_NO_USE = "x"
_DISORDER_MS = 1_500
_USERS = 200
_VALUES = 64
_NOTE = "n" * 40
_TICK_SECONDS = 0.02


class Second(NamedTuple):
    """The records of one second, in columns; ``kind`` is a place in ``KINDS``, or behind them."""

    time: NDArray[np.int64]
    user: NDArray[np.int64]
    kind: NDArray[np.int64]
    v: NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """``rate`` records a second, a multiple of ``PARTITIONS``, from ``start_ms`` on; ``share`` of
    them are of a kind that rules read."""

    start_ms: int
    rate: int
    share: float
    seed: int

    def __post_init__(self) -> None:
        if self.rate % PARTITIONS:
            raise ValueError(f"the rate is {self.rate}; allowed: a multiple of {PARTITIONS}")

    def second(self, number: int) -> Second:
        """Second ``number``, from 0."""
        return _second(self, number)

    def values(self, number: int, schema_id: int) -> list[bytes]:
        """The bytes to produce in a second."""
        made = self.second(number)
        times, length = longs(made.time)
        pieces = [
            _rows(frame(schema_id, text("user-0000")), self.rate),
            _rows(text(KINDS[0]), self.rate),
            (made.v << 1).astype(np.uint8)[:, None],
            np.frombuffer(times, np.uint8).reshape(self.rate, length),
            _rows(text(_NOTE), self.rate),
        ]
        digits = made.user[:, None] // np.array([1000, 100, 10, 1]) % 10
        pieces[0][:, -4:] = digits + ord("0")
        letters = np.frombuffer((KINDS + _NO_USE).encode(), np.uint8)
        pieces[1][:, -1] = letters[made.kind]
        joined = np.concatenate(pieces, axis=1)
        whole, width = joined.tobytes(), joined.shape[1]
        return [whole[at : at + width] for at in range(0, len(whole), width)]

    def newest(self, ends: dict[int, int]) -> dict[int, int]:
        """The largest event time of each partition before these offsets; none where there is no
        record."""
        found = {}
        for partition, end in ends.items():
            last = (end - 1) * PARTITIONS + partition
            if last < 0 or end == 0:
                continue
            second = last // self.rate
            # A record of an earlier second than these is older than any of the last one.
            first = max(0, second - 2)
            times = np.concatenate([self.second(n).time for n in range(first, second + 1)])
            own = times[partition::PARTITIONS][: end - first * self.rate // PARTITIONS]
            found[partition] = int(own.max())
        return found

    def useful(self, begins: dict[int, int], ends: dict[int, int]) -> list[Record]:
        """The records that rules read, from offsets on up to others."""
        lowest = min(begins.values()) * PARTITIONS // self.rate
        highest = max(ends.values()) * PARTITIONS // self.rate
        found = []
        for number in range(lowest, highest + 1):
            second = self.second(number)
            for place in np.flatnonzero(second.kind < len(KINDS)).tolist():
                offset, partition = divmod(number * self.rate + place, PARTITIONS)
                if begins[partition] <= offset < ends[partition]:
                    at = Coordinates(TOPIC, partition, offset)
                    values = {
                        "user": f"user-{second.user[place]:04d}",
                        "kind": KINDS[second.kind[place]],
                        "v": int(second.v[place]),
                    }
                    when = int(second.time[place])
                    found.append(Record(at, when, values, "", SCHEMA["name"]))
        return found


@lru_cache(maxsize=64)
def _second(stream: Stream, number: int) -> Second:
    source = np.random.Generator(np.random.Philox(key=[stream.seed, number]))
    rate = stream.rate
    due = stream.start_ms + number * 1000 + np.arange(rate, dtype=np.int64) * 1000 // rate
    kind = source.integers(len(KINDS), size=rate)
    return Second(
        due - source.integers(_DISORDER_MS, size=rate),
        source.integers(_USERS, size=rate),
        np.where(source.random(rate) < stream.share, kind, len(KINDS)),
        source.integers(_VALUES, size=rate),
    )


def _rows(piece: bytes, count: int) -> NDArray[np.uint8]:
    return np.tile(np.frombuffer(piece, np.uint8), (count, 1))


@dataclass(eq=False)
class Feed(threading.Thread):
    """Produces the stream at its pace until told to stop."""

    bootstrap: str
    schema_id: int
    stream: Stream
    #: How far behind its own schedule it fell, in seconds.
    late_by: float = 0.0
    records: int = 0
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(name="feed", daemon=True)
        self._stop_asked = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                # Offsets are those of the stream: nothing twice, nothing in another order.
                "enable.idempotence": True,
                "linger.ms": 5,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 1_000_000,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        """Produce."""
        began = self.stream.start_ms / 1000
        rate, number = self.stream.rate, 0
        while not self._stop_asked.is_set():
            values = self.stream.values(number, self.schema_id)
            sent = 0
            while sent < rate:
                now = time.time() - began - number
                due = min(rate, max(0, int(now * rate)))
                if sent < due:
                    self.late_by = max(self.late_by, now - sent / rate)
                for value in values[sent:due]:
                    self._send(value)
                sent = due
                self._producer.poll(0)
                if sent < rate:
                    time.sleep(_TICK_SECONDS)
            number += 1
        if self._producer.flush(60):
            self.failures.append("records were not acknowledged")

    def stop(self) -> None:
        """End, behind a whole second. RuntimeError when something was not written."""
        self._stop_asked.set()
        self.join()
        if self.failures:
            raise RuntimeError(f"the stream could not be produced: {self.failures[0]}")

    def _send(self, value: bytes) -> None:
        partition = self.records % PARTITIONS
        while True:
            try:
                self._producer.produce(
                    TOPIC, value, partition=partition, on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                self.records += 1
                return

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self.failures.append(error.str())
