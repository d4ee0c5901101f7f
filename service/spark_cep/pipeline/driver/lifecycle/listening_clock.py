"""A clock that stands still while nobody knows whether there is input.

Silence of a partition means that it is idle only while Kafka answers. While it does not (it is
away, the query is started again) nothing can be said, and no time must pass for the detector:
else the end of an outage would find every partition idle, and their events late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def awaits_data(status: Mapping[str, Any]) -> bool:
    """Tell whether a query with this status has just heard from Kafka that there is nothing new: it
    has not at its beginning, nor while it asks."""
    return not status["isTriggerActive"] and status["message"].startswith("Waiting for")


class ListeningClock:
    """Milliseconds of listening. ``now`` is a clock in milliseconds that never goes back."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._looked = now()
        self._listened = 0

    def __call__(self) -> int:
        """The time listened so far."""
        return self._listened

    def look(self, *, listening: bool) -> None:
        """The time since the last look counts, if somebody was ``listening``."""
        now = self._now()
        if listening:
            self._listened += now - self._looked
        self._looked = now

    def batch_done(self, ms: int) -> None:
        """A batch that took so long was done: it had input, so Kafka answered."""
        self._listened += ms
        self._looked = self._now()
