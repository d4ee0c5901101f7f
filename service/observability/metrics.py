"""The metrics themselves, on a registry of their own.

The methods take metrics of the table in ``metric_names`` and refuse any other, labels included. The
label ``rule`` has a cap: the first rules seen keep series of their own, the rest share ``other``. A
gauge by rule is therefore given whole (:meth:`Metrics.replace`), so that ``other`` is a sum and
rules that are gone disappear.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry, ProcessCollector

from service.observability.metric_names import METRICS, Counter, Gauge, Histogram, Metric

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
        self._histograms: dict[Metric, prometheus_client.Histogram] = {}
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        ProcessCollector(registry=self.registry)
        for metric in METRICS:
            self._create(metric)

    def increment(self, metric: Counter, amount: float = 1, **labels: str) -> None:
        """Add to a counter; 0 makes the series visible."""
        if amount < 0 or not math.isfinite(amount):
            raise ValueError(f"{metric.name} only goes up, not by {amount}")
        values = self._values(metric, labels)
        counter = self._counters[metric]
        (counter.labels(*values) if values else counter).inc(amount)

    def set(self, metric: Gauge, value: float, **labels: str) -> None:
        """Set a gauge that has no label ``rule``."""
        if _RULE in metric.labels:
            raise ValueError(f"{metric.name} is by rule: give it whole, with replace()")
        values = self._values(metric, labels)
        gauge = self._gauges[metric]
        (gauge.labels(*values) if values else gauge).set(value)

    def observe(self, metric: Histogram, value: float, **labels: str) -> None:
        """Add an observation to a histogram."""
        values = self._values(metric, labels)
        histogram = self._histograms[metric]
        (histogram.labels(*values) if values else histogram).observe(value)

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

    def _create(self, metric: Metric) -> None:
        if isinstance(metric, Counter):
            self._counters[metric] = prometheus_client.Counter(
                metric.name, metric.help, metric.labels, registry=self.registry
            )
        elif isinstance(metric, Gauge):
            self._gauges[metric] = prometheus_client.Gauge(
                metric.name, metric.help, metric.labels, registry=self.registry
            )
        elif isinstance(metric, Histogram):
            self._histograms[metric] = prometheus_client.Histogram(
                metric.name,
                metric.help,
                metric.labels,
                registry=self.registry,
                buckets=metric.buckets,
            )

    def _values(self, metric: Metric, labels: Mapping[str, str]) -> tuple[str, ...]:
        if metric not in _KNOWN:
            raise ValueError(f"{metric.name} is not in the table of metrics")
        if labels.keys() != set(metric.labels):
            raise ValueError(
                f"{metric.name} has the labels {metric.labels}, not {tuple(sorted(labels))}"
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
