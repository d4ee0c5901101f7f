"""Progress in the input: lag, and the offsets of the job's consumer group in Kafka.

Spark keeps offsets in its checkpoint, where they count; they are committed to Kafka as well, after
each committed batch, for tools that know only consumer groups. A thread of its own does it: a
broker that is slow, or refuses, holds up nothing and ends nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from spark_cep.config import Settings
from spark_cep.observability import metric_names as names
from spark_cep.observability.logs import logger
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.control.source_offset import Ends
from spark_cep.pipeline.driver.lifecycle.background import Background
from spark_cep.pipeline.wire.reports import PartitionRead

_log = logger(__name__)
_TRY_EVERY_SECONDS: Final = 10.0


class Lag:
    """Records that the job is behind, by partition. Safe to call from any thread."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics: Final = metrics
        self._lock: Final = threading.Lock()
        self._read: Ends = {}
        self._ends: Ends = {}
        self._written: dict[tuple[str, int], int] = {}
        self._known = True

    def arrived(self, partitions: Iterable[PartitionRead]) -> None:
        """Take in what a batch read of each partition."""
        with self._lock:
            for topic, partition, timestamp, _ in partitions:
                at = (topic, partition)
                self._written[at] = max(timestamp, self._written.get(at, timestamp))

    def read(self, read: Ends, ends: Ends) -> None:
        """A batch was committed that ends before the offsets ``read``."""
        with self._lock:
            for at, offset in read.items():
                if offset < self._read.get(at, offset):
                    # The topic was made again: its ends of before say nothing.
                    self._ends.pop(at, None)
            self._read |= read
            self._note(ends)
        self.show()

    def ends(self, ends: Ends) -> None:
        """The offsets before which partitions end, as Kafka has just said."""
        with self._lock:
            self._note(ends)
            self._known = True
        self.show()

    def unknown(self) -> None:
        """Kafka does not say where partitions end: there is no lag to show until :meth:`ends`."""
        with self._lock:
            self._known = False
        self.show()

    def partitions(self) -> list[tuple[str, int]]:
        """The partitions that are read."""
        with self._lock:
            return sorted(self._read)

    def show(self) -> None:
        """Set the metrics."""
        now = time.time()
        with self._lock:
            shown = self._read if self._known else {}
            records = {at: max(0, self._ends.get(at, read) - read) for at, read in shown.items()}
            # Without a timestamp of its own a record has -1.
            written = {at: ms / 1000 for at, ms in self._written.items() if ms >= 0}
        seconds = {
            at: max(0.0, now - written[at]) if behind else 0.0
            for at, behind in records.items()
            if at in written or not behind
        }
        self._metrics.replace(names.CONSUMER_LAG, _labelled(records))
        self._metrics.replace(names.CONSUMER_LAG_SECONDS, _labelled(seconds))

    def _note(self, ends: Ends) -> None:
        for at, end in ends.items():
            self._ends[at] = max(end, self._ends.get(at, 0))


def _labelled(values: Mapping[tuple[str, int], float]) -> dict[tuple[str, ...], float]:
    return {(topic, str(partition)): value for (topic, partition), value in values.items()}


class InputPosition(Background):
    """The thread that tells Kafka what is read."""

    def __init__(self, settings: Settings, lag: Lag, metrics: Metrics, run: str) -> None:
        self._lag: Final = lag
        self._metrics: Final = metrics
        self._group: Final = settings.consumer_group
        self._config: Final = settings.kafka.consumer_config(self._group or "spark-cep-lag")
        self._lock: Final = threading.Lock()
        self._read: Ends = {}
        self._complained = False
        self._confirmed = True
        super().__init__("input-position", self._work, run)

    def read(self, read: Ends) -> None:
        """A batch was committed that ends before these offsets."""
        if self._group is not None:
            with self._lock:
                self._read |= read
                self._confirmed = False
            self.wake()

    def stop(self) -> bool:
        """Tell Kafka the last offsets and end; gives up after a while."""
        ended = super().stop()
        if not ended and not self._confirmed:
            self._failed("no answer before the stop")
        return ended

    def _work(self) -> None:
        quiet = {"log_level": 0, "error_cb": lambda _: None}
        consumer = Consumer(self._config | quiet)
        try:
            while True:
                ended = self.stopped
                self._commit(consumer)
                if ended:
                    return
                self.wait(_TRY_EVERY_SECONDS)
        finally:
            consumer.close()

    def _commit(self, consumer: Consumer) -> None:
        with self._lock:
            read, self._read = self._read, {}
        if not read:
            return
        offsets = [TopicPartition(*at, offset) for at, offset in sorted(read.items())]
        try:
            done = consumer.commit(offsets=offsets, asynchronous=False) or []
            failed = [each.error for each in done if each.error is not None]
            if failed:
                raise KafkaException(failed[0])
        except KafkaException as error:
            with self._lock:
                self._read = read | self._read
            self._failed(_told(error))
            return
        with self._lock:
            self._confirmed = not self._read
        self._metrics.increment(names.OFFSET_COMMITS, result="done")
        self._complained = False

    def _failed(self, reason: str) -> None:
        self._metrics.increment(names.OFFSET_COMMITS, result="failed")
        if not self._complained:
            self._complained = True
            _log.warning("offsets_not_committed", group=self._group, reason=reason)


def _told(error: KafkaException) -> str:
    return str(error.args[0].str())
