"""Threads that read what open pages show: one for each feed, whatever the number of pages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final

from spark_cep.watch.error_text import error_text

Read = Callable[[], float]
"""Reads once; returns the seconds until it should again."""
Feed = Callable[[], AbstractContextManager[Read]]
"""Opens what is read."""
_IDLE_SECONDS: Final = 30.0
_AGAIN_SECONDS: Final = 3.0
_LOOK_SECONDS: Final = 0.2
_END_SECONDS: Final = 5.0


class Readers:
    """Follows feeds while pages are open. ``notes``: by feed, why it cannot be read now."""

    def __init__(
        self, feeds: Mapping[str, Feed], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.notes: dict[str, str] = {}
        self._clock = clock
        self._ended = threading.Event()
        self._asked: float | None = None
        self._threads = [
            threading.Thread(target=self._follow, args=each, name=f"watch-{each[0]}", daemon=True)
            for each in feeds.items()
        ]

    def start(self) -> None:
        """Start the threads, which wait until a page is open."""
        for each in self._threads:
            each.start()

    def ask(self) -> None:
        """Note that a page is open. One that has not asked for half a minute is closed."""
        self._asked = self._clock()

    def close(self) -> None:
        """End the threads."""
        self._ended.set()
        for each in self._threads:
            if each.is_alive():
                each.join(_END_SECONDS)

    @property
    def _is_asked(self) -> bool:
        if self._ended.is_set() or self._asked is None:
            return False
        return self._clock() - self._asked < _IDLE_SECONDS

    def _follow(self, name: str, feed: Feed) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            if self._is_asked:
                self._read(name, feed)

    def _read(self, name: str, feed: Feed) -> None:
        try:
            with feed() as read:
                while self._is_asked:
                    seconds = read()
                    self.notes.pop(name, None)
                    self._ended.wait(seconds)
        except Exception as error:  # noqa: BLE001  clients raise all kinds, and the page goes on
            self.notes[name] = error_text(error)
            self._ended.wait(_AGAIN_SECONDS)
