"""Resets of the clock as a checkpoint has them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_cep.errors import StateError
from spark_cep.pipeline.driver.checkpoint.clock_resets import (
    ClockReset,
    newest_reset,
    write_reset,
)
from spark_cep.pipeline.driver.checkpoint.local_files import LocalFiles
from spark_cep.pipeline.driver.control.source_offset import SourceOffset

POSITION: Any = SimpleNamespace(batch=7)


class Files(LocalFiles):
    """A checkpoint on a local disk; its newest batch was told of reset ``told``."""

    def __init__(self, folder: Path, told: int = 0) -> None:
        super().__init__(folder)
        self.folder, self.told = folder, told

    def offset(self, batch: int) -> SourceOffset:
        """Of the newest batch."""
        assert batch == POSITION.batch
        return SourceOffset({"reset": {"number": self.told, "to": 1}} if self.told else {})

    def write(self, name: str, text: str) -> None:
        """A file that there is not."""
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        with file.open("x") as stream:
            stream.write(text)


def newest(files: Any) -> ClockReset | None:
    """The newest one."""
    return newest_reset(files, POSITION)


def test_the_newest_counts(tmp_path: Path) -> None:
    """It is pending until the newest batch names it; later ones follow it."""
    files: Any = Files(tmp_path)
    assert newest(files) is None
    write_reset(files, 1, 500)
    assert newest(files) == ClockReset(1, 500, pending=True)
    files.told = 1
    assert newest(files) == ClockReset(1, 500, pending=False)
    write_reset(files, 2, 500)
    assert newest(files) == ClockReset(2, 500, pending=True)


def test_one_that_was_cut_off(tmp_path: Path) -> None:
    """What was not written whole has another name, and counts for nothing."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / ".1.0b4e.tmp").write_text('{"t')
    files: Any = Files(tmp_path)
    assert newest(files) is None


@pytest.mark.parametrize("content", [[], {"to": "now"}, {}])
def test_one_of_another_form(tmp_path: Path, content: object) -> None:
    """It is named, with what to do."""
    files: Any = Files(tmp_path)
    files.write("clock/3", json.dumps(content))
    with pytest.raises(StateError, match="clock/3 is no reset of the clock: delete it"):
        newest(files)
