"""Another number of state partitions, for a job stopped half-way."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_cep.errors import ConfigurationError, StateError
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles, Position
from spark_cep.pipeline.driver.commands.rescale import Rescaled, key_groups_for, rescale
from spark_cep.pipeline.driver.commands.split_groups import split_key_groups
from spark_cep.pipeline.spark.private_api import repartition_checkpoint
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
    """2 → 5 → 3 partitions, and so 2 → 10 → 30 key groups, with partial matches open and events
    waiting, a batch of the job in between: the results are those of the core."""
    assert halfway.live["abc"]
    assert rescale(copy.settings(), 5, spark) == Rescaled(BEFORE, 5, LAST + 2)
    copy.state["state_partitions"] = 5
    copy.run_one_batch(len(halfway.events) // 4)
    reached = position(copy, spark).batch
    assert rescale(copy.settings(), 3, spark) == Rescaled(5, 3, reached + 2)
    copy.state["state_partitions"] = 3
    assert copy.finish() == halfway.expected
    assert (position(copy, spark).partitions, position(copy, spark).key_groups) == (3, 30)


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
    with pytest.raises(ConfigurationError, match="--partitions 0: from 1 to 32768"):
        rescale(copy.settings(), 0, spark)
    with pytest.raises(ConfigurationError, match="the 2 key groups of the checkpoint would have"):
        rescale(copy.settings(), 32_767, spark)
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
    assert rescale(copy.settings(), 4, spark) == Rescaled(BEFORE, 4, LAST + 2)
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
    assert rescale(copy.settings(), 4, spark) == Rescaled(BEFORE, 4, LAST + 2)
    assert copy.finish() == halfway.expected


def test_one_that_was_killed_while_it_split(
    halfway: Halfway, copy: Copy, spark: SparkSession
) -> None:
    """No job starts on it, and the next rescale splits again, also to another number."""
    split_key_groups(spark, str(copy.checkpoint), BEFORE, 4, 1 << 10)
    forget(copy.newest("commits"))
    assert position(copy, spark).splitting
    with pytest.raises(StateError, match=r"middle of a rescale: run `spark-cep rescale` with the"):
        copy.finish()
    assert rescale(copy.settings(), 4, spark) == Rescaled(BEFORE, 4, LAST + 2)
    copy.state["state_partitions"] = 4
    assert copy.finish() == halfway.expected


def test_partitions_that_do_not_divide_the_key_groups(
    halfway: Halfway, copy: Copy, spark: SparkSession
) -> None:
    """Their key groups come together first, so that each is split where it is."""
    assert rescale(copy.settings(), 4, spark) == Rescaled(BEFORE, 4, LAST + 2)
    repartition_checkpoint(spark, str(copy.checkpoint), 3)
    assert rescale(copy.settings(), 8, spark) == Rescaled(3, 8, LAST + 6)
    assert position(copy, spark).key_groups == 8
    copy.state["state_partitions"] = 8
    assert copy.finish() == halfway.expected


@pytest.mark.parametrize(
    ("before", "partitions", "after"),
    [(2, 1, 2), (2, 2, 2), (2, 3, 6), (6, 2, 6), (6, 4, 12), (16, 2, 16), (24, 3, 24), (25, 3, 25)],
)
def test_key_groups_for(before: int, partitions: int, after: int) -> None:
    """As many for each partition, or nearly so."""
    assert key_groups_for(partitions, before) == after
