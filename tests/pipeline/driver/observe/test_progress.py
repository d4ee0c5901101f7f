"""From reports and Spark's progress to metrics."""

from collections import Counter

import pytest
from prometheus_client.samples import Sample

from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.kafka.input_position import Lag
from spark_cep.pipeline.driver.observe.progress import BatchReport, begin_topics, count, merge, show
from spark_cep.pipeline.driver.observe.query_progress import (
    is_batch,
    offsets_read,
    publish_progress,
)
from spark_cep.pipeline.wire.reports import Count, EventTime, LostRecords, PartitionRead, Report

REPORTS = [
    Report(
        Counter({(Count.RECORDS, "t"): 10, (Count.BYTES, "t"): 700}),
        partitions_read=(PartitionRead("t", 0, 5, 1_500), PartitionRead("t", 1, 5, None)),
    ).encode(),
    Report(
        Counter(
            {
                (Count.MATCHED, "abc"): 2,
                (Count.MATCH_ROWS, "abc"): 5,
                (Count.EVENTS, "abc"): 9,
                (Count.PRUNED, "abc"): 4,
                (Count.RULE_DEAD_LETTERS, "abc", "1", "limit_reached"): 1,
                (Count.RULE_DEAD_LETTERS, "abc", "2", "limit_reached"): 1,
                (Count.PROCESSING_NS, "abc"): 250_000_000,
                (Count.LATE_EVENTS, "events"): 1,
                (Count.BUSY_US, "match"): 1_500_000,
            }
        ),
        live={("abc", 1): 4},
        time=EventTime(1_000, {("t", 0): 1_500, ("t", 1): None}),
    ).encode(),
    Report(Counter({(Count.MATCHED, "abc"): 1}), live={("abc", 1): 5}).encode(),
    Report(
        Counter({(Count.WRITTEN, "cep.matches"): 3, (Count.WRITTEN_BYTES, "cep.matches"): 90})
    ).encode(),
]


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    """What a scrape would show."""
    return metrics.registry.get_sample_value(name, labels)


def test_reports_of_a_batch_are_summed() -> None:
    """Counts and live partial matches add up; the clock comes from one group."""
    report = merge(3, 0.5, REPORTS)
    assert report.total(Count.RECORDS) == 10
    assert report.total(Count.MATCHED) == 3
    assert report.live == {("abc", 1): 9}
    assert [read.partition for read in report.partitions_read] == [0, 1]
    assert (report.watermark, dict(report.maxima)) == (1_000, {("t", 0): 1_500, ("t", 1): None})


def test_lost_records_of_several_tasks() -> None:
    """Of a range that was cut they are one gap; of others, or with records between, several."""
    met = [("t", 1, 5, 9), ("t", 0, 5, 9), ("s", 0, 9, 11), ("t", 0, 2, 5), ("t", 0, 10, 12)]
    reports = [Report(lost=(LostRecords(*each),)).encode() for each in met]
    lost = [("s", 0, 9, 11), ("t", 0, 2, 9), ("t", 0, 10, 12), ("t", 1, 5, 9)]
    assert merge(3, 0.5, reports).lost == lost


def test_counters_of_topics_begin_at_0() -> None:
    """All that alerts divide by or look at is there before the first batch."""
    metrics = Metrics()
    begin_topics(metrics, ["a", "b"])
    for topic in ("a", "b"):
        assert value(metrics, "spark_cep_records_consumed_total", topic=topic) == 0
        assert value(metrics, "spark_cep_late_events_total", topic=topic) == 0
        assert value(metrics, "spark_cep_records_lost_total", topic=topic) == 0


def test_a_batch_is_counted_once_per_metric() -> None:
    """Every count of a report reaches its metric with its label."""
    metrics = Metrics()
    report = merge(3, 0.5, REPORTS)
    count(report, metrics, {"cep.matches": "match"})
    show(report, metrics)
    assert value(metrics, "spark_cep_records_consumed_total", topic="t") == 10
    assert value(metrics, "spark_cep_matches_total", rule="abc") == 3
    assert value(metrics, "spark_cep_match_rows_total", rule="abc") == 5
    assert value(metrics, "spark_cep_consumed_bytes_total", topic="t") == 700
    assert value(metrics, "spark_cep_rule_events_total", rule="abc") == 9
    assert value(metrics, "spark_cep_partial_matches_pruned_total", rule="abc") == 4
    errors = "spark_cep_rule_errors_total"
    assert value(metrics, errors, rule="abc", reason="limit_reached") == 2
    assert value(metrics, "spark_cep_rule_processing_seconds_total", rule="abc") == 0.25
    # A topic may be called like what is counted of rules.
    assert value(metrics, "spark_cep_late_events_total", topic="events") == 1
    out = {"kind": "match", "topic": "cep.matches"}
    assert value(metrics, "spark_cep_output_records_total", **out) == 3
    assert value(metrics, "spark_cep_output_bytes_total", **out) == 90
    assert value(metrics, "spark_cep_partial_matches", rule="abc") == 9
    assert value(metrics, "spark_cep_watermark_timestamp_seconds") == 1.0
    newest = "spark_cep_newest_event_timestamp_seconds"
    assert value(metrics, newest, topic="t", partition="0") == 1.5
    assert value(metrics, newest, topic="t", partition="1") is None
    assert value(metrics, "spark_cep_stage_duration_seconds_sum", stage="match") == 1.5


