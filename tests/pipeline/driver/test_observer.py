"""What is counted and shown of batches, whatever becomes of the query in between."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.openmetrics import exposition as openmetrics

from spark_cep.config import OutputTopicNames, Settings
from spark_cep.observability.health import Health
from spark_cep.observability.metrics import Metrics
from spark_cep.observability.traces import TraceWriter
from spark_cep.pipeline.driver import observer as driver_observer
from spark_cep.pipeline.driver.lifecycle.run import Run
from spark_cep.pipeline.driver.observe.batch_traces import BatchTraces
from spark_cep.pipeline.driver.observer import Observer
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.pipeline.wire.reports import Count, Counts, LostRecords, Report

REPORT = Report(
    Counter({(Count.RECORDS, "t"): 7, (Count.MATCHED, "abc"): 2}),
    live={("abc", 1): 4},
    match_times=((1_000, 2),),
).encode()


@pytest.fixture
def metrics() -> Metrics:
    """Metrics of their own."""
    return Metrics()


@pytest.fixture
def observer(metrics: Metrics, tmp_path: Path) -> Observer:
    """An observer of a run that there is not."""
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": {"t": {"topics": ["t"]}},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": str(tmp_path / "checkpoint")},
            "rules": {"folder": str(tmp_path / "rules")},
        }
    )
    rules = RuleStatus(metrics)
    return Observer(Run(settings, metrics, Health(60_000)), rules, lambda _: None)


def _value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def _run(observer: Observer, batch: int) -> None:
    observer.batch_started(batch)
    observer.batch_done(batch, [REPORT])


def test_a_batch_that_comes_again_is_counted_once(observer: Observer, metrics: Metrics) -> None:
    """Its output was committed, then the query failed and was restarted; the next one counts."""
    _run(observer, 3)
    _run(observer, 3)
    assert _value(metrics, "spark_cep_records_consumed_total", topic="t") == 7
    assert _value(metrics, "spark_cep_matches_total", rule="abc") == 2
    assert _value(metrics, "spark_cep_match_latency_seconds_count") == 2
    assert _value(metrics, "spark_cep_batches_total", result="done") == 1
    assert _value(metrics, "spark_cep_partial_matches", rule="abc") == 4
    _run(observer, 4)
    assert _value(metrics, "spark_cep_records_consumed_total", topic="t") == 14


def test_records_are_counted_by_the_kind_of_their_topic(
    observer: Observer, metrics: Metrics
) -> None:
    """What is written to each output topic has a kind of its own."""
    topics = OutputTopicNames()
    written: Counts = Counter(
        {(Count.WRITTEN, topic): n for n, topic in enumerate(topics.all(), 1)}
    )
    observer.batch_started(3)
    observer.batch_done(3, [Report(written).encode()])
    kinds = ("match", "timeout", "match_row", "late", "dead_letter", "shadow")
    for number, (kind, topic) in enumerate(zip(kinds, topics.all(), strict=True), 1):
        labels = {"kind": kind, "topic": topic}
        assert _value(metrics, "spark_cep_output_records_total", **labels) == number


def test_a_batch_that_fails_is_not_counted(observer: Observer, metrics: Metrics) -> None:
    """It has no reports; run again, it has."""
    observer.batch_started(3)
    assert (_value(metrics, "spark_cep_batch_running_seconds") or 0) > 0
    observer.query_ended()
    assert _value(metrics, "spark_cep_batch_running_seconds") == 0
    _run(observer, 3)
    assert _value(metrics, "spark_cep_batches_total", result="done") == 1
    assert _value(metrics, "spark_cep_batch_running_seconds") == 0


def _progress(batch: int, **durations: int) -> dict[str, Any]:
    operators = [{"numRowsTotal": 1, "numRowsUpdated": 1, "memoryUsedBytes": 1}]
    return {
        "batchId": batch,
        "durationMs": durations,
        "stateOperators": operators,
        "sources": [
            {
                "description": "input",
                "endOffset": {"control": {}, "input": {"t": {"0": batch}}, "key_groups": 2},
                "latestOffset": {"control": {}, "input": {"t": {"0": batch}}, "key_groups": 2},
            }
        ],
    }


def test_progress_of_every_batch_is_taken_once(
    observer: Observer, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trigger that found nothing has the number of the batch to come, and does not hide it;
    batches between two looks are not missed."""
    told: list[dict[tuple[str, int], int]] = []
    observer.position = SimpleNamespace(read=told.append)  # type: ignore[assignment]
    monkeypatch.setattr(observer, "_look_at_machine", lambda: None)
    idle = {"latestOffset": 5, "triggerExecution": 5}
    done = {"addBatch": 100, "triggerExecution": 110}
    recent: list[SimpleNamespace] = []
    read: list[int] = []
    query: Any = SimpleNamespace(
        status={"isDataAvailable": True, "isTriggerActive": True, "message": "Processing"},
        _jsq=SimpleNamespace(lastProgress=lambda: recent[-1], recentProgress=lambda: recent),
    )

    def of_java(progress: dict[str, Any]) -> SimpleNamespace:
        def text() -> str:
            read.append(progress["batchId"])
            return json.dumps(progress)

        return SimpleNamespace(batchId=lambda: progress["batchId"], json=text)

    def look(*progress: dict[str, Any]) -> None:
        recent.extend(map(of_java, progress))
        observer.look_at(query, {})
        observer.look_at(query, {})

    look(_progress(0, **done))
    look(_progress(1, **idle))
    look(_progress(1, **done))
    read.clear()
    look(_progress(2, **done), _progress(3, **done), _progress(4, **idle))
    assert _value(metrics, "spark_cep_state_rows_updated_total") == 4
    assert [offsets["t", 0] for offsets in told] == [0, 1, 2, 3]
    # Those that were seen are not read again.
    assert read == [4, 3, 2, 4]
    read.clear()
    # However long the query is idle.
    look(*[_progress(4, **idle)] * 100)
    assert read == [4, 4]


