"""A process that does the page's work, for so long and no longer.

A rule may be slow, and a text may be slow to check: neither may hold up the page. Work is done in
one process, one piece after the other; the process is ended where a piece takes too long, and
another takes its place.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

from spark_cep.errors import ConfigurationError, RuleSetError, SparkCepError, rendered

_Result = TypeVar("_Result")
#: Compiling for a machine for the first time takes up to five minutes, and as much is room.
_SECONDS_TO_BEGIN: Final = 600.0
_READY: Final = "ready"
#: Processes are not forked: the server has threads.
_CONTEXT: Final = get_context("spawn")


class TooSlowError(Exception):
    """The work took longer than it may, and was ended."""


class Worker:
    """Does work in a process of its own.

    Args:
        seconds: The time that one piece may take.
        first: What the process does before all else, so that no piece has to wait for it.
    """

    def __init__(self, seconds: float, first: Callable[[], object]) -> None:
        self._seconds, self._first = seconds, first
        self._busy = asyncio.Lock()
        self._process: Any = None
        self._connection: Connection | None = None
        #: Whether the process has done what it does before all else.
        self.is_ready = False

    async def call(self, function: Callable[..., _Result], *given: object) -> _Result:
        """The result of a function of a module, which is pickled as are its arguments.

        Raises TooSlowError, and as ConfigurationError what the function raises on purpose.
        """
        async with self._busy:
            result: _Result = await asyncio.to_thread(self._ask, function, given)
            return result

    async def begin(self) -> None:
        """Start the process, so that the first piece of work need not wait for it."""
        async with self._busy:
            await asyncio.to_thread(self._connected)

    def close(self) -> None:
        """End the process."""
        self.is_ready = False
        process, self._process = self._process, None
        connection, self._connection = self._connection, None
        if process is not None:
            process.kill()
            process.join()
        if connection is not None:
            connection.close()

    def _connected(self) -> Connection:
        if self._connection is not None and self._process.is_alive():
            return self._connection
        self.close()
        mine, its = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(its, self._first), daemon=True)
        self._process.start()
        its.close()
        self._connection = mine
        if not mine.poll(_SECONDS_TO_BEGIN) or mine.recv() != _READY:
            self.close()
            raise TooSlowError("the process that runs rules does not begin")
        self.is_ready = True
        return mine

    def _ask(self, function: Callable[..., Any], given: tuple[object, ...]) -> Any:
        connection = self._connected()
        try:
            connection.send((function, given))
            if not connection.poll(self._seconds):
                self.close()
                raise TooSlowError(f"it was ended after {self._seconds:g} s")
            problem, result = connection.recv()
        except (EOFError, OSError) as error:
            self.close()
            raise TooSlowError("the process that runs rules has ended by itself") from error
        if problem is not None:
            raise ConfigurationError(problem)
        return result


def _serve(connection: Connection, first: Callable[[], object]) -> None:
    """Do work until the other side is gone."""
    try:
        first()
        connection.send(_READY)
        while True:
            function, given = connection.recv()
            connection.send(_done(function, given))
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _done(function: Callable[..., Any], given: tuple[object, ...]) -> tuple[str | None, Any]:
    """The result, or else what is wrong, as text."""
    try:
        return None, function(*given)
    except RuleSetError as error:
        return "\n".join(rendered(error.problems)), None
    except (SparkCepError, ValueError, OverflowError) as error:
        return str(error), None
    except Exception as error:  # noqa: BLE001  a defect of ours: told, and the page goes on
        traceback.print_exc(file=sys.stderr)
        return f"{type(error).__name__}: {error}", None
