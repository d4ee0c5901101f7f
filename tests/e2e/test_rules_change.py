"""Rules that change while the job runs: what a batch runs under, and what untouched rules see."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.errors import RuleSetError
from spark_cep.pipeline.driver.checkpoint.failures import JobFailedError
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules, CompiledRules
from spark_cep.pipeline.driver.service import Service
from spark_cep.pipeline.tasks.match_operator import MatchOperator
from spark_cep.rules.rule_set import RuleSet
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

_QUICK = {"refresh_interval": "100 ms"}
_SECONDS = 60.0


def _until(service: Service, **states: str | None) -> None:
    """Wait until rules have these states; ``None``: there is no such rule."""
    deadline = time.monotonic() + _SECONDS
    while True:
        now = {str(each["id"]): each["state"] for each in service.rules()}
        if all(now.get(rule) == state for rule, state in states.items()):
            return
        assert time.monotonic() < deadline, f"timed out; there is: {service.rules()}"
        time.sleep(0.05)


def _rule(rule_id: str, second: str, **changes: Any) -> dict[str, Any]:
    """``a``, then ``second``, within an hour."""
    return {**sequence(rule_id, "a", f"followed_by {second}", within="1 hour"), **changes}


def _rejected(service: Service) -> list[str]:
    return [str(each["reason"]) for each in service.rules() if each["state"] == "rejected"]


def _is_told(service: Service, text: str) -> bool:
    return any(text in reason for reason in _rejected(service))


def _folder(scenario: Scenario) -> dict[str, Any]:
    return {"folder": str(scenario.rules_folder), **_QUICK}


def test_rules_come_change_and_go(scenario: Scenario) -> None:
    """Without a restart of the query, and without an event: a batch comes for the rules. Matches of
    the rule that stays are those of a job in which nothing changed."""
    stream = Stream(scenario)
    scenario.rule(_rule("stays", "b"))
    scenario.rule(_rule("changes", "b"))
    with scenario.running(rules=_folder(scenario)) as service:
        stream.send(("k", "a", 0))
        scenario.wait_for_records(1)
        _until(service, stays="active", changes="active")

        scenario.rule(_rule("comes", "c"))
        scenario.rule(_rule("changes", "c", version=2))
        _until(service, comes="active")
        (changed,) = [each for each in service.rules() if each["id"] == "changes"]
        assert (changed["version"], changed["state"]) == (2, "active")

        stream.send(("k", "b", 10), ("k", "c", 20), ("k", "a", 30), ("k", "c", 40), ("k", "x", 45))
        scenario.wait_for_records(6)
        (scenario.rules_folder / "comes.yaml").unlink()
        _until(service, comes=None)
        _wait(lambda: scenario.metric("spark_cep_matches_total", rule="comes") is None)

        stream.send(("k", "b", 50), ("k", "c", 60), ("k", "x", 99))
        outputs = scenario.wait_for(lambda outputs: len(outputs.of("stays")[0]) == 2)
    assert outputs.of("stays")[0] == [
        found("stays", "k", at(10), a=0, b=1), found("stays", "k", at(50), a=3, b=6),
    ]  # fmt: skip
    assert outputs.of("comes") == ([found("comes", "k", at(40), a=3, c=4)], [])
    (first, *_) = outputs.of("changes")[0]
    assert first == found("changes", "k", at(40), a=3, c=4)
    assert scenario.metric("spark_cep_query_restarts_total", reason="new_schema") in (None, 0)
    assert scenario.metric("spark_cep_rule_set_number") == 3


def test_a_bad_rule_disturbs_nobody(scenario: Scenario) -> None:
    """Its old version runs on, whatever is wrong with it; also at the next start."""
    stream = Stream(scenario)
    scenario.rule(_rule("good", "b"))
    scenario.rule(_rule("bad", "b"))
    bad = scenario.rules_folder / "bad.yaml"
    before = bad.read_text("utf-8")
    with scenario.running(rules=_folder(scenario)) as service:
        stream.send(("k", "a", 0))
        _until(service, good="active", bad="active")
        for text, told in (
            (before.replace("pattern", "patern"), "unknown key `patern`"),
            (before.replace("name", "nome"), "nome"),
            (before.replace("1 hour", "2 hours"), "a changed rule has a higher version: 2"),
            ("\x00", "bad.yaml"),
        ):
            bad.write_text(text, "utf-8")
            _wait(partial(_is_told, service, told))
            assert scenario.metric("spark_cep_rules_last_refresh_successful") == 1
        for file in scenario.rules_folder.iterdir():
            file.rename(file.with_suffix(".off"))
        _wait(lambda: any("the 2 there were run on" in reason for reason in _rejected(service)))
        for file in scenario.rules_folder.iterdir():
            file.rename(file.with_suffix(".yaml"))
        _wait(lambda: any("bad.yaml" in reason for reason in _rejected(service)))
        scenario.rules_folder.rename(scenario.rules_folder.with_name("away"))
        _wait(lambda: scenario.metric("spark_cep_rules_last_refresh_successful") == 0)
        scenario.rules_folder.with_name("away").rename(scenario.rules_folder)
        _wait(lambda: scenario.metric("spark_cep_rules_last_refresh_successful") == 1)
    with scenario.running(rules=_folder(scenario)) as service:
        _until(service, good="active", bad="active")
        assert _rejected(service)
        stream.send(("k", "b", 10), ("k", "x", 99))
        outputs = scenario.wait_for(lambda outputs: len(outputs.matches) == 2)
        bad.write_text(before, "utf-8")
        _wait(lambda: not _rejected(service))
    for rule in ("good", "bad"):
        assert outputs.of(rule)[0] == [found(rule, "k", at(10), a=0, b=1)]


def test_a_version_never_means_something_else(scenario: Scenario) -> None:
    """Neither when it comes back, nor after a restart; with the meaning that it had it runs."""
    stream = Stream(scenario)
    stream.send(("k", "x", 0))
    scenario.rule(_rule("stays", "b"))
    scenario.rule(_rule("back", "b"))
    scenario.rule(_rule("again", "b"))
    told = "version 1 of this rule ran before, and meant something else"
    with scenario.running(rules=_folder(scenario)) as service:
        _until(service, stays="active", back="active", again="active")
        (scenario.rules_folder / "back.yaml").unlink()
        scenario.rule(_rule("again", "c", version=2))
        _until(service, back=None)
        scenario.rule(_rule("back", "c"))
        scenario.rule(_rule("again", "d"))
        _until(service, back="rejected")
        _wait(lambda: len(_rejected(service)) == 2)
        assert all(told in reason for reason in _rejected(service))
    with scenario.running(rules=_folder(scenario)) as service:
        _until(service, stays="active", back="rejected")
        assert [told in reason for reason in _rejected(service)] == [True, True]
        (again,) = [each for each in service.rules() if each.get("version") == 2]
        assert (again["id"], again["state"]) == ("again", "active")
        scenario.rule(_rule("back", "b"))
        scenario.rule(_rule("again", "b"))
        _until(service, back="active")
        _wait(lambda: not _rejected(service))
        assert {each["version"] for each in service.rules()} == {1}


def test_a_shadow_rule_is_promoted(scenario: Scenario) -> None:
    """Its results go to a topic of their own, a match of a single event in columns like one with
    measures; promoted, it goes on with what it has begun."""
    stream = Stream(scenario)
    scenario.rule(_rule("live", "b"))
    scenario.rule(_rule("shadow", "b", mode="shadow"))
    scenario.rule(_rule("told", "b", mode="shadow", emit={"measures": {"at": "LAST(b.name)"}}))
    with scenario.running(rules=_folder(scenario)) as service:
        stream.send(("k", "a", 0), ("k", "b", 10), ("k", "a", 20), ("k", "x", 30))
        scenario.wait_for(lambda outputs: len(outputs.shadow) == 2 and len(outputs.matches) == 1)
        scenario.rule(_rule("shadow", "b"))
        _until(service, live="active", shadow="active", told="shadow")
        stream.send(("k", "b", 40), ("k", "x", 99))
        outputs = scenario.wait_for(
            lambda outputs: len(outputs.shadow) == 3 and len(outputs.matches) == 3
        )
    first, second = (
        {rule: found(rule, "k", at(time), a=a, b=b) for rule in ("live", "shadow", "told")}
        for time, a, b in ((10, 0, 1), (40, 2, 4))
    )
    assert outputs.of("live")[0] == [first["live"], second["live"]]
    assert outputs.of("shadow")[0] == [second["shadow"]]
    assert sorted(each.found for each in outputs.shadow) == [
        first["shadow"], first["told"], second["told"],
    ]  # fmt: skip


def test_a_batch_is_repeated_under_its_own_rules(scenario: Scenario) -> None:
    """Killed after its output and before Spark's commit, while the rules changed: what is there is
    not written twice, and the state is that of the rules which wrote it."""
    stream = Stream(scenario)
    scenario.rule(_rule("ab", "b"))
    stream.send(("k", "a", 0), ("k", "b", 10), ("k", "a", 20))
    first = scenario.run()
    assert first.of("ab")[0] == [found("ab", "k", at(10), a=0, b=1)]
    _undo_last_commit(scenario)

    (scenario.rules_folder / "ab.yaml").unlink()
    scenario.rule(_rule("ac", "c"))
    stream.send(("k", "b", 30), ("k", "c", 40), ("k", "a", 50), ("k", "c", 60), ("k", "x", 99))
    outputs = scenario.run()
    # Under the new rules the repeated batch would have given "ac" the first two events.
    assert outputs.of("ab") == first.of("ab")
    assert outputs.of("ac")[0] == [found("ac", "k", at(60), a=5, c=6)]


def test_a_first_start_refuses_bad_rules(scenario: Scenario) -> None:
    """There is nothing that could run instead."""
    scenario.input("events")
    scenario.rules_folder.joinpath("bad.yaml").write_text("id: 7", "utf-8")
    with pytest.raises(RuleSetError):
        scenario.service().run()


def _undo_last_commit(scenario: Scenario) -> None:
    commits = scenario.folder / "checkpoint" / "commits"
    last = max((file for file in commits.iterdir() if file.name.isdigit()), key=_number)
    for file in (last, Path(commits / f".{last.name}.crc")):
        file.unlink(missing_ok=True)


def _number(file: Path) -> int:
    return int(file.name)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


@pytest.mark.parametrize("quiet", [False, True])
def test_a_rule_that_crashes_its_first_batch(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch, *, quiet: bool
) -> None:
    """It is set aside after three runs, durably, until its text changes; the other rules lose
    nothing by it. Batches without an event (``quiet``) that came before are none."""
    stream = Stream(scenario)
    scenario.rule(_rule("good", "b"))
    stream.send(("k", "a", 0))
    scenario.run()
    made = CompiledRules.of

    def of(rules: RuleSet, types: RecordTypes) -> CompiledRules:
        compiled = made(rules, types)
        crashes = any(rule.id == "crashes" for rule in rules.rules)
        return replace(compiled, text="no rules") if crashes else compiled

    scenario.rule(_rule("crashes", "b"))
    scenario.rule(_rule("also-new", "b"))
    if quiet:
        scenario.run()
    monkeypatch.setattr(CompiledRules, "of", of)
    stream.send(("k", "b", 10), ("k", "x", 20))
    for _ in range(3):
        with pytest.raises(JobFailedError):
            scenario.run()
    for _ in range(2):
        service = scenario.service()
        service.run()
        assert [reason for reason in _rejected(service) if "[rule crashes]" in reason]
    assert scenario.outputs().of("good")[0] == [found("good", "k", at(10), a=0, b=1)]

    monkeypatch.undo()
    scenario.rule(_rule("crashes", "b", description="Another text."))
    scenario.rule(_rule("also-new", "b", description="As it was."))
    stream.send(("k", "a", 30), ("k", "b", 40), ("k", "x", 99))
    outputs = scenario.run()
    assert outputs.of("crashes")[0] == [found("crashes", "k", at(40), a=3, b=4)]


def test_a_crash_behind_another_partitions_commit(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written stays, the rest is written without the new rules: the output of the others is
    whole. The old version of one of them does not run until it is resumed."""
    stream = Stream(scenario)
    state = {"state_partitions": 2}
    scenario.rule(_rule("good", "b"))
    scenario.rule(_rule("changes", "b"))
    keys = "klmnop"
    stream.send(*((key, "a", n) for n, key in enumerate(keys)))
    scenario.run(state=state)

    class Crashes(MatchOperator):
        def handleInputRows(self, *given: Any) -> Any:  # noqa: N802  Spark's name
            task = TaskContext.get()
            assert task is not None
            if task.partitionId() == 1:
                time.sleep(0 if task.attemptNumber() else 3)  # until the other one has committed
                raise ValueError("a rule crashes")
            return super().handleInputRows(*given)

    monkeypatch.setattr("spark_cep.pipeline.driver.dataflow.MatchOperator", Crashes)
    scenario.rule(_rule("changes", "c", version=2))
    scenario.rule(_rule("new", "b"))
    stream.send(*((key, "b", 10 + n) for n, key in enumerate(keys)), ("k", "x", 99))
    for _ in range(3):
        with pytest.raises(JobFailedError):
            scenario.run(state=state)
    assert 0 < len(scenario.outputs().of("good")[0]) < len(keys)

    monkeypatch.undo()
    service = scenario.service(state=state)
    service.run()
    assert len(_rejected(service)) == 2
    assert all("may be in the output" in reason for reason in _rejected(service))
    running = {each["id"]: each["state"] for each in service.rules() if "version" in each}
    assert running == {"good": "active", "changes": "paused"}
    outputs = scenario.outputs()
    assert len(outputs.of("good")[0]) == len({*map(str, outputs.of("good")[0])}) == len(keys)
    assert outputs.of("changes") == ([], [])


