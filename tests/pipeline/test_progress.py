"""From reports and Spark's progress to metrics."""

import pytest

from service.observability.metrics import Metrics
from service.packing import pack
from service.pipeline.input_position import Lag
from service.pipeline.progress import count, merge, show
from service.pipeline.query_progress import is_batch, offsets_read, publish_progress
from service.pipeline.service import new_schema_ids

REPORTS = [
    pack(
        {
            "group": 0,
            "counts": [
                ["records", "t", "0", 7],
                ["records", "t", "1", 3],
                ["rule", "matched", "abc", 2],
                ["bytes", "t", 700],
                ["rule", "events", "abc", 9],
                ["rule", "pruned", "abc", 4],
                ["rule_dead_letters", "abc", "limit_reached", 2],
                ["processing_ns", "abc", 250_000_000],
                ["late", "events", 1],
                ["busy_us", "match", 1_500_000],
            ],
            "live": {"abc": 4},
            "clock": [1_000, [["t", 0, 1_500], ["t", 1, None]]],
        }
    ),
    pack(
        {"group": 1, "counts": [["rule", "matched", "abc", 1]], "live": {"abc": 5}, "clock": None}
    ),
    pack({"counts": [["written", "cep.matches", 3], ["written_bytes", "cep.matches", 90]]}),
]


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    """What a scrape would show."""
    return metrics.registry.get_sample_value(name, labels)


def test_reports_of_a_batch_are_summed() -> None:
    """Counts and live partial matches add up; the clock comes from one group."""
    report = merge(3, 0.5, REPORTS, "partition_minimum")
    assert report.total("records") == 10
    assert report.total("matched") == 3
    assert report.live == {"abc": 9}
    assert report.read == {("t", 0), ("t", 1)}
    assert (report.watermark, dict(report.maxima)) == (1_000, {("t", 0): 1_500, ("t", 1): None})


def test_a_batch_is_counted_once_per_metric() -> None:
    """Every count of a report reaches its metric with its label."""
    metrics = Metrics()
    report = merge(3, 0.5, REPORTS, "maximum")
    count(report, metrics, {"cep.matches": "match"})
    show(report, metrics)
    assert value(metrics, "spark_cep_records_consumed_total", topic="t") == 10
    assert value(metrics, "spark_cep_matches_total", rule="abc") == 3
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
            "description": "KafkaV2[Subscribe[t]]",
            "endOffset": {"t": {"0": 10, "1": 4}},
            "latestOffset": '{"t": {"0": 12, "1": 4}}',
        },
        {"description": "clock", "endOffset": {"number": 1}, "latestOffset": None},
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
    lag.arrived([["t", 0, 940_000, 1], ["t", 1, 900_000, 1], ["t", 0, 930_000, 1]])
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


def test_new_schema_ids_are_read_out_of_an_error() -> None:
    """The driver learns the ids from the text of the failed batch; other errors hold none."""
    text = "Traceback …\nNewSchemaIdsError: SPARK_CEP_NEW_SCHEMA_IDS:7,12;\n at org.apache…"
    assert new_schema_ids(text) == [7, 12]
    assert new_schema_ids("OutOfMemoryError") == []
