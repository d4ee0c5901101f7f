"""Log-ins of now, sent at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from bench.avro_pieces import double, long, text
from bench.events import TYPES
from bench.feed import Feed
from bench.testbed import PARTITIONS
from spark_cep.codecs.registry.framing import frame

#: As producers do by default since Kafka 4.
LINGER_MS = 5
_TICK_SECONDS = 0.01
_PIECES = 1_000


class LiveEvents:
    """Encodes events of now: all but the time is made beforehand. They are of ``users``, of types
    as often as ``weights`` say, and older than now by less than ``disorder_ms``, evenly drawn."""

    def __init__(
        self,
        schema_id: int,
        users: int = 10_000,
        weights: Mapping[str, int] = TYPES,
        disorder_ms: int = 0,
        partitions: int = PARTITIONS,
    ) -> None:
        source = np.random.default_rng(7)
        self._source = source
        self._disorder_ms = disorder_ms
        self._partitions = partitions
        self._keys = [f"user-{user:07d}" for user in range(users)]
        self._heads = [frame(schema_id, text(key)) for key in self._keys]
        shares = np.array([*weights.values()]) / sum(weights.values())
        self._middles = [
            text(kind) + double(source.random() * 500)
            for kind in source.choice([*weights], _PIECES, p=shares).tolist()
        ]
        self._tails = [
            text(f"10.{n % 256}.{n % 100}.7") + text(source.bytes(8).hex()) for n in range(_PIECES)
        ]
        self._sent: list[list[NDArray[np.int64]]] = [[] for _ in range(partitions)]

    def send(self, feed: Feed, now_ms: int, count: int) -> None:
        """Give so many events of now to ``feed``."""
        if count:
            self._send(feed, self.events(now_ms, count))

    def send_to_all(self, feed: Feed, now_ms: int) -> None:
        """Give an event of now of each user to ``feed``."""
        self._send(feed, self._events(now_ms, np.arange(len(self._keys))))

    def events(self, now_ms: int, count: int) -> list[tuple[int, bytes]]:
        """Draw events; each is a user's number and its encoded value."""
        return self._events(now_ms, self._source.integers(len(self._keys), size=count))

    def _send(self, feed: Feed, events: Iterable[tuple[int, bytes]]) -> None:
        for user, value in events:
            feed.send(value, self._keys[user], user % self._partitions)

    def _events(self, now_ms: int, users: NDArray[np.int64]) -> list[tuple[int, bytes]]:
        count = len(users)
        times = now_ms - self._source.integers(max(self._disorder_ms, 1), size=count)
        of_partition = users % self._partitions
        for partition in np.unique(of_partition).tolist():
            self._sent[partition].append(times[of_partition == partition])
        encoded = {time: long(time) for time in set(times.tolist())}
        pieces = self._source.integers(_PIECES, size=(2, count)).tolist()
        return [
            (user, self._heads[user] + self._middles[middle] + encoded[time] + self._tails[tail])
            for user, time, middle, tail in zip(
                users.tolist(), times.tolist(), *pieces, strict=True
            )
        ]

    def times(self, partition: int) -> NDArray[np.int64]:
        """The times of all events of a partition, in the order in which they were sent."""
        return np.concatenate([np.empty(0, np.int64), *self._sent[partition]])


def before(moment: float) -> Callable[[], bool]:
    """Tell, when asked, that it is not yet ``moment``, in seconds since 1970."""
    return lambda: time.time() < moment


def send_steadily(feed: Feed, events: LiveEvents, rate: int, go_on: Callable[[], bool]) -> float:
    """Send ``rate`` events a second, those of each hundredth of a second together, for as long as
    ``go_on`` says; how far this fell behind its schedule, in seconds."""
    late_by = 0.0
    began = time.time()
    sent = 0
    while go_on():
        now = time.time()
        due = int((now - began) * rate)
        late_by = max(late_by, (due - sent) / rate - _TICK_SECONDS)
        events.send(feed, int(now * 1000), due - sent)
        sent = due
        feed.serve()
        time.sleep(_TICK_SECONDS)
    return late_by
