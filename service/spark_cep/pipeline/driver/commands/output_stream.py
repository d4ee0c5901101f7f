"""The records of a job's output topics as they come, decoded, for people: nothing is committed."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from spark_cep.codecs.output.outputs import KIND_HEADER
from spark_cep.codecs.registry.registry import Registry
from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError
from spark_cep.kafka_errors import may_pass
from spark_cep.pipeline.driver.commands.output_records import RecordDecoder, UndecodedError
from spark_cep.pipeline.driver.kafka.cluster import BEGINNING, END, Cluster
from spark_cep.pipeline.wire.control import Partition

_GROUP: Final = "spark-cep-tail"
_LOOK_EVERY_SECONDS: Final = 5.0
_MOST_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Arrival:
    """One output record. ``kind``: match, match row, timeout, late or dead letter, as its topic
    says; of shadow rules as the record itself does. ``key``: Kafka's, as text; ``value``: decoded,
    or ``None`` for the reason in ``undecoded``."""

    kind: str
    topic: str
    partition: int
    offset: int
    key: str | None
    headers: Mapping[str, str]
    value: Any
    undecoded: str | None = None
    shadow: bool = False


class OutputStream:
    """Reads output topics from a time on. ``missing``: those that do not exist yet; they are looked
    for again, and read from their beginning."""

    def __init__(
        self,
        cluster: Cluster,
        consumer: Consumer,
        decoder: RecordDecoder,
        kinds: Mapping[str, str],
        *,
        begin: int,
    ) -> None:
        """``kinds``: by topic; ``begin``: BEGINNING, END, or a time in milliseconds."""
        self._cluster = cluster
        self._consumer = consumer
        self._decoder = decoder
        self._kinds = kinds
        self._begin = begin
        self._ends: dict[Partition, int] = {}
        self._known: set[Partition] = set()
        self._looked_at = 0.0
        self.missing: tuple[str, ...] = tuple(kinds)

    def start(self) -> None:
        """Find the topics, and the places to begin at. Raises ConfigurationError where there is
        none of the topics."""
        self._assign_new(self._begin)
        if not self._known:
            raise ConfigurationError(
                f"outputs.topics: none of {', '.join(self._kinds)} exists; the job creates them"
                " when it starts"
            )

    def poll(self, seconds: float) -> list[Arrival]:
        """The records that came, waiting up to ``seconds`` for the first. Raises what
        :meth:`Cluster.ask <spark_cep.pipeline.driver.kafka.cluster.Cluster.ask>` does, and
        RegistryUnavailableError."""
        now = time.monotonic()
        if self.missing and now - self._looked_at > _LOOK_EVERY_SECONDS:
            self._assign_new(BEGINNING)
        messages = self._cluster.ask(lambda: self._consumer.consume(_MOST_AT_ONCE, seconds))
        found = []
        for message in messages:
            error = message.error()
            at = (message.topic() or "", message.partition() or 0)
            if error is None:
                found.append(self._arrival(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ends.pop(at, None)
            elif not may_pass(error):
                self._cluster.ask(partial(_raise, error))
        return found

    @property
    def at_end(self) -> bool:
        """Return whether all has been read that there was at the start."""
        return not self._ends

    def _assign_new(self, begin: int) -> None:
        """Read the partitions that are new: from ``begin`` on."""
        self._looked_at = time.monotonic()
        existing = set(self._cluster.topics())
        self.missing = tuple(topic for topic in self._kinds if topic not in existing)
        topics = [topic for topic in self._kinds if topic in existing]
        new = [at for at in self._cluster.input_partitions(topics, ()) if at not in self._known]
        if not new:
            return
        ends = self._cluster.offsets(new, END, committed=True)
        places = ends if begin == END else self._cluster.offsets(new, begin, committed=True)
        wanted = []
        for at, place in places.items():
            # Behind a time there may be nothing yet.
            offset = ends[at] if place < 0 else place
            wanted.append(TopicPartition(*at, offset))
            if offset < ends[at]:
                self._ends[at] = ends[at]
        self._known.update(places)
        self._consumer.incremental_assign(wanted)

    def _arrival(self, message: Message) -> Arrival:
        topic = message.topic() or ""
        key: Any = message.key()
        given: Any = message.headers() or ()  # as the client is typed, they may be a mapping
        headers = {name: _text(content) or "" for name, content in given}
        value: Any = None
        why: str | None = None
        try:
            value = self._decoder.decoded(message)
        except UndecodedError as error:
            why = str(error)
        kind = self._kinds[topic]
        shadow = kind == "shadow"
        if shadow:
            kind = headers.get(KIND_HEADER, kind)
        kind = re.sub("[_-]", " ", kind)
        place = (message.partition() or 0, message.offset() or 0)
        return Arrival(kind, topic, *place, _text(key), headers, value, why, shadow)


@contextmanager
def output_stream(settings: Settings, kinds: Collection[str], begin: int) -> Iterator[OutputStream]:
    """The records of these ``kinds`` of output (:meth:`OutputTopicNames.kinds
    <spark_cep.config.OutputTopicNames.kinds>`) from ``begin`` on: BEGINNING, END, or a time in
    milliseconds. Raises ConfigurationError where there are no such topics, and what
    :class:`~spark_cep.pipeline.driver.kafka.cluster.Cluster` and the registry raise."""
    cluster = Cluster(settings)
    topics = {
        topic: kind for topic, kind in settings.outputs.topics.kinds().items() if kind in kinds
    }
    with ExitStack() as stack:
        registry = stack.enter_context(Registry.opened(settings.registry))
        soon = {"enable.partition.eof": True, "fetch.wait.max.ms": 100}
        consumer = cluster.consumer(_GROUP, **soon)
        stack.callback(consumer.close)
        stream = OutputStream(cluster, consumer, RecordDecoder(registry), topics, begin=begin)
        stream.start()
        yield stream


def _raise(error: KafkaError) -> None:
    raise KafkaException(error)


def _text(content: bytes | str | None) -> str | None:
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else content
