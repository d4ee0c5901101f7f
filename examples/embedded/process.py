"""A server as a child process: started, waited for, stopped, and never left behind.

Guarantees:

* :meth:`ChildProcess.start` returns when the server answers, or raises StartError with the end of
  its log; a server that failed to answer is not left running.
* The child runs in a session of its own (Ctrl-C does not reach it) and on Linux the kernel kills it
  when this process ends in whatever way. Elsewhere it is killed when the interpreter exits.
* :meth:`ChildProcess.stop` and :meth:`ChildProcess.kill` return when the child is gone, and may be
  called at any time, any number of times.
"""

from __future__ import annotations

import atexit
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self

from spark_cep.errors import StartError

HOST = "127.0.0.1"
_POLL_SECONDS = 0.05
_TAIL_LINES = 30
_STOPPED_WITHIN_SECONDS = 10.0
# Above the well-known ones, below Linux's default ip_local_port_range (32768) and macOS's (49152).
_SERVER_PORTS = range(20_000, 32_768)

# Run by a bare interpreter that then becomes the server: asks the kernel for SIGKILL at the
# parent's death (PR_SET_PDEATHSIG, kept over exec) and gives up if the parent is already gone.
_TIE_TO_PARENT = """\
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""

# "Parent" is to the kernel the thread that forked. So one thread starts every child: it lives until
# the interpreter exits, while the caller's thread may end earlier.
_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedded-starter")


def free_ports(count: int) -> list[int]:
    """Distinct TCP ports of the loopback interface that nobody listens on.

    They lie below the range from which the kernel takes the ports of outgoing connections, so that
    no connection can take one before the server that it is meant for does.
    """
    found: list[int] = []
    while len(found) < count:
        # Not `random`, which a property test seeds: two of them would get the same ports.
        port = secrets.choice(_SERVER_PORTS)
        with socket.socket() as tried, suppress(OSError):
            tried.bind((HOST, port))
            if port not in found:
                found.append(port)
    return found


def listening(port: int) -> bool:
    """Whether a server accepts connections at the port."""
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False


def tail(path: Path, lines: int = _TAIL_LINES) -> str:
    """The last lines of a log file."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


class ChildProcess:
    """One server process; it can be started again after it was stopped or killed."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._folder = folder
        self._environment = dict(os.environ) | dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The running server's process id; None when it does not run."""
        return self._process.pid if self._process is not None and self.running else None

    @property
    def running(self) -> bool:
        """Whether the process is there (a paused one is)."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How the process ended, negative for a signal; None while it runs."""
        return self._process.poll() if self._process is not None else None

    def start(self, ready: Callable[[], bool], *, within: float = 60.0) -> None:
        """Start the server and wait until ``ready``; raise StartError when that does not happen."""
        if self.running:
            raise StartError(f"{self.name} runs already, as process {self.pid}")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._process = _STARTER.submit(self._spawn).result()
        deadline = time.monotonic() + within
        try:
            while not ready():
                if not self.running:
                    raise self._failed(f"ended with exit code {self._process.returncode}")
                if time.monotonic() > deadline:
                    raise self._failed(f"was not ready within {within:g} s")
                time.sleep(_POLL_SECONDS)
        except BaseException:
            self.kill()
            raise

    def stop(self, grace: float = 15.0) -> None:
        """Ask the server to end; kill it when it has not within ``grace`` seconds."""
        if self._process is not None and self.running:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
        self.kill()

    def kill(self) -> None:
        """End the server at once, with SIGKILL: it gets no chance to flush or to say goodbye."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()
        atexit.unregister(self.kill)

    def pause(self) -> None:
        """Freeze the server: its connections stay open and nothing answers. Returns when all of its
        threads stand still, where Linux tells: on a busy machine some go on for a moment."""
        self._signal(signal.SIGSTOP)
        deadline = time.monotonic() + _STOPPED_WITHIN_SECONDS
        while self._moves() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def _moves(self) -> bool:
        for stat in Path(f"/proc/{self.pid}/task").glob("*/stat"):
            with suppress(OSError):
                # The state is behind the name, which may hold anything.
                if stat.read_text("utf-8").rpartition(")")[2].split()[0] != "T":
                    return True
        return False

    def resume(self) -> None:
        """Let a paused server go on."""
        self._signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = self._command
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", "-c", _TIE_TO_PARENT, str(os.getpid()), *command]
        else:
            atexit.register(self.kill)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _failed(self, how: str) -> StartError:
        return StartError(f"{self.name} {how}; the end of {self.log}:\n{tail(self.log)}")