def test_a_version_drains(scenario: Scenario) -> None:
    """It finishes what it began, also over a restart; the new version has what comes from then on.
    Then it is gone, and nothing of it is left."""
    stream = Stream(scenario)
    scenario.rule(_rule("ab", "b"))
    with scenario.running(rules=_folder(scenario)) as service:
        stream.send(("k", "a", 0), ("l", "a", 1), ("k", "x", 5))
        scenario.wait_for_records(3)
        _until(service, ab="active")
        changed = _rule("ab", "c", version=2, previous_version="drain", within="2 hours")
        scenario.rule(changed)
        _wait(lambda: _versions(service) == {1: ("draining", 2), 2: ("active", 0)})
        stream.send(("k", "a", 10), ("k", "b", 20), ("k", "x", 25))
        scenario.wait_for(lambda outputs: len(outputs.of("ab")[0]) == 1)
        _wait(lambda: _versions(service) == {1: ("draining", 1), 2: ("active", 1)})
        assert scenario.metric("spark_cep_partial_matches", rule="ab") == 2
    with scenario.running(rules=_folder(scenario)) as service:
        stream.send(("l", "c", 30), ("l", "b", 40), ("k", "c", 50), ("k", "x", 55))
        outputs = scenario.wait_for(lambda outputs: len(outputs.of("ab")[0]) == 3)
        stream.send(("k", "a", 60), ("k", "b", 70), ("k", "x", 75))
        _wait(lambda: _versions(service) == {2: ("active", 1)})
        _wait(lambda: scenario.metric("spark_cep_rule_set_number") == 3)
        stream.send(("k", "c", 80), ("k", "x", 99))
        outputs = scenario.wait_for(lambda outputs: len(outputs.of("ab")[0]) == 4)
    assert sorted(outputs.of("ab")[0], key=str) == sorted(
        [
            found("ab", "k", at(20), a=0, b=4), found("ab", "l", at(40), a=1, b=7),
            found("ab", "k", at(50), a=3, c=8), found("ab", "k", at(80), a=10, c=13),
        ],
        key=str,
    )  # fmt: skip
    assert outputs.of("ab")[1] == []


