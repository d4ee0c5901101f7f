"""The bound of one batch, in bytes as well as in records.

Spark plans a batch by numbers of records. So records are reckoned into bytes by their
mean size: that of a sample, taken from where the job goes on to read, and then that of the batches
themselves. Memory is safe without it (what a batch holds is spilled); it keeps batches, and what
lies on disk for one, of a size.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_STORED,
    Consumer,
    KafkaException,
    TopicPartition,
)

from spark_cep.config import Settings
from spark_cep.pipeline.wire.control import Partition

#: A record's bytes where nothing is known.
_GUESS: Final = 1_024
#: Records of a sample, and of a batch that is as good as one.
_SAMPLE: Final = 1_000
_SAMPLE_SECONDS: Final = 2.0


class BatchLimit:
    """The most records of a batch. ``mean``: bytes of a record, if it is known."""

    def __init__(self, settings: Settings, mean: float | None) -> None:
        source = settings.source
        self._most_records = source.max_offsets_per_trigger
        self._most_bytes = source.max_bytes_per_trigger
        self._guessed = mean is None
        self._mean: float = _GUESS if mean is None else max(1.0, mean)
        self.records = self._allowed()

    def batch_done(self, records: int, size: int) -> bool:
        """A batch had so many records and bytes; returns whether :attr:`records` is another now."""
        if not records or self._most_bytes is None:
            return False
        before = self.records
        assert before is not None
        mean = size / records
        # A full batch tells much, however few its records are; a few of live input tell little.
        weight = 0.5 if records >= before // 2 else min(0.5, records / _SAMPLE)
        if self._guessed and records >= _SAMPLE:
            weight, self._guessed = 1.0, False
        self._mean += weight * (mean - self._mean)
        if size > self._most_bytes:
            self._mean = max(self._mean, mean)
        allowed = self._allowed()
        assert allowed is not None
        if abs(allowed - before) <= before // 8:
            return False
        self.records = allowed
        return True

    def _allowed(self) -> int | None:
        if self._most_bytes is None:
            return self._most_records
        allowed = max(1, int(self._most_bytes / max(1.0, self._mean)))
        return allowed if self._most_records is None else min(allowed, self._most_records)


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
