"""The rule sets that a job has run under, as its checkpoint or its audit topic tells them: read
only, and the job may run meanwhile.
"""

from __future__ import annotations

from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, StateError
from spark_cep.pipeline.driver.checkpoint.local_files import LocalFiles
from spark_cep.pipeline.driver.kafka.partition_reader import partitions_of
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules, RuleHistory
from spark_cep.pipeline.spark.local_folder import local_folder
from spark_cep.rules.topic_records import audit_record, rule_sets


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


def read_audit(settings: Settings) -> list[LoggedRules]:
    """All rule sets that the job of ``settings`` has had since its audit topic begins, the oldest
    first; at least one.

    Raises ConfigurationError where there is no such topic, RuleSetError where records of it are
    missing, and what :class:`~spark_cep.pipeline.driver.kafka.cluster.Cluster` raises.
    """
    topic, job = settings.outputs.topics.rule_audit, settings.spark.app_name
    if topic is None:
        raise ConfigurationError("outputs.topics.rule_audit is null: no decisions are written")
    with partitions_of(settings, "outputs.topics.rule_audit", topic) as (partition, *_):
        records = (audit_record(message.value() or b"") for message in partition.forwards())
        found = rule_sets(each for each in records if each is not None and each.job == job)
    if not found:
        raise ConfigurationError(
            f"topic {topic} has no rule set of job {job}; is spark.app_name the right one?"
        )
    return [LoggedRules(begins.batch, number, rules) for number, (begins, rules) in found.items()]


def _through_spark(settings: Settings) -> list[LoggedRules]:
    # Slow to import.
    from pyspark.errors import PySparkException

    from spark_cep.pipeline.driver.checkpoint.failures import failure
    from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles
    from spark_cep.pipeline.spark.session import spark_session

    location = str(settings.state.checkpoint)
    session = spark_session(settings)
    try:
        return RuleHistory(CheckpointFiles(session, location)).history()
    except PySparkException as error:
        raise failure(error, location) from error
    finally:
        session.stop()
