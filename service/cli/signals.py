"""Work that signals can end: the first SIGTERM or SIGINT asks for it, the second does it.

The work has a thread of its own. The main thread, which alone gets signals, only waits for it, so
no call that blocks (a broker that does not answer, a compiler) keeps a signal from being heard,
and Spark, which takes SIGINT for itself in the main thread, leaves it to us.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from service.observability.logs import logger

_log = logger(__name__)
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_until_signalled(
    work: Callable[[], None],
    *,
    stop: Callable[[], None],
    patience_seconds: float,
    at_once: Callable[[], None],
    too_late: Callable[[], None],
) -> None:
    """Run ``work`` to its end and raise what it raises.

    The first signal calls ``stop``. The second calls ``at_once``, in the handler; when the work
    has not ended ``patience_seconds`` after the first, ``too_late`` is called. Both should end the
    process.
    """
    failures: list[BaseException] = []
    done = threading.Event()
    woken = threading.Event()
    received: list[int] = []

    def target() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  raised again below
            failures.append(error)
        finally:
            done.set()
            woken.set()

    def handle(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        if len(received) > 1:
            at_once()
        woken.set()

    for number in _SIGNALS:
        signal.signal(number, handle)
    # A daemon: an exception in this thread must not wait for it.
    thread = threading.Thread(target=target, name="service", daemon=True)
    try:
        thread.start()
        woken.wait()
        if not done.is_set():
            deadline = time.monotonic() + patience_seconds
            # First of all: readiness turns false before anything else happens.
            stop()
            _log.info("stopping", signal=signal.Signals(received[0]).name)
            if not done.wait(max(0.0, deadline - time.monotonic())):
                too_late()
        thread.join()
    finally:
        # All that is left is the interpreter's own end, which no signal should turn into a failure.
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    if failures:
        raise failures[0]
