"""The clock of a stopped job, set back after events with times in the future have moved it.

A file in the checkpoint says so, and the first new batch of the next start does it
(:mod:`spark_cep.pipeline.driver.checkpoint.clock_resets`). Until that batch is planned, nothing has
happened.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, StateError
from spark_cep.pipeline.driver.checkpoint.clock_resets import newest_reset, write_reset
from spark_cep.pipeline.driver.checkpoint.failures import failure
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles, held
from spark_cep.pipeline.driver.commands.state_report import stored_watermark
from spark_cep.pipeline.driver.observe.event_time import event_time_text
from spark_cep.pipeline.spark.session import spark_session


@dataclass(frozen=True, slots=True)
class SetBack:
    """The ``watermark`` of the checkpoint, and the one ``to`` which the next start sets it back
    (``None``: it is no later, and stays). ``written``: whether this call has said so; if not, an
    earlier one has."""

    watermark: int
    to: int | None
    written: bool


def reset_clock(settings: Settings, to: int | None, spark: SparkSession | None = None) -> SetBack:
    """Have the next start on the checkpoint of ``settings`` set the watermark back to ``to``;
    default: to where an event of the time at which the last batch was planned would have moved it.
    ``spark`` is a session to use and to leave running.

    Raises ConfigurationError when ``to`` is no earlier than the watermark, and StateError when a
    job runs on the checkpoint, or it cannot be read or written.
    """
    session = spark or spark_session(settings)
    location = str(settings.state.checkpoint)
    try:
        with held(location):
            return _reset(CheckpointFiles(session, location), settings, to, session)
    except PySparkException as error:
        raise failure(error, location) from error
    finally:
        if spark is None:
            session.stop()


def _reset(
    files: CheckpointFiles, settings: Settings, to: int | None, spark: SparkSession
) -> SetBack:
    position = files.position()
    if position is None or position.committed is None:
        raise StateError(
            f"{files.location}: no batch is committed there, so there is no clock to set back; is"
            " state.checkpoint the right place?"
        )
    watermark = stored_watermark(spark, files.location, position.committed)
    wanted = to
    if wanted is None:
        wanted = files.planned_at(position.batch) - settings.time.allowed_disorder - 1
    if wanted >= watermark:
        if to is None:
            return SetBack(watermark, None, written=False)
        raise ConfigurationError(
            f"--to {event_time_text(to)}: the watermark is {event_time_text(watermark)}, and can"
            " only be set back"
        )
    before = newest_reset(files, position)
    if before is not None and before.pending and before.to == wanted:
        return SetBack(watermark, wanted, written=False)
    write_reset(files, 1 if before is None else before.number + 1, wanted)
    return SetBack(watermark, wanted, written=True)
