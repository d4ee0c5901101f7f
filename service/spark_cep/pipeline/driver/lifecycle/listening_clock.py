"""A clock that stands still while nobody knows whether there is input.

Silence of a partition means that it is idle only while Kafka answers. While it does not (it is
away, the query is started again) nothing can be said, and no time must pass for the detector:
else the end of an outage would find every partition idle, and their events late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Twice a second the source asks Kafka; between answers further apart nobody listened.
_MOST_APART_MS: Final = 2_000


class ListeningClock:
    """Milliseconds of listening. ``now`` is a clock in milliseconds that never goes back."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._known = now()
        self._listened = 0

    def __call__(self) -> int:
        """The time listened so far."""
        return self._listened

    def answered(self, at: int) -> bool:
        """Kafka answered at this time last: the time up to it counts. Returns whether that is
        news."""
        apart = at - self._known
        if apart <= 0:
            return False
        if apart <= _MOST_APART_MS:
            self._listened += apart
        self._known = at
        return True

    def forget(self) -> None:
        """Nobody has listened up to now."""
        self._known = self._now()

    def batch_done(self, ms: int) -> None:
        """A batch that took so long was done: it had input, so Kafka answered."""
        self._listened += ms
        self._known = self._now()
