"""The pacing of batches: each begins as late as the aim for latency allows, so that they are few
and large.

Pure bookkeeping with an injected clock; the source tells it what Spark asks.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

#: Batches by whose durations the next one is judged.
_RECENT: Final = 5


class Pacing:
    """Paces the batches of one query. ``aim``: the seconds from the append of a record until its
    batch is committed.

    A record that a batch just missed was appended when the batch was planned. So the next batch is
    due as long before that time plus the aim as it is expected to take, which is as long as the
    slowest of the recent ones, but for the first. After a spell without records that time has
    passed, and a batch begins at once; where batches take more than half of the aim, they follow
    one another at once.
    """

    def __init__(self, aim: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._aim = aim
        self._clock = clock
        self._asked = clock()
        self._planned: float | None = None
        self._running = self._more_waits = False
        #: The first batch opens the state and compiles code: it says nothing of the others.
        self._first: float | None = None
        self._durations: deque[float] = deque(maxlen=_RECENT)

    def asked(self) -> None:
        """Spark asks for a batch, so the one before is committed. Kafka is asked after this."""
        self._asked = self._clock()
        if self._running:
            assert self._planned is not None
            self._running = False
            if self._first is None:
                self._first = self._asked - self._planned
            else:
                self._durations.append(self._asked - self._planned)

    def planned(self, *, more_waits: bool) -> None:
        """A batch begins, with what Kafka had when :meth:`asked` was called, or, if ``more_waits``,
        with a part of that: the rest has waited already, so the next batch is due at once."""
        self._planned = self._asked
        self._running = True
        self._more_waits = more_waits

    def seconds_left(self) -> float:
        """The seconds until the next batch is due; 0: now. It is asked between batches."""
        if self._planned is None or self._more_waits:
            return 0.0
        assert self._first is not None
        due = self._planned + self._aim - max(self._durations, default=self._first)
        return max(0.0, due - self._clock())
