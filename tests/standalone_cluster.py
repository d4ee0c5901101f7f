"""A Spark standalone cluster of this machine: a master and workers, each a process of its own.

The workers get nothing of the test's surroundings: what executors need comes from the driver, or
lies at the same path for both, as in the image: the interpreter with all packages, and Java.
"""

from __future__ import annotations

import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from examples.embedded.process import HOST, ChildProcess, free_ports, listening, tail
from supply_chain.java import find_java

_DEPLOY = "org.apache.spark.deploy"
_REGISTERED = "Successfully registered with master"
#: Executors of tests live for a short time.
EXECUTOR_CONF = {"spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
_BACKEND = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Executor:
    """A running executor: its process, its number in its application, its arguments."""

    pid: int
    number: int
    arguments: str

    def kill(self) -> None:
        """End it without a chance to say goodbye."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


@dataclass(frozen=True)
class StandaloneCluster:
    """``url`` is the master's; ``folder`` holds what workers and executors write."""

    url: str
    page: str
    folder: Path
    workers: tuple[ChildProcess, ...]

    def executors(self) -> list[Executor]:
        """The executors that run now, by their numbers."""
        pids = {worker.pid for worker in self.workers}
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                fields = (entry / "stat").read_text("utf-8").rpartition(")")[2].split()
                arguments = (entry / "cmdline").read_bytes()
                if _BACKEND in arguments and fields[0] != "Z" and int(fields[1]) in pids:
                    words = arguments.decode().split("\0")
                    number = int(words[words.index("--executor-id") + 1])
                    found.append(Executor(int(entry.name), number, " ".join(words)))
        return sorted(found, key=lambda each: each.number)

    def section(self) -> dict[str, Any]:
        """The section ``spark`` of a job with an executor on each worker, without ``conf``."""
        return {
            "master": self.url,
            "driver": {"host": HOST},
            "executors": {"count": len(self.workers), "cores": 1, "memory": "512 MiB"},
        }

    def told(self, path: str = "/") -> str:
        """A page of the master."""
        with urllib.request.urlopen(f"{self.page}{path}", timeout=10) as answer:  # noqa: S310
            return str(answer.read().decode())


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[StandaloneCluster]:
    """A running cluster; each worker has one core and room for one executor of 512 MiB."""
    home = Path(pyspark.__file__).parent
    java = find_java()
    port, page = free_ports(2)

    def server(name: str, *arguments: str) -> ChildProcess:
        command = [str(java), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-cp", f"{home}/jars/*", *arguments]
        place = folder / name
        place.mkdir(parents=True)
        return ChildProcess(
            name, ["env", "-i", *_surroundings(place, home), *command], place / "log", folder=place
        )

    with ExitStack() as stack:
        master = stack.enter_context(
            server(
                "master",
                f"{_DEPLOY}.master.Master",
                *("--host", HOST, "--port", str(port), "--webui-port", str(page)),
            )
        )
        master.start(lambda: listening(port) and listening(page))
        url = f"spark://{HOST}:{port}"
        started = []
        for number in range(workers):
            worker = stack.enter_context(
                server(
                    f"worker-{number}",
                    f"{_DEPLOY}.worker.Worker",
                    *("--host", HOST, "--webui-port", "0"),
                    *("--cores", "1", "--memory", "600m"),
                    *("--work-dir", str(folder / f"worker-{number}" / "work"), url),
                )
            )
            worker.start(lambda log=worker.log: _REGISTERED in tail(log))  # type: ignore[misc]
            started.append(worker)
        yield StandaloneCluster(url, f"http://{HOST}:{page}", folder, tuple(started))


def _surroundings(place: Path, home: Path) -> list[str]:
    """The whole environment of a server, and so of its executors."""
    scratch = place / "scratch"
    scratch.mkdir()
    given = {
        "HOME": str(place),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(scratch),
        # Otherwise looked for in the folders of a build of Spark.
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_WORKER_OPTS": "-Dspark.worker.cleanup.enabled=false",
    }
    passed_on = ("JAVA_HOME", "PYTHONPATH", "NUMBA_CACHE_DIR")
    given |= {name: os.environ[name] for name in passed_on if name in os.environ}
    return [f"{name}={value}" for name, value in given.items()]
