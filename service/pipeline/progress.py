"""From the reports of a batch to metrics, and to what the driver must know of time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from service.matcher.snapshot import unpack
from service.observability import metric_names as names
from service.observability.metrics import Metrics
from service.pipeline.watermark import BEGINNING, END, Clock, Partition, Policy


@dataclass
class BatchReport:
    """One batch, summed over its partitions."""

    batch: int
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    live: Counter[str] = field(default_factory=Counter)
    watermark: int = BEGINNING
    maxima: list[tuple[Partition, int | None]] = field(default_factory=list)
    read: set[Partition] = field(default_factory=set)

    def total(self, what: str) -> int:
        """Sum of a count over its labels."""
        return sum(count for (kind, *_), count in self.counts.items() if kind == what)


def merge(batch: int, reports: Iterable[bytes], policy: Policy) -> BatchReport:
    """The reports that the sink passed on, as one."""
    merged = BatchReport(batch)
    for packed in reports:
        report = unpack(packed)
        for *what, count in report["counts"]:
            if what[0] == "records":
                merged.read.add((what[1], int(what[2])))
            merged.counts[_name(what)] += count
        merged.live.update(report.get("live") or {})
        if report.get("clock") is not None:
            clock = Clock(policy, 0)
            clock.restore(report["clock"])
            merged.watermark = clock.watermark
            merged.maxima = list(clock.maxima.items())
    return merged


def _name(what: list[Any]) -> tuple[str, ...]:
    """Counts of rules come as (rule, what), all others as (what, label)."""
    if what[-1] in _RULE_COUNTS:
        return (what[1], what[0])
    return (what[0], what[1])


_RULE_COUNTS = ("matched", "timed_out", "started", "dropped", "failed")


def publish(report: BatchReport, seconds: float, metrics: Metrics, outputs: dict[str, str]) -> None:
    """Count one committed batch. ``outputs``: kind of output by topic."""
    for what, count in report.counts.items():
        kind, label = what[0], what[1]
        if kind == "records":
            metrics.increment(names.RECORDS_CONSUMED, count, topic=label)
        elif kind == "tombstone":
            metrics.increment(names.TOMBSTONES, count, topic=label)
        elif kind == "relevant":
            metrics.increment(names.EVENTS_RELEVANT, count)
        elif kind == "matched":
            metrics.increment(names.MATCHES, count, rule=label)
        elif kind == "timed_out":
            metrics.increment(names.TIMEOUTS, count, rule=label)
        elif kind == "dropped":
            metrics.increment(names.PARTIAL_MATCHES_DROPPED, count, rule=label)
        elif kind == "late":
            metrics.increment(names.LATE_EVENTS, count, topic=label)
        elif kind == "dead_letters":
            metrics.increment(names.DEAD_LETTERS, count, reason=label)
        elif kind == "written":
            metrics.increment(names.OUTPUT_RECORDS, count, kind=outputs.get(label, label))
    metrics.replace(names.PARTIAL_MATCHES, {(rule,): live for rule, live in report.live.items()})
    if BEGINNING < report.watermark < END:
        metrics.set(names.WATERMARK, report.watermark / 1000)
        metrics.set(names.WATERMARK_LAG, max(0.0, time.time() - report.watermark / 1000))
    metrics.increment(names.BATCHES, result="done")
    metrics.observe(names.BATCH_DURATION, seconds)
    metrics.set(names.LAST_BATCH, time.time())
