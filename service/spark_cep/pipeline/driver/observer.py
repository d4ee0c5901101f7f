"""Metrics, health and log of a run, from its batches and from Spark."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from spark_cep.observability import metric_names as names
from spark_cep.observability.logs import logger
from spark_cep.observability.start_clock import Phase
from spark_cep.pipeline.driver.kafka.input_position import InputPosition, Lag
from spark_cep.pipeline.driver.lifecycle.run import Run
from spark_cep.pipeline.driver.observe.batch_traces import BatchTraces
from spark_cep.pipeline.driver.observe.event_time_watch import EventTimeWatch
from spark_cep.pipeline.driver.observe.progress import BatchReport, count, merge, show
from spark_cep.pipeline.driver.observe.query_progress import (
    is_batch,
    offsets_read,
    publish_progress,
)
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.pipeline.match.latency import publish_latency, source_delay
from spark_cep.pipeline.spark.local_folder import local_folder
from spark_cep.pipeline.spark.memory import by_process, driver_jvm
from spark_cep.pipeline.spark.private_api import progress_after
from spark_cep.pipeline.wire.control import Partition
from spark_cep.pipeline.wire.reports import Count, ProcessMemory

_log = logger(__name__)
_MACHINE_EVERY_SECONDS = 2.0


class Observer:
    """Observes one run. ``on_batch`` is called with the report of each batch; ``rules`` is
    what is known of them, ``event_time`` of time; ``position`` and ``lag`` follow what Spark
    commits."""

    def __init__(
        self,
        run: Run,
        rules: RuleStatus,
        on_batch: Callable[[BatchReport], None],
    ) -> None:
        settings, metrics, health = run.settings, run.metrics, run.health
        self._time = settings.time
        self._start = run.start_clock
        self._kinds = settings.outputs.topics.kinds()
        self._metrics = metrics
        self._health = health
        self.rules = rules
        self.event_time = EventTimeWatch(settings, metrics)
        self._on_batch = on_batch
        self.lag = Lag(metrics)
        self.position = InputPosition(settings, self.lag, metrics, run.id)
        #: Of the batch that runs: its number, and when it began, in monotonic and in Unix seconds.
        self._running: tuple[int, float, float] | None = None
        self._counted_batch = self._seen_batch = -1
        self._traces: BatchTraces | None = None
        self._processes: dict[tuple[str, int], ProcessMemory] = {}
        self._looked_at_machine = -math.inf
        self._checkpoint = local_folder(str(settings.state.checkpoint))
        metrics.follow(names.READY, lambda: float(health.readiness().ok))
        metrics.follow(names.BATCH_RUNNING, self._batch_running)

    @property
    def last_batch(self) -> int | None:
        """The number of the last batch that was written."""
        return None if self._counted_batch < 0 else self._counted_batch

    def trace(self, traces: BatchTraces) -> None:
        """From now on write traces of batches."""
        self._traces = traces

    # Batches, on Spark's thread.

    def batch_started(self, batch: int) -> None:
        """A batch begins; one that failed before is this one, run again."""
        self._start.done(Phase.QUERY)
        self._running = batch, time.monotonic(), time.time()
        self.event_time.batch_started()
        if self._traces is not None:
            self._traces.started(batch)
        _log.debug("batch_started")

    def batch_done(self, batch: int, reports: Iterable[bytes]) -> BatchReport:
        """A batch is written; Spark commits it after."""
        assert self._running is not None
        _, started, began = self._running
        self._running = None
        committed = time.time()
        report = merge(batch, time.monotonic() - started, reports)
        show(report, self._metrics)
        self.event_time.batch_done(report)
        self.lag.arrived(report.partitions_read)
        self._processes = {(each.host, each.process): each for each in report.processes}
        if batch > self._counted_batch:
            # One that was committed and failed after all comes again, and is counted already.
            self._counted_batch = batch
            exemplar = {"batch": str(batch)}
            trace = None if self._traces is None else self._traces.trace_of(batch)
            if trace is not None:
                exemplar["trace_id"] = trace
            count(report, self._metrics, self._kinds, exemplar)
            for topic, partition, start, end in report.lost:
                _log.error(
                    "records_lost",
                    topic=topic,
                    partition=partition,
                    from_offset=start,
                    to_offset=end - 1,
                    records=end - start,
                )
            slowest = self._time.watermark == "partition_minimum"
            publish_latency(
                report.match_times,
                self._metrics,
                began=began,
                committed=committed,
                disorder_ms=self._time.allowed_disorder,
                delay_ms=source_delay(report.partitions_read, slowest=slowest),
                exemplar=exemplar,
            )
        if self._traces is not None:
            self._traces.done(report)
        self.rules.batch_done(report)
        self._health.ready()
        self._health.progressed()
        self._start.done(Phase.BATCH)
        _log.info(
            "batch_done",
            records=report.total(Count.RECORDS),
            matches=report.total(Count.MATCHED),
            match_rows=report.total(Count.MATCH_ROWS),
            timeouts=report.total(Count.TIMED_OUT),
            late=report.total(Count.LATE_EVENTS),
            dead_letters=report.total(Count.DEAD_LETTERS),
            seconds=round(report.seconds, 3),
        )
        self._on_batch(report)
        return report

    def _batch_running(self) -> float:
        running = self._running
        return 0.0 if running is None else time.monotonic() - running[1]

    # The query, on the supervisor's thread.

    def look_at(
        self,
        query: StreamingQuery,
        holding: Mapping[Partition, int | None],
        *,
        waits: bool = False,
    ) -> None:
        """Publish what Spark says of a batch that is new, and that an idle query is alive;
        ``holding`` are the partitions that hold the watermark back. ``waits``: Kafka has answered,
        and no batch begins."""
        if waits:
            self._health.ready()
        if not query.status["isDataAvailable"]:
            self._health.progressed()
        for progress in progress_after(query, self._seen_batch):
            # An idle query goes on adding progress with the number of the batch to come.
            if is_batch(progress):
                self._seen_batch = progress["batchId"]
                self._batch_committed(progress)
        self._look_at_machine()
        self.event_time.look(holding)

    def query_ended(self) -> None:
        """No batch runs any longer."""
        self._running = None
        self.event_time.query_ended()
        if self._traces is not None:
            self._traces.query_ended()

    def _batch_committed(self, progress: Mapping[str, Any]) -> None:
        """Spark has committed a batch, for good."""
        self._start.done(Phase.COMMIT)
        self.rules.committed(progress["batchId"])
        publish_progress(progress, self._metrics)
        if self._traces is not None:
            self._traces.committed(progress)
        read, ends = offsets_read(progress)
        self.lag.read(read, ends)
        self.position.read(read)

    def _look_at_machine(self) -> None:
        now = time.monotonic()
        if now - self._looked_at_machine < _MACHINE_EVERY_SECONDS:
            return
        self._looked_at_machine = now
        self._look_at_disk()
        jvm = driver_jvm()
        self._metrics.replace(names.MEMORY, by_process(self._processes.values(), jvm.process))
        self._metrics.replace(names.JVM_HEAP, {("used",): jvm.heap, ("max",): jvm.most_heap})
        self._metrics.replace(names.JVM_DIRECT, {("used",): jvm.direct, ("max",): jvm.most_direct})

    def _look_at_disk(self) -> None:
        room: dict[tuple[str, ...], float] = {}
        if self._checkpoint is not None:
            try:
                disk = shutil.disk_usage(self._checkpoint)
            except OSError:  # what cannot be read is not shown; batches fail of it themselves
                pass
            else:
                room = {("free",): disk.free, ("size",): disk.total}
        self._metrics.replace(names.CHECKPOINT_DISK, room)
