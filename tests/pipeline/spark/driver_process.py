"""A driver with a fork server: a process of its own, since a server is forked from one thread."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_PROGRAM = """
import subprocess, sys, threading
from pathlib import Path
from spark_cep.observability.logs import configure
from spark_cep.pipeline.spark.forking.fork_server import ForkServer
from spark_cep.pipeline.spark.forking.preloading import load

configure(log_format="json")
server = ForkServer(Path(sys.argv[1]))
java = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
load()
if "threads" in sys.argv:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
server.start(2)
print(server.interpreter, flush=True)
for line in sys.stdin:
    if line == "end java\\n":
        java.stdin.close()
        print(java.wait(10), flush=True)
server.close()
java.kill()
"""


class Driver(NamedTuple):
    """``interpreter``: what Spark would be given."""

    process: subprocess.Popen[str]
    interpreter: str

    def end_java(self) -> int:
        """Close the standard input of a process that ends with it; its exit code."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("end java\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self) -> None:
        """End it in good order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(30) == 0


@contextmanager
def driver(
    folder: Path,
    *arguments: str,
    environment: dict[str, str] | None = None,
    start: Path | None = None,
) -> Iterator[Driver]:
    """The driver, with the server's socket and script in ``folder``, started in ``start`` as the
    command is: by a script that is elsewhere."""
    script = folder / "driver.py"
    script.write_text(_PROGRAM)
    with subprocess.Popen(
        [sys.executable, str(script), str(folder), *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=start,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            made = Driver(process, process.stdout.readline().rstrip("\n"))
            yield made
            if process.poll() is None:
                made.end()
        finally:
            process.kill()
