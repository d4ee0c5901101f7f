"""The rules that a batch ran under."""

from __future__ import annotations

from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, RuleSetError
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pipeline.driver.checkpoint.local_files import LocalFiles
from spark_cep.pipeline.driver.rules.rule_log import RuleHistory
from spark_cep.pipeline.spark.local_folder import local_folder
from spark_cep.rules.sources.configured import rules_of


def rules_of_batch(settings: Settings, batch: int | None) -> list[LoadedRule]:
    """The rules of a ``batch``, which a checkpoint on a local disk has logged, with the versions
    that drain; else those of their source, none where it cannot be read."""
    folder = None if batch is None else local_folder(str(settings.state.checkpoint))
    logged = None if folder is None else RuleHistory(LocalFiles(folder)).of(batch or 0)
    try:
        rules = rules_of(settings) if logged is None else logged.rules
    except (RuleSetError, ConfigurationError):
        return []
    return [*rules.carried, *(each.loaded for each in rules.draining), *rules.loaded]
