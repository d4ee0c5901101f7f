"""Every metric and label in the dashboard and the alerts is one of ``metric_names``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from spark_cep.observability.metric_names import METRICS, Histogram, Metric
from tests.chart.files import DASHBOARD, alerts, panels

#: What a scrape adds, as the chart's monitors set it up.
SCRAPED = {"namespace", "job", "instance", "pod"}
#: Of prometheus_client: docs/metrics.md says that they are served, too.
FOREIGN = {"process_start_time_seconds"}
#: Shown by other means than a panel of its own.
NOT_SHOWN = {
    "spark_cep_build_info": "chooses what is shown",
    "spark_cep_watermark_timestamp_seconds": "shown as its delay",
    "spark_cep_last_batch_timestamp_seconds": "an alert",
    "spark_cep_events_waiting": "an alert",
    "spark_cep_watermark_unmoved_seconds": "for the commands of alerts; also on /rules",
    "spark_cep_watermark_held_info": "for the commands of alerts; also on /rules",
    "spark_cep_watermark_ahead_seconds": "an alert",
    "spark_cep_records_lost_total": "an alert",
    "spark_cep_output_bytes_total": "records are shown",
}

_SERIES = re.compile(r"\b((?:spark_cep|process)_[a-z0-9_]+)\s*(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"([a-z_]+)\s*(?:=~|!~|!=|=)\s*\"((?:[^\"\\]|\\.)*)\"")
_GROUPED = re.compile(r"\b(?:by|on|ignoring)\s*\(([^)]*)\)")
_LEGEND = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_SUFFIX = re.compile(r"_(?:bucket|sum|count)$")


def _known() -> dict[str, Metric]:
    return {metric.name: metric for metric in METRICS}


def _expressions() -> Iterator[tuple[str, str, str]]:
    """Place, expression and what is made of its labels."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]
    for rule in alerts():
        texts = " ".join(re.findall(r"\$labels\.\w+", str(rule["annotations"])))
        yield rule["alert"], rule["expr"], re.sub(r"\$labels\.(\w+)", r"{{\1}}", texts)


def _metric(name: str) -> tuple[Metric | None, set[str]]:
    """The metric behind a series' name, and the labels that its kind adds."""
    known = _known()
    if name in known:
        return known[name], set()
    base = known.get(_SUFFIX.sub("", name))
    if isinstance(base, Histogram):
        return base, {"le"} if name.endswith("_bucket") else set()
    return None, set()


EXPRESSIONS = list(_expressions())


@pytest.mark.parametrize(
    ("place", "expression", "legend"), EXPRESSIONS, ids=[place for place, _, _ in EXPRESSIONS]
)
def test_metrics_and_labels_exist(place: str, expression: str, legend: str) -> None:
    """Names are known, histograms are read by their parts, labels the metric's or the scrape's."""
    labels = set(SCRAPED)
    series = _SERIES.findall(expression)
    assert series, f"{place}: no metric of ours in {expression}"
    for name, matchers in series:
        if name in FOREIGN:
            continue
        metric, added = _metric(name)
        assert metric, f"{place}: there is no metric {name}"
        if isinstance(metric, Histogram):
            assert name != metric.name, f"{place}: a histogram has no series {name}"
        own = set(metric.labels) | added
        labels |= own
        for label, value in _MATCHER.findall(matchers):
            assert label in own | SCRAPED, f"{place}: {name} has no label {label}"
            allowed = metric.labels.get(label)
            if allowed is not None:
                assert value in allowed, f"{place}: {name}: {label} is never {value}"
    grouped = {
        label.strip()
        for group in _GROUPED.findall(expression)
        for label in group.split(",")
        if label.strip()
    }
    assert grouped <= labels, f"{place}: no metric has {sorted(grouped - labels)}"
    assert set(_LEGEND.findall(legend)) <= labels, f"{place}: {legend}"


def test_rates_are_of_counters() -> None:
    """``rate`` and ``increase`` are taken of counters and histograms, ``deriv`` of gauges."""
    for place, expression, _ in EXPRESSIONS:
        for function, name in re.findall(r"\b(rate|increase)\(([a-z_]+)", expression):
            metric, _ = _metric(name)
            assert metric, f"{place}: {name}"
            assert metric.kind in {"counter", "histogram"}, f"{place}: {function} of {name}"


def test_every_metric_is_shown() -> None:
    """Each metric is on the dashboard, or it is said why not."""
    shown = {
        metric.name
        for panel in panels()
        for target in panel["targets"]
        for name, _ in _SERIES.findall(target["expr"])
        if (metric := _metric(name)[0])
    }
    missing = set(_known()) - shown
    assert missing == set(NOT_SHOWN), f"neither shown nor excepted: {missing ^ set(NOT_SHOWN)}"


def test_the_dashboard_is_whole() -> None:
    """Ids are unique, panels neither overlap nor leave the grid, rows are the promised ones."""
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    rows = [panel["title"] for panel in dashboard["panels"] if panel["type"] == "row"]
    assert rows == ["Overview", "Input", "Rules", "State and batches", "Faults"]
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells
