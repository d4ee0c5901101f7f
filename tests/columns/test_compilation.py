"""Compilations: what is noticed of them, whether they are needed, and who keeps what they make."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from numba import njit

from spark_cep.columns import compilation
from spark_cep.columns.compilation import (
    compilation_noticed,
    compiled_elsewhere,
    is_loaded_by,
)
from tests.columns.python_process import told_by


def test_a_long_compilation_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for all functions of the block; a function that is compiled already is none."""
    monkeypatch.setattr(compilation, "_LONG_SECONDS", -1.0)
    noticed: list[str] = []
    inner = njit(lambda x: x + 1)
    outer = njit(lambda x: inner(x) * 2)

    def begins() -> None:
        noticed.append("begins")

    def ends(seconds: float) -> None:
        noticed.append("ends" if seconds > 0 else "too early")

    with compilation_noticed(begins, ends):
        assert outer(1) == 4
    assert noticed == ["begins", "ends"]
    with compilation_noticed(begins, ends):
        assert outer(2) == 6
    assert noticed == ["begins", "ends"]


def test_a_short_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it."""
    monkeypatch.setattr(compilation, "_LONG_SECONDS", 60.0)
    noticed: list[object] = []
    with compilation_noticed(lambda: noticed.append("begins"), noticed.append):
        assert njit(lambda x: x + 1)(1) == 2
    assert noticed == []


def test_other_processes_are_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They compile for long."""
    monkeypatch.setattr(compilation, "_LONG_SECONDS", 60.0)
    noticed: list[object] = []
    begins = partial(noticed.append, "begins")
    with compilation_noticed(begins, noticed.append), compiled_elsewhere():
        assert noticed == ["begins"]
    assert len(noticed) == 2


def test_whether_anything_must_be_compiled() -> None:
    """The first function that must ends the question, and can be compiled afterwards."""
    function = njit(lambda x: x + 1)
    asked = []

    def load() -> None:
        asked.append(1)
        function(1)
        asked.append(2)

    assert not is_loaded_by(load)
    assert asked == [1]
    assert function(1) == 2
    assert is_loaded_by(load)


def test_an_interrupt_is_one() -> None:
    """Ctrl-C while code is loaded is not taken for code that is missing."""

    def load() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        is_loaded_by(load)


_SOURCE = """
import sys
import numpy as np
from spark_cep.columns.compilation import compiled

@compiled
def total(values):
    found = values[0]
    for value in values[1:]:
        found += value
    return found

if __name__ == "__main__":
    kinds = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.float32, np.float64]
    for kind in kinds[int(sys.argv[1]) :: 2]:
        assert total(np.ones(3, kind)) == 3
"""


def test_two_processes_that_compile_one_function(tmp_path: Path) -> None:
    """Each adds the code for its own types of arguments, and none is lost or taken for another."""
    (tmp_path / "totals.py").write_text(_SOURCE, "utf-8")
    root = Path(__file__).parents[2]
    kept = {"PYTHONPATH": str(root / "service"), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}

    def start(which: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "totals.py", str(which)]
        return subprocess.Popen(command, cwd=tmp_path, env=os.environ | kept)

    for child in [start(0), start(1)]:
        assert child.wait(120) == 0
    assert len([*tmp_path.rglob("*.nbc")]) == 8
    look = (
        "import totals, numpy as np\n"
        "for kind in (np.int8, np.float64): assert totals.total(np.ones(3, kind)) == 3\n"
        "print(totals.total.stats.cache_misses.total())"
    )
    assert told_by(look, tmp_path, **kept).strip() == "0"
