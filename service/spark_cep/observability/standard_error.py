"""Standard error of the service's own process, taken into its log.

Libraries print traces there past all logging, as do threads that end with an exception and servers
of Python's standard library. A reader of JSON lines gets JSON lines instead.
"""

from __future__ import annotations

import io
import logging
import socketserver
import sys
import threading
from typing import Any, Final

from spark_cep.observability.logs import EVENT_NAME

_log = logging.getLogger(__name__)
_EXTRA: Final = {EVENT_NAME: "driver_output"}


def take_in_standard_error() -> None:
    """From now on log what Python code of this process writes to standard error, and do as
    :func:`take_in_exceptions`."""
    sys.stderr = _LoggedLines()
    take_in_exceptions()


def take_in_exceptions() -> None:
    """From now on log, in one line each, exceptions that end a thread or a server's request."""
    threading.excepthook = _thread_failed
    socketserver.BaseServer.handle_error = _request_failed  # type: ignore[assignment, method-assign]


def _request_failed(server: socketserver.BaseServer, _request: Any, _client: Any) -> None:
    error = sys.exception()
    # The client is gone: Java, as a rule, whose end is reported by those who wait for it.
    gone = isinstance(error, EOFError | ConnectionError)
    level = logging.DEBUG if gone else logging.WARNING
    _write_log(f"a request to {type(server).__name__} failed", error, level)


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_type is SystemExit:
        return
    name = "" if failed.thread is None else failed.thread.name
    _write_log(f"thread {name} ended with an exception", failed.exc_value or failed.exc_type())


def _write_log(text: str, error: BaseException | None = None, level: int = logging.WARNING) -> None:
    _log.log(level, "%s", text, exc_info=error, extra=_EXTRA)


class _LoggedLines(io.TextIOBase):
    """A text stream whose lines are logged, each thread's for itself."""

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str) -> int:
        """Log the lines that are complete."""
        own = self._of_thread
        if getattr(own, "busy", False):
            # Logging itself failed, and says so here.
            return len(text)
        *lines, own.rest = (getattr(own, "rest", "") + text).split("\n")
        own.busy = True
        try:
            for line in lines:
                if line.strip():
                    _write_log(line)
        finally:
            own.busy = False
        return len(text)