def test_a_version_is_carried_over(scenario: Scenario) -> None:
    """What stands before the step that changed goes on, also what nothing has touched before a
    restart."""
    stream = Stream(scenario)
    scenario.rule(_rule("ab", "b"))
    with scenario.running(rules=_folder(scenario)) as service:
        stream.send(("k", "a", 0), ("l", "a", 1), ("k", "x", 5))
        scenario.wait_for_records(3)
        _until(service, ab="active")
        changed = _rule("ab", "b", version=2, previous_version="carry", within="2 hours")
        changed["pattern"][1]["where"] = "name = 'c'"
        scenario.rule(changed)
        _wait(lambda: _versions(service) == {2: ("active", 2)})
        stream.send(("k", "b", 10), ("k", "c", 20), ("k", "x", 25))
        scenario.wait_for(lambda outputs: len(outputs.of("ab")[0]) == 1)
    with scenario.running(rules=_folder(scenario)):
        stream.send(("l", "c", 5_000), ("l", "x", 5_005))
        outputs = scenario.wait_for(lambda outputs: len(outputs.of("ab")[0]) == 2)
    assert outputs.of("ab") == (
        [found("ab", "k", at(20), a=0, b=4), found("ab", "l", at(5_000), a=1, b=6)], [],
    )  # fmt: skip


