"""The bound of one batch, in bytes as well as in records.

Spark plans a batch by numbers of records. So records are reckoned into bytes by their
mean size: that of a sample, taken from where the job goes on to read, and then that of the batches
themselves. Memory is safe without it (what a batch holds is spilled); it keeps batches, and what
lies on disk for one, of a size.

A small batch goes through one stage of Spark's, in which the task of each state partition reads
all of its records and keeps those of its key groups. That saves a stage and a shuffle.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_STORED,
    Consumer,
    KafkaException,
    TopicPartition,
)

from spark_cep.pipeline.wire.control import Partition

if TYPE_CHECKING:
    from spark_cep.config import Settings

#: A record's bytes where nothing is known.
_GUESS: Final = 1_024
#: Records of a sample, and of a batch that is as good as one.
_SAMPLE: Final = 1_000
_SAMPLE_SECONDS: Final = 2.0
#: With more of either, reading twice takes longer than a stage.
_ONE_STAGE_RECORDS: Final = 6_000
_ONE_STAGE_BYTES: Final = 2 << 20
#: With four of them one stage takes as long as two, and with eight longer.
_ONE_STAGE_STATE_PARTITIONS: Final = 2


class RecordLimit(NamedTuple):
    """The most records of a batch (``None``: all there are), and of one that goes through one stage
    (``None``: none does)."""

    most: int | None
    of_one_stage: int | None


class BatchLimit:
    """The most records of a batch. ``mean``: bytes of a record, if it is known."""

    def __init__(self, settings: Settings, mean: float | None) -> None:
        source = settings.source
        self._most_records = source.max_offsets_per_trigger
        self._most_bytes = source.max_bytes_per_trigger
        # Tasks that skip lost records may skip different ones.
        self._one_stage = (
            settings.state.state_partitions <= _ONE_STAGE_STATE_PARTITIONS
            and source.fail_on_data_loss
            and (source.min_partitions or 1) == 1
        )
        self._guessed = mean is None
        self._mean: float = _GUESS if mean is None else max(1.0, mean)
        self._told, self.records = self._mean, self._allowed()

    def batch_done(self, records: int, size: int) -> bool:
        """A batch had so many records and bytes; returns whether :attr:`records` is another now."""
        if not records:
            return False
        most, mean = self.records.most, size / records
        # A full batch tells much, however few its records are; a few of live input tell little.
        full = most is not None and records >= most // 2
        weight = 0.5 if full else min(0.5, records / _SAMPLE)
        if self._guessed and records >= _SAMPLE:
            weight, self._guessed = 1.0, False
        self._mean += weight * (mean - self._mean)
        if self._most_bytes is not None and size > self._most_bytes:
            self._mean = max(self._mean, mean)
        if abs(self._mean - self._told) <= self._told / 8:
            return False
        before, self._told, self.records = self.records, self._mean, self._allowed()
        return self.records != before

    def _allowed(self) -> RecordLimit:
        mean, most = max(1.0, self._mean), self._most_records
        if self._most_bytes is not None:
            by_size = max(1, int(self._most_bytes / mean))
            most = by_size if most is None else min(by_size, most)
        few = min(_ONE_STAGE_RECORDS, int(_ONE_STAGE_BYTES / mean)) if self._one_stage else None
        return RecordLimit(most, few)


def mean_size(settings: Settings, partitions: Iterable[Partition]) -> float | None:
    """Mean bytes of some records behind those that the job has told Kafka it has read; where there
    are none, of the first ones that Kafka has; ``None`` where none could be read. Waits two seconds
    at most, for each of the two."""
    partitions = list(partitions)
    if settings.consumer_group is not None:
        found = _mean_size_from(settings, partitions, OFFSET_STORED)
        if found is not None:
            return found
    return _mean_size_from(settings, partitions, OFFSET_BEGINNING)


def _mean_size_from(settings: Settings, partitions: list[Partition], offset: int) -> float | None:
    start = settings.source.starting_offsets
    config = settings.kafka.consumer_config(settings.consumer_group or "spark-cep-start") | {
        "auto.offset.reset": "latest" if start == "latest" else "earliest",
        "fetch.message.max.bytes": 64 << 10,
        "queued.max.messages.kbytes": 1 << 10,
        "fetch.wait.max.ms": 50,
        "enable.partition.eof": True,
        "log_level": 0,
        "error_cb": lambda _: None,
    }
    sizes: dict[Partition, list[int]] = {}
    try:
        consumer = Consumer(config)
    except KafkaException:
        return None
    try:
        waiting = set(partitions)
        consumer.assign([TopicPartition(*at, offset) for at in waiting])
        ends = time.monotonic() + _SAMPLE_SECONDS
        while waiting and time.monotonic() < ends:
            messages = consumer.consume(_SAMPLE, _SAMPLE_SECONDS / 8)
            for message in messages:
                at = (str(message.topic()), int(message.partition() or 0))
                waiting.discard(at)
                if message.error() is None:
                    size = len(message.value() or b"") + len(message.key() or b"")
                    sizes.setdefault(at, []).append(size)
    except KafkaException:
        return None
    finally:
        consumer.close()
    means = [sum(each) / len(each) for each in sizes.values()]
    return sum(means) / len(means) if means else None
