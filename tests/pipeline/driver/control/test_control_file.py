"""A reset of the clock in the driver's file: one batch does it, and does it again when repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_cep.pipeline.driver.control.control_file import (
    ControlFile,
    newest,
    record_between,
    reset_of,
)
from spark_cep.pipeline.driver.control.source_offset import SourceOffset
from spark_cep.pipeline.wire.control import ControlRecord


class Runs:
    """The offsets that a query logs, run after run."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "control.json"
        self.offsets = [SourceOffset()]
        self._runs = 0

    def start(self, *reset: int) -> ControlFile:
        """A run on a checkpoint with this newest reset, if any."""
        self._runs += 1
        control = ControlFile(self.file, f"run {self._runs}", {})
        control.write(ControlRecord((("t", 0),)))
        if reset:
            control.reset_clock(*reset)
        return control

    def batch(self) -> int | None:
        """Plan a batch; what it sets the clock back to."""
        self.offsets.append(SourceOffset(newest(self.file)))
        return self.told(-1)

    def told(self, batch: int) -> int | None:
        """What a batch that was planned is told of it."""
        place = batch % len(self.offsets)
        record = record_between(self.offsets[place - 1], self.offsets[place])
        return None if record is None else record.reset_to


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Of one checkpoint."""
    return Runs(tmp_path)


def test_one_batch_is_told(runs: Runs) -> None:
    """The first of the next run, also when it is repeated; no other, and none of a later run."""
    runs.start()
    assert [runs.batch(), runs.batch()] == [None, None]
    control = runs.start(1, 700)
    assert runs.batch() == 700
    assert [reset_of(offset) for offset in runs.offsets] == [0, 0, 0, 1]
    control.rules("other")
    assert runs.batch() is None
    control.write(ControlRecord((), 900))
    assert runs.batch() is None
    assert runs.told(3) == 700
    runs.start(1, 700)
    assert [runs.batch(), runs.batch()] == [None, None]


def test_another_reset(runs: Runs) -> None:
    """Each is told once, to the same time, too; of several before a start the newest."""
    runs.start(1, 700)
    assert runs.batch() == 700
    runs.start(4, 700)
    assert [runs.batch(), runs.batch()] == [700, None]


def test_a_batch_of_others_in_between(runs: Runs) -> None:
    """A rescale repeats the last offset: it is told nothing, and the next start still is."""
    runs.start()
    runs.batch()
    runs.offsets.append(runs.offsets[-1])
    assert runs.told(-1) is None
    runs.start(1, 700)
    assert runs.batch() == 700
