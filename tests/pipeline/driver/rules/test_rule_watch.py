"""What a start and the watch make of a source of rules; whether it could be read, by metrics."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.config import Lifecycle
from spark_cep.errors import ConfigurationError, Problem, RuleSetError, RulesUnavailableError
from spark_cep.observability.health import Health
from spark_cep.observability.metric_names import RULES_READ
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.lifecycle.retry import RetryPolicies
from spark_cep.pipeline.driver.rules import rule_watch
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules, CompiledRules
from spark_cep.pipeline.driver.rules.rule_log import LOG
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.pipeline.driver.rules.rule_watch import RuleWatch
from spark_cep.pipeline.driver.rules.rules_at_start import RulesAtStart
from spark_cep.rules.change import Change
from spark_cep.rules.overrides import Overrides, OverrideTopic
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import RuleSet
from spark_cep.rules.sources.configured import source_of
from spark_cep.rules.sources.folder import read_rules
from tests.pipeline.driver.rules.test_job_plan import settings
from tests.rules.sources.test_folder import mount, rule

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
        monkeypatch.setattr("spark_cep.rules.sources.source.MOST_ENTRIES", 0)
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
    away = RulesUnavailableError([Problem("no answer")])
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
    source: Any = SimpleNamespace(name="source", read=read)
    rules: Any = None
    topic, found = OverrideTopic(given.kafka, None), (None, Overrides())
    watching = RuleWatch(given, source, topic, found, rules, lambda: rules, status, print, "run")
    watching.start()
    assert reading.wait(30)
    threading.Timer(0.1, stopped.set).start()
    watching.stop()
    assert could_be_read(metrics) == 1


class Watch:
    """A watch of a source and of overrides that are ``read`` as told: each an error, or what there
    is. ``taken``: what next_rules is given; ``fails``: what it raises. Rule ``a`` runs."""

    def __init__(
        self, folder: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch, **read: Any
    ) -> None:
        mount(folder, "a", a__yaml=rule("a"))
        self.running = read_rules(folder)
        self.rejected = Problem("no such column", "b.yaml", rule="b")
        self.status = RuleStatus(metrics)
        self.rules = BatchRules(
            Mock(), None, CompiledRules.of(self.running, RecordTypes()), None, Overrides(), Mock(),
            Mock(), self.status.takes,
        )  # fmt: skip
        self.status.wants(self.running, [self.rejected], ())
        self.taken: list[Any] = []
        self.fails: Exception | None = None
        monkeypatch.setattr(rule_watch, "next_rules", self._next_rules)
        source: Any = SimpleNamespace(name="source", read=Mock(side_effect=read["source"]))
        topic: Any = SimpleNamespace(read=Mock(side_effect=read["overrides"]))
        packing: Any = SimpleNamespace(format=SimpleNamespace(types=(), types_of=lambda _: []))
        self.watch = RuleWatch(
            settings(folder, INPUT), source, topic, ((), Overrides()), self.rules, lambda: packing,
            self.status, print, "run",
        )  # fmt: skip

    def _next_rules(self, _running: RuleSet, files: Any, *_: object, **__: object) -> Change:
        self.taken.append(files)
        if self.fails is not None:
            raise self.fails
        return Change(self.running, (self.rejected,))

    def told(self) -> list[str]:
        """Why something does not run."""
        return [str(row["reason"]) for row in self.status.listing() if row["state"] == "rejected"]


def test_a_defect_of_ours(
    tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that cannot be taken for a reason that nobody thought of are rejected, once, beside
    what is rejected anyway; those that ran before run on. Later ones may be right."""
    there = Watch(
        tmp_path, metrics, monkeypatch, overrides=[None] * 3, source=[("x",), None, ("y",)]
    )
    monkeypatch.setattr(rule_watch, "spelled_out", lambda files, *_: files)
    value = metrics.registry.get_sample_value
    ours = "spark_cep_rules_rejected_info", {"source": "", "rule": ""}
    monkeypatch.setattr(Overrides, "applied", lambda _, files, __: files)
    there.fails = LookupError("nobody thought of it")
    there.watch.look()
    there.watch.look()
    assert there.taken == [("x",)]
    assert there.rules.wanted.rules == there.status.rules == there.running
    real, defect = there.told()
    assert "no such column" in real
    assert "LookupError: nobody thought of it" in defect
    assert value(*ours) == could_be_read(metrics) == 1
    there.fails = None
    there.watch.look()
    assert there.told() == [real]
    assert value(*ours) is None


def test_a_source_that_fails_in_any_way(
    tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not read: that is told until it can be, and no rejection is lost."""
    there = Watch(
        tmp_path, metrics, monkeypatch, overrides=[None] * 3, source=[ValueError("a driver"),
        RuleSetError([Problem("no answer", "source")]), None],
    )  # fmt: skip
    (real,) = there.told()
    there.watch.look()
    first = there.told()
    there.watch.look()
    assert (could_be_read(metrics), there.told()) == (0, first)
    assert first[0] == real
    assert "not read since 2" in first[1]
    assert "source: cannot be read: ValueError: a driver" in first[1]
    there.watch.look()
    assert (could_be_read(metrics), there.told(), there.taken) == (1, [real], [])


def test_overrides_that_cannot_be_read(
    tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules change all the same, under those that are known."""
    away = RuleSetError([Problem("no answer", "topic overrides")])
    there = Watch(tmp_path, metrics, monkeypatch, overrides=[away], source=[()])
    there.watch.look()
    assert len(there.taken) == 1
    assert could_be_read(metrics) == 0
    assert "topic overrides: no answer" in there.told()[1]


def test_a_pause_while_rules_are_taken(
    tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the circuit breaker, in the thread of the batches: what is told is what will run."""
    there = Watch(tmp_path, metrics, monkeypatch, overrides=[None], source=[()])
    tells = there.status.wants

    def pauses(*given: Any) -> None:
        there.rules.pause({"a": Pause("too many", "circuit breaker", 1)})
        tells(*given)

    monkeypatch.setattr(there.status, "wants", pauses)
    there.watch.look()
    assert list(there.rules.wanted.rules.paused) == ["a"]
    assert [row["state"] for row in there.status.listing()] == ["paused", "rejected"]


def test_a_batch_begins_while_rules_are_taken(
    tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They follow the rules that it has: what they replace is found again."""
    there = Watch(tmp_path, metrics, monkeypatch, overrides=[None], source=[()])
    follows: list[RuleSet] = []

    def next_rules(running: RuleSet, *_: object, ran: RuleSet, **__: object) -> Change:
        follows.append(ran)
        there.rules.of(0, dict)
        return Change(running)

    monkeypatch.setattr(rule_watch, "next_rules", next_rules)
    there.watch.look()
    assert follows == [RuleSet(), there.running]


def test_what_is_rejected_is_looked_at_again(
    tmp_path: Path, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a batch with other rules, for it may have waited for another version; not after any
    other batch."""
    there = Watch(tmp_path, metrics, monkeypatch, overrides=[None] * 4, source=[(), *[None] * 3])
    there.watch.look()
    there.watch.look()
    assert len(there.taken) == 1
    there.rules.of(0, dict)
    there.watch.look()
    there.rules.of(1, dict)
    there.watch.look()
    assert len(there.taken) == 2
