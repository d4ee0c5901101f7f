"""The table of metrics, and that nothing outside of it can be counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from spark_cep.observability import metric_names as names
from spark_cep.observability.metrics import Metrics
from spark_cep.observability.metrics_page import render_reference

ROOT = Path(__file__).parents[2]


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    """The value of a series as scraped."""
    return metrics.registry.get_sample_value(name, labels)


def test_reference_is_up_to_date() -> None:
    """docs/metrics.md is what the table gives."""
    assert (ROOT / "docs/metrics.md").read_text() == render_reference()


@pytest.mark.parametrize("metric", names.METRICS, ids=lambda metric: metric.name)
def test_names_follow_prometheus(metric: names.Metric) -> None:
    """Prefix, characters, ``_total`` on counters alone, base units."""
    assert re.fullmatch(r"spark_cep_[a-z][a-z_]*[a-z]", metric.name)
    assert metric.name.endswith("_total") == isinstance(metric, names.Counter)
    assert metric.help.endswith(".")
    assert not re.search(r"_(ms|millis|minutes|hours|kb|mb|percent)(_|$)", metric.name)
    if isinstance(metric, names.Histogram):
        assert metric.name.endswith("_seconds")


def test_table_is_complete() -> None:
    """Every metric has a name of its own, and its row in the page."""
    page = (ROOT / "docs/metrics.md").read_text("utf-8")
    shown = re.findall(r"^\| `(spark_cep_\w+)` \|", page, re.MULTILINE)
    assert shown == [metric.name for metric in names.METRICS]
    assert len(set(shown)) == len(shown) > 50


def test_counters_of_closed_sets_begin_at_0() -> None:
    """All series of a counter whose label values are known are there before anything is counted; of
    the others there is none."""
    metrics = Metrics()
    for result in ("done", "failed"):
        assert value(metrics, "spark_cep_offset_commits_total", result=result) == 0
        assert value(metrics, "spark_cep_batches_total", result=result) == 0
    for reason in ("new_schema", "kafka_unavailable", "source_process_lost", "executor_lost"):
        assert value(metrics, "spark_cep_query_restarts_total", reason=reason) == 0
    assert b"spark_cep_late_events_total{" not in generate_latest(metrics.registry)


def test_scrape_has_what_was_counted() -> None:
    """Counters, gauges and histograms come out under their names."""
    metrics = Metrics()
    metrics.increment(names.RECORDS_CONSUMED, 5, topic="in")
    metrics.increment(names.EVENTS_RELEVANT)
    metrics.set(names.WATERMARK, 1.5)
    metrics.set(names.CONSUMER_LAG, 7, topic="in", partition="0")
    metrics.observe(names.STAGE_DURATION, 0.2, stage="match")
    metrics.observe(names.BATCH_DURATION, 0.3)
    assert value(metrics, "spark_cep_records_consumed_total", topic="in") == 5
    assert value(metrics, "spark_cep_events_relevant_total") == 1
    assert value(metrics, "spark_cep_watermark_timestamp_seconds") == 1.5
    assert value(metrics, "spark_cep_consumer_lag_records", topic="in", partition="0") == 7
    assert value(metrics, "spark_cep_stage_duration_seconds_count", stage="match") == 1
    assert value(metrics, "spark_cep_batch_duration_seconds_bucket", le="0.5") == 1
    text = generate_latest(metrics.registry).decode()
    assert "# TYPE spark_cep_records_consumed_total counter" in text
    assert "_created" not in text


def test_only_the_table_counts() -> None:
    """A metric that is not in the table, wrong labels and a falling counter are refused."""
    metrics = Metrics()
    with pytest.raises(ValueError, match="not in the table"):
        metrics.increment(names.Counter("spark_cep_new_total", "New."))
    with pytest.raises(ValueError, match="has the labels"):
        metrics.increment(names.MATCHES, topic="in")
    with pytest.raises(ValueError, match="only goes up"):
        metrics.increment(names.EVENTS_RELEVANT, -1)
    with pytest.raises(ValueError, match="give it whole"):
        metrics.set(names.PARTIAL_MATCHES, 1, rule="a")
    with pytest.raises(ValueError, match="use set"):
        metrics.replace(names.WATERMARK, {(): 1})
    with pytest.raises(ValueError, match="has the labels rule, version"):
        metrics.replace(names.RULES_LOADED, {("a",): 1})


def test_rules_beyond_the_cap_are_other() -> None:
    """The first rules keep their series; the rest share one, and gauges add up in it."""
    metrics = Metrics(max_rule_labels=2)
    for rule in ("a", "b", "c", "d", "a"):
        metrics.increment(names.MATCHES, rule=rule)
    assert value(metrics, "spark_cep_matches_total", rule="a") == 2
    assert value(metrics, "spark_cep_matches_total", rule="other") == 2
    assert value(metrics, "spark_cep_matches_total", rule="c") is None
    metrics.replace(names.PARTIAL_MATCHES, {("a",): 1, ("c",): 10, ("d",): 20})
    assert value(metrics, "spark_cep_partial_matches", rule="other") == 30


def test_a_rule_that_is_gone_is_forgotten() -> None:
    """Its series go, others stay, and its label is free for another rule."""
    metrics = Metrics(max_rule_labels=2)
    for rule in ("a", "b", "c"):
        metrics.increment(names.MATCHES, rule=rule)
    metrics.increment(names.RULE_ERRORS, rule="a", reason="condition_failed")
    metrics.forget_rule("a")
    assert value(metrics, "spark_cep_matches_total", rule="a") is None
    labels = {"rule": "a", "reason": "condition_failed"}
    assert value(metrics, "spark_cep_rule_errors_total", **labels) is None
    metrics.increment(names.MATCHES, rule="d")
    found = [value(metrics, "spark_cep_matches_total", rule=rule) for rule in ("b", "d", "other")]
    assert found == [1, 1, 1]


def test_replaced_gauges_forget_what_is_gone() -> None:
    """A rule that is no longer loaded has no series."""
    metrics = Metrics()
    metrics.replace(names.RULES_LOADED, {("a", "1"): 1, ("b", "1"): 1})
    metrics.replace(names.RULES_LOADED, {("a", "2"): 1})
    assert value(metrics, "spark_cep_rules_loaded_info", rule="a", version="2") == 1
    assert value(metrics, "spark_cep_rules_loaded_info", rule="a", version="1") is None
    assert value(metrics, "spark_cep_rules_loaded_info", rule="b", version="1") is None


def test_two_processes_worth_of_metrics_do_not_meet() -> None:
    """Each object has a registry of its own."""
    first, second = Metrics(), Metrics()
    first.increment(names.EVENTS_RELEVANT)
    assert value(second, "spark_cep_events_relevant_total") == 0


def test_many_observations_at_once() -> None:
    """They fall into their bucket, and those above, together; also beyond the last bound."""
    metrics = Metrics()
    metrics.observe(names.MATCH_LATENCY, 0.5, 1000)
    metrics.observe(names.MATCH_LATENCY, 1e6, 2)
    bucket = "spark_cep_match_latency_seconds_bucket"
    assert [value(metrics, bucket, le=le) for le in ("0.25", "0.5", "3600.0", "+Inf")] == [
        0,
        1000,
        1000,
        1002,
    ]
    assert value(metrics, "spark_cep_match_latency_seconds_count") == 1002
    assert value(metrics, "spark_cep_match_latency_seconds_sum") == 1000 * 0.5 + 2e6


def test_a_gauge_can_follow() -> None:
    """It has the value of the moment in which it is read."""
    metrics = Metrics()
    seconds = [1.0]
    metrics.follow(names.BATCH_RUNNING, lambda: seconds[0])
    assert value(metrics, "spark_cep_batch_running_seconds") == 1
    seconds[0] = 2.5
    assert value(metrics, "spark_cep_batch_running_seconds") == 2.5


def test_values_of_closed_labels() -> None:
    """One that is not in the table is refused, by name."""
    with pytest.raises(ValueError, match=r"found stage 'addBatch'; allowed: source, decode, pack"):
        Metrics().observe(names.STAGE_DURATION, 1, stage="addBatch")


def test_exemplars_lead_to_a_batch() -> None:
    """In the OpenMetrics format alone: of a counter, and of the buckets that were observed with
    one; the last one counts."""
    metrics = Metrics()
    for batch in ("6", "7"):
        metrics.increment(names.MATCHES, 2, {"batch": batch}, rule="r")
        metrics.observe(names.MATCH_LATENCY, 1.5, 3, {"batch": batch, "trace_id": "ab"})
    metrics.observe(names.MATCH_LATENCY, 7.0)
    text = openmetrics.generate_latest(metrics.registry).decode()
    shown = {
        line.split(" # ")[0]: line.split(" # ")[1].rsplit(" ", 1)[0]
        for line in text.splitlines()
        if " # {" in line
    }
    assert shown == {
        'spark_cep_matches_total{rule="r"} 4.0': '{batch="7"} 2.0',
        'spark_cep_match_latency_seconds_bucket{le="2.0"} 6.0': '{batch="7",trace_id="ab"} 1.5',
    }
    assert b" # {" not in generate_latest(metrics.registry)
