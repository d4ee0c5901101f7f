"""What workers have before their first task, and that their daemon may fork."""

from __future__ import annotations

import os
import platform
import socket
import struct
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from spark_cep.pipeline.spark.forking.worker_daemon import ends_when_disconnected
from tests.pipeline.spark.driver_process import driver

_LOADS = """
import os
from spark_cep.pipeline.spark.forking.preloading import become_worker
become_worker()
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
def test_the_daemon_has_one_thread_and_prints_nothing() -> None:
    """Forked with more, a worker could wait for a lock that nobody holds; Spark would take what it
    prints for the number of its port."""
    command = [sys.executable, "-c", _LOADS]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("1\n", "")


_TRAVEL = """
import sys
from importlib import import_module
from spark_cep.pipeline.spark.forking.preloading import load
load()
loaded = set(sys.modules)
for name in ("tasks.pack_batch", "tasks.match_operator", "deliver.task_output"):
    import_module(f"spark_cep.pipeline.{name}")
print(sorted(set(sys.modules) - loaded))
print(sorted({"httpx2", "authlib", "structlog"} & loaded))
"""


def test_a_worker_imports_nothing_in_its_first_task() -> None:
    """What travels to it is loaded, and nothing that the driver alone needs."""
    command = [sys.executable, "-c", _TRAVEL]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["[]", "[]"]


_ALLOCATES = """
import ctypes, threading
from spark_cep.pipeline.spark.forking.preloading import become_worker
become_worker()
libc = ctypes.CDLL(None)
threads = [threading.Thread(target=lambda: libc.malloc(1000)) for _ in range(8)]
for thread in threads:
    thread.start()
    thread.join()
libc.fopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w")))
libc.fflush(None)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="asks the GNU C library")
def test_threads_share_their_memory() -> None:
    """So that what one of librdkafka's threads frees is used again."""
    command = [sys.executable, "-c", _ALLOCATES]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.count("<heap nr=") == 1


@pytest.mark.parametrize("through", ["our daemon", "Spark's own, by the fork server"])
@pytest.mark.slow
def test_a_worker_whose_task_is_stopped_leaves_no_trace(
    through: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Java closes the connection of a task that is stopped, and of a worker that was idle for a
    minute, whatever the worker then writes. Workers that plan are those of Spark's own daemon."""
    environment = {
        **os.environ,
        "PYTHON_WORKER_FACTORY_SECRET": "secret",
        "PYTHON_UNIX_DOMAIN_ENABLED": "false",
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",
    }
    with ExitStack() as stack:
        command = [
            sys.executable,
            "-m",
            "spark_cep.pipeline.spark.forking.worker_daemon",
            "pyspark.worker",
        ]
        if through != "our daemon":
            server = stack.enter_context(driver(tmp_path_factory.mktemp("fork")))
            command = [server.interpreter, "-m", "pyspark.daemon", "pyspark.worker"]
        _stops_tasks(command, environment)


def _stops_tasks(command: list[str], environment: dict[str, str]) -> None:
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as daemon:  # fmt: skip
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        port = int.from_bytes(daemon.stdout.read(4), "big")
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port)) as task:
                task.recv(4, socket.MSG_WAITALL)
                task.sendall((6).to_bytes(4, "big") + b"secret")
                assert task.recv(6, socket.MSG_WAITALL)[4:] == b"ok"
                # Closed so, the worker's next write fails.
                task.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        _, errors = daemon.communicate(timeout=60)
    assert errors.decode() == ""


def test_other_failures_of_a_worker_are_told() -> None:
    """Only a connection that is closed is nothing to tell."""

    def fails(sock: socket.socket, authenticated: bool) -> int:
        raise ValueError("no")

    with socket.socket() as sock, pytest.raises(ValueError, match="no"):
        ends_when_disconnected(fails)(sock, True)


@pytest.mark.spark
def test_workers_begin_with_what_tasks_need(spark: SparkSession) -> None:
    """Loaded in the daemon, from where compiled modules are kept, and left out of collections of
    garbage."""

    def look(_: object) -> tuple[bool, str, int]:
        import gc
        import sys

        import pyspark

        loaded = "spark_cep.matcher.steps.loops.kernel" in sys.modules
        return loaded, pyspark.__file__, gc.get_freeze_count()

    ((loaded, pyspark_file, frozen),) = spark.sparkContext.parallelize([0], 1).map(look).collect()
    assert loaded
    assert pyspark_file == pyspark.__file__
    assert frozen > 100_000


@pytest.mark.spark
def test_the_driver_has_no_archive_of_pyspark(spark: SparkSession) -> None:
    """Its processes, which no daemon forks, would compile all of it."""
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.spark.api.python.PythonUtils.sparkPythonPath()
    archives = [Path(entry) for entry in path.split(os.pathsep) if entry.endswith(".zip")]
    assert archives
    assert not any(archive.exists() for archive in archives)
