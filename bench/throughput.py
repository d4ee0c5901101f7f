"""Events per second of the whole job, next to what Spark alone reaches on the same topic.

The rule: three or more failed log-ins of a user, then one that succeeds, within a minute. The
ceiling is Spark reading the topic with the same options into a sink that drops everything. Both
run in the same session, in turn; times are Spark's own of each batch (``triggerExecution``), the
first batch (planning, code generation, Python workers) apart.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from bench.events import KNOWN_MATCHES, SCHEMA, produce
from examples.embedded import EmbeddedBroker, EmbeddedRegistry
from service.config import Settings
from service.pipeline.dataflow import source_options
from service.pipeline.progress import BatchReport
from service.pipeline.service import Service
from service.pipeline.session import spark_session

_TOPIC = "logins"
_RULE = """\
id: brute-force
key: user_id
pattern:
  - {step: fail, where: "event_type = 'login_fail'", times: 3+}
  - {step: ok, after: followed_by, where: "event_type = 'login_ok'"}
within: 1 minute
after_match: skip_past_last_event
"""


class Stopwatch(StreamingQueryListener):
    """Rows and seconds of every batch of the query that runs."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, float]] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """A query begins."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """A query ended."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Note a batch."""
        progress = event.progress
        seconds = progress.durationMs["triggerExecution"] / 1000
        self.batches.append((progress.numInputRows, seconds))

    def lap(self) -> list[tuple[int, float]]:
        """The batches since the last lap."""
        # Spark tells listeners a little after the fact.
        time.sleep(1.0)
        batches, self.batches = self.batches, []
        return batches


def measure(folder: Path, jars: Path, count: int, batch: int, runs: int) -> dict[str, Any]:
    """Run ceiling and job ``runs`` times in turn over ``count`` events; figures by name."""
    shutil.rmtree(folder, ignore_errors=True)
    with (
        EmbeddedBroker(folder / "broker", jars) as broker,
        EmbeddedRegistry(folder / "registry", jars) as registry,
    ):
        broker.create_topics({_TOPIC: 4})
        with SchemaRegistryClient({"url": registry.url}) as client:
            schema_id = client.register_schema(
                f"{_TOPIC}-value", Schema(json.dumps(SCHEMA), "AVRO")
            )
        produce(broker.bootstrap, _TOPIC, schema_id, count)
        rules = folder / "rules"
        rules.mkdir(parents=True)
        (rules / "brute-force.yaml").write_text(_RULE, "utf-8")
        first = _settings(folder, jars, broker.bootstrap, registry.url, batch, 0)
        spark = spark_session(first)
        try:
            watch = Stopwatch()
            spark.streams.addListener(watch)
            _ceiling(spark, watch, first, folder / "warm-up")
            results = []
            for run in range(runs):
                settings = _settings(folder, jars, broker.bootstrap, registry.url, batch, run)
                ceiling = _ceiling(spark, watch, settings, folder / f"ceiling-{run}")
                results.append(_job(spark, watch, settings, count) | {"ceiling": ceiling})
        finally:
            spark.stop()
    return _summary(results, count)


def _settings(
    folder: Path, jars: Path, bootstrap: str, registry: str, batch: int, run: int
) -> Settings:
    names = ("matches", "timeouts", "late", "dead_letters")
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": bootstrap},
            "registry": {"url": registry},
            "inputs": {"logins": {"topics": [_TOPIC], "event_time": "ts"}},
            "outputs": {"topics": {name: f"{name.replace('_', '-')}-{run}" for name in names}},
            "time": {"allowed_disorder": "1 second"},
            "source": {"max_offsets_per_trigger": batch},
            "state": {"checkpoint": str(folder / f"checkpoint-{run}")},
            "trigger": {"mode": "available_now", "at_end_of_input": "decide"},
            "spark": {"jars_folder": str(jars)},
            "rules": {"folder": str(folder / "rules")},
        }
    )


def _ceiling(
    spark: SparkSession, watch: Stopwatch, settings: Settings, checkpoint: Path
) -> list[tuple[int, float]]:
    """Batches of Spark alone, reading the topic."""
    records = spark.readStream.format("kafka").options(**source_options(settings)).load()
    query = (
        records.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return watch.lap()


def _job(spark: SparkSession, watch: Stopwatch, settings: Settings, count: int) -> dict[str, Any]:
    reports: list[BatchReport] = []
    Service(settings, on_batch=reports.append, spark=spark).run()
    total: Counter[tuple[str, str]] = Counter()
    for report in reports:
        total.update(report.counts)
    return {
        "job": watch.lap(),
        "matches": sum(report.total("matched") for report in reports),
        "timeouts": sum(report.total("timed_out") for report in reports),
        "busy": {label: us / 1e6 for (what, label), us in total.items() if what == "busy_us"},
        "expected_matches": KNOWN_MATCHES.get(count),
    }


def _rate(batches: list[tuple[int, float]]) -> float:
    """Events per second over batches that read something."""
    read = [(rows, seconds) for rows, seconds in batches if rows > 1]
    return sum(rows for rows, _ in read) / sum(seconds for _, seconds in read)


def _summary(results: list[dict[str, Any]], count: int) -> dict[str, Any]:
    rates = [_rate(result["job"]) for result in results]
    later = [_rate(result["job"][1:]) for result in results if len(result["job"]) > 2]
    ceilings = [_rate(result["ceiling"]) for result in results]
    shares = [rate / ceiling for rate, ceiling in zip(rates, ceilings, strict=True)]
    return {
        "events": count,
        "runs": len(results),
        "matches": [result["matches"] for result in results],
        "expected_matches": results[0]["expected_matches"],
        "timeouts": [result["timeouts"] for result in results],
        "events_per_second": [round(rate) for rate in rates],
        "events_per_second_after_first_batch": [round(rate) for rate in later],
        "ceiling_events_per_second": [round(rate) for rate in ceilings],
        "median_share_of_ceiling": round(statistics.median(shares), 3),
        "busy_seconds_over_tasks": {
            name: round(statistics.median(r["busy"].get(name, 0) for r in results), 2)
            for name in ("pack", "state_read", "match", "encode", "state_write", "sink")
        },
    }
