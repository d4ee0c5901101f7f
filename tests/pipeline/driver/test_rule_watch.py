"""When a change of the rules folder is taken, and whether it could be read, by metrics."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.observability.metric_names import RULES_READ
from service.observability.metrics import Metrics
from service.pipeline.driver import rule_watch
from service.pipeline.driver.rule_log import LOG
from service.pipeline.driver.rule_status import RuleStatus
from service.pipeline.driver.rule_watch import RuleWatch
from service.pipeline.driver.rules_at_start import RulesAtStart
from service.rules import folder as rules_folder
from service.rules.folder import read_files, read_rules, stamp
from service.rules.rule_set import RuleFile
from tests.pipeline.driver.test_job_plan import settings
from tests.rules.test_folder import mount, rule

INPUT: dict[str, object] = {"topics": ["logins"], "event_time": "ts"}


class TakenError(Exception):
    """A look came as far as holding what it had read against the schemas."""


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


def watch(folder: Path, metrics: Metrics) -> RuleWatch:
    """One that has seen the folder as it is; a change that it takes raises TakenError."""

    def packing() -> Any:
        raise TakenError

    rules: Any = type("Rules", (), {"wanted": None})()
    return RuleWatch(
        settings(folder, INPUT), stamp(folder), rules, packing, RuleStatus(metrics), print, "run"
    )


def test_a_change_is_taken_at_the_second_look(tmp_path: Path, metrics: Metrics) -> None:
    """One that two looks have found alike."""
    mount(tmp_path, "a", a__yaml=rule("a"))
    watching = watch(tmp_path, metrics)
    watching.look()
    mount(tmp_path, "b", a__yaml=rule("b"))
    watching.look()
    mount(tmp_path, "c", a__yaml=rule("c"))
    watching.look()
    with pytest.raises(TakenError):
        watching.look()


def test_a_folder_that_changes_while_it_is_read(
    tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is not taken: a rule that moves from file to file would be missing, and lose what it has
    begun. It is read again when it has settled."""
    mount(tmp_path, "a", x__yaml=rule("moves"), y__yaml=rule("stays"))
    watching = watch(tmp_path, metrics)
    mount(tmp_path, "b", x__yaml=rule("moves"), y__yaml=rule("stays", 2))
    watching.look()
    found: list[list[RuleFile]] = []

    def meanwhile(path: Path) -> list[RuleFile]:
        if not found:
            mount(tmp_path, "c", w__yaml=rule("moves"), y__yaml=rule("stays", 2))
        found.append(read_files(path))
        return found[-1]

    monkeypatch.setattr(rule_watch, "read_files", meanwhile)
    watching.look()
    watching.look()
    assert len(found) == 1
    with pytest.raises(TakenError):
        watching.look()


def test_a_start_says_whether_it_could_read(tmp_path: Path, metrics: Metrics) -> None:
    """At once: a job that waits for Kafka then has not failed to read its rules."""
    (ran_before(tmp_path) / "a.yaml").write_text(rule("a"))
    assert could_be_read(metrics) == 0
    RulesAtStart(settings(tmp_path, INPUT), RuleStatus(metrics))
    assert could_be_read(metrics) == 1


def test_a_start_with_a_wrong_rule_could_read(tmp_path: Path, metrics: Metrics) -> None:
    """The rule is rejected; the folder was read."""
    (ran_before(tmp_path) / "a.yaml").write_text("id: [")
    at_start = RulesAtStart(settings(tmp_path, INPUT), RuleStatus(metrics))
    assert at_start.taken == stamp(tmp_path)
    assert could_be_read(metrics) == 1


@pytest.mark.parametrize("why", ["missing", "too many files"])
def test_a_start_without_its_folder(
    why: str, tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a job that ran before: it could not read, and has taken nothing. That stays so when what
    ran before is wanted again."""
    given = settings(ran_before(tmp_path), INPUT)
    if why == "missing":
        elsewhere = given.rules.model_copy(update={"folder": tmp_path / "none"})
        given = given.model_copy(update={"rules": elsewhere})
    else:
        (tmp_path / "a.yaml").write_text(rule("a"))
        monkeypatch.setattr(rules_folder, "MOST_FILES", 0)
    metrics.set(RULES_READ, 1)
    status = RuleStatus(metrics)
    assert RulesAtStart(given, status).taken is None
    assert could_be_read(metrics) == 0
    status.wants(status.rules, (), ())
    assert could_be_read(metrics) == 0


def test_a_defect_of_ours(
    tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that cannot be taken for a reason that nobody thought of are rejected, once; those that
    ran before run on."""
    looks = []

    class Broken(RuleWatch):
        def look(self) -> None:
            looks.append(self._taken)
            if len(looks) == 3:
                self._stop.set()
            super().look()

    def fails(*_: object, **__: object) -> None:
        raise LookupError("nobody thought of it")

    monkeypatch.setattr(rule_watch, "next_rules", fails)
    mount(tmp_path, "a", a__yaml=rule("a"))
    status = RuleStatus(metrics)
    running = read_rules(tmp_path)
    rules: Any = SimpleNamespace(wanted=SimpleNamespace(rules=running))
    given = settings(tmp_path, INPUT, refresh_interval="1 ms")
    schemas = SimpleNamespace(types=())
    watching = Broken(
        given, None, rules, lambda: SimpleNamespace(schemas=schemas), status, print, "run"
    )
    watching.start()
    watching._thread.join(10)
    assert looks == [None, None, stamp(tmp_path)]
    assert status.rules == running
    (shown,) = [each for each in status.listing() if each["state"] == "rejected"]
    assert "LookupError: nobody thought of it" in str(shown["reason"])
    assert (
        metrics.registry.get_sample_value(
            "spark_cep_rules_rejected_info", {"source": "", "rule": ""}
        )
        == 1
    )
