"""Modules that Spark's Python processes need, imported before the process from which they are
forked."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Final

from spark_cep.errors import StartError

#: Spark's loop around a task's functions, and the driver's side of a source.
SPARKS_MODULES: Final = (
    "pyspark.worker",
    "pyspark.sql.datasource_internal",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
)
#: Functions of tasks, the source, and what they import as they run.
_LOADED: Final = (
    "pandas",
    "pyarrow.dataset",
    "spark_cep.config",
    "spark_cep.pipeline.deliver.delivery_process",
    "spark_cep.pipeline.deliver.exactly_once",
    "spark_cep.pipeline.driver.input.source",
    "spark_cep.pipeline.match.match",
    "spark_cep.pipeline.state.ascii_values",
    "spark_cep.pipeline.tasks.match_operator",
    "spark_cep.pipeline.tasks.pack_batch",
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


@cache
def load() -> None:
    """Import modules and compiled code, once, without starting a thread or printing anything."""
    os.environ.update(_WITHOUT_THREADS)
    for module in (*SPARKS_MODULES, *_LOADED):
        import_module(module)
    # A task that needs compiled code says what is wrong.
    with suppress(StartError), _logged():
        import_module("spark_cep.pipeline.compiled_code").prepare()


def _logged() -> AbstractContextManager[None]:
    """Log a compilation that takes long, in the driver: a worker has no log, and what it prints is
    Spark's."""
    logs = sys.modules.get("spark_cep.observability.logs")
    if logs is None or not logs.configured():
        return nullcontext()
    logged: AbstractContextManager[None] = import_module(
        "spark_cep.observability.compiling"
    ).compilation_logged()
    return logged


@cache
def become_worker() -> None:
    """Make this process, and those that it forks, fit for tasks, once: with all that is loaded and
    left out of collections of garbage, and with the memory that a batch takes kept for the next."""
    # What is imported stays: looking through it again and again takes a sixth of the time.
    gc.disable()
    with suppress(AttributeError):
        for option, value in _MALLOC.items():
            ctypes.CDLL(None).mallopt(option, value)
    _import_no_archives()
    load()
    gc.freeze()
    gc.enable()
    # Spark collects after each task; within one, output records are many, and none is in a cycle.
    gc.set_threshold(100_000, 50, 50)


def _import_no_archives() -> None:
    """Import PySpark from where it is installed, not from the archive that Spark puts before it:
    what is in an archive is compiled again in each process."""
    installed = [entry for entry in sys.path if not entry.endswith(".zip")]
    if PathFinder.find_spec("pyspark", installed) and PathFinder.find_spec("py4j", installed):
        sys.path[:] = installed
