"""One side of a comparison: a program that stays, and runs what it is asked to run.

It says ``{"ready": true}`` when it can be asked; then each line of JSON on its standard input is a
request, each line on its standard output the answer. All runs of a comparison go to the same
process, so that what is compiled and started once is compiled and started once for each side.
The end of its standard input, which comes with the end of this process at the latest, ends it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from examples.embedded.process import tail

_ON_CORES = """\
import os, sys
os.sched_setaffinity(0, {int(core) for core in sys.argv[1].split(",")})
os.execvp(sys.argv[2], sys.argv[2:])
"""
_START_SECONDS = 180.0
_END_SECONDS = 20.0
_SHOWN = 2_000


class SideFailedError(Exception):
    """A side ended, or did not answer in time; the message has the end of its log."""


class Side:
    """A running side; ``with`` ends it."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        cores: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._log = log
        self._closed = False
        if cores and hasattr(os, "sched_setaffinity"):
            on = ",".join(map(str, cores))
            command = [sys.executable, "-I", "-S", "-c", _ON_CORES, on, *command]
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **(environment or {})},
                # A group of its own: Ctrl-C is ours, and its children end with it.
                start_new_session=True,
            )
        try:
            self.answer(_START_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process, which leads a session of its own."""
        return self._process.pid

    def send(self, request: Mapping[str, Any]) -> None:
        """Ask; :meth:`answer` waits for what comes of it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed("ended") from None

    def answer(self, within: float) -> dict[str, Any]:
        """The answer to what was sent."""
        out = self._process.stdout
        assert out is not None
        if not select.select([out], [], [], within)[0]:
            raise self._failed(f"did not answer within {within:g} s")
        line = out.readline()
        if not line:
            raise self._failed("ended")
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, request: Mapping[str, Any], within: float = 3_600.0) -> dict[str, Any]:
        """Send and wait."""
        self.send(request)
        return self.answer(within)

    def close(self) -> None:
        """End the process and its children; once more does nothing."""
        if self._closed:
            return
        self._closed = True
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _failed(self, how: str) -> SideFailedError:
        return SideFailedError(
            f"{self.name} {how}; the end of {self._log}:\n{tail(self._log)[-_SHOWN:]}"
        )
