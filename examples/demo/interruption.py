"""Ctrl-C, SIGTERM and a closed terminal, as something that the demo asks about.

A signal only sets a flag: nothing is torn out of the middle of a start or a stop. Every wait of the
demo is made of short sleeps that look at the flag, so it takes effect within a fraction of a
second. A second signal makes the clean-up kill what it would otherwise ask to end.
"""

from __future__ import annotations

import signal
import time
from types import FrameType

_SLICE_SECONDS = 0.05


class InterruptedDemo(Exception):  # noqa: N818  not an error
    """The user wants the demo to end."""


class Interruption:
    """Whether, and how often, the user asked for the end."""

    exit_code = 130

    def __init__(self) -> None:
        self._count = 0

    @property
    def requested(self) -> bool:
        """Whether the demo is to end."""
        return self._count > 0

    @property
    def urgent(self) -> bool:
        """Whether the user asked more than once."""
        return self._count > 1

    def install(self) -> None:
        """Take over the signals; to be called in the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def check(self) -> None:
        """Raise InterruptedDemo when the demo is to end."""
        if self.requested:
            raise InterruptedDemo

    def sleep(self, seconds: float) -> None:
        """Wait, or raise InterruptedDemo as soon as the demo is to end."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.check()
            time.sleep(min(left, _SLICE_SECONDS))
        self.check()

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._count += 1
