"""What ``spark-cep doctor`` says of the machine: memory, disk, compiled code."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spark_cep.config import Settings
from spark_cep.pipeline import compiled_code
from spark_cep.pipeline.driver.commands import machine_checks
from spark_cep.pipeline.driver.commands.machine_checks import Doubt

GIB = 2**30


def settings(**spark: Any) -> Settings:
    """Of a job with these settings of Spark."""
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "b:1"},
            "inputs": {"i": {"topics": ["t"]}},
            "state": {"checkpoint": "/c"},
            "spark": spark,
        }
    )


def test_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too little is a doubt that says what to change; the needs follow cores and heap."""
    two = settings(master="local[2]")
    assert machine_checks.needed_memory(two) == 4 * GIB
    assert machine_checks.needed_memory(settings(master="local[4]")) == 4 * GIB + 1400 * 2**20
    larger = settings(master="local[2]", conf={"spark.driver.memory": "3g"})
    assert machine_checks.needed_memory(larger) == 6 * GIB
    monkeypatch.setattr(machine_checks, "memory_of_machine", lambda: 8 * GIB)
    assert machine_checks.memory(two) == "8.0 GiB, about 4.0 GiB are needed"
    monkeypatch.setattr(machine_checks, "memory_of_machine", lambda: 2 * GIB)
    with pytest.raises(Doubt, match=r"2\.0 GiB, about 4\.0 GiB are needed: give the machine"):
        machine_checks.memory(two)


def test_the_limit_of_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goes before the machine's memory, if it is one."""
    limit, machine = tmp_path / "memory.max", tmp_path / "meminfo"
    machine.write_text("MemFree: 1 kB\nMemTotal:       4096 kB\n", "ascii")
    monkeypatch.setattr(machine_checks, "_CGROUP_LIMIT", limit)
    monkeypatch.setattr(machine_checks, "_MEMORY_OF_MACHINE", machine)
    assert machine_checks.memory_of_machine() == 4096 * 1024
    limit.write_text("max\n", "ascii")
    assert machine_checks.memory_of_machine() == 4096 * 1024
    limit.write_text("1000\n", "ascii")
    assert machine_checks.memory_of_machine() == 1000


def test_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the nearest folder that is there; little room is a doubt."""

    class Room(NamedTuple):
        total: int = 100 * GIB
        used: int = 0
        free: int = 40 * GIB

    asked: list[Path] = []
    room = Room()

    def usage(path: Path) -> Room:
        asked.append(path)
        return room

    monkeypatch.setattr(shutil, "disk_usage", usage)
    folder = tmp_path / "a" / "b"
    assert machine_checks.disk(folder) == "40.0 GiB of 100.0 GiB are free"
    assert asked == [tmp_path]
    room = Room(free=10 * GIB)
    with pytest.raises(Doubt, match=r"10\.0 GiB of 100\.0 GiB are free, less than 15%"):
        machine_checks.disk(folder)


def test_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where something has to be compiled, it is given up, and said."""
    monkeypatch.setattr(compiled_code, "_HALVES", ())
    assert machine_checks.compiled_code().startswith("there, for ")
    from numba import njit

    compiled = []

    def prepare() -> None:
        function = njit(lambda x: x + 1)
        function(1)
        function(1.5)
        compiled.append(function)

    monkeypatch.setattr(compiled_code, "_HALVES", ((prepare,),))
    with pytest.raises(Doubt, match="run `spark-cep prepare` first"):
        machine_checks.compiled_code()
    assert compiled == []
