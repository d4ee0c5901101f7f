"""Resident memory of the processes around a task."""

from __future__ import annotations

import os
import sys

import pytest

from spark_cep.pipeline.spark.memory import by_process, memory_of_task, resident
from spark_cep.pipeline.wire.reports import ProcessMemory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, which is Linux's")


def test_a_task_tells_of_its_own_process() -> None:
    """Host, id, no JVM, and more than an empty interpreter takes."""
    host, process, is_jvm, size = memory_of_task()[0]
    assert (host, process, is_jvm) == (os.uname().nodename, os.getpid(), False)
    assert size > 2**20
    assert resident(2**30) == 0


def test_processes_are_summed_by_host_and_kind() -> None:
    """Each process counts once, as last told; the driver's JVM is no executor."""
    host = os.uname().nodename
    told = [
        ProcessMemory(host, os.getppid(), True, 5),
        ProcessMemory(host, 7, False, 10),
        ProcessMemory(host, 8, False, 20),
        ProcessMemory(host, 7, False, 30),
        ProcessMemory("other", 7, False, 40),
        ProcessMemory("other", 6, True, 50),
    ]
    found = by_process(told, os.getppid())
    assert found[host, "python_workers"] == 50
    assert found["other", "python_workers"] == 40
    assert found["other", "executor_jvm"] == 50
    assert (host, "executor_jvm") not in found
    assert found[host, "driver_jvm"] == pytest.approx(resident(os.getppid()), rel=0.5)
    assert found[host, "driver_python"] > 2**20
