"""Rules from a compacted Kafka topic: a record for each rule, found by its key.

The topic is read from its beginning at the start, and from then on to its end at each read. Of a
key the last record counts; one without value removes the rule. The topic has one partition, so that
changes have one order, and is compacted, so that no rule expires. What a producer writes in one
transaction is one change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from service.config import Kafka, RulesTopic, reveal
from service.config.redaction import redact_text
from service.errors import ConfigurationError, Problem, RuleSetError
from service.rules.rule_set import RuleFile
from service.rules.source import check_count, decoded, not_read, rule_entry

_GROUP: Final = "spark-cep-rules"
_PARTITION: Final = 0
_POLL_SECONDS: Final = 0.1
_MOST_AT_ONCE: Final = 1_000
_OWN: Final = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "allow.auto.create.topics": False,
    "log_level": 0,
}
_PRESET: Final = {"fetch.wait.max.ms": 10, "queued.max.messages.kbytes": 8_192}
_UNKNOWN: Final = (
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001  librdkafka's local errors are named so
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
_POLICY: Final = "cleanup.policy"
_T = TypeVar("_T")


class KafkaTopicSource:
    """The topic as a source; ``kafka`` is the cluster unless ``given`` names another."""

    def __init__(self, kafka: Kafka, given: RulesTopic) -> None:
        self.name = f"topic {given.topic}"
        self._topic = given.topic
        self._seconds = given.timeout / 1000
        properties = {name: reveal(value) for name, value in given.properties.items()}
        self._config = {**_PRESET, **kafka.consumer_config(_GROUP), **properties}
        self._consumer: Consumer | None = None
        self._noticed: KafkaError | None = None
        self._records: dict[bytes | None, RuleFile] = {}
        self._given: dict[bytes | None, RuleFile] | None = None
        #: The next offset; ``None``: the topic is to be read from its beginning.
        self._position: int | None = None

    def read(self) -> list[RuleFile] | None:
        """See :class:`~service.rules.source.RuleSource`. ConfigurationError when the properties are
        none of a consumer."""
        try:
            self._advance(self._client())
        except KafkaException as error:
            # What was fetched and not taken in is lost.
            self._position = None
            raise self._away(error.args[0]) from error
        if self._records == self._given:
            return None
        self._given = dict(self._records)
        return list(self._records.values())

    def close(self) -> None:
        """See :class:`~service.rules.source.RuleSource`."""
        if self._consumer is not None:
            self._consumer.close()

    def _client(self) -> Consumer:
        if self._consumer is None:
            config = self._config | _OWN | {"error_cb": self._notice}
            self._consumer = _made(Consumer, config)
        return self._consumer

    def _notice(self, error: KafkaError) -> None:
        self._noticed = error

    def _advance(self, consumer: Consumer) -> None:
        """Take in all that the topic holds now."""
        deadline = time.monotonic() + self._seconds
        self._check_topic(consumer)
        at = TopicPartition(self._topic, _PARTITION)
        first, end = consumer.get_watermark_offsets(at, timeout=self._seconds, cached=False)
        if self._position is None or not first <= self._position <= end:
            # New, made again, or cut off: what was read says nothing of it.
            self._check_policy()
            self._records.clear()
            self._position = first
            consumer.assign([TopicPartition(self._topic, _PARTITION, OFFSET_BEGINNING)])
        while self._position < end:
            if time.monotonic() > deadline:
                reached = f"offset {self._position:,} of {end:,} was reached"
                raise not_read(f"{reached} in {self._seconds:g} s{self._because()}", self.name)
            for message in consumer.consume(_MOST_AT_ONCE, _POLL_SECONDS):
                self._take(message)
            check_count(len(self._records), "records", self.name)
        self._noticed = None

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001
            raise KafkaException(error)
        offset = message.offset()
        assert offset is not None
        assert self._position is not None
        if error is not None:
            # Where a transaction ends there are offsets without records.
            self._position = max(self._position, offset)
            return
        self._position = offset + 1
        key, value = message.key(), message.value()
        if value is None:
            self._records.pop(key, None)
        else:
            self._records[key] = _entry(key, value, f"{self._topic}/{_PARTITION}/{offset}")

    def _check_topic(self, consumer: Consumer) -> None:
        found = consumer.list_topics(self._topic, self._seconds).topics[self._topic]
        if found.error is not None:
            if found.error.code() in _UNKNOWN:
                self._position = None
                raise not_read("there is no such topic", self.name, "a compacted topic")
            raise KafkaException(found.error)
        if len(found.partitions) != 1:
            reason = f"the topic has {len(found.partitions)} partitions"
            raise not_read(reason, self.name, "one, so that changes have one order")

    def _check_policy(self) -> None:
        """RuleSetError when rules would expire. Who may not ask is not told."""
        admin = _made(AdminClient, self._config | {"log_level": 0})
        wanted = ConfigResource(ConfigResource.Type.TOPIC, self._topic)
        (answer,) = admin.describe_configs([wanted], request_timeout=self._seconds).values()
        try:
            policy = str(answer.result(2 * self._seconds)[_POLICY].value)
        except KafkaException:
            return
        if policy != "compact":
            reason = f"{_POLICY} of the topic is {policy}, and rules would expire"
            raise not_read(reason, self.name, f"{_POLICY}=compact")

    def _away(self, error: KafkaError) -> RuleSetError:
        assert self._consumer is not None
        # Has the client say what it knows of its connections.
        self._consumer.poll(0)
        return not_read(f"{redact_text(error.str())}{self._because()}", self.name)

    def _because(self) -> str:
        return "" if self._noticed is None else f": {redact_text(self._noticed.str())}"


def _made(kind: Callable[[dict[str, Any]], _T], config: dict[str, Any]) -> _T:
    try:
        return kind(config)
    except KafkaException as error:
        reason = redact_text(error.args[0].str())
        raise ConfigurationError(f"rules.kafka.properties: {reason}") from error


def _entry(key: bytes | None, value: bytes, name: str) -> RuleFile:
    try:
        if not key:
            allowed = "the rule's id as the key"
            raise RuleSetError([Problem("the record has no key", name, allowed=allowed)])
        rule = decoded(key, name, "key")
        try:
            return rule_entry(decoded(value, name, "value"), name, rule)
        except RuleSetError as error:
            return RuleFile(name, (), tuple(error.problems), rule)
    except RuleSetError as error:
        # It stands for no rule, so it keeps none.
        return RuleFile(name, (), tuple(error.problems), "")
