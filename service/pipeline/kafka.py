"""The Kafka cluster from the driver's side: which topics there are, what they hold, new topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from tenacity import (
    RetryCallState,
    retry,
    retry_if_exception,
    stop_after_delay,
    wait_exponential,
)

from service.config import Settings
from service.errors import StartError
from service.observability.logs import logger
from service.pipeline.marks import TOPIC_CONFIG
from service.pipeline.watermark import Partition

_log = logger(__name__)
_SECONDS = 10.0
_PATIENCE_SECONDS = 60.0
_T = TypeVar("_T")


class Cluster:
    """Questions to the cluster, asked with back-off while it cannot be reached."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._servers = settings.kafka.bootstrap_servers
        # What goes wrong is raised; librdkafka's own log would go on after we are done.
        self._admin = AdminClient(settings.kafka.admin_config() | {"log_level": 0})

    def topics(self) -> list[str]:
        """The cluster's topics, without its internal ones."""
        metadata = self._ask(lambda: self._admin.list_topics(timeout=_SECONDS))
        return sorted(topic for topic in metadata.topics if not topic.startswith("__"))

    def partitions_with_records(self, topics: Sequence[str]) -> list[Partition]:
        """The partitions of ``topics`` that hold at least one record."""
        config = self._settings.kafka.consumer_config("spark-cep-start") | {"log_level": 0}
        consumer = Consumer(config)
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
            self._wait(self._admin.create_partitions([NewPartitions(topic, partitions)]))
        else:
            self._create([NewTopic(topic, partitions, new.replication, config=TOPIC_CONFIG)])

    def _create(self, requests: list[NewTopic]) -> None:
        if requests:
            self._wait(self._admin.create_topics(requests))

    def _wait(self, made: Mapping[str, Future[None]]) -> None:
        for topic, future in made.items():
            try:
                future.result(_SECONDS)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise StartError(f"topic {topic} cannot be created: {error}") from error

    def _ask(self, question: Callable[[], _T]) -> _T:
        asking = retry(
            retry=retry_if_exception(_unreachable),
            wait=wait_exponential(multiplier=0.5, max=10),
            stop=stop_after_delay(_PATIENCE_SECONDS),
            before_sleep=self._waiting,
            reraise=True,
        )
        try:
            return asking(question)()
        except KafkaException as error:
            raise StartError(
                f"kafka.bootstrap_servers {self._servers}: {error.args[0].str()}"
            ) from error

    def _waiting(self, state: RetryCallState) -> None:
        _log.warning("waiting_for_kafka", servers=self._servers, attempt=state.attempt_number)


def _unreachable(error: BaseException) -> bool:
    if not isinstance(error, KafkaException):
        return False
    return error.args[0].code() in (
        KafkaError._TRANSPORT,  # noqa: SLF001  librdkafka's local errors are named so
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError.LEADER_NOT_AVAILABLE,
    )
