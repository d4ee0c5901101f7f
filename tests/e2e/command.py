"""The command ``spark-cep run`` as a process of its own, with everything it starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
_SECONDS = 120.0
PROGRAM = ("-m", "spark_cep.cli.main")


class Command:
    """One running ``spark-cep run``; it leads a process group that its JVM belongs to. ``program``:
    what Python runs in its place, with the same words; ``words``: another command."""

    def __init__(
        self,
        folder: Path,
        document: dict[str, Any],
        program: Sequence[str] = PROGRAM,
        words: Sequence[str] = ("run",),
    ) -> None:
        config = folder / "config.yaml"
        config.write_text(yaml.safe_dump(document), "utf-8")
        self.log = folder / "command.log"
        self._port = document["observability"]["metrics_port"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *program, *words, "--config", str(config)],
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def page(self, path: str) -> tuple[int, str]:
        """Status and text of a page; status 0 while nobody listens."""
        try:
            url = f"http://127.0.0.1:{self._port}{path}"
            with urllib.request.urlopen(url, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_for(self, condition: Callable[[], Any], seconds: float = _SECONDS) -> None:
        """Wait until ``condition`` holds; fail with the end of the log when the process ends, or
        after ``seconds``."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert self._process.poll() is None, self.end_of_log()
            assert time.monotonic() < deadline, self.end_of_log()
            time.sleep(0.1)

    def kill(self) -> None:
        """SIGKILL to the command and its JVM at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def ended(self, seconds: float) -> int | None:
        """Its exit code; None when it is still there after so long."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def processes(self, *names: bytes) -> list[int]:
        """The process and all that it started, by parentage; with ``names``, those whose words
        hold one of them."""
        parents: dict[int, int] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                after_name = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(after_name[1])
        found = [self._process.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        if names:
            return [pid for pid in found if any(name in _words(pid) for name in names)]
        return found

    def python_processes(self, *modules: bytes) -> list[int]:
        """Spark's Python processes that run a module whose name begins so. Forked ones say it in
        one word, others, and those that stand for a forked one, in several."""
        forms = (b"python -m ", b"-m\0")
        return self.processes(*(form + module for form in forms for module in modules))

    def terminate(self) -> tuple[int, float]:
        """SIGTERM to the command alone; its exit code, and the seconds that it took."""
        started = time.monotonic()
        self._process.terminate()
        code = self._process.wait(_SECONDS)
        return code, time.monotonic() - started

    def signal_all(self, number: signal.Signals) -> None:
        """A signal to each process of its session, twice to the command: as systemd and `timeout`
        send it."""
        found = self.left_behind()
        self.signal(number)
        for line in found:
            with suppress(ProcessLookupError):
                os.kill(int(line.partition(":")[0]), number)

    def signal(self, number: signal.Signals) -> None:
        """A signal to the command alone."""
        self._process.send_signal(number)

    def hears_signals(self) -> bool:
        """Whether it does something of its own when it is told to stop."""
        status = Path(f"/proc/{self._process.pid}/status").read_text("utf-8")
        (caught,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
        return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

    def wait(self, seconds: float = _SECONDS) -> int:
        """The exit code, once it has ended."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.end_of_log()) from None

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of its log of this event, of all commands that wrote to the same log."""
        return logged(self.log.read_text("utf-8", errors="replace"), name)

    def left_behind(self) -> list[str]:
        """Processes of its session that still run: JVM, Python workers, itself."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, IndexError, ValueError):
                # After the name in parentheses: state, parent, group, session.
                fields = (entry / "stat").read_text("utf-8").rpartition(")")[2].split()
                if fields[0] != "Z" and int(fields[3]) == self._process.pid:
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.append(f"{entry.name}: {command.decode()[:200]}")
        return found

    def wait_until_alone(self, seconds: float = 10.0) -> None:
        """Wait until nothing that it started runs any more."""
        deadline = time.monotonic() + seconds
        while left := self.left_behind():
            assert time.monotonic() < deadline, left
            time.sleep(0.05)

    def end_of_log(self) -> str:
        """For messages."""
        return self.log.read_text("utf-8", errors="replace")[-5000:]


def logged(text: str, name: str) -> list[dict[str, Any]]:
    """The lines of a log of this event. The last line counts once its end is written."""
    lines = text.split("\n")[:-1]
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return [line for line in found if line.get("event") == name]


def _words(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@contextmanager
def running(folder: Path, document: dict[str, Any], *program: str) -> Iterator[Command]:
    """The command, killed with all that belongs to it when the block is left."""
    command = Command(folder, document, program or PROGRAM)
    try:
        yield command
    finally:
        command.kill()
