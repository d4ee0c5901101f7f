"""From reports and Spark's progress to metrics."""

from service.matcher.snapshot import pack
from service.observability.metrics import Metrics
from service.pipeline.progress import merge, publish
from service.pipeline.query_progress import publish_progress
from service.pipeline.service import new_schema_ids

REPORTS = [
    pack(
        {
            "group": 0,
            "counts": [
                ["records", "t", "0", 7],
                ["records", "t", "1", 3],
                ["abc", "matched", 2],
                ["late", "t", 1],
                ["busy_us", "match", 1_500_000],
            ],
            "live": {"abc": 4},
            "clock": [1_000, [["t", 0, 1_500], ["t", 1, None]]],
        }
    ),
    pack({"group": 1, "counts": [["abc", "matched", 1]], "live": {"abc": 5}, "clock": None}),
    pack({"counts": [["written", "cep.matches", 3]]}),
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
    publish(merge(3, 0.5, REPORTS, "maximum"), metrics, {"cep.matches": "match"})
    assert value(metrics, "spark_cep_records_consumed_total", topic="t") == 10
    assert value(metrics, "spark_cep_matches_total", rule="abc") == 3
    assert value(metrics, "spark_cep_late_events_total", topic="t") == 1
    assert value(metrics, "spark_cep_output_records_total", kind="match") == 3
    assert value(metrics, "spark_cep_partial_matches", rule="abc") == 9
    assert value(metrics, "spark_cep_watermark_timestamp_seconds") == 1.0
    newest = "spark_cep_newest_event_timestamp_seconds"
    assert value(metrics, newest, topic="t", partition="0") == 1.5
    assert value(metrics, newest, topic="t", partition="1") is None
    assert value(metrics, "spark_cep_stage_duration_seconds_sum", stage="match") == 1.5


def test_progress_gives_stages_state_and_lag() -> None:
    """What Spark says of a batch is published; other sources have no lag."""
    metrics = Metrics()
    publish_progress(
        {
            "durationMs": {"addBatch": 250},
            "stateOperators": [{"numRowsTotal": 5, "memoryUsedBytes": 100}],
            "sources": [
                {
                    "description": "KafkaV2[Subscribe[t]]",
                    "endOffset": {"t": {"0": 10, "1": 4}},
                    "latestOffset": '{"t": {"0": 12, "1": 4}}',
                },
                {"description": "clock", "endOffset": {"number": 1}, "latestOffset": None},
            ],
        },
        metrics,
    )
    assert value(metrics, "spark_cep_stage_duration_seconds_sum", stage="addBatch") == 0.25
    assert value(metrics, "spark_cep_state_rows") == 5
    assert value(metrics, "spark_cep_consumer_lag_records", topic="t", partition="0") == 2
    assert value(metrics, "spark_cep_consumer_lag_records", topic="t", partition="1") == 0


def test_new_schema_ids_are_read_out_of_an_error() -> None:
    """The driver learns the ids from the text of the failed batch; other errors hold none."""
    text = "Traceback …\nNewSchemaIdsError: SPARK_CEP_NEW_SCHEMA_IDS:7,12;\n at org.apache…"
    assert new_schema_ids(text) == [7, 12]
    assert new_schema_ids("OutOfMemoryError") == []
