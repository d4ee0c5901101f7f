"""Checks of this machine for ``spark-cep doctor``: Python, memory, the checkpoint's disk, compiled
code. Each returns what was found, or raises Doubt where a job may run, and not well."""

from __future__ import annotations

import os
import platform
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from spark_cep import __version__
from spark_cep.config import Settings
from spark_cep.config.cluster import is_local
from spark_cep.config.quantities import revealed

_GIB: Final = 2**30
_MIB: Final = 2**20
#: Memory for two cores with a heap of 1 GiB and RocksDB's 512 MiB: docs/operations/sizing.md.
_TWO_CORES: Final = 4 * _GIB
_EACH_CORE_MORE: Final = 700 * _MIB
_DRIVER_ALONE: Final = 650 * _MIB
_USUAL_HEAP: Final = _GIB
_USUAL_ROCKSDB: Final = 512 * _MIB
#: The alert SparkCepCheckpointDiskFull fires below it.
_LEAST_FREE: Final = 0.15
_SIZE: Final = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
_MEMORY_OF_MACHINE: Final = Path("/proc/meminfo")


class Doubt(Exception):  # noqa: N818  no error: a job may run
    """Something that a job can run with, and that may harm it; the text says what to do."""


def python() -> str:
    """The versions of Python and of this service."""
    return f"{platform.python_version()}, spark-cep {__version__}"


def memory(settings: Settings) -> str:
    """The memory that there is and that is needed."""
    there = memory_of_machine()
    if there is None:
        return "not known on this system"
    needed = needed_memory(settings)
    text = f"{there / _GIB:.1f} GiB, about {needed / _GIB:.1f} GiB are needed"
    if there < needed:
        raise Doubt(
            f"{text}: give the machine or container more, or lower the cores of spark.master,"
            " spark.driver.memory or state.rocksdb_memory"
        )
    return text


def memory_of_machine() -> int | None:
    """The bytes that this process and its children may have; ``None`` where it is not known."""
    found = []
    with suppress(OSError, ValueError):
        found.append(int(_CGROUP_LIMIT.read_text("ascii")))
    with suppress(OSError, AttributeError, IndexError, ValueError):
        line = re.search(
            r"^MemTotal:\s+(\d+) kB$", _MEMORY_OF_MACHINE.read_text("ascii"), re.MULTILINE
        )
        assert line is not None
        found.append(int(line[1]) * 1024)
    return min(found, default=None)


def needed_memory(settings: Settings) -> int:
    """The bytes that a job takes on this machine, about."""
    conf = revealed(settings.spark.conf)
    heap = _bytes(conf.get("spark.driver.memory", "1g"))
    if not is_local(settings.spark.master):
        return heap + _DRIVER_ALONE
    # Slow to import: it is Spark's.
    from spark_cep.pipeline.spark.session import local_cores

    cores = local_cores(settings.spark.master)
    own = heap - _USUAL_HEAP + settings.state.rocksdb_memory - _USUAL_ROCKSDB
    return _TWO_CORES + (cores - 2) * _EACH_CORE_MORE + own


def _bytes(size: str) -> int:
    """The bytes of a size as Spark has it; without a unit they are MiB."""
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        return _USUAL_HEAP
    return int(found[1]) << {"k": 10, "g": 30, "t": 40}.get(found[2].lower(), 20)


def disk(folder: Path) -> str:
    """The room on the disk of a local folder, which need not be there yet."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    room = shutil.disk_usage(there)
    text = f"{room.free / _GIB:.1f} GiB of {room.total / _GIB:.1f} GiB are free"
    if room.free < _LEAST_FREE * room.total:
        raise Doubt(
            f"{text}, less than {_LEAST_FREE:.0%}: when it is full the job ends; make room, or put"
            " state.checkpoint on another disk"
        )
    return text


def compiled_code() -> str:
    """Say that all compiled code is there, which is loaded."""
    from spark_cep.pipeline.compiled_code import is_there

    if not is_there():
        raise Doubt(
            "not all of it is there for this processor and version: the first start takes up to"
            " five minutes longer; run `spark-cep prepare` first"
        )
    return f"there, for {os.uname().machine}"
