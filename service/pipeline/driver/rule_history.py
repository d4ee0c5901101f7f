"""The rule sets that a checkpoint has run under: read only, and a job may run on it meanwhile."""

from __future__ import annotations

from service.config import Settings
from service.errors import StateError
from service.pipeline.driver.local_files import LocalFiles
from service.pipeline.driver.rule_log import LoggedRules, RuleHistory
from service.pipeline.spark.local_folder import local_folder


def read_history(settings: Settings) -> list[LoggedRules]:
    """The rule sets of the checkpoint of ``settings`` that are in its log, the oldest first; at
    least one. Spark is started for a checkpoint that is not on a local disk alone.

    Raises StateError when there is none, or the log is damaged.
    """
    location = str(settings.state.checkpoint)
    folder = local_folder(location)
    history = (
        _through_spark(settings) if folder is None else RuleHistory(LocalFiles(folder)).history()
    )
    if not history:
        raise StateError(
            f"{location}: no rules are logged there; is state.checkpoint the right place?"
        )
    return history


def _through_spark(settings: Settings) -> list[LoggedRules]:
    # Slow to import.
    from pyspark.errors.exceptions.base import PySparkException

    from service.pipeline.driver.checkpoint_files import CheckpointFiles
    from service.pipeline.driver.failures import failure
    from service.pipeline.spark.session import spark_session

    location = str(settings.state.checkpoint)
    session = spark_session(settings)
    try:
        return RuleHistory(CheckpointFiles(session, location)).history()
    except PySparkException as error:
        raise failure(error, location) from error
    finally:
        session.stop()
