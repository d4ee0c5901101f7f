"""Rules from a compacted Kafka topic: a record for each rule, found by its key.

The topic is read from its beginning at the start, and from then on to its end at each read. Of a
key the last record counts; one without value removes the rule. The topic has one partition, so that
changes have one order, and is compacted, so that no rule expires. What a producer writes in one
transaction is one change.
"""

from __future__ import annotations

from typing import Final

from spark_cep.config import Kafka, RulesTopic, reveal
from spark_cep.errors import Problem, RuleSetError
from spark_cep.rules.rule_set import RuleFile
from spark_cep.rules.sources.compacted_topic import CompactedTopic
from spark_cep.rules.sources.source import SourceEntries, decoded

_GROUP: Final = "spark-cep-rules"


class KafkaTopicSource:
    """The topic as a source; ``kafka`` is the cluster unless ``given`` names another."""

    def __init__(self, kafka: Kafka, given: RulesTopic) -> None:
        properties = {name: reveal(value) for name, value in given.properties.items()}
        config = {**kafka.consumer_config(_GROUP), **properties}
        seconds = given.timeout / 1000
        self._topic = CompactedTopic(
            given.topic, config, seconds, "the rules", "rules.kafka.properties"
        )
        self.name = self._topic.name
        self._given: list[RuleFile] | None = None
        self._entries = SourceEntries()

    def read(self) -> list[RuleFile] | None:
        """See :class:`~spark_cep.rules.sources.source.RuleSource`. ConfigurationError when the
        properties are none of a consumer."""
        if not self._topic.read() and self._given is not None:
            return None
        records = self._topic.records
        self._entries.next_snapshot()
        files = [
            _entry(key, record.value, self._topic.place(record), self._entries)
            for key, record in records.items()
        ]
        if files == self._given:
            return None
        self._given = files
        return files

    def close(self) -> None:
        """See :class:`~spark_cep.rules.sources.source.RuleSource`."""
        self._topic.close()


def _entry(key: bytes | None, value: bytes, name: str, entries: SourceEntries) -> RuleFile:
    try:
        if not key:
            allowed = "the rule's id as the key"
            raise RuleSetError([Problem("the record has no key", name, allowed=allowed)])
        rule = decoded(key, name, "key")
        try:
            return entries.entry(decoded(value, name, "value"), name, rule)
        except RuleSetError as error:
            return RuleFile(name, (), tuple(error.problems), rule)
    except RuleSetError as error:
        # It stands for no rule, so it keeps none.
        return RuleFile(name, (), tuple(error.problems), "")
