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
    seconds: float = 0.0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    live: Counter[str] = field(default_factory=Counter)
    watermark: int = BEGINNING
    maxima: list[tuple[Partition, int | None]] = field(default_factory=list)
    read: set[Partition] = field(default_factory=set)
    #: Partial matches that went with a changed or removed rule, by rule id and version.
    gone: Counter[tuple[str, int]] = field(default_factory=Counter)

    def total(self, what: str) -> int:
        """Sum of a count over its labels."""
        return sum(count for (kind, *_), count in self.counts.items() if kind == what)


def merge(batch: int, seconds: float, reports: Iterable[bytes], policy: Policy) -> BatchReport:
    """The reports that the sink passed on, as one."""
    merged = BatchReport(batch, seconds)
    for packed in reports:
        report = unpack(packed)
        for *what, count in report["counts"]:
            if what[0] == "records":
                merged.read.add((what[1], int(what[2])))
            merged.counts[_name(what)] += count
        merged.live.update(report.get("live") or {})
        for rule, version, live in report.get("gone") or ():
            merged.gone[rule, version] += live
        if report.get("clock") is not None:
            clock = Clock(policy, 0)
            clock.restore(report["clock"])
            merged.watermark = clock.watermark
            merged.maxima = list(clock.maxima.items())
    return merged


def _name(what: list[Any]) -> tuple[str, str]:
    """Counts of rules come as (rule, what), all others as (what, label)."""
    if what[-1] in _RULE_COUNTS:
        return (what[1], what[0])
    return (what[0], what[1])


_RULE_COUNTS = ("matched", "timed_out", "started", "dropped", "failed")


#: Counters by what a report calls their counts, with the name of the label.
_COUNTERS: dict[str, tuple[names.Counter, str | None]] = {
    "records": (names.RECORDS_CONSUMED, "topic"),
    "tombstone": (names.TOMBSTONES, "topic"),
    "relevant": (names.EVENTS_RELEVANT, None),
    "matched": (names.MATCHES, "rule"),
    "timed_out": (names.TIMEOUTS, "rule"),
    "dropped": (names.PARTIAL_MATCHES_DROPPED, "rule"),
    "late": (names.LATE_EVENTS, "topic"),
    "dead_letters": (names.DEAD_LETTERS, "reason"),
    "written": (names.OUTPUT_RECORDS, "kind"),
    "transactions": (names.PARTITION_WRITES, "result"),
}


def publish(report: BatchReport, metrics: Metrics, outputs: dict[str, str]) -> None:
    """Count one committed batch. ``outputs``: kind of output by topic."""
    for (what, label), count in report.counts.items():
        if what == "busy_us":
            metrics.observe(names.STAGE_DURATION, count / 1_000_000, stage=label)
        elif what in _COUNTERS:
            counter, name = _COUNTERS[what]
            value = outputs[label] if what == "written" else label
            metrics.increment(counter, count, **({} if name is None else {name: value}))
    metrics.replace(names.PARTIAL_MATCHES, {(rule,): live for rule, live in report.live.items()})
    if BEGINNING < report.watermark < END:
        metrics.set(names.WATERMARK, report.watermark / 1000)
        metrics.set(names.WATERMARK_LAG, max(0.0, time.time() - report.watermark / 1000))
    metrics.increment(names.BATCHES, result="done")
    metrics.observe(names.BATCH_DURATION, report.seconds)
    metrics.set(names.LAST_BATCH, time.time())
