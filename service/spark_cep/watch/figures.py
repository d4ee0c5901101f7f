"""A job's figures, read from its metrics."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import Metric

from spark_cep.observability import metric_names as names

#: The rate is that of the last seconds.
_RATE_SECONDS: Final = 5.0
#: Latencies are those of the matches of the last seconds.
_LATENCY_SECONDS: Final = 60.0
_MOST_POINTS: Final = 600


@dataclass
class Figures:
    """The state of a job by its metrics; by rule: matches, timeouts, partial matches. ``latency``:
    of how many matches the decision took so many seconds or less; ``batches``: how many batches
    did."""

    records: float = 0
    lag: float = 0
    late: float = 0
    dead_letters: float = 0
    watermark: float | None = None
    matches: Counter[str] = field(default_factory=Counter)
    timeouts: Counter[str] = field(default_factory=Counter)
    open: Counter[str] = field(default_factory=Counter)
    latency: dict[float, float] = field(default_factory=dict)
    batches: dict[float, float] = field(default_factory=dict)


def read_figures(families: Iterable[Metric]) -> Figures:
    """The figures of a registry, or of a page in Prometheus' format."""
    found = Figures()
    by_rule = {
        names.MATCHES.name: found.matches,
        names.MATCH_ROWS.name: found.matches,
        names.TIMEOUTS.name: found.timeouts,
        names.PARTIAL_MATCHES.name: found.open,
    }
    sums = {
        names.RECORDS_CONSUMED.name: "records",
        names.CONSUMER_LAG.name: "lag",
        names.LATE_EVENTS.name: "late",
        names.DEAD_LETTERS.name: "dead_letters",
    }
    buckets = {
        f"{names.DECISION_LATENCY.name}_bucket": found.latency,
        f"{names.BATCH_DURATION.name}_bucket": found.batches,
    }
    for family in families:
        for sample in family.samples:
            if sample.name in by_rule:
                by_rule[sample.name][sample.labels["rule"]] += int(sample.value)
            elif sample.name in sums:
                name = sums[sample.name]
                setattr(found, name, getattr(found, name) + sample.value)
            elif sample.name == names.WATERMARK.name and not math.isnan(sample.value):
                found.watermark = sample.value or None
            elif sample.name in buckets:
                buckets[sample.name][float(sample.labels["le"])] = sample.value
    return found


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """Figures at a time, in seconds: records read a second, records not read yet, and the median
    and 95th percentile of the time that decisions took, and the median of batches; ``None`` where
    there was none, or it took longer than the largest bucket."""

    time: float
    rate: float
    lag: float
    median: float | None
    percentile_95: float | None
    batch: float | None


class Trend:
    """The course of a job's figures over the last minutes."""

    def __init__(self) -> None:
        self._read: deque[tuple[float, Figures]] = deque()
        self._points: deque[TrendPoint] = deque(maxlen=_MOST_POINTS)

    @property
    def points(self) -> Sequence[TrendPoint]:
        """The points, the oldest first."""
        return tuple(self._points)

    def add(self, time: float, figures: Figures) -> None:
        """Take in a reading. ``time``: in seconds, which never go back."""
        if self._read and figures.records < self._read[-1][1].records:
            self._read.clear()  # another process counts from 0
        self._read.append((time, figures))
        while time - self._read[0][0] > _LATENCY_SECONDS:
            self._read.popleft()
        before, was = next(
            (each for each in self._read if time - each[0] <= _RATE_SECONDS), self._read[-1]
        )
        rate = (figures.records - was.records) / (time - before) if time > before else 0.0
        first = self._read[0][1]
        new = _new(figures.latency, first.latency)
        batch = quantile(_new(figures.batches, first.batches), 0.5)
        at = quantile(new, 0.5), quantile(new, 0.95), batch
        self._points.append(TrendPoint(time, rate, figures.lag, *at))


def _new(now: Mapping[float, float], before: Mapping[float, float]) -> dict[float, float]:
    return {most: count - before.get(most, 0) for most, count in now.items()}


def quantile(counts: Mapping[float, float], share: float) -> float | None:
    """The value below which a ``share`` of observations is, of which so many are at most each
    value: in between as Prometheus' histogram_quantile has it; ``None`` without any, and behind the
    last bound."""
    bounds = sorted(counts)
    total = counts[bounds[-1]] if bounds else 0
    if total <= 0:
        return None
    wanted, lower, before = share * total, 0.0, 0.0
    for bound in bounds:
        if counts[bound] >= wanted:
            if math.isinf(bound):
                return None
            part = (wanted - before) / (counts[bound] - before)
            return lower + (bound - lower) * part
        lower, before = bound, counts[bound]
    return None
