"""Each alert has a test, a severity, and a part of the run-book that its link leads to."""

from __future__ import annotations

import re

import yaml

from tests.chart.files import ALERT_TESTS, ALERTS, ROOT, alerts
from tests.e2e.quick_prometheus import BOUNDS

PAGE = "docs/operations/alerts.md"
NAMES = [rule["alert"] for rule in alerts()]


def _headings() -> list[str]:
    page = (ROOT / PAGE).read_text("utf-8")
    return re.findall(r"^#+ (.+)$", page, re.MULTILINE)


def test_each_has_a_part_of_the_run_book() -> None:
    """``runbook`` names a heading of the alert's name, and the page has no other alerts."""
    for rule in alerts():
        assert rule["annotations"]["runbook"] == f"{PAGE}#{rule['alert'].lower()}"
    assert [heading for heading in _headings() if heading.startswith("SparkCep")] == NAMES


def test_each_says_what_it_is() -> None:
    """All have a severity of three, a summary and a description; names are unique."""
    assert len(set(NAMES)) == len(NAMES)
    for rule in alerts():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, rule["alert"]
        assert set(rule["annotations"]) == {"summary", "description", "runbook"}, rule["alert"]


def test_each_is_tested_both_ways() -> None:
    """The unit tests have a moment when it fires and one when it does not."""
    tests = yaml.safe_load(ALERT_TESTS.read_text("utf-8"))["tests"]
    checks = [check for test in tests for check in test.get("alert_rule_test", [])]
    for name in NAMES:
        fires = [bool(check["exp_alerts"]) for check in checks if check["alertname"] == name]
        assert True in fires, f"{name}: no test in which it fires"
        assert False in fires, f"{name}: no test in which it does not"


def test_each_is_made_to_fire_by_a_job() -> None:
    """Each is waited for in a run under a real Prometheus."""
    runs = "".join(
        (ROOT / "tests" / "e2e" / f"{name}.py").read_text("utf-8")
        for name in ("test_alerts_fire", "test_alerts_of_a_job")
    )
    assert [name for name in NAMES if f'"{name}"' not in runs] == []


def test_bounds_of_a_run_are_those_of_alerts() -> None:
    """What a run under Prometheus lowers is in the text of the alerts, as it is written there."""
    texts = "".join(path.read_text("utf-8") for path in ALERTS)
    assert [bound for bound in BOUNDS if bound not in texts] == []
