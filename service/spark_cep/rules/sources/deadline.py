"""A deadline for a whole request: a client's own time-outs hold for one wait each, and a server can
make it wait without end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def deadline(seconds: float, end: Callable[[], None]) -> Iterator[None]:
    """Call ``end``, in another thread, once the block has taken so many seconds."""
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
