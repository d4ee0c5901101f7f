"""The job of the demo: the very command that a user would run, as a process of its own.

Guarantees: the job's temporary files are below its folder; :meth:`Job.stop` returns when the
command, its JVM and its Python workers are gone (the last two also when they had to be killed).
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from examples.demo.interruption import Interruption
from examples.embedded import ChildProcess
from examples.embedded.process import tail
from spark_cep.errors import StartError

_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 30.0
_GRACE_INTERRUPTED_SECONDS = 2.0
_TAIL_LINES = 15
_FRAME = re.compile(r"\s*(at [\w.$]+[($/]|\.\.\. \d+ more)")
_PROCESSES = Path("/proc")
# For a JVM that runs for a minute: no compiler that pays off later, and no file outside its folder.
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")


class Job:
    """``spark-cep run --config FILE`` for one configuration file."""

    def __init__(self, config: Path, folder: Path) -> None:
        self.command = [str(Path(sys.executable).with_name("spark-cep")), "run"]
        self.command += ["--config", str(config)]
        temporary = folder / "tmp"
        temporary.mkdir(parents=True)
        self._child = ChildProcess(
            "the job",
            self.command,
            folder / "job.log",
            folder=folder,
            environment={
                "TMPDIR": str(temporary),
                "SPARK_LOCAL_DIRS": str(temporary),
                "SPARK_SUBMIT_OPTS": " ".join((f"-Djava.io.tmpdir={temporary}", *_SHORT_LIVED)),
                "SPARK_LAUNCHER_OPTS": " ".join(_SHORT_LIVED),
                "SPARK_HOME": _spark_home(),
            },
        )
        self._session: int | None = None

    @property
    def log(self) -> Path:
        """What the job wrote: its log, one JSON object a line, and the JVM's complaints."""
        return self._child.log

    def start(self) -> None:
        """Start the command; it is not ready yet when this returns."""
        self._child.start(lambda: True)
        self._session = self._child.pid

    def check(self) -> None:
        """Raise StartError, with the end of its log, when the job has ended."""
        if not self._child.running:
            raise StartError(
                f"the job ended with exit code {self._child.exit_code};"
                f" the end of {self.log}:\n{self._last_lines()}"
            )

    def _last_lines(self) -> str:
        """The end of the log, without the frames of Java's stack traces."""
        lines = tail(self.log, 10 * _TAIL_LINES).splitlines()
        return "\n".join([line for line in lines if not _FRAME.match(line)][-_TAIL_LINES:])

    def stop(self, interruption: Interruption) -> int | None:
        """SIGTERM, as an orchestrator would; the exit code, or None if it had to be killed."""
        pid = self._child.pid
        asked = False
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
                asked = True
        began = time.monotonic()
        while asked and self._child.running and not interruption.urgent:
            grace = _GRACE_INTERRUPTED_SECONDS if interruption.requested else _GRACE_SECONDS
            if time.monotonic() - began > grace:
                break
            time.sleep(_LOOK_SECONDS)
        in_time = not self._child.running
        self._child.kill()
        self._end_session()
        return self._child.exit_code if in_time else None

    def _end_session(self) -> None:
        """End what the command left: workers that had not noticed yet that their parent is gone."""
        if self._session is None:
            return
        deadline = time.monotonic() + 10
        patience = time.monotonic() + 1
        while (left := _members(self._session)) and time.monotonic() < deadline:
            if time.monotonic() > patience:
                for pid in left:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(_LOOK_SECONDS)


def _members(session: int) -> list[int]:
    """Live processes of a session; empty where the system does not show them as files."""
    found = []
    for entry in _PROCESSES.glob("[0-9]*") if _PROCESSES.is_dir() else ():
        with suppress(OSError, IndexError, ValueError):
            # After the name in parentheses: state, parent, group, session.
            fields = (entry / "stat").read_text("utf-8").rpartition(")")[2].split()
            if fields[0] != "Z" and int(fields[3]) == session:
                found.append(int(entry.name))
    return found


def _spark_home() -> str:
    """The Spark inside PySpark, also where another one is installed on the machine."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise StartError("PySpark is not installed: run `make setup`")
    return str(Path(found.origin).parent)
