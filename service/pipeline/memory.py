"""Resident memory of Spark's processes, as the Python in each of them sees it.

A Python worker is the child of a daemon that is the child of an executor's JVM (or of the JVM
itself), so a task can tell of both, wherever it runs. It is read from ``/proc``; elsewhere than on
Linux nothing is known, and nothing is said.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyspark

_PROC: Final = Path("/proc")
_JAVA: Final = "java"
#: A worker, its daemon, the JVM.
_MOST_STEPS: Final = 3

#: Host, id of the process, whether it is a JVM, bytes.
Process = tuple[str, int, bool, int]


def memory_of_task() -> list[list[Any]]:
    """What a task says of its worker and of the JVM behind it."""
    host = socket.gethostname()
    own = os.getpid()
    told = [[host, own, False, resident(own)]]
    process = own
    for _ in range(_MOST_STEPS):
        process = _parent(process)
        if not process:
            break
        if _name(process) == _JAVA:
            told.append([host, process, True, resident(process)])
            break
    return [each for each in told if each[-1]]


def resident(process: int) -> int:
    """Resident bytes of a process; 0 when unknown."""
    try:
        pages = (_PROC / str(process) / "statm").read_text("ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def by_process(told: Iterable[Process], driver_jvm: int) -> dict[tuple[str, ...], float]:
    """Bytes by host and kind, each process once: what the metric shows. ``driver_jvm``: its id."""
    host = socket.gethostname()
    latest = {(where, process): (is_jvm, size) for where, process, is_jvm, size in told}
    found: dict[tuple[str, ...], float] = {
        (host, "driver_python"): resident(os.getpid()),
        (host, "driver_jvm"): resident(driver_jvm),
    }
    for (where, process), (is_jvm, size) in latest.items():
        if (where, process) == (host, driver_jvm):
            continue
        kind = "executor_jvm" if is_jvm else "python_workers"
        found[where, kind] = found.get((where, kind), 0) + size
    return {at: size for at, size in found.items() if size}


def driver_jvm() -> tuple[int, int, int]:
    """Of the driver's JVM: its id, and the bytes of its heap, used and most."""
    context = pyspark.SparkContext._active_spark_context  # noqa: SLF001  there is no other way
    jvm = None if context is None else context._jvm  # noqa: SLF001
    if jvm is None:
        return 0, 0, 0
    runtime = jvm.java.lang.Runtime.getRuntime()
    process = int(jvm.java.lang.ProcessHandle.current().pid())
    used = int(runtime.totalMemory()) - int(runtime.freeMemory())
    return process, used, int(runtime.maxMemory())


def _parent(process: int) -> int:
    try:
        stat = (_PROC / str(process) / "stat").read_text("utf-8", "replace")
    except OSError:
        return 0
    # The name, in parentheses, may hold anything.
    return int(stat.rpartition(")")[2].split()[1])


def _name(process: int) -> str:
    try:
        return (_PROC / str(process) / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return ""
