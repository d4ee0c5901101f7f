"""A run's scratch folder: its own, below Spark's local directories, and gone after a kill too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from spark_cep.config import Settings
from spark_cep.errors import StartError
from spark_cep.pipeline.driver.lifecycle.scratch import scratch_folder

_HOLD = """
import sys
from pathlib import Path
from spark_cep.pipeline.driver.lifecycle.scratch import _held_folder
with _held_folder(Path(sys.argv[1])) as folder:
    (folder / "left").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


def settings(root: Path, master: str = "local[1]") -> Settings:
    """Settings whose local directory is below ``root``."""
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": {"unused": {"topics": ["unused"]}},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": str(root / "checkpoint")},
            "spark": {"master": master, "conf": {"spark.local.dir": str(root / "local")}},
        }
    )


@pytest.fixture(autouse=True)
def _no_local_dirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)


def test_a_run_has_a_folder_of_its_own_that_goes_with_it(tmp_path: Path) -> None:
    """It is there during the run, Spark's own files go there, and both end with it."""
    given = settings(tmp_path)
    with scratch_folder(given) as folder:
        assert folder.parent == tmp_path / "local"
        assert os.environ["SPARK_LOCAL_DIRS"] == str(folder)
    assert list((tmp_path / "local").iterdir()) == []
    assert "SPARK_LOCAL_DIRS" not in os.environ


def test_all_of_sparks_local_directories_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One folder below each, as Spark spreads its files."""
    roots = [tmp_path / "a", tmp_path / "b"]
    monkeypatch.setenv("SPARK_LOCAL_DIRS", ",".join(map(str, roots)))
    with scratch_folder(settings(tmp_path)) as first:
        folders = [Path(text) for text in os.environ["SPARK_LOCAL_DIRS"].split(",")]
        assert [folder.parent for folder in folders] == roots
        assert first == folders[0]
    assert os.environ["SPARK_LOCAL_DIRS"] == ",".join(map(str, roots))


def test_executors_keep_their_own_local_directories(tmp_path: Path) -> None:
    """They are other machines', or a pod's volume."""
    with scratch_folder(settings(tmp_path, "spark://somewhere:7077")):
        assert "SPARK_LOCAL_DIRS" not in os.environ


def test_what_a_killed_run_left_goes_at_the_next_start_and_nothing_else(tmp_path: Path) -> None:
    """A run that lives keeps its folder, and what is not ours stays."""
    root = tmp_path / "local"
    root.mkdir()
    of_others = root / "spark-cep-without-a-lock"
    of_others.mkdir()
    command = [sys.executable, "-c", _HOLD, str(root)]
    with (
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as killed,
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as alive,
    ):
        assert killed.stdout is not None
        assert alive.stdout is not None
        left, held = Path(killed.stdout.readline().strip()), Path(alive.stdout.readline().strip())
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert (left / "left").exists()
        with scratch_folder(settings(tmp_path)) as mine:
            assert set(root.iterdir()) == {of_others, held, mine}
            assert (held / "left").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With what to set."""
    (tmp_path / "local").write_text("a file")
    with (
        pytest.raises(StartError, match=r"local: no scratch folder can be made there: .*; set"),
        scratch_folder(settings(tmp_path)),
    ):
        pass


def test_a_folder_that_is_nested_too_deep(tmp_path: Path) -> None:
    """It stays behind, and stops no start."""
    left = tmp_path / "local" / "spark-cep-left"
    left.mkdir(parents=True)
    (left / "lock").touch()
    # Step by step: the path of all of them would be too long for one call.
    here = os.open(left, os.O_RDONLY)
    for _ in range(sys.getrecursionlimit() + 100):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        with scratch_folder(settings(tmp_path)) as folder:
            assert folder.exists()
        assert not folder.exists()
        assert left.exists()
    finally:
        subprocess.run(["/bin/rm", "-rf", str(left)], check=True)


def test_a_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not ours to remove, whoever we are."""
    left = tmp_path / "local" / "spark-cep-left"
    left.mkdir(parents=True)
    (left / "lock").touch()
    monkeypatch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
    with scratch_folder(settings(tmp_path)):
        assert left.exists()
