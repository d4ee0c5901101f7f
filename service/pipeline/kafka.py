"""The Kafka cluster from the driver's side: which topics there are, what they hold, new topics.

A cluster that does not answer is KafkaAwayError, and may be waited for. One that refuses the login
or our certificate is ConfigurationError: it would refuse again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from service.config import Settings
from service.errors import ConfigurationError, KafkaAwayError, SparkCepError, StartError
from service.pipeline.marks import TOPIC_CONFIG
from service.pipeline.patience import may_pass
from service.pipeline.waiting import Patience, ask_once
from service.pipeline.watermark import Partition

_SECONDS = 10.0
_T = TypeVar("_T")

_REFUSED: Final = (KafkaError._AUTHENTICATION, KafkaError._SSL)  # noqa: SLF001  librdkafka's names


class Cluster:
    """Questions to the cluster; ``patience`` says how often each is asked while nobody answers."""

    def __init__(self, settings: Settings, patience: Patience = ask_once) -> None:
        self._settings = settings
        self._servers = settings.kafka.bootstrap_servers
        self._patience = patience
        self._noticed: list[KafkaError] = []
        self._admin = self._client(AdminClient, settings.kafka.admin_config())

    def topics(self) -> list[str]:
        """The cluster's topics, without its internal ones."""
        metadata = self._ask(lambda: self._admin.list_topics(timeout=_SECONDS))
        return sorted(topic for topic in metadata.topics if not topic.startswith("__"))

    def reach(self) -> None:
        """Return when the cluster answers one question; no patience."""
        self._ask_once(lambda: self._admin.list_topics(timeout=_SECONDS))

    def partitions_with_records(self, topics: Sequence[str]) -> list[Partition]:
        """The partitions of ``topics`` that hold at least one record."""
        consumer = self._client(Consumer, self._settings.kafka.consumer_config("spark-cep-start"))
        try:
            metadata = self._ask(lambda: consumer.list_topics(timeout=_SECONDS))
            found = []
            for topic in topics:
                for partition in sorted(metadata.topics[topic].partitions):
                    at = TopicPartition(topic, partition)
                    low, high = self._ask(
                        partial(consumer.get_watermark_offsets, at, timeout=_SECONDS)
                    )
                    if high > low:
                        found.append((topic, partition))
            return found
        finally:
            consumer.close()

    def create_missing(self, topics: Sequence[str]) -> list[str]:
        """Create the output topics that do not exist, as configured; returns their names."""
        missing = sorted(set(topics) - set(self.topics()))
        new = self._settings.outputs.create_topics
        if missing and not new.enabled:
            raise StartError(
                f"output topics {', '.join(missing)} do not exist on {self._servers}; create"
                " them, or set outputs.create_topics.enabled"
            )
        self._create([NewTopic(topic, new.partitions, new.replication) for topic in missing])
        return missing

    def create_marks(self, topic: str, partitions: int) -> None:
        """See to it that the topic of marks exists and has a partition for each state partition."""
        known = self._ask(lambda: self._admin.list_topics(timeout=_SECONDS)).topics
        there = len(known[topic].partitions) if topic in known else 0
        if there >= partitions:
            return
        new = self._settings.outputs.create_topics
        if not new.enabled:
            raise StartError(
                f"topic {topic} has {there} partitions on {self._servers}; outputs.delivery:"
                f" exactly_once needs {partitions} (state.state_partitions): create it with"
                " cleanup.policy=compact, or set outputs.create_topics.enabled"
            )
        if there:
            more = [NewPartitions(topic, partitions)]
            self._ask(lambda: self._wait(self._admin.create_partitions(more)))
        else:
            self._create([NewTopic(topic, partitions, new.replication, config=TOPIC_CONFIG)])

    def _create(self, requests: list[NewTopic]) -> None:
        if requests:
            self._ask(lambda: self._wait(self._admin.create_topics(requests)))

    def _wait(self, made: Mapping[str, Future[None]]) -> None:
        for topic, future in made.items():
            try:
                future.result(_SECONDS)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    continue
                if may_pass(error):
                    raise
                raise StartError(f"topic {topic} cannot be created: {error}") from error

    def _ask(self, question: Callable[[], _T]) -> _T:
        return self._patience(lambda: self._ask_once(question))

    def _ask_once(self, question: Callable[[], _T]) -> _T:
        self._admin.poll(0)
        self._noticed.clear()
        try:
            return question()
        except KafkaException as error:
            raise self._error(error) from error
        except TimeoutError as error:
            raise KafkaAwayError(f"{self._name} did not answer in {_SECONDS:g} s") from error

    def _error(self, raised: KafkaException) -> SparkCepError:
        error: KafkaError = raised.args[0]
        # What is wrong with a connection does not come as the answer, but is told on the side.
        self._admin.poll(0)
        refused = [each for each in self._noticed if each.code() in _REFUSED]
        if error.code() in _REFUSED or refused:
            return ConfigurationError(
                f"{self._name} refuses the connection: {(refused or [error])[-1].str()};"
                " see kafka.security"
            )
        if not may_pass(raised):
            return StartError(f"{self._name}: {error.str()}")
        told = [e for e in self._noticed if e.code() != KafkaError._ALL_BROKERS_DOWN]  # noqa: SLF001
        return KafkaAwayError(f"{self._name} does not answer: {(told or [error])[-1].str()}")

    @property
    def _name(self) -> str:
        return f"Kafka (kafka.bootstrap_servers {self._servers})"

    def _client(self, kind: Callable[[dict[str, Any]], Any], config: dict[str, Any]) -> Any:
        # What goes wrong is raised; librdkafka's own log would go on after we are done.
        config = config | {"log_level": 0, "error_cb": self._noticed.append}
        try:
            return kind(config)
        except KafkaException as error:
            raise ConfigurationError(
                f"{self._name} cannot be used: {error.args[0].str()};"
                " see kafka.security and kafka.sink_properties"
            ) from error
