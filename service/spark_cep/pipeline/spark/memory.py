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
from typing import Final, NamedTuple

from spark_cep.pipeline.spark.private_api import running_jvm
from spark_cep.pipeline.wire.reports import ProcessMemory

_PROC: Final = Path("/proc")
_JAVA: Final = "java"
#: A worker, its daemon, the JVM.
_MOST_STEPS: Final = 3


def memory_of_task() -> list[ProcessMemory]:
    """Return the memory of a task's worker and of the JVM behind it."""
    host = socket.gethostname()
    own = os.getpid()
    processes = [ProcessMemory(host, own, False, resident(own))]
    process = own
    for _ in range(_MOST_STEPS):
        process = _parent(process)
        if not process:
            break
        if _name(process) == _JAVA:
            processes.append(ProcessMemory(host, process, True, resident(process)))
            break
    return [each for each in processes if each.bytes]


def resident(process: int) -> int:
    """Resident bytes of a process; 0 when unknown."""
    try:
        pages = (_PROC / str(process) / "statm").read_text("ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def by_process(processes: Iterable[ProcessMemory], driver_jvm: int) -> dict[tuple[str, ...], float]:
    """Bytes by host and kind, each process once: what the metric shows. ``driver_jvm``: its id."""
    host = socket.gethostname()
    latest = {(each.host, each.process): each for each in processes}
    found: dict[tuple[str, ...], float] = {
        (host, "driver_python"): resident(os.getpid()),
        (host, "driver_jvm"): resident(driver_jvm),
    }
    for at, each in latest.items():
        if at == (host, driver_jvm):
            continue
        kind = "executor_jvm" if each.is_jvm else "python_workers"
        found[each.host, kind] = found.get((each.host, kind), 0) + each.bytes
    return {at: size for at, size in found.items() if size}


class JvmMemory(NamedTuple):
    """The driver's JVM: the id of its process, the bytes in use, and their limit."""

    process: int = 0
    heap: int = 0
    most_heap: int = 0
    direct: int = 0
    most_direct: int = 0


def driver_jvm() -> JvmMemory:
    """Return the figures of the driver's JVM; zeros where there is none."""
    jvm = running_jvm()
    if jvm is None:
        return JvmMemory()
    runtime = jvm.java.lang.Runtime.getRuntime()
    netty = jvm.io.netty.util.internal.PlatformDependent
    buffers = jvm.java.lang.Class.forName("java.lang.management.BufferPoolMXBean")
    beans = jvm.java.lang.management.ManagementFactory.getPlatformMXBeans(buffers)
    # The end of py4j's iterator is an error of Java's, of which PySpark asks Java fifty questions.
    pools = [beans.get(number) for number in range(beans.size())]
    return JvmMemory(
        int(jvm.java.lang.ProcessHandle.current().pid()),
        int(runtime.totalMemory()) - int(runtime.freeMemory()),
        int(runtime.maxMemory()),
        # Netty, and Arrow on top of it, does not tell Java of what it takes.
        max(0, int(netty.usedDirectMemory()))
        + sum(int(pool.getMemoryUsed()) for pool in pools if pool.getName() == "direct"),
        int(netty.maxDirectMemory()),
    )


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
