"""The trace of a batch: Spark's phases of it, one after another, and in them the run of its tasks.

Stages of the data's way (reading, matching, Kafka's transactions) run in many tasks at once; the
driver knows how long they took together, and not when. So they are attributes of the tasks' span.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from spark_cep.observability.metric_names import STAGES
from spark_cep.observability.traces import TraceSpan, TraceWriter, Value, new_trace
from spark_cep.pipeline.driver.observe.event_time import event_time_text
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.driver.observe.query_progress import PHASES, WHOLE
from spark_cep.pipeline.wire.reports import Count

_COUNTS: Final = {
    "records": Count.RECORDS,
    "matches": Count.MATCHED,
    "match_rows": Count.MATCH_ROWS,
    "timeouts": Count.TIMED_OUT,
    "late": Count.LATE_EVENTS,
    "dead_letters": Count.DEAD_LETTERS,
}
_NANOSECONDS_OF_MS: Final = 1_000_000


@dataclass
class _UnwrittenBatch:
    """A batch whose trace is not written yet; the times are in nanoseconds since 1970."""

    trace: str
    began: int
    ended: int = 0
    report: BatchReport | None = None


class BatchTraces:
    """Traces of the batches of one run, each written when Spark has committed it."""

    def __init__(self, writer: TraceWriter, clock: Callable[[], int] = time.time_ns) -> None:
        self._writer = writer
        self._clock = clock
        #: By number: the one that runs, and those that Spark has not told of yet.
        self._batches: dict[int, _UnwrittenBatch] = {}

    def started(self, batch: int) -> None:
        """The tasks of a batch begin; one that failed before has a trace of its own."""
        self._batches[batch] = _UnwrittenBatch(new_trace(), self._clock())

    def trace_of(self, batch: int) -> str | None:
        """The id of its trace, until that is written."""
        found = self._batches.get(batch)
        return None if found is None else found.trace

    def done(self, report: BatchReport) -> None:
        """The output of a batch is committed."""
        found = self._batches.get(report.batch)
        if found is not None:
            found.ended, found.report = self._clock(), report

    def committed(self, progress: Mapping[str, Any]) -> None:
        """Spark has committed a batch, and says how long its phases took."""
        batch = progress["batchId"]
        found = self._batches.get(batch)
        for number in [each for each in list(self._batches) if each <= batch]:
            del self._batches[number]
        if found is None or found.report is None:
            return
        durations = progress["durationMs"]
        start = _nanoseconds(progress["timestamp"])
        end = start + durations.get(WHOLE, 0) * _NANOSECONDS_OF_MS
        phases = tuple(_phases(durations, start, found, found.report))
        self._writer.write(
            found.trace,
            TraceSpan("batch", start, max(end, phases[-1].end), _attributes(found.report), phases),
        )

    def query_ended(self) -> None:
        """No batch runs any longer: one that is not done has failed, and comes again."""
        for batch, found in list(self._batches.items()):
            if found.report is not None:
                continue
            del self._batches[batch]
            number: dict[str, Value] = {"spark_cep.batch": batch}
            span = TraceSpan("batch", found.began, self._clock(), number, failed=True)
            self._writer.write(found.trace, span)


def _phases(
    durations: Mapping[str, int], start: int, batch: _UnwrittenBatch, report: BatchReport
) -> Iterator[TraceSpan]:
    for name, phase in PHASES.items():
        spent = durations.get(name)
        if spent is None:
            continue
        end = start + spent * _NANOSECONDS_OF_MS
        children: tuple[TraceSpan, ...] = ()
        if phase == "run":
            children = (TraceSpan("tasks", batch.began, batch.ended, _stages(report)),)
        yield TraceSpan(phase, start, end, children=children)
        start = end


def _attributes(report: BatchReport) -> dict[str, Value]:
    found: dict[str, Value] = {"spark_cep.batch": report.batch}
    found |= {f"spark_cep.{name}": report.total(count) for name, count in _COUNTS.items()}
    watermark = event_time_text(report.watermark)
    if watermark is not None:
        found["spark_cep.watermark"] = watermark
    return found


def _stages(report: BatchReport) -> dict[str, Value]:
    """Seconds of the stages, summed over tasks."""
    busy = report.by_labels(Count.BUSY_US)
    return {
        f"spark_cep.stage.{stage}.seconds": busy[(stage,)] / 1_000_000
        for stage in STAGES
        if (stage,) in busy
    }


def _nanoseconds(timestamp: str) -> int:
    return round(datetime.fromisoformat(timestamp).timestamp() * 1000) * _NANOSECONDS_OF_MS
