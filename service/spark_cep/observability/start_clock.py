"""Seconds that a start takes, by phase: from the birth of the process to the first committed batch.

Phases follow one another, so their seconds add up to those of the whole start. What is done in
threads meanwhile is listed apart.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from spark_cep.observability.logs import logger

_log = logger(__name__)


class Phase(StrEnum):
    """The phases of a start, in order."""

    IMPORTS = "imports"
    """The interpreter, settings, modules and compiled code."""
    CHECKS = "checks"
    """Rules, the registry, topics."""
    SPARK = "spark"
    """Waiting for Spark, which starts in a thread meanwhile."""
    TAKEOVER = "takeover"
    """The checkpoint checked, earlier runs fenced."""
    QUERY = "query"
    """The query planned and started, up to the beginning of its first batch."""
    BATCH = "batch"
    """The first batch, until its output is committed."""
    COMMIT = "commit"
    """Until Spark has committed it, as seen by the driver."""


class StartClock:
    """Seconds of each phase of one start. ``began``: when it began, by ``clock``."""

    def __init__(
        self, began: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._began = self._last = clock() if began is None else began
        self._seconds: dict[str, float] = {}
        self._meanwhile: dict[str, float] = {}
        self._ended = False

    def done(self, phase: Phase) -> None:
        """A phase ends; the next one begins. After the first batch nothing is a start any more."""
        if self._ended:
            return
        now = self._clock()
        self._seconds[phase.value] = self._seconds.get(phase.value, 0.0) + now - self._last
        self._last = now
        if phase is Phase.COMMIT:
            self._ended = True
            _log.info(
                "started",
                seconds=round(now - self._began, 2),
                phases=_rounded(self._seconds),
                meanwhile=_rounded(self._meanwhile),
            )

    def meanwhile(self, what: str) -> None:
        """Something that was done in a thread is done now, so long after the beginning."""
        self._meanwhile[what] = self._clock() - self._began


def of_this_process() -> StartClock:
    """A clock that began with this process; where the system does not say when that was, now."""
    with suppress(OSError, AttributeError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text("utf-8").rpartition(")")[2].split()
        born = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - born
        return StartClock(time.monotonic() - age)
    return StartClock()


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in seconds.items()}
