"""Sockets between the JVM and its Python workers, and the JVM's garbage collector."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_cep.pipeline.spark.session import collectors, may_have_sockets
from supply_chain.java import find_java
from tests.conftest import JARS

_NAME_OF_SPARK = ".00000000-0000-0000-0000-000000000000.sock"


def _can_be_bound(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        try:
            one.bind(str(folder / _NAME_OF_SPARK))
        except OSError:
            return False
    (folder / _NAME_OF_SPARK).unlink()
    return True


def test_sockets_are_only_used_where_their_paths_are_short_enough() -> None:
    """Whatever we allow can be bound, and a usual folder is allowed."""
    found = {}
    with TemporaryDirectory(dir="/tmp") as base:
        for length in range(20, 120):
            folder = Path(base) / ("x" * (length - len(base) - 1))
            folder.mkdir()
            found[length] = (may_have_sockets(folder), _can_be_bound(folder))
    assert all(can for may, can in found.values() if may)
    assert found[55] == (True, True)
    assert found[100] == (False, False)


@pytest.mark.java
@pytest.mark.parametrize(
    ("extra", "environment", "driver", "executor"),
    [
        ({}, {}, "UseParallelGC", "UseParallelGC"),
        ({"driver": "-Xint -XX:+UseG1GC"}, {}, "UseG1GC", "UseParallelGC"),
        ({"executor": "-XX:+UseSerialGC"}, {}, "UseParallelGC", "UseSerialGC"),
        ({"driver": "-XX:+PrintFlagsFinal"}, {}, "UseParallelGC", "UseParallelGC"),
        ({}, {"SPARK_SUBMIT_OPTS": "-XX:+UseSerialGC"}, "UseSerialGC", "UseParallelGC"),
        ({}, {"JAVA_TOOL_OPTIONS": "-XX:+UseZGC -Xmx99m"}, "UseZGC", "UseParallelGC"),
    ],
)
def test_java_starts_with_the_collector_that_the_user_chose(
    extra: dict[str, str], environment: dict[str, str], driver: str, executor: str
) -> None:
    """It refuses two."""
    conf = {f"spark.{process}.defaultJavaOptions": "-Xss8m" for process in ("driver", "executor")}
    conf |= {f"spark.{process}.extraJavaOptions": text for process, text in extra.items()}
    conf |= collectors(conf, environment)
    for process, expected in (("driver", driver), ("executor", executor)):
        options = [conf[f"spark.{process}.defaultJavaOptions"], extra.get(process, "")]
        options += environment.values() if process == "driver" else []
        command = [str(find_java()), *" ".join(options).split(), "-XX:+PrintFlagsFinal", "-version"]
        flags = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        chosen = {
            line.split()[1] for line in flags.splitlines() if "GC " in line and "true" in line
        }
        assert expected in chosen


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/net/tcp6").exists(), reason="needs Linux's /proc")
def test_a_local_spark_is_closed_to_others(spark: SparkSession) -> None:
    """Its driver serves logins and events: on this machine alone, and to who has the secret."""
    assert spark.sparkContext.getConf().get("spark.authenticate") == "true"
    jvm: Any = spark.sparkContext._jvm
    pid = jvm.java.lang.ProcessHandle.current().pid()
    sockets = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it may be closed by now
            sockets.add(str(file.readlink()))
    listening = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                listening.add(fields[1].rpartition(":")[0])
    assert listening
    # 127.0.0.1, also as an address of IPv6.
    assert {address[-8:] for address in listening} == {"0100007F"}


@pytest.mark.spark
def test_spark_imports_nothing_from_the_folder_of_the_start(spark: SparkSession) -> None:
    """Neither its Python processes here nor those of executors, whatever interpreter they have."""
    jvm: Any = spark.sparkContext._jvm
    assert jvm.System.getenv("PYTHONSAFEPATH") == "1"
    assert spark.sparkContext.getConf().get("spark.executorEnv.PYTHONSAFEPATH") == "1"


_STARTS = """
from pathlib import Path
from spark_cep.pipeline.spark.class_archive import _settings
from spark_cep.pipeline.spark.session import spark_session
import sys
print(spark_session(_settings(Path(sys.argv[1]), Path(sys.argv[2]))).range(7).count())
"""


@pytest.mark.spark
def test_the_machines_name_need_not_be_known(tmp_path: Path) -> None:
    """As while an image is built, or in a container without an entry in its ``/etc/hosts``."""
    alone = ["unshare", "--uts", "sh", "-c", 'hostname nobody-knows.invalid && exec "$@"', "sh"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a name of its own needs the right to set one")
    command = [*alone, sys.executable, "-c", _STARTS, str(JARS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "7", done.stderr