PROGRESS = {
    "durationMs": {"addBatch": 250, "walCommit": 50, "triggerExecution": 400},
    "stateOperators": [
        {
            "numRowsTotal": 5,
            "numRowsUpdated": 2,
            "memoryUsedBytes": 100,
            "commitTimeMs": 30,
            "customMetrics": {
                "rocksdbCommitFlushLatency": 20,
                "rocksdbBytesCopied": 4096,
                "rocksdbReadBlockCacheHitCount": 7,
                "rocksdbSstFileSize": 1000,
            },
        }
    ],
    "sources": [
        {
            "description": "input",
            "endOffset": {
                "control": {"run": "r"},
                "input": {"t": {"0": 10, "1": 4}},
                "key_groups": 2,
            },
            "latestOffset": '{"control": {}, "input": {"t": {"0": 12, "1": 4}}, "key_groups": 2}',
        },
    ],
}


def test_progress_gives_phases_and_state() -> None:
    """What Spark says of a batch is published; the phases sum up to the batch."""
    metrics = Metrics()
    publish_progress(PROGRESS, metrics)
    phase = "spark_cep_batch_phase_duration_seconds_sum"
    assert value(metrics, phase, phase="run") == 0.25
    assert value(metrics, phase, phase="wal_commit") == 0.05
    assert value(metrics, phase, phase="other") == 0.1
    assert value(metrics, "spark_cep_state_rows") == 5
    assert value(metrics, "spark_cep_state_rows_updated_total") == 2
    assert value(metrics, "spark_cep_state_file_bytes") == 1000
    assert value(metrics, "spark_cep_stage_duration_seconds_sum", stage="state_commit") == 0.03
    assert value(metrics, "spark_cep_rocksdb_duration_seconds_sum", phase="flush") == 0.02
    assert value(metrics, "spark_cep_rocksdb_bytes_total", direction="copied") == 4096
    assert value(metrics, "spark_cep_rocksdb_block_cache_reads_total", result="hit") == 7


def test_a_trigger_without_batch_is_told_apart() -> None:
    """Spark reports it with the number of the batch to come."""
    assert is_batch(PROGRESS)
    assert not is_batch({"batchId": 1, "durationMs": {"latestOffset": 7, "triggerExecution": 7}})


def test_lag_in_records_and_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources but Kafka have none. Seconds go on growing while records are left, also when no
    batch ends, and are 0 where nothing is left."""
    now = 1_000.0
    monkeypatch.setattr("time.time", lambda: now)
    metrics = Metrics()
    lag = Lag(metrics)
    lag.arrived(
        PartitionRead("t", partition, timestamp, 1)
        for partition, timestamp in ((0, 940_000), (1, 900_000), (0, 930_000))
    )
    lag.read(*offsets_read(PROGRESS))
    records, seconds = "spark_cep_consumer_lag_records", "spark_cep_consumer_lag_seconds"
    assert value(metrics, records, topic="t", partition="0") == 2
    assert value(metrics, records, topic="t", partition="1") == 0
    assert value(metrics, seconds, topic="t", partition="0") == 60
    assert value(metrics, seconds, topic="t", partition="1") == 0
    now += 5
    lag.ends({("t", 0): 30, ("t", 1): 5})
    assert value(metrics, records, topic="t", partition="0") == 20
    assert value(metrics, seconds, topic="t", partition="0") == 65
    assert value(metrics, seconds, topic="t", partition="1") == 105


def test_lag_of_a_topic_that_was_made_again() -> None:
    """Its end of before is no lag."""
    metrics = Metrics()
    lag = Lag(metrics)
    lag.read({("t", 0): 1_000}, {("t", 0): 1_000})
    lag.read({("t", 0): 3}, {("t", 0): 5})
    records = "spark_cep_consumer_lag_records"
    assert value(metrics, records, topic="t", partition="0") == 2


def test_lag_is_absent_while_nobody_knows_it() -> None:
    """Kafka does not say where partitions end: nothing is shown, also when a batch ends, until it
    says so again."""
    metrics = Metrics()
    lag = Lag(metrics)
    lag.read(*offsets_read(PROGRESS))
    shown = ("spark_cep_consumer_lag_records", "spark_cep_consumer_lag_seconds")
    lag.unknown()
    assert not [s for s in samples(metrics) if s.name in shown]
    lag.read(*offsets_read(PROGRESS))
    assert not [s for s in samples(metrics) if s.name in shown]
    lag.ends({("t", 0): 30})
    assert value(metrics, shown[0], topic="t", partition="0") == 20


@pytest.mark.parametrize("what", [each for each in Count if each is not Count.PARTLY_USED])
def test_every_count_has_a_metric(what: Count) -> None:
    """None is sent for nothing: each shows in a sample with the values of its labels, but for
    versions of rules, and for what the circuit breaker alone asks for."""
    metrics = Metrics()
    before = {(s.name, *s.labels.values()): s.value for s in samples(metrics)}
    closed = {"stage": "match", "result": "committed"}
    values = [closed.get(label, label) for label in what.labels]
    report = BatchReport(1, counts=Counter({(what, *values): 7}))
    count(report, metrics, {"topic": "match"})
    shown = [
        s for s in samples(metrics)
        if s.value != before.get((s.name, *s.labels.values()), 0) and "batch" not in s.name
    ]  # fmt: skip
    told = {one for one, label in zip(values, what.labels, strict=True) if label != "version"}
    assert any(told <= set(s.labels.values()) for s in shown)


def samples(metrics: Metrics) -> list[Sample]:
    """All that a scrape would show, without the times at which it began."""
    families = metrics.registry.collect()
    return [s for f in families for s in f.samples if not s.name.endswith("_created")]
