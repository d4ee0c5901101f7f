"""What ``/rules`` lists, and what is said of rules whose partial matches went."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.errors import Problem
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.driver.rules import rule_status
from spark_cep.pipeline.driver.rules.batch_rules import CompiledRules
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import DrainingVersion, RuleSet
from spark_cep.rules.sources.folder import read_rules

RULES = """
id: {0}
version: {1}
enabled: {2}
key: k
within: 1 minute
pattern:
  - {{step: a, where: "n = 1"}}
  - {{step: b, after: followed_by, where: "n = 2"}}
"""


@pytest.fixture
def status(tmp_path: Path) -> RuleStatus:
    """Two rules that run, one that is disabled."""
    rules = [("one", 1, "true"), ("two", 3, "true"), ("disabled", 1, "false")]
    for name, version, enabled in rules:
        (tmp_path / f"{name}.yaml").write_text(RULES.format(name, version, enabled), "utf-8")
    made = RuleStatus(Metrics())
    made.rules = read_rules(tmp_path)
    return made


def wants(status: RuleStatus, rules: RuleSet, *rejected: Problem) -> None:
    """As the start and the watch do."""
    status.takes(rules)
    status.wants(rules, rejected, ())


def begins(
    status: RuleStatus, number: int, batch: int, before: LoggedRules | None = None
) -> LoggedRules:
    """Its rules begin with a batch, behind the set ``before``."""
    logged = replace(LoggedRules.following(before, batch, {}, status.rules), number=number)
    status.begins(batch, logged, CompiledRules.of(status.rules, RecordTypes()))
    return logged


def states(status: RuleStatus) -> dict[object, object]:
    """By rule id."""
    return {each["id"]: each["state"] for each in status.listing()}


def test_counters_begin_at_zero(status: RuleStatus) -> None:
    """A burst in the first batch is an increase then: to Prometheus a series that begins with its
    first value is none."""
    wants(status, status.rules)
    value = status._metrics.registry.get_sample_value
    assert value("spark_cep_dead_letters_total", {"reason": "undecodable"}) == 0
    for dropped in ("partial_matches", "matches"):
        assert value(f"spark_cep_{dropped}_dropped_total", {"rule": "two"}) == 0
    labels = {"rule": "one", "reason": "condition_failed"}
    assert value("spark_cep_rule_errors_total", labels) == 0
    assert value("spark_cep_matches_total", {"rule": "disabled"}) is None


def test_states_of_rules(status: RuleStatus) -> None:
    """A rule starts, runs, and may be paused; a disabled one never starts."""
    assert states(status) == {"one": "accepted", "two": "accepted", "disabled": "disabled"}
    assert all(each["fingerprint"] is None for each in status.listing())
    begins(status, 7, 3)
    assert states(status)["one"] == "accepted"
    status.committed(3)
    status.batch_done(BatchReport(0, live=Counter({("one", 1): 4})))
    status.takes(status.rules.pausing({"two": Pause("too many", "circuit breaker", 3)}))
    assert states(status)["one"] == "active"
    assert list(states(status).values()).count("paused") == 1
    (one,) = [each for each in status.listing() if each["id"] == "one"]
    assert (one["partial_matches"], one["since_batch"]) == (4, 3)


def test_a_rule_that_waits_for_its_time(status: RuleStatus, tmp_path: Path) -> None:
    """It is scheduled until the watermark has come to it."""
    text = RULES.format("one", 1, "true") + "effective_from: 1970-01-01T00:00:05Z\n"
    (tmp_path / "one.yaml").write_text(text, "utf-8")
    wants(status, read_rules(tmp_path))
    assert states(status)["one"] == "accepted"
    begins(status, 1, 0)
    status.committed(0)
    for watermark, state in ((4_999, "scheduled"), (5_000, "active")):
        status.batch_done(BatchReport(0, watermark=watermark))
        assert (states(status)["one"], states(status)["two"]) == (state, "active")


def test_a_change_of_mode_counts_when_it_is_committed(status: RuleStatus, tmp_path: Path) -> None:
    """Until then results may still go to the other topic."""
    for batch, mode, state in ((0, "shadow", "shadow"), (1, "live", "active")):
        text = RULES.format("one", 1, "true") + f"mode: {mode}\n"
        (tmp_path / "one.yaml").write_text(text, "utf-8")
        wants(status, read_rules(tmp_path))
        assert states(status)["one"] == "accepted"
        begins(status, batch + 1, batch)
        assert states(status)["one"] == "accepted"
        status.committed(batch)
        assert states(status)["one"] == state


def test_another_version_of_a_paused_rule_runs(status: RuleStatus, tmp_path: Path) -> None:
    """The pause is that of the version."""
    begins(status, 1, 0)
    status.committed(0)
    paused = {"rule": "one", "version": "1"}
    value = status._metrics.registry.get_sample_value
    pauses = {"one": Pause("too many dead letters", "circuit breaker", 1)}
    status.takes(status.rules.pausing(pauses))
    assert (states(status)["one"], value("spark_cep_rule_paused_info", paused)) == ("paused", 1)
    (tmp_path / "one.yaml").write_text(RULES.format("one", 2, "true"), "utf-8")
    wants(status, read_rules(tmp_path).pausing(pauses))
    begins(status, 2, 5)
    status.committed(5)
    assert (states(status)["one"], status.rules.paused) == ("active", {})
    assert value("spark_cep_rule_paused_info", paused) is None


def test_why_partial_matches_went(status: RuleStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning where a rule was changed under its version, and something was lost by it."""
    said: list[tuple[str, int, str]] = []

    class Log:
        def warning(self, _event: str, *, version: int, reason: str, **_: object) -> None:
            said.append(("warning", version, reason))

        def info(self, _event: str, *, version: int, reason: str, **_: object) -> None:
            said.append(("info", version, reason))

    monkeypatch.setattr(rule_status, "_log", Log())
    gone = {("one", 1): 5, ("two", 2): 5, ("removed", 1): 5, ("two", 3): 0}
    status.batch_done(BatchReport(0, gone=Counter(gone)))
    changed, replaced = "changed without a new version", "replaced or removed"
    assert said == [
        ("warning", 1, changed), ("info", 2, replaced), ("info", 1, replaced), ("info", 3, changed),
    ]  # fmt: skip


