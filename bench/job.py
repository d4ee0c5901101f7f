"""Our side: ``python -m bench.job`` runs the whole job over a topic, as often as asked.

The protocol is that of :mod:`bench.side`. All runs share a Spark session; each has settings,
checkpoint and outputs of its own. What can be asked, by ``do``:

* ``run``: the service, to the end of the topic, until ``until_events`` are read, or, with
  ``until_asked``, until another line comes; where it refuses the rules the answer is why;
* ``ceiling``: Spark alone reading the topic, with the service's options, into a sink that drops
  everything;
* ``counting``: Spark alone counting rows (:mod:`bench.spark_alone`) in so many ``batches``, by a
  Python operator if ``in_python``;
* ``state``: what a checkpoint holds;
* ``memory``: how much the JVM has needed since it started.

The clock of ``run`` and ``ceiling`` starts when Spark launches the first task that reads records
(a little before it has read one) and ends when the last output is committed, or, for the ceiling,
when the last batch ends.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.spark_alone import count_rows
from spark_cep.config import Settings
from spark_cep.errors import RuleSetError
from spark_cep.observability.logs import configure
from spark_cep.observability.metric_names import RULE_SET, STAGE_DURATION
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.commands.state_report import read_state
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.driver.service import Service
from spark_cep.pipeline.spark.session import spark_session
from spark_cep.pipeline.wire.reports import Count
from supply_chain.jars import resolve

#: So many batches of a query Spark remembers.
_MOST_BATCHES = 10_000
_LOOK_SECONDS = 0.02
_TOTALS = {
    "events": Count.RECORDS,
    "matches": Count.MATCHED,
    "timeouts": Count.TIMED_OUT,
    "late": Count.LATE_EVENTS,
    "dead_letters": Count.DEAD_LETTERS,
}


#: Where set-up puts jars.
_JARS = Path(__file__).parents[1] / ".work" / "jars"
#: Of Java's client, with which Spark's own source of Kafka reads half as many events again.
_FETCHES = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.receive.buffer.bytes": str(4 << 20),
    "kafka.fetch.max.wait.ms": "1",
}


def batches_of(query: StreamingQuery) -> list[dict[str, Any]]:
    """What Spark says of each batch of a query. A listener in Python would take a tenth of a second
    of processor time for each."""
    found = []
    for progress in query.recentProgress:
        milliseconds = dict(progress.durationMs)
        if "addBatch" not in milliseconds:
            continue  # a trigger that found nothing
        seconds = milliseconds["triggerExecution"] / 1000
        found.append(
            {
                "batch": progress.batchId,
                "rows": progress.numInputRows,
                "seconds": seconds,
                "ended": datetime.fromisoformat(progress.timestamp).timestamp() + seconds,
                "milliseconds": milliseconds,
            }
        )
    return found


def first_read(spark: SparkSession, query: str) -> float | None:
    """When the first task that read records was launched, in seconds since 1970; ``query`` is the
    id of the query's run."""
    session: Any = spark
    store = session._jsparkSession.sparkContext().statusStore()  # noqa: SLF001
    tracker = spark.sparkContext.statusTracker()
    launched = []
    for job in tracker.getJobIdsForGroup(query):
        info = tracker.getJobInfo(job)
        for stage in () if info is None else info.stageIds:
            data = store.lastStageAttempt(stage)
            if data.inputRecords() > 0 and data.firstTaskLaunchedTime().isDefined():
                launched.append(data.firstTaskLaunchedTime().get().getTime() / 1000)
    return min(launched, default=None)


