"""The end of the Java process that Spark runs in, and of the Python workers that belong to it.

Python leaves it behind as a child that ends by itself soon after. Whoever waits for our process
alone, or starts the next one at once, must not meet it any more. The workers' daemon ends with the
Java process, and its workers with the daemon.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress

from pyspark import SparkContext

_CLOSING_SECONDS = 4.0


def end_jvm() -> None:
    """Close the Java process, and return when it is gone. No Spark in this process afterwards."""
    process = _process()
    if process is None:
        return
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_CLOSING_SECONDS)
    except subprocess.TimeoutExpired:
        kill_jvm()


def kill_jvm() -> None:
    """Kill the Java process."""
    process = _process()
    if process is not None:
        with suppress(OSError):
            process.kill()
            process.wait(_CLOSING_SECONDS)


def _process() -> subprocess.Popen[bytes] | None:
    gateway = SparkContext._gateway  # noqa: SLF001  there is no public way
    found = getattr(gateway, "proc", None)
    return found if isinstance(found, subprocess.Popen) else None
