"""Rules that operators pause, resume and roll back while the job runs, and what Kafka is told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from spark_cep.cli.main import app
from spark_cep.pipeline.driver.service import Service
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

_SECONDS = 60.0


class Operator:
    """Somebody with the commands and the settings of a scenario's job."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.rules = {
            "folder": str(scenario.rules_folder),
            "overrides_topic": scenario.topic("rule_overrides"),
            "refresh_interval": "100 ms",
        }
        self._config = scenario.folder / "config.yaml"
        self._config.write_text(yaml.safe_dump(scenario.document(rules=self.rules)), "utf-8")

    def rule(self, rule: str, version: int = 1, second: str = "b", **more: Any) -> None:
        """Publish ``a``, then ``second``, within an hour."""
        steps = sequence(rule, "a", f"followed_by {second}", within="1 hour", version=version)
        self.scenario.rule({**steps, **more})

    def does(self, *words: str, fails: bool = False) -> str:
        """``spark-cep rules …``; what it says."""
        done = CliRunner().invoke(app, ["rules", *words, "-c", str(self._config)])
        assert (done.exit_code != 0) == fails, done.output
        return done.output

    def told(self) -> dict[tuple[str | None, int | None], dict[str, Any]]:
        """The status topic, by rule and version."""
        newest: dict[bytes | None, bytes | None] = {}
        for message in self.scenario.kafka.read(self.scenario.topic("rule_status")):
            newest[message.key()] = message.value()
        values = [json.loads(value) for value in newest.values() if value is not None]
        return {(each.get("rule_id"), each.get("rule_version")): each for each in values}


def _until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"timed out; there is: {what()}"
        time.sleep(0.05)


def _wait(service: Service, **states: tuple[int, str] | None) -> None:
    """Until rules have these versions and states."""

    def now() -> dict[str, tuple[Any, Any]]:
        return {str(each["id"]): (each.get("version"), each["state"]) for each in service.rules()}

    _until(lambda: all(now().get(rule) == state for rule, state in states.items()), now)


def test_pause_resume_and_rollback(scenario: Scenario) -> None:
    """Also over restarts; the rule beside it notices nothing, and topics and page agree."""
    stream = Stream(scenario)
    operator = Operator(scenario)
    operator.rule("calm")
    operator.rule("noisy")
    with scenario.running(rules=operator.rules) as service:
        stream.send(("k", "a", 0))
        scenario.wait_for_records(1)
        _wait(service, calm=(1, "active"), noisy=(1, "active"))
        _until(lambda: ("noisy", 1) in operator.told(), operator.told)
        said = operator.does("pause", "nosy", fails=True)
        assert "has no rule nosy: did you mean `noisy`? rules here: calm, noisy" in said
        operator.does("pause", "nosy", "--even-unknown")
        operator.does("pause", "noisy", "--reason", "too many alerts", "--by", "anna")
        _wait(service, noisy=(1, "paused"))
        operator.rule("noisy", 2)
        _wait(service, noisy=(2, "paused"))
    with scenario.running(rules=operator.rules) as service:
        stream.send(("k", "b", 10), ("k", "a", 20), ("k", "x", 25))
        scenario.wait_for(lambda outputs: len(outputs.of("calm")[0]) == 1)
        _wait(service, calm=(1, "active"), noisy=(2, "paused"))
        _until(lambda: ("noisy", 2) in operator.told(), operator.told)
        told = operator.told()[("noisy", 2)]
        assert (told["state"], told["reason"]) == ("paused", "anna: too many alerts")
        assert ("noisy", 1) not in operator.told()
        operator.does("resume", "noisy")
        _wait(service, noisy=(2, "active"))
        operator.rule("noisy", 3, "c")
        _wait(service, noisy=(3, "active"))
        operator.does("rollback", "noisy", "--audit")
        _wait(service, noisy=(2, "active"))
        stream.send(("k", "a", 30), ("k", "b", 40), ("k", "c", 45), ("k", "x", 50))
        outputs = scenario.wait_for(lambda outputs: len(outputs.of("noisy")[0]) == 1)
        _until(lambda: service.rules()[1]["since_batch"] is not None, service.rules)
        (page,) = [each for each in service.rules() if each["id"] == "noisy"]
        _until(
            lambda: operator.told().get(("noisy", 2), {}).get("state") == "active", operator.told
        )
        told = operator.told()[("noisy", 2)]
        assert told["since_batch"] == page["since_batch"]
        assert told["since_offsets"] == {stream.topic: {"0": 4}}
    assert outputs.of("noisy")[0] == [found("noisy", "k", at(40), a=4, b=5)]
    assert [each.time for each in outputs.of("calm")[0]] == [at(10), at(40), at(40)]

    operator.rule("noisy", 4, "c")
    with scenario.running(rules=operator.rules) as service:
        _wait(service, noisy=(4, "active"))
    # What the topic tells is what the checkpoint has.
    told_sets, logged = (
        json.loads(operator.does("history", "--json", *more)) for more in (["--audit"], [])
    )
    assert told_sets == logged
    assert "older ones that have run, as far as the history goes: 1, 2, 3" in operator.does(
        "rollback", "noisy", "--to", "9", fails=True
    )
    assert "is not rolled back" in operator.does("rollback", "calm", "--undo", fails=True)


def test_a_rule_is_paused_while_its_source_is_away(scenario: Scenario) -> None:
    """Also where it has been since the start, and the job was down when that was said."""
    Stream(scenario)
    operator = Operator(scenario)
    operator.rule("ab")
    with scenario.running(rules=operator.rules) as service:
        _wait(service, ab=(1, "active"))
        scenario.rules_folder.rename(scenario.rules_folder.with_name("away"))
        operator.does("pause", "ab")
        _wait(service, ab=(1, "paused"))
        operator.does("resume", "ab")
        _wait(service, ab=(1, "active"))
    operator.does("pause", "ab")
    with scenario.running(rules=operator.rules) as service:
        _wait(service, ab=(1, "paused"))
        operator.does("resume", "ab")
        _wait(service, ab=(1, "active"))


def test_an_override_that_cannot_be_read(scenario: Scenario) -> None:
    """Is said with its place, and changes nothing."""
    Stream(scenario)
    operator = Operator(scenario)
    operator.rule("ab")
    with scenario.running(rules=operator.rules) as service:
        _wait(service, ab=(1, "active"))
        operator.does("pause", "ab")
        _wait(service, ab=(1, "paused"))
        topic = scenario.topic("rule_overrides")
        scenario.kafka.send(topic, [Sent(b'{"paused": true}', b"ab")])
        _until(lambda: any(each["state"] == "rejected" for each in service.rules()), service.rules)
        (rejected,) = [each for each in service.rules() if each["state"] == "rejected"]
        assert (rejected["source"], rejected["id"]) == (f"{topic}/0/1", "ab")
        assert "paused: Extra inputs are not permitted" in str(rejected["reason"])
        assert service.rules()[0]["state"] == "paused"
        operator.does("resume", "ab")
        _until(lambda: [each["state"] for each in service.rules()] != ["paused"], service.rules)
