"""Traces of batches: their spans, as a collector of OpenTelemetry would get them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spark_cep.observability.traces import TraceWriter
from spark_cep.pipeline.driver.observe.batch_traces import BatchTraces
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.wire.reports import Count

MS = 1_000_000
BEGAN = 1_767_268_800_000
PROGRESS = {
    "batchId": 7,
    "timestamp": "2026-01-01T12:00:00.000Z",
    "durationMs": {
        "latestOffset": 5, "walCommit": 20, "getBatch": 1, "queryPlanning": 4, "addBatch": 100,
        "commitOffsets": 30, "triggerExecution": 163,
    },
}  # fmt: skip
REPORT = BatchReport(
    7,
    counts=Counter(
        {
            (Count.RECORDS, "t"): 90,
            (Count.RECORDS, "u"): 9,
            (Count.MATCHED, "r"): 2,
            (Count.BUSY_US, "sink"): 40_000,
            (Count.BUSY_US, "source"): 7_000,
        }
    ),
    watermark=BEGAN,
)


class Clock:
    """Nanoseconds since 1970 that the test sets."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return (BEGAN + self.ms) * MS


def traced() -> tuple[BatchTraces, Clock, InMemorySpanExporter]:
    """Traces that a test can look at."""
    exporter, clock = InMemorySpanExporter(), Clock()
    writer = TraceWriter(lambda: SimpleSpanProcessor(exporter), "logins", "abc")
    return BatchTraces(writer, clock), clock, exporter


def times(span: ReadableSpan) -> tuple[int, int]:
    """From and to, in milliseconds behind the trigger."""
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time // MS - BEGAN, span.end_time // MS - BEGAN


def parents(spans: Mapping[str, ReadableSpan]) -> dict[str, str | None]:
    """The name of each span's parent."""
    names = {span.context.span_id: name for name, span in spans.items() if span.context}
    return {
        name: None if span.parent is None else names[span.parent.span_id]
        for name, span in spans.items()
    }


def test_a_batch_is_a_trace_of_its_phases() -> None:
    """With its counts, and the seconds of its stages; under the id that exemplars have had."""
    traces, clock, exporter = traced()
    clock.ms = 32
    traces.started(7)
    trace = traces.trace_of(7)
    clock.ms = 128
    traces.done(REPORT)
    assert not exporter.get_finished_spans()
    traces.committed(PROGRESS)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert {name: times(span) for name, span in spans.items()} == {
        "batch": (0, 163),
        "latest_offset": (0, 5),
        "wal_commit": (5, 25),
        "get_batch": (25, 26),
        "planning": (26, 30),
        "run": (30, 130),
        "tasks": (32, 128),
        "commit_offsets": (130, 160),
    }
    phases = dict.fromkeys(set(spans) - {"batch", "tasks"}, "batch")
    assert parents(spans) == {"batch": None, "tasks": "run", **phases}
    assert {f"{span.context.trace_id:032x}" for span in spans.values() if span.context} == {trace}
    assert dict(spans["batch"].attributes or {}) == {
        "spark_cep.batch": 7,
        "spark_cep.records": 99,
        "spark_cep.matches": 2,
        "spark_cep.match_rows": 0,
        "spark_cep.timeouts": 0,
        "spark_cep.late": 0,
        "spark_cep.dead_letters": 0,
        "spark_cep.watermark": "2026-01-01T12:00:00Z",
    }
    assert dict(spans["tasks"].attributes or {}) == {
        "spark_cep.stage.source.seconds": 0.007,
        "spark_cep.stage.sink.seconds": 0.04,
    }
    resource: Mapping[str, Any] = spans["batch"].resource.attributes
    assert (resource["service.name"], resource["service.instance.id"]) == ("logins", "abc")
    assert traces.trace_of(7) is None


def test_a_batch_that_fails_has_a_trace_of_its_own() -> None:
    """It is marked as an error; the batch that runs again is another trace."""
    traces, clock, exporter = traced()
    traces.started(7)
    first = traces.trace_of(7)
    clock.ms = 50
    traces.query_ended()
    (failed,) = exporter.get_finished_spans()
    assert (failed.name, times(failed), failed.status.is_ok) == ("batch", (0, 50), False)
    assert dict(failed.attributes or {}) == {"spark_cep.batch": 7}
    traces.started(7)
    assert traces.trace_of(7) not in (None, first)
    traces.done(REPORT)
    traces.query_ended()
    traces.committed(PROGRESS)
    again = [span for span in exporter.get_finished_spans() if span.name == "batch"]
    assert [span.status.is_ok for span in again] == [False, True]
    assert len({span.context.trace_id for span in again if span.context}) == 2