def test_a_version_that_drains(
    status: RuleStatus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is listed beside the one that runs, with what lives of it."""
    old = status.rules
    first = begins(status, 1, 0)
    status.committed(0)
    (tmp_path / "one.yaml").write_text(RULES.format("one", 2, "true"), "utf-8")
    drains = tuple(DrainingVersion(each, 1_000) for each in old.loaded if each.rule.id == "one")
    rules = replace(read_rules(tmp_path), draining=drains)
    wants(status, rules)
    begins(status, 2, 5, first)
    status.committed(5)
    status.batch_done(BatchReport(5, live=Counter({("one", 1): 4, ("one", 2): 1})))
    shown = [
        (each["version"], each["state"], each["since_batch"], each["partial_matches"])
        for each in status.listing()
        if each["id"] == "one"
    ]
    assert shown == [(2, "active", 5, 1), (1, "draining", 0, 4)]
    said: list[str] = []

    class Log:
        def info(self, _event: str, *, reason: str, **_: object) -> None:
            said.append(reason)

    monkeypatch.setattr(rule_status, "_log", Log())
    status.batch_done(BatchReport(6, gone=Counter({("one", 1): 4})))
    status.batch_done(BatchReport(7, gone=Counter({("one", 1): 0})))
    assert said == ["ended before it had drained", "drained"]


@pytest.mark.parametrize("how", ["before any batch", "paused", "disabled", "in between"])
def test_series_of_rules_go_with_them(status: RuleStatus, tmp_path: Path, how: str) -> None:
    """However a rule goes: with the batch that has it no more, and not before."""
    value = status._metrics.registry.get_sample_value
    matches = "spark_cep_matches_total"
    wants(status, status.rules)
    logged = begins(status, 1, 0)
    status.committed(0)
    (tmp_path / "new.yaml").write_text(RULES.format("new", 1, "true"), "utf-8")
    wants(status, read_rules(tmp_path))
    assert value(matches, {"rule": "new"}) == 0
    if how != "before any batch":
        logged = begins(status, 2, 1, logged)
    if how in ("paused", "disabled"):
        status.committed(1)
        if how == "paused":
            pause = Pause("too many", "circuit breaker", 1)
            wants(status, status.rules.pausing({"new": pause}))
        else:
            (tmp_path / "new.yaml").write_text(RULES.format("new", 1, "false"), "utf-8")
            wants(status, read_rules(tmp_path))
        logged = begins(status, 3, 2, logged)
        status.committed(2)
    (tmp_path / "new.yaml").unlink()
    wants(status, read_rules(tmp_path))
    if how == "in between":
        # The batch that has it is counted after this one.
        status.committed(0)
        assert value(matches, {"rule": "new"}) == 0
        status.committed(1)
    if how != "before any batch":
        logged = begins(status, 4, 3, logged)
    status.committed(3)
    assert value(matches, {"rule": "new"}) is None
    assert value(matches, {"rule": "one"}) == 0


def test_what_was_rejected_holds_no_label(status: RuleStatus, tmp_path: Path) -> None:
    """The label ``rule`` has a cap, which names of files that were wrong once must not fill."""
    status._metrics = Metrics(max_rule_labels=3)
    logged = begins(status, 1, 0)
    for number in range(5):
        wrong = Problem("no such column", "wrong.yaml", rule=f"wrong-{number}")
        wants(status, status.rules, wrong)
        status.committed(number)
    wants(status, status.rules)
    status.committed(5)
    (tmp_path / "new.yaml").write_text(RULES.format("new", 1, "true"), "utf-8")
    wants(status, read_rules(tmp_path))
    begins(status, 2, 6, logged)
    value = status._metrics.registry.get_sample_value
    assert value("spark_cep_rules_loaded_info", {"rule": "new", "version": "1"}) == 1
    assert value("spark_cep_rules_loaded_info", {"rule": "other", "version": "1"}) is None


def test_partial_matches_that_too_many_versions_end(
    status: RuleStatus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error that says the limit, and they count as dropped, once; what a carry finds no
    state for is a warning. What has drained is said as before."""
    said: list[tuple[str, int, str]] = []

    class Log(Mock):
        def error(self, _event: str, *, version: int, reason: str, **_: object) -> None:
            said.append(("error", version, reason))

        def warning(self, _event: str, *, version: int, reason: str, **_: object) -> None:
            said.append(("warning", version, reason))

    monkeypatch.setattr(rule_status, "_log", Log())
    versions = []
    for version in range(1, 8):
        text = RULES.format("one", version, "true") + "previous_version: drain\n"
        (tmp_path / "one.yaml").write_text(text, "utf-8")
        versions += [each for each in read_rules(tmp_path).loaded if each.rule.id == "one"]
    rules = read_rules(tmp_path)
    drains = [DrainingVersion(each, 1_000) for each in versions]
    wants(status, replace(rules, draining=tuple(drains[1:5])))
    first = begins(status, 1, 0)
    status.committed(0)
    wants(status, replace(rules, draining=tuple(drains[2:6])))
    second = begins(status, 2, 1, first)
    report = BatchReport(1, gone=Counter({("one", 2): 5, ("two", 2): 5}))
    for _ in range(2):
        status.batch_done(report)
    reason = (
        "another version drains, and at most 4 versions of a rule do at a time: the oldest ended"
        " before it was done"
    )
    assert said == [("error", 2, reason)] * 2
    value = status._metrics.registry.get_sample_value
    dropped = "spark_cep_partial_matches_dropped_total"
    assert (value(dropped, {"rule": "one"}), value(dropped, {"rule": "two"})) == (5, 0)
    said.clear()
    text = RULES.format("one", 8, "true") + "previous_version: carry\n"
    (tmp_path / "one.yaml").write_text(text, "utf-8")
    wants(status, replace(read_rules(tmp_path), carried=(versions[-1],)))
    begins(status, 3, 2, second)
    status.batch_done(BatchReport(2, gone=Counter({("one", 7): 3, ("one", 3): 0})))
    assert said == [("warning", 7, "carried over, and the newer version has no such state")]
