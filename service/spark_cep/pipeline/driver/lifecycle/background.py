"""A thread of the driver that works beside the batches until the run ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from spark_cep.observability.logs import bound

#: Of the grace of a stop no more may go.
_STOP_SECONDS: Final = 3.0


class Background:
    """``work`` in a thread called ``name``; the log calls its run ``run``. The thread goes with the
    process. What works so derives from it."""

    def __init__(self, name: str, work: Callable[[], None], run: str) -> None:
        self._target: Final = work
        self._run: Final = run
        self._woken: Final = threading.Event()
        self._stopped = False
        self._thread: Final = threading.Thread(target=self._begin, name=name, daemon=True)

    @property
    def stopped(self) -> bool:
        """Tell whether the work is to end."""
        return self._stopped

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """For the work: wait so long, or until :meth:`wake` or :meth:`stop`; whether to go on."""
        self._woken.wait(seconds)
        self._woken.clear()
        return not self._stopped

    def wake(self) -> None:
        """End the wait."""
        self._woken.set()

    def stop(self) -> bool:
        """Have the work end, and wait for that, but not for long; whether it has ended."""
        self._stopped = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)
        return not self._thread.is_alive()

    def _begin(self) -> None:
        with bound(run=self._run):
            self._target()