def test_what_is_not_known_is_not_up_to_date(observer: Observer, metrics: Metrics) -> None:
    """Before the first watermark its delay is no number, and surely not 0."""
    assert math.isnan(_value(metrics, "spark_cep_watermark_lag_seconds") or 0)


def test_room_on_the_checkpoint_s_disk(
    observer: Observer, metrics: Metrics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Free and whole bytes of a local folder's disk; of a folder that is gone, none."""
    monkeypatch.setattr(driver_observer, "_MACHINE_EVERY_SECONDS", 0)
    idle: Any = SimpleNamespace(
        status={"isDataAvailable": False, "message": "", "isTriggerActive": False},
        _jsq=SimpleNamespace(lastProgress=lambda: None),
    )
    (tmp_path / "checkpoint").mkdir()
    observer.look_at(idle, {})
    disk = shutil.disk_usage(tmp_path)
    name = "spark_cep_checkpoint_disk_bytes"
    assert _value(metrics, name, area="size") == disk.total
    assert 0 < (_value(metrics, name, area="free") or 0) < disk.total
    (tmp_path / "checkpoint").rmdir()
    observer.look_at(idle, {})
    assert _value(metrics, name, area="free") is None


def test_lost_records_are_told_once(
    observer: Observer, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each gap, and a count; a batch that comes again says and counts nothing, though
    more may be gone by then."""
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(driver_observer._log, "error", lambda name, **v: told.append({name: v}))
    for end in (1_462, 1_465):
        lost = LostRecords("t", 0, 7, end)
        report = Report(Counter({(Count.LOST, "t"): lost.end - lost.start}), lost=(lost,))
        observer.batch_started(3)
        observer.batch_done(3, [report.encode()])
    (line,) = told
    assert line["records_lost"] == {
        "topic": "t", "partition": 0, "from_offset": 7, "to_offset": 1_461, "records": 1_455,
    }  # fmt: skip
    assert _value(metrics, "spark_cep_records_lost_total", topic="t") == 1_455


def test_matches_lead_to_their_batch_and_its_trace(observer: Observer, metrics: Metrics) -> None:
    """By exemplars; the trace is written when Spark has committed the batch, under that id."""
    exporter = InMemorySpanExporter()
    writer = TraceWriter(lambda: SimpleSpanProcessor(exporter), "logins", "abc")
    _run(observer, 2)
    observer.trace(BatchTraces(writer))
    _run(observer, 3)
    text = openmetrics.generate_latest(metrics.registry).decode()
    counted = r'^spark_cep_matches_total{rule="abc"} 4.0 # ({.*?}) 2.0'
    (line,) = re.findall(counted, text, re.MULTILINE)
    (trace,) = re.findall(r'{batch="3",trace_id="([0-9a-f]{32})"}', line)
    done = _progress(3, addBatch=100, triggerExecution=110)
    observer._batch_committed({**done, "timestamp": "2026-01-01T12:00:00.000Z"})
    root = exporter.get_finished_spans()[-1]
    assert root.context is not None
    assert (root.name, f"{root.context.trace_id:032x}") == ("batch", trace)
    assert {**(root.attributes or {})}["spark_cep.matches"] == 2
