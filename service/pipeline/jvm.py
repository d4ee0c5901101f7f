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
    gateway = SparkContext._gateway  # noqa: SLF001  there is no public way
    process = _process()
    if gateway is None or process is None or process.stdin is None:
        return
    gateway.shutdown()
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_CLOSING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def kill_jvm() -> None:
    """Kill the Java process, for a process that ends in the same moment."""
    process = _process()
    if process is not None:
        with suppress(OSError):
            process.kill()


def _process() -> subprocess.Popen[bytes] | None:
    found = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001
    return found if isinstance(found, subprocess.Popen) else None
