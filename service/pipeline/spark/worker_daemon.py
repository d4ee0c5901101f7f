"""The process that Spark forks its Python workers from, with what they need already loaded.

A worker of Spark's own daemon begins with an empty interpreter: it imports the matcher, its numeric
libraries and compiled code for a second before its first row, and each collection of garbage, one
after each task (``pyspark.daemon``), walks through all of that for a tenth. Workers of this one
share it with their daemon, memory included, and no collection looks at it.

``python -m service.pipeline.spark.worker_daemon`` goes on as ``python -m pyspark.daemon``.
"""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.machinery import PathFinder

from service.errors import StartError

#: Functions of tasks, Spark's loop around them, and what both import as they run.
_LOADED = (
    "pandas",
    "pyarrow.dataset",
    "pyspark.worker",
    "service.pipeline.deliver.at_least_once",
    "service.pipeline.deliver.exactly_once",
    "service.pipeline.match.match",
    "service.pipeline.decode.pack",
    "service.pipeline.deliver.sink",
)
#: A process with threads must not fork: what holds a lock in another thread would hold it for ever.
#: These libraries would start some as they are imported.
_WITHOUT_THREADS = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


#: Of the GNU C library, as in ``malloc.h``: a batch's output takes as much memory as that of the
#: batch before, which is not to be fetched from the kernel again each time; and what librdkafka's
#: threads free, others can use again. Elsewhere there is no such function, or it does nothing.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_MALLOC = {_M_TRIM_THRESHOLD: 128 << 20, _M_MMAP_THRESHOLD: 32 << 20, _M_ARENA_MAX: 1}


def load() -> None:
    """Import modules and compiled code, without starting a thread or printing anything."""
    os.environ.update(_WITHOUT_THREADS)
    with suppress(AttributeError):
        for option, value in _MALLOC.items():
            ctypes.CDLL(None).mallopt(option, value)
    _import_no_archives()
    for module in _LOADED:
        import_module(module)
    import_module("service.pipeline.spark.streamed_rows").install()
    # A task that needs compiled code says what is wrong.
    with suppress(StartError):
        import_module("service.codecs.compiled_code").prepare()
    gc.collect()
    gc.freeze()
    # Spark collects after each task; within one, output records are many, and none is in a cycle.
    gc.set_threshold(100_000, 50, 50)


def _import_no_archives() -> None:
    """Import PySpark from where it is installed, not from the archive that Spark puts before it:
    what is in an archive is compiled again in each process."""
    installed = [entry for entry in sys.path if not entry.endswith(".zip")]
    if PathFinder.find_spec("pyspark", installed) and PathFinder.find_spec("py4j", installed):
        sys.path[:] = installed


def ends_when_disconnected(
    worker: Callable[[socket.socket, bool], int],
) -> Callable[[socket.socket, bool], int]:
    """``pyspark.daemon.worker``, which ends without a trace where Java has closed the connection:
    that is how a task is stopped, and Java says why."""

    def run(sock: socket.socket, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except ConnectionError:
            return 1

    return run


if __name__ == "__main__":
    load()
    daemon = import_module("pyspark.daemon")
    daemon.worker = ends_when_disconnected(daemon.worker)  # type: ignore[attr-defined]
    daemon.manager()
