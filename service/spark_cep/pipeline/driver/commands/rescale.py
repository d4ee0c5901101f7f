"""Another number of state partitions for the checkpoint of a stopped job.

A new job has a key group for each state partition. Where these cannot be shared out evenly among
the new partitions, each is split first
(:mod:`~spark_cep.pipeline.driver.commands.split_groups`). Spark moves the state: it writes a batch
of its own, with the offsets of the last one and the state of all key groups spread again. Until a
batch is committed the state of before is untouched, so one that fails is taken back, and one that
was killed is done again. A batch that the job left undone is repeated first, by the job itself,
since it belongs to the old partitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd, lcm
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, SparkCepError, StateError
from spark_cep.observability.logs import logger
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles, Position, held
from spark_cep.pipeline.driver.checkpoint.state_faults import state_fault
from spark_cep.pipeline.driver.commands.split_groups import split_key_groups
from spark_cep.pipeline.spark.private_api import repartition_checkpoint
from spark_cep.pipeline.spark.session import spark_session

_log = logger(__name__)
#: State partitions, and key groups.
_MOST: Final = 32_768
#: With so many key groups for each state partition, one more or less makes little difference.
_MANY: Final = 8


@dataclass(frozen=True, slots=True)
class Rescaled:
    """The result of a rescale: state partitions ``before`` and ``after``, equal when there was
    nothing to do, and the last ``batch`` of the checkpoint by now."""

    before: int
    after: int
    batch: int


def rescale(settings: Settings, partitions: int, spark: SparkSession | None = None) -> Rescaled:
    """Give the checkpoint of ``settings`` this many state partitions; ``spark`` is a session to use
    and to leave running.

    Raises ConfigurationError for a number that cannot be, StateError when a job runs on the
    checkpoint, when it cannot be read, or when the rescale fails (the checkpoint is then as it was,
    or as the message says); and what :meth:`Service.run` raises when a batch must be repeated.
    """
    if not 1 <= partitions <= _MOST:
        raise ConfigurationError(f"--partitions {partitions}: from 1 to {_MOST}")
    session = spark or spark_session(settings)
    try:
        checkpoint = CheckpointFiles(session, str(settings.state.checkpoint))
        with held(checkpoint.location):
            position = _position(checkpoint)
        if position.uncommitted and not position.rescaling and position.partitions != partitions:
            _repeat(settings, position, session)
        with held(checkpoint.location):
            return _rescale(session, checkpoint, partitions, settings.state.bucket_size)
    finally:
        if spark is None:
            session.stop()


def _position(checkpoint: CheckpointFiles) -> Position:
    position = checkpoint.position()
    if position is None:
        raise StateError(
            f"state.checkpoint {checkpoint.location}: no job has run on it yet, so there is nothing"
            " to rescale; set state.state_partitions and start the job"
        )
    return position


def _repeat(settings: Settings, position: Position, spark: SparkSession) -> None:
    """Run the batch that the job left undone."""
    # A rescale seldom needs the service.
    from spark_cep.pipeline.driver.service import Service

    _log.info("batch_repeated", batch=position.batch)
    state = settings.state.model_copy(update={"state_partitions": position.partitions})
    job = Service(settings.model_copy(update={"state": state}), spark=spark)
    job.run(planned_batch_only=True)


def _rescale(
    spark: SparkSession, checkpoint: CheckpointFiles, partitions: int, bucket_size: int
) -> Rescaled:
    position = _position(checkpoint)
    if position.uncommitted and not position.rescaling:
        raise StateError(
            f"batch {position.batch} of {checkpoint.location} is not done: start the job with"
            f" state.state_partitions {position.partitions}, stop it, and rescale again"
        )
    if position.moving and position.partitions != partitions:
        raise StateError(
            f"the checkpoint is in the middle of a rescale to {position.partitions} state"
            f" partitions: run `spark-cep rescale --partitions {position.partitions}` to its end"
            f" first, then to {partitions}"
        )
    before, groups = position.committed_partitions, position.key_groups
    steps = _Steps(spark, checkpoint, partitions, bucket_size)
    if position.splitting:
        steps.split(before, groups)
    elif before == partitions:
        return Rescaled(before, before, position.batch)
    wanted = key_groups_for(partitions, groups)
    if wanted != groups and not position.moving:
        # The parts of a key group stay in its state partition if that is of a number that divides
        # the key groups.
        even = gcd(before, groups)
        if even != before:
            steps.move(even)
        steps.split(even, wanted)
    if _position(checkpoint).committed_partitions != partitions:
        steps.move(partitions)
    return Rescaled(before, partitions, _position(checkpoint).batch)


def key_groups_for(partitions: int, before: int) -> int:
    """Return the number of key groups with which ``partitions`` have equally many, or nearly so
    where there are many, of ``before`` that may be split. ConfigurationError where they would be
    too many."""
    if before % partitions == 0 or before >= _MANY * partitions:
        return before
    wanted = lcm(before, partitions)
    if wanted > _MOST:
        raise ConfigurationError(
            f"--partitions {partitions}: the {before} key groups of the checkpoint would have to be"
            f" split into {wanted}, and allowed are {_MOST}: choose a number that {before} is a"
            f" multiple of, or that is a multiple of {before}"
        )
    return wanted


@dataclass(frozen=True)
class _Steps:
    """The batches of a rescale to ``partitions``."""

    spark: SparkSession
    checkpoint: CheckpointFiles
    partitions: int
    bucket_size: int

    def split(self, there: int, key_groups: int) -> None:
        """Split the key groups, which ``there`` partitions hold, so that there are so many."""
        self._batch(
            lambda: split_key_groups(
                self.spark, self.checkpoint.location, there, key_groups, self.bucket_size
            ),
            lambda done: done.key_groups == key_groups,
        )

    def move(self, partitions: int) -> None:
        """Spread the key groups over so many partitions."""
        self._batch(
            lambda: repartition_checkpoint(self.spark, self.checkpoint.location, partitions),
            lambda done: done.partitions == partitions,
        )

    def _batch(self, run: Callable[[], None], right: Callable[[Position], bool]) -> None:
        """Run a batch of the rescale; StateError where it fails."""
        checkpoint = self.checkpoint
        there = None if _position(checkpoint).rescaling else checkpoint.files()
        try:
            run()
        except (PySparkException, Py4JError) as error:
            raise _failed(checkpoint, there, self.partitions, error) from error
        done = _position(checkpoint)
        if done.uncommitted or not right(done):
            raise StateError(f"the rescale of {checkpoint.location} did not come to its end")


def _failed(
    checkpoint: CheckpointFiles, there: set[str] | None, partitions: int, error: Exception
) -> StateError:
    """Take back what was written, if it began now; the error to raise."""
    reason: SparkCepError | None = state_fault(str(error), checkpoint.location)
    text = str(reason or (str(error).splitlines() or [type(error).__name__])[0])
    again = f"run `spark-cep rescale --partitions {partitions}` again to its end"
    if there is None:
        return StateError(f"the rescale failed again: {text}\n{again}")
    try:
        # The planned batch last: as long as it is there, no job starts on what is left of it.
        for name in sorted(checkpoint.files() - there, key=lambda name: "/offsets/" in name):
            checkpoint.delete(name)
    except Py4JError:
        _log.exception("rescale_not_taken_back")
        return StateError(f"the rescale failed in the middle: {text}\n{again}")
    return StateError(f"the rescale failed, and the checkpoint is as it was before: {text}")
