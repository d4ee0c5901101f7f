"""Another number of state partitions, for a job stopped half-way."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_cep.errors import ConfigurationError, StateError
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles, Position
from spark_cep.pipeline.driver.commands.rescale import Rescaled, rescale
from tests.e2e.halfway import BATCHES, STATE, Copy, Halfway

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

BEFORE: int = STATE["state_partitions"]
LAST = BATCHES - 1


@pytest.fixture
def copy(halfway: Halfway, tmp_path: Path) -> Copy:
    """A copy of the checkpoint, made with two state partitions."""
    return halfway.copy(tmp_path)


def position(copy: Copy, spark: SparkSession) -> Position:
    """How far the copy has come."""
    found = CheckpointFiles(spark, str(copy.checkpoint)).position()
    assert found is not None
    return found


def forget(file: Path) -> None:
    """Delete a file of the checkpoint, with its checksum."""
    file.unlink()
    file.with_name(f".{file.name}.crc").unlink()


def test_results_do_not_change(halfway: Halfway, copy: Copy, spark: SparkSession) -> None:
    """2 → 5 → 3 partitions with partial matches open and events waiting, a batch of the job in
    between: the results are those of the core."""
    assert halfway.live["abc"]
    assert rescale(copy.settings(), 5, spark) == Rescaled(BEFORE, 5, LAST + 1)
    copy.state["state_partitions"] = 5
    copy.run_one_batch(len(halfway.events) // 4)
    reached = position(copy, spark).batch
    assert rescale(copy.settings(), 3, spark) == Rescaled(5, 3, reached + 1)
    copy.state["state_partitions"] = 3
    assert copy.finish() == halfway.expected
    assert position(copy, spark).partitions == 3


def test_an_undisturbed_run(halfway: Halfway, copy: Copy) -> None:
    """The same without a rescale."""
    assert copy.finish() == halfway.expected


def test_setting_and_checkpoint(copy: Copy, spark: SparkSession) -> None:
    """A job with another number is refused, and the message says how to change it; numbers that
    cannot be, and one that is there already, do nothing."""
    copy.state["state_partitions"] = 4
    with pytest.raises(
        StateError, match="checkpoint has 2: run `spark-cep rescale --partitions 4`"
    ):
        copy.finish()
    with pytest.raises(ConfigurationError, match="--partitions 9: from 1 to 8"):
        rescale(copy.settings(), 9, spark)
    assert rescale(copy.settings(), BEFORE, spark) == Rescaled(BEFORE, BEFORE, LAST)
    copy.checkpoint = copy.checkpoint.with_name("empty")
    with pytest.raises(StateError, match="no job has run on it yet"):
        rescale(copy.settings(), 4, spark)


def test_while_a_job_runs(copy: Copy, spark: SparkSession) -> None:
    """The checkpoint is held: a rescale does not get at it."""
    copy.scenario.reports.clear()
    with copy.scenario.running(**copy.sections()):
        copy.scenario.wait_for_records(1)
        with pytest.raises(StateError, match="in use by another process: stop the job"):
            rescale(copy.settings(), 4, spark)
    assert position(copy, spark).partitions == BEFORE


def test_a_batch_left_undone(halfway: Halfway, copy: Copy, spark: SparkSession) -> None:
    """It is done first, with the old partitions; then the state is moved."""
    forget(copy.newest("commits"))
    assert position(copy, spark).uncommitted
    assert rescale(copy.settings(), 4, spark) == Rescaled(BEFORE, 4, LAST + 1)
    copy.state["state_partitions"] = 4
    assert copy.finish().once() == halfway.expected


def test_one_that_fails_is_taken_back(halfway: Halfway, copy: Copy, spark: SparkSession) -> None:
    """State that cannot be read: the checkpoint is as before, and goes on when it is repaired."""
    files = CheckpointFiles(spark, str(copy.checkpoint))
    changes = copy.newest("state/0/1", ".changelog")
    aside = copy.checkpoint.with_name("aside")
    shutil.move(changes, aside)
    before = files.files()
    with pytest.raises(StateError, match=f"as it was before: .*{changes.name}"):
        rescale(copy.settings(), 4, spark)
    assert files.files() == before
    shutil.move(aside, changes)
    assert copy.finish() == halfway.expected


def test_one_that_was_killed(halfway: Halfway, copy: Copy, spark: SparkSession) -> None:
    """Killed before its commit: no job starts on it, with neither number, until the same rescale
    has come to its end."""
    rescale(copy.settings(), 4, spark)
    forget(copy.newest("commits"))
    for number in (BEFORE, 4):
        copy.state["state_partitions"] = number
        with pytest.raises(StateError, match="in the middle of a rescale from 2 to 4"):
            copy.finish()
    with pytest.raises(StateError, match="in the middle of a rescale to 4"):
        rescale(copy.settings(), 3, spark)
    assert rescale(copy.settings(), 4, spark) == Rescaled(BEFORE, 4, LAST + 1)
    assert copy.finish() == halfway.expected