def jvm_memory(spark: SparkSession) -> dict[str, float]:
    """MiB: the most that was used of the heap, between collections, too, and of Arrow's buffers,
    which are direct memory; and what the heap may take."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  there is no public way
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    heap = sum(
        pool.getPeakUsage().getUsed()
        for pool in pools
        if pool.getType().toString().startswith("Heap")
    )
    arrow = jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator().getPeakMemoryAllocation()
    most = jvm.java.lang.Runtime.getRuntime().maxMemory()
    figures = {"heap": heap, "arrow": arrow, "heap_limit": most}
    return {name: round(size / 2**20) for name, size in figures.items()}


class JobRun:
    """One run of the service: when it began to read, when it committed, and what it found."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self._spark = spark
        self._metrics = Metrics()
        self._service = Service(settings, self._metrics, on_batch=self._after, spark=spark)
        self._began: float | None = None
        self._query: StreamingQuery | None = None
        self._committed = 0.0
        self._found: Counter[str] = Counter()
        self._records: dict[int, int] = {}
        self._until: int | None = None
        #: Numbers of rule sets, and when the job said that a batch under it is committed.
        self._rule_sets: list[tuple[float, float]] = []

    def go(self, until_events: int | None, until_asked: bool) -> dict[str, Any]:
        """Run to the end of input, or until so many events are read or another line comes."""
        self._until = until_events
        ended = threading.Event()
        watch = threading.Thread(target=self._follow_rules, args=(ended,), daemon=True)
        watch.start()
        if until_asked:
            threading.Thread(target=self._stop_when_asked, daemon=True).start()
        self._service.run()
        ended.set()
        watch.join()
        if self._query is None:
            raise RuntimeError("the job ran no batch")
        if self._began is None:
            # Spark told of the only batch a little late.
            self._began = first_read(self._spark, str(self._query.runId))
        if self._began is None:
            raise RuntimeError("the job read nothing")
        batches = batches_of(self._query)
        for batch in batches:
            # Spark's rows are packets.
            batch["rows"] = self._records.get(batch["batch"], 0)
        # The job's metrics have Spark's stages of batches that it looked at in time, these of all.
        of_spark: Counter[str] = Counter()
        for batch in batches:
            of_spark.update(batch["milliseconds"])
        return {
            "batches": batches,
            "rule_sets": self._rule_sets,
            "seconds": self._committed - self._began,
            **{name: self._found[name] for name in _TOTALS},
            "stages": self._stages() | {name: spent / 1000 for name, spent in of_spark.items()},
        }

    def _after(self, report: BatchReport) -> None:
        now = time.time()
        if self._query is None:
            (self._query,) = self._spark.streams.active
        if self._began is None:
            self._began = first_read(self._spark, str(self._query.runId))
        self._records[report.batch] = report.total(Count.RECORDS)
        if report.total(Count.RECORDS) or report.total(Count.WRITTEN):
            self._committed = now
        self._found.update({name: report.total(what) for name, what in _TOTALS.items()})
        if self._until is not None and self._found["events"] >= self._until:
            self._service.stop()

    def _stop_when_asked(self) -> None:
        sys.stdin.readline()
        self._service.stop()

    def _follow_rules(self, ended: threading.Event) -> None:
        number = None
        # All metrics would take a tenth of the processor.
        only = self._metrics.registry.restricted_registry([RULE_SET.name])
        while not ended.wait(_LOOK_SECONDS):
            now = next((s.value for metric in only.collect() for s in metric.samples), None)
            if now is not None and now != number:
                number = now
                self._rule_sets.append((now, time.time()))

    def _stages(self) -> dict[str, float]:
        """Seconds by stage, as the job's own metrics have them."""
        return {
            sample.labels["stage"]: round(sample.value, 4)
            for family in self._metrics.registry.collect()
            for sample in family.samples
            if sample.name == f"{STAGE_DURATION.name}_sum"
        }


class OurSide:
    """Answers requests with one Spark session."""

    def __init__(self) -> None:
        self._spark: SparkSession | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what was asked for."""
        settings = Settings.model_validate(request["settings"])
        if self._spark is None:
            self._spark = spark_session(settings)
            self._spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", _MOST_BATCHES)
        if request["do"] == "run":
            try:
                return JobRun(self._spark, settings).go(
                    request.get("until_events"), bool(request.get("until_asked"))
                )
            except RuleSetError as error:
                return {"refused": str(error)}
        if request["do"] == "ceiling":
            return self._ceiling(self._spark, settings)
        if request["do"] == "counting":
            count, in_python = int(request["batches"]), bool(request["in_python"])
            return self._counting(self._spark, settings, count, in_python=in_python)
        if request["do"] == "state":
            total = read_state(settings, spark=self._spark).total
            return {
                "bytes": total.bytes,
                "keys": total.keys,
                "partial_matches": total.partial_matches,
                "waiting": total.waiting,
            }
        if request["do"] == "memory":
            return jvm_memory(self._spark)
        raise ValueError(
            f"nothing is called {request['do']!r}: run, ceiling, counting, state or memory"
        )

    def _ceiling(self, spark: SparkSession, settings: Settings) -> dict[str, Any]:
        checkpoint = f"{settings.state.checkpoint}.ceiling"
        (source,) = settings.inputs.values()
        options = {
            "kafka.bootstrap.servers": settings.kafka.bootstrap_servers,
            "subscribe": ",".join(source.topics),
            "startingOffsets": "earliest",
            **_FETCHES,
        }
        if settings.source.max_offsets_per_trigger is not None:
            options["maxOffsetsPerTrigger"] = str(settings.source.max_offsets_per_trigger)
        for jar in resolve("bench", _JARS):
            spark.sql(f"ADD JAR '{jar}'")
        records = spark.readStream.format("kafka").options(**options).load()
        query = (
            records.writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = batches_of(query)
        began = first_read(spark, str(query.runId))
        shutil.rmtree(checkpoint, ignore_errors=True)
        if began is None:
            raise RuntimeError("Spark read nothing")
        return {
            "seconds": max(one["ended"] for one in batches) - began,
            "events": sum(one["rows"] for one in batches),
            "batches": batches,
        }

    def _counting(
        self, spark: SparkSession, settings: Settings, count: int, *, in_python: bool
    ) -> dict[str, Any]:
        query = count_rows(spark, settings, count, in_python=in_python)
        # The source has no end, so more batches may have ended.
        batches = batches_of(query)[:count]
        return {
            "seconds": sum(one["seconds"] for one in batches),
            "events": sum(one["rows"] for one in batches),
            "batches": batches,
        }


def main() -> None:
    """Answer until there is nothing more to answer."""
    answers = _own_standard_output()
    configure("warning", "json")
    side = OurSide()
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        print(json.dumps(side.answer(json.loads(line))), file=answers)


def _own_standard_output() -> TextIO:
    """Standard output for answers alone; what else is printed, by children too, goes to the log."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    main()