def test_versions_that_no_batch_had(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six versions while one batch is about to begin: the last one carries over what the first has,
    or that drains, as if there were no others."""
    gate = threading.Event()
    gate.set()
    of = BatchRules.of

    def behind_the_gate(self: BatchRules, *given: Any) -> CompiledRules:
        assert gate.wait(5 * _SECONDS)
        return of(self, *given)

    monkeypatch.setattr(BatchRules, "of", behind_the_gate)
    stream = Stream(scenario)
    rules = ("carry", "drain")
    for how in rules:
        scenario.rule(_rule(how, "b"))
    with scenario.running(rules=_folder(scenario)) as service:
        stream.send(("k", "a", 0), ("k", "x", 5))
        scenario.wait_for_records(2)
        _until(service, carry="active", drain="active")
        gate.clear()
        for version in range(2, 8):
            for how in rules:
                changed = _rule(how, "b", version=version, previous_version=how)
                changed["pattern"][1]["where"] = f"name = '{'c' if version == 7 else version}'"
                scenario.rule(changed)
                _wait(partial(_is_wanted, service, how, version))
        gate.set()
        _until(service, carry="active")
        stream.send(("k", "b", 10), ("k", "c", 20), ("k", "x", 25))
        outputs = scenario.wait_for(
            lambda outputs: all(len(outputs.of(how)[0]) == 1 for how in rules)
        )
    assert outputs.of("carry") == ([found("carry", "k", at(20), a=0, b=3)], [])
    assert outputs.of("drain") == ([found("drain", "k", at(10), a=0, b=2)], [])
    for how in rules:
        assert scenario.metric("spark_cep_partial_matches_dropped_total", rule=how) == 0


def _is_wanted(service: Service, rule: str, version: int) -> bool:
    return any((each["id"], each.get("version")) == (rule, version) for each in service.rules())


def _versions(service: Service) -> dict[object, tuple[object, object]]:
    """State and partial matches by version."""
    return {each["version"]: (each["state"], each["partial_matches"]) for each in service.rules()}
