"""The values at the top of the dashboard are green for a healthy job alone, as promtool evaluates
their queries and thresholds."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.chart.files import panels, tool

VALUES: Final = [panel for panel in panels() if panel["type"] == "stat"]
#: What Grafana puts in place of its variables.
VARIABLES: Final = {
    "$namespace": ".*",
    "$job": ".*",
    "$__rate_interval": "1m",
    "$__range": "3h",
}


def _series(job: str = "fraud", **changed: str) -> list[dict[str, str]]:
    """What a healthy job shows in 30 minutes, with other values of some metrics. ``stale``: it is
    not shown any more."""
    labels = f'namespace="cep", job="{job}", instance="{job}"'
    topic = f'{labels}, topic="logins"'
    healthy = {
        f"spark_cep_ready{{{labels}}}": "1x120",
        f'spark_cep_rules_loaded_info{{{labels}, rule="a", version="1"}}': "1x120",
        f"spark_cep_records_consumed_total{{{topic}}}": "0+100x120",
        f'spark_cep_matches_total{{{labels}, rule="a"}}': "0+1x120",
        f'spark_cep_consumer_lag_records{{{topic}, partition="0"}}': "0x120",
        f"spark_cep_watermark_lag_seconds{{{labels}}}": "10x120",
        f'spark_cep_dead_letters_total{{{labels}, reason="undecodable"}}': "0x120",
        f"process_start_time_seconds{{{labels}}}": "0x120",
        f'spark_cep_batch_duration_seconds_bucket{{{labels}, le="1"}}': "0+5x120",
        f'spark_cep_batch_duration_seconds_bucket{{{labels}, le="+Inf"}}': "0+5x120",
    }
    for name, values in changed.items():
        (series,) = (each for each in healthy if each.startswith(f"{name}{{"))
        healthy[series] = values
    return [{"series": series, "values": values} for series, values in healthy.items()]


def _gone(job: str = "fraud") -> list[dict[str, str]]:
    """A job that was healthy and is not scraped any more, for 15 seconds."""
    return [
        {"series": each["series"], "values": each["values"].replace("x120", "x118") + " stale"}
        for each in _series(job)
    ]


KAFKA_UNAVAILABLE: Final = {
    "spark_cep_ready": "1x118 0",
    "spark_cep_consumer_lag_records": "0x118 stale",
}
CASES: Final[dict[str, list[dict[str, str]]]] = {
    "Kafka away": _series(**KAFKA_UNAVAILABLE),
    "Kafka away, lag still shown": _series(spark_cep_ready="1x118 0"),
    "Kafka away from the start": _series(
        spark_cep_ready="0x120",
        spark_cep_consumer_lag_records="stale",
        spark_cep_watermark_lag_seconds="stale",
    ),
    "job gone": _gone(),
    "one of two jobs gone": _series("other") + _gone(),
    "one of two without Kafka": _series("other") + _series(**KAFKA_UNAVAILABLE),
    "nothing scraped": [],
}


def when_green(panel: dict[str, Any]) -> Iterator[str]:
    """Expressions that have a value when the panel is green."""
    (target,) = panel["targets"]
    query = target["expr"]
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps[0]["color"] != "green", f"{panel['title']}: green when nothing is known"
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if step["color"] == "green":
            below = f" < {following['value']}" if following else ""
            yield f"count(({query}) >= {step['value']}{below})"


def _is_green(
    folder: Path, panel: dict[str, Any], series: list[dict[str, str]], *, green: bool
) -> None:
    one = [{"labels": "{}", "value": 1}]
    checks = [
        {"expr": each, "eval_time": "30m", "exp_samples": one if green else []}
        for each in when_green(panel)
    ]
    assert checks
    test = {
        "evaluation_interval": "15s",
        "tests": [{"interval": "15s", "input_series": series, "promql_expr_test": checks}],
    }
    path = folder / "panel.test.yaml"
    path.write_text(yaml.safe_dump(test), "utf-8")
    done = subprocess.run(
        [tool("promtool"), "test", "rules", path], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


COLOURED: Final = [
    panel
    for panel in VALUES
    if any(
        "green" in str(panel["fieldConfig"]["defaults"][part])
        for part in ("thresholds", "mappings")
    )
]
TITLES: Final = [panel["title"] for panel in COLOURED]


def test_which_are_coloured() -> None:
    """Those that say well or not; all values hold at this moment, not when they were last known."""
    assert TITLES == [
        "Ready", "Lag", "Watermark delay", "Dead letters, last hour", "Batch, 95th percentile",
    ]  # fmt: skip
    for panel in VALUES:
        assert panel["targets"][0]["instant"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["noValue"], panel["title"]


@pytest.mark.parametrize("panel", COLOURED, ids=TITLES)
def test_green_when_all_is_well(panel: dict[str, Any], tmp_path: Path) -> None:
    """One job, and two."""
    _is_green(tmp_path, panel, _series(), green=True)
    _is_green(tmp_path, panel, _series() + _series("other"), green=True)


@pytest.mark.parametrize("panel", COLOURED, ids=TITLES)
@pytest.mark.parametrize("case", CASES)
def test_not_green(case: str, panel: dict[str, Any], tmp_path: Path) -> None:
    """Within a scrape after Kafka or a job is gone, and as long as it is."""
    _is_green(tmp_path, panel, CASES[case], green=False)


@pytest.mark.parametrize(
    ("letters", "started"),
    [("0x100 1x20", "0x120"), ("_x118 7x2", "_x118 1770x2")],
    ids=["one within the hour", "of the first batch, before the first scrape"],
)
def test_dead_letters_are_not_green(letters: str, started: str, tmp_path: Path) -> None:
    """A single one is shown for an hour."""
    (panel,) = (each for each in COLOURED if each["title"].startswith("Dead letters"))
    series = _series(spark_cep_dead_letters_total=letters, process_start_time_seconds=started)
    _is_green(tmp_path, panel, series, green=False)
