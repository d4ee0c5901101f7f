"""What a start and the watch make of a source of rules; whether it could be read, by metrics."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from service.config import Lifecycle
from service.errors import ConfigurationError, Problem, RulesAwayError, RuleSetError
from service.observability.health import Health
from service.observability.metric_names import RULES_READ
from service.observability.metrics import Metrics
from service.pipeline.driver import rule_watch
from service.pipeline.driver.retry import RetryPolicies
from service.pipeline.driver.rule_log import LOG
from service.pipeline.driver.rule_status import RuleStatus
from service.pipeline.driver.rule_watch import RuleWatch
from service.pipeline.driver.rules_at_start import RulesAtStart
from service.rules.folder import read_rules
from service.rules.overrides import Overrides, OverrideTopic
from service.rules.sources import source_of
from tests.pipeline.driver.test_job_plan import settings
from tests.rules.test_folder import mount, rule

INPUT: dict[str, object] = {"topics": ["logins"], "event_time": "ts"}


@pytest.fixture
def metrics() -> Metrics:
    """Of a job that has just begun."""
    return Metrics()


def could_be_read(metrics: Metrics) -> float | None:
    """What Prometheus is told."""
    return metrics.registry.get_sample_value("spark_cep_rules_last_refresh_successful")


def ran_before(folder: Path) -> Path:
    """A folder of rules, with a checkpoint in it that knows rules."""
    (folder / "checkpoint" / LOG).mkdir(parents=True)
    return folder


def test_a_start_says_whether_it_could_read(tmp_path: Path, metrics: Metrics) -> None:
    """At once: a job that waits for Kafka then has not failed to read its rules."""
    (ran_before(tmp_path) / "a.yaml").write_text(rule("a"))
    assert could_be_read(metrics) == 0
    given = settings(tmp_path, INPUT)
    RulesAtStart(given, source_of(given), RuleStatus(metrics))
    assert could_be_read(metrics) == 1


def test_a_start_with_a_wrong_rule_could_read(tmp_path: Path, metrics: Metrics) -> None:
    """The rule is rejected; the folder was read."""
    (ran_before(tmp_path) / "a.yaml").write_text("id: [")
    given = settings(tmp_path, INPUT)
    RulesAtStart(given, source_of(given), RuleStatus(metrics))
    assert could_be_read(metrics) == 1


@pytest.mark.parametrize("why", ["missing", "too many files"])
def test_a_start_without_its_folder(
    why: str, tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a job that ran before: it could not read. That stays so when what ran before is wanted
    again."""
    given = settings(ran_before(tmp_path), INPUT)
    if why == "missing":
        elsewhere = given.rules.model_copy(update={"folder": tmp_path / "none"})
        given = given.model_copy(update={"rules": elsewhere})
    else:
        (tmp_path / "a.yaml").write_text(rule("a"))
        monkeypatch.setattr("service.rules.source.MOST_ENTRIES", 0)
    metrics.set(RULES_READ, 1)
    status = RuleStatus(metrics)
    RulesAtStart(given, source_of(given), status)
    assert could_be_read(metrics) == 0
    status.wants(status.rules, (), ())
    assert could_be_read(metrics) == 0


def test_settings_of_a_source_that_are_wrong(tmp_path: Path, metrics: Metrics) -> None:
    """End a start, whatever ran before: they do not change by themselves."""
    given = settings(ran_before(tmp_path), INPUT)
    refused = ConfigurationError("rules.kafka.properties: no")
    wrong: Any = SimpleNamespace(name="source", read=Mock(side_effect=refused))
    with pytest.raises(ConfigurationError, match=r"rules\.kafka\.properties"):
        RulesAtStart(given, wrong, RuleStatus(metrics))


@pytest.mark.parametrize("ran", [False, True])
def test_a_source_that_is_away(tmp_path: Path, metrics: Metrics, *, ran: bool) -> None:
    """A first start waits for it; where rules ran before, they run."""
    given = settings(ran_before(tmp_path) if ran else tmp_path, INPUT)
    (tmp_path / "a.yaml").write_text(rule("a"))
    files = source_of(given).read()
    away = RulesAwayError([Problem("no answer")])
    source: Any = SimpleNamespace(name="source", read=Mock(side_effect=[away, away, files]))
    lifecycle = Lifecycle.model_validate({"backoff": "1 ms", "max_backoff": "2 ms"})
    retries = RetryPolicies(lifecycle, threading.Event(), Health(60_000))
    found = RulesAtStart(given, source, RuleStatus(metrics), retries.at_start)
    assert found.files == (None if ran else files)
    assert could_be_read(metrics) == (not ran)


def test_a_stop_during_a_read(tmp_path: Path, metrics: Metrics) -> None:
    """Its source may be closed under it: that is none that cannot be read."""
    reading, stopped = threading.Event(), threading.Event()

    def read() -> None:
        reading.set()
        stopped.wait(30)
        raise RuleSetError([Problem("closed")])

    status = RuleStatus(metrics)
    status.read()
    given = settings(tmp_path, INPUT, refresh_interval="1 ms")
    source: Any = SimpleNamespace(read=read)
    rules: Any = None
    topic, found = OverrideTopic(given.kafka, None), (None, Overrides())
    watching = RuleWatch(given, source, topic, found, rules, lambda: rules, status, print, "run")
    watching.start()
    assert reading.wait(30)
    threading.Timer(0.1, stopped.set).start()
    watching.stop()
    assert could_be_read(metrics) == 1


def test_a_defect_of_ours(
    tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that cannot be taken for a reason that nobody thought of are rejected, once; those that
    ran before run on."""
    failed: list[None] = []

    def fails(*_: object, **__: object) -> None:
        failed.append(None)
        raise LookupError("nobody thought of it")

    monkeypatch.setattr(rule_watch, "next_rules", fails)
    mount(tmp_path, "a", a__yaml=rule("a"))
    status = RuleStatus(metrics)
    running = read_rules(tmp_path)
    rules: Any = SimpleNamespace(wanted=SimpleNamespace(rules=running), meanings={})
    given = settings(tmp_path, INPUT, refresh_interval="1 ms")
    schemas = SimpleNamespace(types=())
    source = source_of(given)
    watching = RuleWatch(
        given,
        source,
        OverrideTopic(given.kafka, None),
        (None, Overrides()),
        rules,
        lambda: SimpleNamespace(schemas=schemas),
        status,
        print,
        "run",
    )  # fmt: skip
    watching.start()
    deadline = time.monotonic() + 10
    while not status.rejected and time.monotonic() < deadline:
        time.sleep(0.01)
    watching.stop()
    assert source.read() is None
    assert len(failed) == 1
    assert status.rules == running
    (shown,) = [each for each in status.listing() if each["state"] == "rejected"]
    assert "LookupError: nobody thought of it" in str(shown["reason"])
    assert (
        metrics.registry.get_sample_value(
            "spark_cep_rules_rejected_info", {"source": "", "rule": ""}
        )
        == 1
    )
