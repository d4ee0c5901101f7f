"""The metrics themselves, on a registry of their own.

The methods take metrics of the table in ``metric_names`` and refuse any other, labels included. A
counter whose labels have closed sets of values begins with all its series, at 0: to Prometheus a
series that begins with its first value has not increased. The
label ``rule`` has a cap: the first rules seen keep series of their own, the rest share ``other``. A
gauge by rule is therefore given whole (:meth:`Metrics.replace`), so that ``other`` is a sum and
rules that are gone disappear.

A histogram takes observations by the thousand in one call, which the client library's own does not.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, product
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from spark_cep.observability.metric_names import METRICS, Counter, Gauge, Histogram, Metric

OTHER: Final = "other"
"""The value of the label ``rule`` for all rules beyond the cap."""

_RULE: Final = "rule"
_KNOWN: Final = frozenset(METRICS)


class Metrics:
    """All metrics of one process. Safe to call from any thread."""

    def __init__(self, max_rule_labels: int = 500) -> None:
        self.registry: Final = CollectorRegistry(auto_describe=True)
        self._max_rules: Final = max_rule_labels
        self._rules: set[str] = set()
        self._lock: Final = threading.Lock()
        self._shown: dict[Metric, set[tuple[str, ...]]] = {}
        self._counters: dict[Metric, prometheus_client.Counter] = {}
        self._gauges: dict[Metric, prometheus_client.Gauge] = {}
        self._histograms: dict[Metric, _Distribution] = {}
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        ProcessCollector(registry=self.registry)
        for metric in METRICS:
            self._create(metric)

    def increment(
        self,
        metric: Counter,
        amount: float = 1,
        exemplar: Mapping[str, str] | None = None,
        /,
        **labels: str,
    ) -> None:
        """Add to a counter; 0 makes the series visible. ``exemplar``: labels of an example."""
        if amount < 0 or not math.isfinite(amount):
            raise ValueError(f"{metric.name} only goes up, not by {amount}")
        values = self._values(metric, labels)
        counter = self._counters[metric]
        (counter.labels(*values) if values else counter).inc(
            amount, None if exemplar is None else dict(exemplar)
        )

    def set(self, metric: Gauge, value: float, **labels: str) -> None:
        """Set a gauge that has no label ``rule``."""
        if _RULE in metric.labels:
            raise ValueError(f"{metric.name} is by rule: give it whole, with replace()")
        values = self._values(metric, labels)
        gauge = self._gauges[metric]
        (gauge.labels(*values) if values else gauge).set(value)

    def follow(self, metric: Gauge, value: Callable[[], float]) -> None:
        """Let a gauge without labels have what ``value`` says whenever it is read. It must be
        quick and safe to call from any thread."""
        self._values(metric, {})
        self._gauges[metric].set_function(value)

    def observe(
        self,
        metric: Histogram,
        value: float,
        count: int = 1,
        exemplar: Mapping[str, str] | None = None,
        /,
        **labels: str,
    ) -> None:
        """Add ``count`` equal observations to a histogram. ``exemplar``: labels of an example."""
        self._histograms[metric].add(self._values(metric, labels), value, count, exemplar)

    def replace(self, metric: Gauge, samples: Mapping[tuple[str, ...], float]) -> None:
        """Give a gauge with labels all its series: values by label values, in the table's order.

        Series that are not given disappear. Rules beyond the cap are summed up as ``other``.
        """
        if not metric.labels:
            raise ValueError(f"{metric.name} has no labels: use set()")
        totals: dict[tuple[str, ...], float] = {}
        for given, value in samples.items():
            if len(given) != len(metric.labels):
                raise ValueError(f"{metric.name} has the labels {', '.join(metric.labels)}")
            labels = self._values(metric, dict(zip(metric.labels, given, strict=True)))
            totals[labels] = totals.get(labels, 0) + value
        gauge = self._gauges[metric]
        with self._lock:
            for gone in self._shown.get(metric, set()) - totals.keys():
                gauge.remove(*gone)
            self._shown[metric] = set(totals)
            for labels, value in totals.items():
                gauge.labels(*labels).set(value)

    def forget_rule(self, rule: str) -> None:
        """Drop all counters of a rule that is gone, and let another one have its label."""
        for metric, counter in self._counters.items():
            if _RULE in metric.labels:
                counter.remove_by_labels({_RULE: rule})
        with self._lock:
            self._rules.discard(rule)

    def _create(self, metric: Metric) -> None:
        if isinstance(metric, Counter):
            self._counters[metric] = prometheus_client.Counter(
                metric.name, metric.help, tuple(metric.labels), registry=self.registry
            )
            # No values at all where those of one label are not known.
            for values in product(*(allowed or () for allowed in metric.labels.values())):
                self.increment(metric, 0, **dict(zip(metric.labels, values, strict=True)))
        elif isinstance(metric, Gauge):
            self._gauges[metric] = prometheus_client.Gauge(
                metric.name, metric.help, tuple(metric.labels), registry=self.registry
            )
        elif isinstance(metric, Histogram):
            self._histograms[metric] = _Distribution(metric)
            self.registry.register(self._histograms[metric])

    def _values(self, metric: Metric, labels: Mapping[str, str]) -> tuple[str, ...]:
        if metric not in _KNOWN:
            raise ValueError(f"{metric.name} is not in the table of metrics")
        if labels.keys() != set(metric.labels):
            raise ValueError(
                f"{metric.name} has the labels {', '.join(metric.labels)}, not"
                f" {', '.join(sorted(labels))}"
            )
        for name, allowed in metric.labels.items():
            if allowed is not None and labels[name] not in allowed:
                raise ValueError(
                    f"{metric.name}: found {name} {labels[name]!r}; allowed: {', '.join(allowed)}"
                )
        return tuple(
            self._capped(labels[name]) if name == _RULE else labels[name] for name in metric.labels
        )

    def _capped(self, rule: str) -> str:
        with self._lock:
            if rule in self._rules:
                return rule
            if len(self._rules) < self._max_rules:
                self._rules.add(rule)
                return rule
        return OTHER


def _text(bound: float) -> str:
    return "+Inf" if math.isinf(bound) else str(float(bound))


class _Distribution(Collector):
    """A histogram: by label values, counts of the buckets and the sum."""

    def __init__(self, metric: Histogram) -> None:
        self._metric: Final = metric
        self._bounds: Final = metric.buckets
        self._lock: Final = threading.Lock()
        self._series: dict[tuple[str, ...], tuple[list[int], float]] = {}
        #: The last example of each bucket that has one, by its labels and number.
        self._examples: dict[tuple[tuple[str, ...], int], Exemplar] = {}
        if not metric.labels:
            self._series[()] = (self._nothing(), 0.0)

    def _nothing(self) -> list[int]:
        return [0] * (len(self._bounds) + 1)

    def add(
        self,
        labels: tuple[str, ...],
        value: float,
        count: int,
        exemplar: Mapping[str, str] | None = None,
    ) -> None:
        with self._lock:
            counts, total = self._series.get(labels) or (self._nothing(), 0.0)
            bucket = bisect_left(self._bounds, value)
            counts[bucket] += count
            self._series[labels] = (counts, total + value * count)
            if exemplar is not None:
                self._examples[labels, bucket] = Exemplar(dict(exemplar), value, time.time())

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """For the registry."""
        family = HistogramMetricFamily(
            self._metric.name, self._metric.help, labels=tuple(self._metric.labels)
        )
        with self._lock:
            series = [
                (labels, [*counts], total) for labels, (counts, total) in self._series.items()
            ]
            examples = {**self._examples}
        for labels, counts, total in series:
            bounds = [_text(bound) for bound in (*self._bounds, math.inf)]
            cumulated = [float(count) for count in accumulate(counts)]
            buckets = [
                (bound, number, example) if example is not None else (bound, number)
                for bucket, (bound, number) in enumerate(zip(bounds, cumulated, strict=True))
                for example in (examples.get((labels, bucket)),)
            ]
            family.add_metric(labels, buckets, total)
        yield family
