"""Slices of topics: the inputs of a job's settings, between two times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from spark_cep.codecs.formats import record_format
from spark_cep.codecs.registry.registry import Registry
from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError
from spark_cep.model import Coordinates
from spark_cep.pipeline.driver.kafka.cluster import BEGINNING as FIRST
from spark_cep.pipeline.driver.kafka.cluster import END as LAST
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.rules.job_plan import input_topics
from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.pipeline.read.ranges import records_of
from spark_cep.pipeline.read.record_range import Range
from spark_cep.recorded.events import RecordedEvents, Window
from spark_cep.recorded.recording import Chunk


@dataclass(frozen=True)
class TopicSlice:
    """The records of a range of offsets; ``config``: the consumer's. ``begin``: the offset from
    which on bytes are counted, where the range is a part of a larger one."""

    wanted: Range
    config: Mapping[str, Any]
    begin: int

    @property
    def name(self) -> str:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        return str(self.wanted)

    @property
    def topic(self) -> str:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        return self.wanted.topic

    @property
    def size(self) -> int:
        """The number of offsets, as the bytes are not known."""
        return self.wanted.end - self.wanted.start

    def chunks(self) -> Iterator[Chunk]:
        """See :class:`~spark_cep.recorded.recording.Recording`. Raises what
        :func:`~spark_cep.pipeline.read.ranges.records_of` does."""
        for records in records_of([self.wanted], self.config):
            yield Chunk(records, [], int(records.offset[-1]) + 1 - self.begin)

    def parts(self, count: int) -> Sequence[TopicSlice]:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        start, size = self.wanted.start, self.size
        cuts = [start + number * size // count for number in range(count + 1)]
        return [
            replace(self, wanted=self.wanted._replace(start=one, end=other))
            for one, other in pairwise(cuts)
            if one < other
        ]

    def around(self, at: Coordinates) -> TopicSlice | None:
        """See :class:`~spark_cep.recorded.recording.Recording`."""
        topic, partition, start, end = self.wanted
        if at[:2] != (topic, partition) or not start <= at.offset < end:
            return None
        return replace(self, wanted=Range(*at, at.offset + 1))


def open_topics(
    settings: Settings, window: Window, stack: ExitStack, topic: str | None = None
) -> RecordedEvents:
    """The records that the inputs of a job's settings have now, from the first one on whose
    timestamp in Kafka is in the ``window``, to before the first one that is behind it; of one
    ``topic``, if that is given. What is opened for them is closed with ``stack``.

    Raises ConfigurationError where the topics are not there, and what
    :class:`~spark_cep.pipeline.driver.kafka.cluster.Cluster` and the registry raise.
    """
    registry = stack.enter_context(Registry.opened(settings.registry))
    cluster = Cluster(settings)
    existing = cluster.topics()
    topics = input_topics(settings, existing)
    if topic is not None:
        if topic not in topics:
            raise ConfigurationError(
                f"no input reads a topic {topic}; the inputs read {', '.join(topics)}"
            )
        topics = [topic]
    schemas = record_format(settings, registry, existing)
    committed = settings.kafka.reads_committed
    partitions = cluster.input_partitions(topics, ())
    begins = cluster.offsets(partitions, FIRST, committed=committed)
    ends = cluster.offsets(partitions, LAST, committed=committed)
    if window.start > BEGINNING:
        found = cluster.offsets(partitions, window.start, committed=committed)
        begins |= {at: ends[at] if offset < 0 else offset for at, offset in found.items()}
    if window.end < END:
        found = cluster.offsets(partitions, window.end, committed=committed)
        ends |= {at: offset for at, offset in found.items() if offset >= 0}
    ranges = [Range(*at, begins[at], ends[at]) for at in partitions if begins[at] < ends[at]]
    config = settings.reader_config()
    slices = [TopicSlice(each, config, each.start) for each in ranges]
    return RecordedEvents(schemas, slices)
