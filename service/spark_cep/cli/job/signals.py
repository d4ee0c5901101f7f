"""Work that signals can end: the first SIGTERM or SIGINT asks for it, the second does it.

The work has a thread of its own. The main thread, which alone gets signals, only waits for it, so
no call that blocks (a broker that does not answer, a compiler) keeps a signal from being heard,
and Spark, which takes SIGINT for itself in the main thread, leaves it to us. A signal that comes
before the work has begun counts as soon as it does.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import FrameType

from spark_cep.observability.logs import logger

_log = logger(__name__)
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# The kernel may give a signal to any thread, and then the main one sleeps on: it must look.
_LOOK_EVERY_SECONDS = 0.2
# `timeout` sends its signal to the process and then to its group.
_SAME_WITHIN_SECONDS = 0.25


class StopSignals:
    """Hears signals from when it is made on. ``at_once``: called by the second one, in the handler;
    it should end the process. One that comes again within a quarter of a second is the same."""

    def __init__(self, at_once: Callable[[], None]) -> None:
        self.at_once = at_once
        self._received: list[int] = []
        self._first_at = 0.0
        # Its ``put`` takes no lock that the interrupted code may hold, as an event's ``set`` does.
        self._woken: SimpleQueue[None] = SimpleQueue()
        for number in _SIGNALS:
            signal.signal(number, self._handle)

    def run(
        self,
        work: Callable[[], None],
        *,
        stop: Callable[[], None],
        patience_seconds: float,
        too_late: Callable[[], None],
    ) -> None:
        """Run ``work`` to its end and raise what it raises. Signals are of no effect afterwards.

        The first signal calls ``stop``; when the work has not ended ``patience_seconds`` later,
        ``too_late`` is called, which should end the process.
        """
        failures: list[BaseException] = []
        done = threading.Event()

        def target() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001  raised again below
                failures.append(error)
            finally:
                done.set()
                self._woken.put(None)

        # A daemon: an exception in this thread must not wait for it.
        thread = threading.Thread(target=target, name="service", daemon=True)
        try:
            thread.start()
            self._wait()
            if not done.is_set():
                deadline = time.monotonic() + patience_seconds
                # First of all: readiness turns false before anything else happens.
                stop()
                _log.info("stopping", signal=signal.Signals(self._received[0]).name)
                while not done.wait(_LOOK_EVERY_SECONDS):
                    if time.monotonic() >= deadline:
                        too_late()
            thread.join()
        finally:
            # All that is left is the interpreter's own end, which no signal should turn into a
            # failure.
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN)
        if failures:
            raise failures[0]

    def _wait(self) -> None:
        while True:
            try:
                return self._woken.get(timeout=_LOOK_EVERY_SECONDS)
            except Empty:
                continue

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self._received:
            self._first_at = now
        elif number == self._received[0] and now - self._first_at < _SAME_WITHIN_SECONDS:
            return
        self._received.append(number)
        if len(self._received) > 1:
            self.at_once()
        self._woken.put(None)
