"""From the reports of a batch to metrics, and to what the driver must know of time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from service.observability import metric_names as names
from service.observability.metrics import Metrics
from service.packing import unpack
from service.pipeline.memory import Process
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
    #: Dead letters of rules, by rule id and reason.
    rule_dead_letters: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Of partitions that were read: topic, partition, newest record's timestamp, newest event time.
    arrivals: list[list[Any]] = field(default_factory=list)
    #: How many matches there are of each event time, to 3 % of their age.
    match_times: Counter[int] = field(default_factory=Counter)
    #: What tasks said of their processes.
    processes: list[Process] = field(default_factory=list)

    def by_label(self, what: str) -> dict[str, int]:
        """A count by its label."""
        return {label: count for (kind, label), count in self.counts.items() if kind == what}

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
            if what[0] == "rule_dead_letters":
                merged.rule_dead_letters[what[1], what[2]] += count
                continue
            merged.counts[_what_and_label(what)] += count
        merged.live.update(report.get("live") or {})
        merged.arrivals += report.get("arrivals") or ()
        for at, count in report.get("match_times") or ():
            merged.match_times[at] += count
        for told in report.get("processes") or ():
            merged.processes += [(host, pid, jvm, size) for host, pid, jvm, size in told]
        for rule, version, live in report.get("gone") or ():
            merged.gone[rule, version] += live
        if report.get("clock") is not None:
            clock = Clock(policy, 0)
            clock.restore(report["clock"])
            merged.watermark = clock.watermark
            merged.maxima = list(clock.maxima.items())
    return merged


def _what_and_label(what: list[str]) -> tuple[str, str]:
    """Counts of rules come as ("rule", what, rule id), all others as (what, label, …)."""
    return (what[1], what[2]) if what[0] == "rule" else (what[0], what[1])


#: Counters by what a report calls their counts, with the name of the label.
_COUNTERS: dict[str, tuple[names.Counter, str | None]] = {
    "records": (names.RECORDS_CONSUMED, "topic"),
    "bytes": (names.BYTES_CONSUMED, "topic"),
    "tombstone": (names.TOMBSTONES, "topic"),
    "relevant": (names.EVENTS_RELEVANT, None),
    "events": (names.RULE_EVENTS, "rule"),
    "started": (names.PARTIAL_MATCHES_STARTED, "rule"),
    "matched": (names.MATCHES, "rule"),
    "timed_out": (names.TIMEOUTS, "rule"),
    "pruned": (names.PARTIAL_MATCHES_PRUNED, "rule"),
    "dropped": (names.PARTIAL_MATCHES_DROPPED, "rule"),
    "late": (names.LATE_EVENTS, "topic"),
    "dead_letters": (names.DEAD_LETTERS, "reason"),
    "transactions": (names.PARTITION_WRITES, "result"),
}


#: Counters of output, by topic.
_OUTPUTS = {"written": names.OUTPUT_RECORDS, "written_bytes": names.OUTPUT_BYTES}


def count(report: BatchReport, metrics: Metrics, outputs: dict[str, str]) -> None:
    """Count one committed batch. ``outputs``: kind of output by topic."""
    for (what, label), number in report.counts.items():
        if what == "busy_us":
            metrics.observe(names.STAGE_DURATION, number / 1_000_000, stage=label)
        elif what == "processing_ns":
            metrics.increment(names.RULE_PROCESSING, number / 1_000_000_000, rule=label)
        elif what in _OUTPUTS:
            metrics.increment(_OUTPUTS[what], number, kind=outputs[label], topic=label)
        elif what in _COUNTERS:
            counter, name = _COUNTERS[what]
            metrics.increment(counter, number, **({} if name is None else {name: label}))
    for (rule, reason), number in report.rule_dead_letters.items():
        metrics.increment(names.RULE_ERRORS, number, rule=rule, reason=reason)
    metrics.increment(names.BATCHES, result="done")
    metrics.observe(names.BATCH_DURATION, report.seconds)


def show(report: BatchReport, metrics: Metrics) -> None:
    """Show what holds since the batch: live partial matches, event time."""
    metrics.replace(names.PARTIAL_MATCHES, {(rule,): live for rule, live in report.live.items()})
    if BEGINNING < report.watermark < END:
        metrics.set(names.WATERMARK, report.watermark / 1000)
    newest = {(topic, str(number)): time for (topic, number), time in report.maxima}
    metrics.replace(
        names.NEWEST_EVENT, {at: time / 1000 for at, time in newest.items() if time is not None}
    )
    metrics.set(names.LAST_BATCH, time.time())
