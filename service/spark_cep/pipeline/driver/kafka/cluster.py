"""The Kafka cluster from the driver's side: which topics there are, what they hold, new topics.

A cluster that does not answer is KafkaUnavailableError, and may be waited for. One that refuses the
login or our certificate is ConfigurationError: it would refuse again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource  # type: ignore[attr-defined]  # in no list
from confluent_kafka.cimpl import NewPartitions, NewTopic

from spark_cep.codecs.output.outputs import LARGEST_RECORD
from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, KafkaUnavailableError, SparkCepError, StartError
from spark_cep.kafka_errors import ErrorKind, kind_of, may_pass, unavailable_or
from spark_cep.observability.logs import logger
from spark_cep.pipeline.deliver.commit_markers import TOPIC_CONFIG
from spark_cep.pipeline.driver.kafka.refusals import made, refusal
from spark_cep.pipeline.driver.lifecycle.retry import RetryPolicy, ask_once
from spark_cep.pipeline.wire.control import Partition

_log = logger(__name__)
_SECONDS = 10.0
#: By then a broker that answers has said so, if it refuses the client.
_REFUSED_WITHIN = 1.5
#: Nothing is read or committed in its name.
OFFSETS_GROUP: Final = "spark-cep-offsets"
#: Kafka's UUID of nothing.
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_LARGEST_SENT, _LARGEST_TAKEN = "message.max.bytes", "max.message.bytes"
_T = TypeVar("_T")
#: Places in a partition, for :meth:`Cluster.offsets`: Kafka's times of its beginning and end.
BEGINNING: Final = OFFSET_BEGINNING
END: Final = OFFSET_END
NO_TOPICS: Mapping[str, Mapping[str, str]] = MappingProxyType({})


class Cluster:
    """Requests to the cluster; ``retry`` says how often each is asked while nobody answers."""

    def __init__(
        self,
        settings: Settings,
        retry: RetryPolicy = ask_once,
        *,
        seconds: float = _SECONDS,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """``seconds``: how long an answer is waited for; ``config``: the client's, if it is not
        that of administration."""
        self._settings = settings
        self._seconds = seconds
        self._retry = retry
        self._noticed: list[KafkaError] = []
        self._config = dict(settings.kafka.admin_config() if config is None else config)
        self._servers = self._config["bootstrap.servers"]
        self._admin = self._client(AdminClient, self._config)
        self._readers: dict[bool, Consumer] = {}

    def topics(self) -> list[str]:
        """The cluster's topics, without its internal ones."""
        metadata: ClusterMetadata = self.ask(self._metadata)
        return sorted(topic for topic in metadata.topics if not topic.startswith("__"))

    def ends(self, topics: Sequence[str], partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The ends of ``partitions``, but for those that Kafka does not know, asked once.

        Raises KafkaUnavailableError when no broker answers for ``topics``, when a partition of them
        has no leader, or when the leader of one of ``partitions`` does not answer.
        """
        reader = self._reader(committed=False)
        for topic in topics:
            # With a topic's metadata the client also learns of new leaders; from ListOffsets alone
            # it does not.
            known = self._ask_once(partial(reader.list_topics, topic, timeout=self._seconds))
            orphans = [n for n, each in known.topics[topic].partitions.items() if each.leader < 0]
            if orphans:
                raise KafkaUnavailableError(
                    f"{self._name}: {topic}, partitions {orphans}: no leader"
                )
        if not partitions:
            return {}
        return self.offsets(partitions, END, committed=False)

    def input_partitions(
        self, topics: Sequence[str], patterns: Sequence[re.Pattern[str]]
    ) -> list[Partition]:
        """The partitions of ``topics``, and of those that match a pattern, as far as there are any;
        asked once. Raises KafkaUnavailableError when no broker answers."""
        reader = self._reader(committed=self._settings.kafka.reads_committed)
        if patterns:
            asked = [self._ask_once(lambda: reader.list_topics(timeout=self._seconds))]
        else:
            asked = [
                self._ask_once(partial(reader.list_topics, topic, timeout=self._seconds))
                for topic in dict.fromkeys(topics)
            ]
        return sorted(
            (name, number)
            for metadata in asked
            for name, topic in metadata.topics.items()
            if name in topics or any(each.fullmatch(name) for each in patterns)
            for number in topic.partitions
        )

    def offsets(
        self, partitions: Sequence[Partition], place: int, *, committed: bool
    ) -> dict[Partition, int]:
        """Offsets of ``partitions``, but for those that Kafka does not know, asked once: at their
        BEGINNING or END, or of the first record with this timestamp (ms) or a later one; -1 where
        there is none. ``committed``: an open transaction is the end. Raises KafkaUnavailableError
        when a leader does not answer."""
        if not partitions:
            return {}
        reader = self._reader(committed=committed)
        least = 0 if place in (BEGINNING, END) else -1

        def listed() -> dict[Partition, int]:
            found = {}
            # The administration client's list_offsets connects without a pause to a broker that is
            # down, thousands of times a second.
            wanted = [TopicPartition(*at, place) for at in partitions]
            for each in reader.offsets_for_times(wanted, self._seconds):
                error = each.error
                if error is not None and kind_of(error) is ErrorKind.UNKNOWN_TOPIC:
                    continue
                if error is not None or each.offset < least:  # not touched: nobody answered
                    silent = error or KafkaError(KafkaError.REQUEST_TIMED_OUT)
                    raise self._error(
                        silent, f"the leader of {each.topic}, partition {each.partition},"
                    )
                found[each.topic, each.partition] = each.offset
            return found

        return self._ask_once(listed)

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """Kafka's ids of those of ``topics`` that have one: a topic that is deleted and created
        again has another. Brokers before 2.8 give none."""
        if not topics:
            return {}
        wanted = TopicCollection(list(topics))

        def described() -> dict[str, str]:
            asked = self._admin.describe_topics(wanted, request_timeout=self._seconds)
            return {
                topic: str(each.result(self._seconds).topic_id) for topic, each in asked.items()
            }

        return {topic: found for topic, found in self.ask(described).items() if found != _NO_ID}

    def partitions_with_records(self, topics: Sequence[str]) -> list[Partition]:
        """The partitions of ``topics`` that hold at least one record."""

        def asked() -> list[Partition]:
            partitions = self.input_partitions(topics, ())
            begins = self.offsets(partitions, BEGINNING, committed=False)
            ends = self.offsets(partitions, END, committed=False)
            return [at for at in partitions if ends.get(at, 0) > begins.get(at, 0)]

        return self._retry(asked)

    def consumer(self, group: str, **more: Any) -> Consumer:
        """A consumer of committed records, which the caller closes; ``more``: properties."""
        config = self._settings.kafka.consumer_config(group) | more
        consumer: Consumer = self._client(Consumer, config)
        return consumer

    def create_missing(
        self, topics: Sequence[str], ordered: Mapping[str, Mapping[str, str]] = NO_TOPICS
    ) -> list[str]:
        """Create the output topics that do not exist, as configured; those of ``ordered`` with one
        partition, and with these properties. Returns their names."""
        missing = sorted({*topics, *ordered} - set(self.topics()))
        new = self._settings.outputs.create_topics
        if missing and not new.enabled:
            raise StartError(
                f"output topics {', '.join(missing)} do not exist on {self._servers}; create"
                " them, or set outputs.create_topics.enabled"
            )
        self._make(
            [
                NewTopic(topic, 1, new.replication, config=dict(ordered[topic]))
                if topic in ordered
                else NewTopic(topic, new.partitions, new.replication)
                for topic in missing
            ]
        )
        return missing

    def largest_record(self, topics: Sequence[str]) -> int:
        """Bytes of the largest record that the producer sends and all of ``topics`` take. What
        may not be asked is taken for the brokers' default."""
        bounds = [int(self._settings.kafka.producer_config().get(_LARGEST_SENT, LARGEST_RECORD))]
        wanted = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
        for topic, future in self._admin.describe_configs(wanted).items():
            try:
                bounds.append(int(future.result(self._seconds)[_LARGEST_TAKEN].value))
            except (KafkaException, KeyError) as error:
                _log.warning("topic_not_described", topic=topic.name, reason=str(error))
                bounds.append(LARGEST_RECORD)
        return min(bounds)

    def create_commit_markers(self, topic: str, partitions: int) -> None:
        """Make sure that the topic of commit markers has a partition for each state partition."""
        known = self.ask(lambda: self._admin.list_topics(timeout=self._seconds)).topics
        there = len(known[topic].partitions) if topic in known else 0
        if there >= partitions:
            return
        new = self._settings.outputs.create_topics
        if not new.enabled:
            raise StartError(
                f"topic {topic} has {there} partitions on {self._servers}; exactly-once output"
                f" needs {partitions} (state.state_partitions): create it with"
                " cleanup.policy=compact, or set outputs.create_topics.enabled"
            )
        if there:
            more = [NewPartitions(topic, partitions)]
            self.ask(lambda: _made(self._admin.create_partitions(more)))
        else:
            self._make([NewTopic(topic, partitions, new.replication, config=TOPIC_CONFIG)])

    def _make(self, topics: list[NewTopic]) -> None:
        if topics:
            self.ask(lambda: _made(self._admin.create_topics(topics)))

    def ask(self, request: Callable[[], _T]) -> _T:
        """The answer to a request, also one to such a consumer; what goes wrong is one of our
        errors."""
        return self._retry(lambda: self._ask_once(request))

    def _ask_once(self, request: Callable[[], _T]) -> _T:
        self._serve()
        self._noticed.clear()
        try:
            return request()
        except KafkaException as error:
            raise self._error(error.args[0]) from error
        except TimeoutError as error:
            raise KafkaUnavailableError(
                f"{self._name} did not answer in {self._seconds:g} s"
            ) from error

    def _metadata(self) -> Any:
        """All topics. A refused login does not wait for the whole time, a slow answer may."""
        first = min(_REFUSED_WITHIN, self._seconds)
        try:
            return self._admin.list_topics(timeout=first)
        except KafkaException:
            self._serve()
            if first == self._seconds or refusal(self._noticed, self._config) is not None:
                raise
        return self._admin.list_topics(timeout=self._seconds - first)

    def _error(self, error: KafkaError, who: str = "") -> SparkCepError:
        # What is wrong with a connection does not come as the answer, but is told on the side.
        self._serve()
        refused = refusal([error, *self._noticed], self._config)
        if refused is not None:
            return ConfigurationError(f"kafka.bootstrap_servers {self._servers}: {refused}")
        if kind_of(error) is not ErrorKind.UNREACHABLE:
            return unavailable_or(StartError, error, f"{self._name}: {error.str()}")
        down = KafkaError._ALL_BROKERS_DOWN
        errors = [each for each in self._noticed if each.code() != down]
        silent = f"{self._name}: {who}" if who else self._name
        return KafkaUnavailableError(f"{silent} does not answer: {(errors or [error])[-1].str()}")

    @property
    def _name(self) -> str:
        return f"Kafka (kafka.bootstrap_servers {self._servers})"

    def _reader(self, *, committed: bool) -> Consumer:
        """The client that knows leaders and offsets: it asks with its own isolation level."""
        if committed not in self._readers:
            level = "read_committed" if committed else "read_uncommitted"
            own = {"group.id": OFFSETS_GROUP, "enable.auto.commit": False, "isolation.level": level}
            self._readers[committed] = self._client(Consumer, self._config | own)
        return self._readers[committed]

    def _serve(self) -> None:
        """Have clients say what they have noticed."""
        for each in (self._admin, *self._readers.values()):
            each.poll(0)

    def _client(self, kind: Callable[[dict[str, Any]], Any], config: dict[str, Any]) -> Any:
        # What goes wrong is raised; librdkafka's own log would go on after we are done.
        config = config | {"log_level": 0, "error_cb": self._noticed.append}
        return made(lambda: kind(config))


def _made(answers: Mapping[str, Future[None]]) -> None:
    """Wait until topics, or more partitions of them, are made."""
    for topic, future in answers.items():
        try:
            future.result(_SECONDS)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                continue
            if may_pass(error.args[0]):
                raise
            raise StartError(f"topic {topic} cannot be created: {error}") from error
