"""The source that the settings name."""

from __future__ import annotations

from contextlib import closing

from spark_cep.config import Settings
from spark_cep.errors import needs_extra
from spark_cep.rules.rule_set import RuleSet, examine, valid
from spark_cep.rules.sources.folder import FolderSource
from spark_cep.rules.sources.source import RuleSource

_SETTLE_MS = 500


def source_of(settings: Settings) -> RuleSource:
    """The source of the job's rules, not yet read. ConfigurationError when its settings cannot be
    used here."""
    rules = settings.rules
    # Each has a client that is slow to import.
    if rules.kafka is not None:
        from spark_cep.rules.sources.kafka_topic import KafkaTopicSource

        return KafkaTopicSource(settings.kafka, rules.kafka)
    if rules.sql is not None:
        with needs_extra("sql", "rules.sql"):
            from spark_cep.rules.sources.sql_table import SqlTableSource

        return SqlTableSource(rules.sql)
    if rules.https is not None:
        from spark_cep.rules.sources.https import HttpsSource

        return HttpsSource(rules.https)
    settle = min(_SETTLE_MS, rules.refresh_interval or _SETTLE_MS)
    return FolderSource(rules.folder, settle / 1000)


def rules_of(settings: Settings) -> RuleSet:
    """The rules of the job's source, read once. RuleSetError with every problem found."""
    return valid(examined(settings))


def examined(settings: Settings) -> RuleSet:
    """The rules of the source with their problems. RuleSetError when it cannot be read."""
    with closing(source_of(settings)) as source:
        return examine(source.read() or (), source.name)
