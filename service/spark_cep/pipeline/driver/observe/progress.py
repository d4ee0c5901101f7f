"""From the reports of a batch to metrics, and to what the driver must know of time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from spark_cep.codecs.output.dead_letters import REASONS
from spark_cep.codecs.record_faults import OF_RECORDS
from spark_cep.observability import metric_names as names
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.pipeline.wire.control import Partition
from spark_cep.pipeline.wire.reports import (
    Count,
    Counts,
    LostRecords,
    PartitionRead,
    ProcessMemory,
    Report,
)


@dataclass
class BatchReport:
    """One batch, summed over its partitions."""

    batch: int
    seconds: float = 0.0
    counts: Counts = field(default_factory=Counter)
    #: Partial matches by rule id and version.
    live: Counter[tuple[str, int]] = field(default_factory=Counter)
    watermark: int = BEGINNING
    maxima: list[tuple[Partition, int | None]] = field(default_factory=list)
    partitions_read: list[PartitionRead] = field(default_factory=list)
    #: Partial matches that went with a changed or removed rule, by rule id and version.
    gone: Counter[tuple[str, int]] = field(default_factory=Counter)
    #: Those that ended as the clock was set back.
    ended: Counter[tuple[str, int]] = field(default_factory=Counter)
    #: In how many key groups a version that drains has nothing to do any more, by fingerprint.
    drained: Counter[str] = field(default_factory=Counter)
    #: How many matches there are of each event time, to 3 % of their age.
    match_times: Counter[int] = field(default_factory=Counter)
    #: How many events wait for the watermark.
    waiting: int = 0
    #: When rules begin that have not begun, by rule id and version.
    beginning: dict[tuple[str, int], int] = field(default_factory=dict)
    #: What tasks said of their processes.
    processes: list[ProcessMemory] = field(default_factory=list)
    #: Records that were deleted before they were read, in the order of offsets.
    lost: list[LostRecords] = field(default_factory=list)

    def by_labels(self, what: Count) -> dict[tuple[str, ...], int]:
        """A count by the values of its labels."""
        return {tuple(labels): n for (each, *labels), n in self.counts.items() if each is what}

    def total(self, what: Count) -> int:
        """Sum of a count over its labels."""
        return sum(self.by_labels(what).values())


def merge(batch: int, seconds: float, reports: Iterable[bytes]) -> BatchReport:
    """The reports that writers passed on, as one."""
    merged = BatchReport(batch, seconds)
    lost: list[LostRecords] = []
    for packet in reports:
        report = Report.decode(packet)
        merged.counts.update(report.counts)
        merged.live.update(report.live)
        merged.partitions_read += report.partitions_read
        merged.processes += report.processes
        lost += report.lost
        for at, number in report.match_times:
            merged.match_times[at] += number
        merged.drained.update(report.drained)
        merged.waiting += report.waiting
        merged.beginning |= report.beginning
        for rule, version, live in report.gone:
            merged.gone[rule, version] += live
        for rule, version, live in report.ended:
            merged.ended[rule, version] += live
        if report.time is not None:
            merged.watermark = report.time.watermark
            merged.maxima = list(report.time.partitions.items())
    merged.lost = _adjoining_as_one(lost)
    return merged


def _adjoining_as_one(lost: Iterable[LostRecords]) -> list[LostRecords]:
    """Lost records that several tasks met; adjoining ranges of a partition become one."""
    found: list[LostRecords] = []
    for each in sorted(lost):
        if found and found[-1][:2] == each[:2] and found[-1].end == each.start:
            found[-1] = found[-1]._replace(end=each.end)
        else:
            found.append(each)
    return found


#: Each count by its metric, whose labels are the count's own.
_COUNTERS: Final[Mapping[Count, names.Counter]] = {
    Count.RECORDS: names.RECORDS_CONSUMED,
    Count.BYTES: names.BYTES_CONSUMED,
    Count.TOMBSTONES: names.TOMBSTONES,
    Count.LOST: names.RECORDS_LOST,
    Count.RELEVANT_EVENTS: names.EVENTS_RELEVANT,
    Count.LATE_EVENTS: names.LATE_EVENTS,
    Count.EVENTS: names.RULE_EVENTS,
    Count.STARTED: names.PARTIAL_MATCHES_STARTED,
    Count.MATCHED: names.MATCHES,
    Count.MATCH_ROWS: names.MATCH_ROWS,
    Count.TIMED_OUT: names.TIMEOUTS,
    Count.PRUNED: names.PARTIAL_MATCHES_PRUNED,
    Count.DROPPED: names.PARTIAL_MATCHES_DROPPED,
    Count.DROPPED_MATCHES: names.MATCHES_DROPPED,
    Count.DEAD_LETTERS: names.DEAD_LETTERS,
    Count.TRANSACTIONS: names.PARTITION_WRITES,
}


_BY_RULE, _BY_TOPIC = (
    [metric for metric in _COUNTERS.values() if list(metric.labels) == [label]]
    for label in ("rule", "topic")
)


def begin_topics(metrics: Metrics, topics: Iterable[str]) -> None:
    """Make the counters of input topics visible, at 0, as :func:`begin_rules` does."""
    for topic in topics:
        for metric in _BY_TOPIC:
            metrics.increment(metric, 0, topic=topic)


def begin_rules(metrics: Metrics, rules: Iterable[str]) -> None:
    """Make the counters of dead letters and of rules visible, at 0: to Prometheus a series that
    begins with its first value has not increased. ``rules``: ids."""
    for reason in sorted(REASONS):
        metrics.increment(names.DEAD_LETTERS, 0, reason=reason)
    for rule in rules:
        for metric in _BY_RULE:
            metrics.increment(metric, 0, rule=rule)
        for reason in sorted(REASONS - OF_RECORDS):
            metrics.increment(names.RULE_ERRORS, 0, rule=rule, reason=reason)


def count(
    report: BatchReport,
    metrics: Metrics,
    outputs: Mapping[str, str],
    exemplar: Mapping[str, str] | None = None,
) -> None:
    """Count one committed batch. ``outputs``: kind of output by topic; ``exemplar``: the labels
    that lead from a rule's matches to the batch."""
    for (what, *values), number in report.counts.items():
        labels = dict(zip(what.labels, values, strict=True))
        match what:
            case Count.PARTLY_USED:
                pass  # they are among the dead letters
            case Count.BUSY_US:
                metrics.observe(names.STAGE_DURATION, number / 1_000_000, stage=labels["stage"])
            case Count.PROCESSING_NS:
                metrics.increment(names.RULE_PROCESSING, number / 1_000_000_000, **labels)
            case Count.RULE_DEAD_LETTERS:
                rule, reason = labels["rule"], labels["reason"]
                metrics.increment(names.RULE_ERRORS, number, rule=rule, reason=reason)
            case Count.WRITTEN:
                kind = outputs[labels["topic"]]
                metrics.increment(names.OUTPUT_RECORDS, number, kind=kind, **labels)
            case Count.WRITTEN_BYTES:
                kind = outputs[labels["topic"]]
                metrics.increment(names.OUTPUT_BYTES, number, kind=kind, **labels)
            case Count.MATCHED:
                metrics.increment(names.MATCHES, number, exemplar, **labels)
            case _:
                metrics.increment(_COUNTERS[what], number, **labels)
    metrics.increment(names.BATCHES, result="done")
    metrics.observe(names.BATCH_DURATION, report.seconds)


def show(report: BatchReport, metrics: Metrics) -> None:
    """Show what holds since the batch: live partial matches, event time."""
    # Versions of a rule that run side by side are shown together.
    live: Counter[tuple[str, ...]] = Counter()
    for (rule, _), number in report.live.items():
        live[(rule,)] += number
    metrics.replace(names.PARTIAL_MATCHES, dict(live))
    metrics.set(names.EVENTS_WAITING, report.waiting)
    if BEGINNING < report.watermark < END:
        metrics.set(names.WATERMARK, report.watermark / 1000)
    newest = {(topic, str(number)): time for (topic, number), time in report.maxima}
    metrics.replace(
        names.NEWEST_EVENT, {at: time / 1000 for at, time in newest.items() if time is not None}
    )
    metrics.set(names.LAST_BATCH, time.time())
