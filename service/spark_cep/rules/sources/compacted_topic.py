"""A compacted topic of one partition, read from its beginning: the newest record of each key."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from spark_cep.config.redaction import redact_text
from spark_cep.errors import ConfigurationError, Problem, RuleSetError, RulesTopicUnavailableError
from spark_cep.kafka_errors import ErrorKind, kind_of, may_pass
from spark_cep.rules.sources.source import check_count

_POLICY: Final = "cleanup.policy"
#: What such a topic is made with.
COMPACTED: Final = {_POLICY: "compact"}
_T = TypeVar("_T")

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
_RECONNECTS: Final = {"reconnect.backoff.ms": 100, "reconnect.backoff.max.ms": 1_000}


def _passes(error: BaseException) -> bool:
    """Tell whether the brokers answer, and are not ready: the topic was just made, or its leader
    changes."""
    return isinstance(error, KafkaException) and kind_of(error.args[0]) in (
        ErrorKind.RETRIABLE,
        ErrorKind.UNKNOWN_TOPIC,
    )


class TopicRecord(NamedTuple):
    """The newest record of a key."""

    value: bytes
    offset: int


class CompactedTopic:
    """``what`` messages say that it holds. ``config``: of a consumer; ``setting``: where a wrong
    one comes from. ``seconds``: how long a read may take. Used by one thread at a time."""

    def __init__(
        self,
        topic: str,
        config: Mapping[str, Any],
        seconds: float,
        what: str,
        setting: str = "kafka",
    ) -> None:
        self.topic: Final = topic
        self.name: Final = f"topic {topic}"
        #: By key, in the order of their offsets.
        self.records: Final[dict[bytes | None, TopicRecord]] = {}
        self._seconds: Final = seconds
        self._again: Final = Retrying(
            retry=retry_if_exception(_passes),
            stop=stop_after_delay(seconds),
            wait=wait_fixed(_POLL_SECONDS),
            reraise=True,
        )
        self._what: Final = what
        self._setting: Final = setting
        # The first pause may not be longer than the longest: the user's own are taken together.
        own = any(name.startswith("reconnect.") for name in config)
        self._config: Final = {**_PRESET, **({} if own else _RECONNECTS), **config}
        self._consumer: Consumer | None = None
        self._admin: AdminClient | None = None
        self._reading: Final = threading.Lock()
        self._noticed: KafkaError | None = None
        #: Whether the login or a certificate was refused since the last read that succeeded.
        self._refused = False
        #: The next offset; ``None``: the topic is to be read from its beginning.
        self._position: int | None = None
        #: Kafka's id of the topic that was read: one that is made again has another. Brokers before
        #: 2.8 have one for all.
        self._id: str | None = None
        self._changed = False

    @property
    def id(self) -> str | None:
        """Kafka's id of the topic that was read."""
        return self._id

    @property
    def end(self) -> int:
        """The offset behind all that was read."""
        return self._position or 0

    def read(self) -> bool:
        """Take in all that the topic holds now; whether there was anything new. RuleSetError when
        it cannot be read; the next read may succeed. ConfigurationError when the configuration is
        none of a consumer."""
        if self._consumer is None or self._admin is None:
            config = {**self._config, "error_cb": self._notice}
            self._consumer = self._made(Consumer, config | _OWN)
            self._admin = self._made(AdminClient, config | {"log_level": 0})
        try:
            with self._reading:
                self._again(self._advance, self._consumer, self._admin)
        except (KafkaException, TimeoutError) as error:
            # Has the clients say what they know of their connections.
            self._admin.poll(0)
            self._consumer.poll(0)
            if isinstance(error, TimeoutError):
                raise self._unavailable(f"no answer in {self._seconds:g} s") from error
            reason: KafkaError = error.args[0]
            if may_pass(reason) and not self._refused:
                raise self._unavailable(redact_text(reason.str())) from error
            raise self._not_read(f"{redact_text(reason.str())}{self._because()}") from error
        changed, self._changed = self._changed, False
        return changed

    def close(self) -> None:
        """Let go of the connection, without waiting for a read that goes on in another thread."""
        # A client must not be closed while it is used.
        if self._consumer is not None and self._reading.acquire(blocking=False):
            self._consumer.close()

    def _notice(self, error: KafkaError) -> None:
        self._noticed = error
        self._refused |= kind_of(error) in (ErrorKind.LOGIN, ErrorKind.TLS)

    def _advance(self, consumer: Consumer, admin: AdminClient) -> None:
        deadline = time.monotonic() + self._seconds
        topic_id = self._checked_topic(admin)
        if topic_id != self._id:
            self._id, self._position = topic_id, None
        if self._position is None:
            # Has the consumer learn of a topic that it knew as gone.
            consumer.list_topics(self.topic, self._seconds)
        at = TopicPartition(self.topic, _PARTITION)
        first, end = consumer.get_watermark_offsets(at, timeout=self._seconds, cached=False)
        if self._position is None or not first <= self._position <= end:
            # New, made again, or cut off: what was read says nothing of it.
            self._check_policy(admin)
            self.records.clear()
            self._changed, self._position = True, first
            consumer.assign([TopicPartition(self.topic, _PARTITION, OFFSET_BEGINNING)])
        while self._position < end:
            if time.monotonic() > deadline:
                reached = f"offset {self._position:,} of {end:,} was reached"
                raise self._unavailable(f"{reached} in {self._seconds:g} s")
            try:
                for message in consumer.consume(_MOST_AT_ONCE, _POLL_SECONDS):
                    self._take(message)
            except KafkaException:
                # What was fetched behind the error is lost, also for the next attempt.
                self._position = None
                raise
        self._noticed, self._refused = None, False
        # At the end: what is too many on the way may have been removed behind it.
        check_count(len(self.records), "records", self.name)

    def _take(self, message: Message) -> None:
        error, offset = message.error(), message.offset()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        assert offset is not None
        assert self._position is not None
        if error is not None:
            # Where a transaction ends there are offsets without records.
            self._position = max(self._position, offset)
            return
        self._position = offset + 1
        self._changed = True
        value, key = message.value(), message.key()
        self.records.pop(key, None)
        if value is not None:
            self.records[key] = TopicRecord(value, offset)

    def place(self, record: TopicRecord) -> str:
        """The name of a record in messages: topic, partition and offset."""
        return f"{self.topic}/{_PARTITION}/{record.offset}"

    def _checked_topic(self, admin: AdminClient) -> str:
        """Its id. RuleSetError when it does not exist, or has no single order of records."""
        wanted = TopicCollection([self.topic])
        asked = admin.describe_topics(wanted, request_timeout=self._seconds)[self.topic]
        try:
            described = asked.result(2 * self._seconds)
        except KafkaException as error:
            if kind_of(error.args[0]) is ErrorKind.UNKNOWN_TOPIC:
                self._position = None
                raise self._not_read("there is no such topic", "a compacted topic") from error
            raise
        if len(described.partitions) != 1:
            reason = f"the topic has {len(described.partitions)} partitions"
            raise self._not_read(reason, "one, so that changes have one order")
        return str(described.topic_id)

    def _check_policy(self, admin: AdminClient) -> None:
        """RuleSetError when rules would expire. No error where the right to ask is
        missing."""
        wanted = ConfigResource(ConfigResource.Type.TOPIC, self.topic)
        (answer,) = admin.describe_configs([wanted], request_timeout=self._seconds).values()
        try:
            policy = str(answer.result(2 * self._seconds)[_POLICY].value)
        except KafkaException as error:
            if _passes(error):
                raise
            return
        if policy != "compact":
            reason = f"{_POLICY} of the topic is {policy}, and rules would expire"
            raise self._not_read(reason, f"{_POLICY}=compact")

    def _made(self, kind: Callable[[dict[str, Any]], _T], config: dict[str, Any]) -> _T:
        try:
            return kind(config)
        except KafkaException as error:
            reason = redact_text(error.args[0].str())
            raise ConfigurationError(f"{self._setting}: {reason}") from error

    def _because(self) -> str:
        return "" if self._noticed is None else f": {redact_text(self._noticed.str())}"

    def _unavailable(self, reason: str) -> RulesTopicUnavailableError:
        return RulesTopicUnavailableError(self._not_read(f"{reason}{self._because()}").problems)

    def _not_read(self, reason: str, allowed: str | None = None) -> RuleSetError:
        message = f"{self._what} cannot be read: {reason}"
        return RuleSetError([Problem(message, self.name, allowed=allowed)])
