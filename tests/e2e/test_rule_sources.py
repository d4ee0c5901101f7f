"""A job whose rules come from a topic or a table: they arrive while it runs, and a source that goes
away disturbs nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.embedded import EmbeddedBroker
from spark_cep.errors import RuleSetError
from spark_cep.pipeline.driver.service import Service
from tests.conftest import JARS
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import Sent
from tests.rules.stores import KafkaStore, SqliteStore

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

_SECONDS = 60.0
_READ = "spark_cep_rules_last_refresh_successful"


def _wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


def _states(service: Service) -> dict[str, str]:
    return {str(each["id"]): str(each["state"]) for each in service.rules()}


def _text(rule_id: str, second: str, **changes: Any) -> str:
    """``a``, then ``second``, within an hour."""
    rule = sequence(rule_id, "a", f"followed_by {second}", within="1 hour")
    return yaml.safe_dump({**rule, **changes})


def test_rules_of_a_topic(scenario: Scenario) -> None:
    """One arrives, one goes, one is wrong; the topic goes, and comes back with another version."""
    stream = Stream(scenario)
    topic = scenario.topic("rules")
    compacted = {"cleanup.policy": "compact"}

    def send(rule_id: str, text: str | None) -> None:
        value = None if text is None else text.encode()
        scenario.kafka.send(topic, [Sent(value, rule_id.encode())])

    rules = {"source": "kafka", "kafka": {"topic": topic}, "refresh_interval": "100 ms"}
    with pytest.raises(RuleSetError, match="there is no such topic"):
        scenario.run(rules=rules)
    scenario.kafka.create_topics({topic: 1}, compacted)
    send("first", _text("first", "b"))
    with scenario.running(rules=rules) as service:
        stream.send(("k", "a", 0))
        _wait(lambda: _states(service) == {"first": "active"})
        send("second", _text("second", "c"))
        _wait(lambda: _states(service) == {"first": "active", "second": "active"})
        send("second", "id: [")
        _wait(lambda: any(f"{topic}/0/2" in str(each.get("source")) for each in service.rules()))
        scenario.kafka.delete_topics([topic])
        _wait(lambda: scenario.metric(_READ) == 0)
        stream.send(("k", "a", 10), ("k", "b", 20), ("k", "c", 30), ("k", "x", 40))
        scenario.wait_for(lambda outputs: outputs.of("second")[0])
        scenario.kafka.create_topics({topic: 1}, compacted)
        send("second", _text("second", "d", version=2))
        _wait(lambda: "first" not in _states(service))
        assert scenario.metric(_READ) == 1
        stream.send(("k", "a", 50), ("k", "d", 60), ("k", "x", 99))
        outputs = scenario.wait_for(lambda outputs: len(outputs.of("second")[0]) == 2)
    assert outputs.of("first")[0][0] == found("first", "k", at(20), a=0, b=2)
    assert outputs.of("second")[0] == [
        found("second", "k", at(30), a=1, c=3), found("second", "k", at(60), a=5, d=6),
    ]  # fmt: skip


def test_a_first_start_waits_for_rules(scenario: Scenario, tmp_path: Path) -> None:
    """Of a topic on another cluster that does not answer: not ready, and says for what it waits;
    it goes on by itself."""
    stream = Stream(scenario)
    with EmbeddedBroker(tmp_path / "broker", JARS) as broker:
        store = KafkaStore(broker, "rules")
        store.put("first", _text("first", "b"))
        there = {"topic": "rules", "properties": {"bootstrap.servers": broker.bootstrap}}
        rules = {"source": "kafka", "kafka": {**there, "timeout": "1 s"}}
        broker.pause()
        try:
            with scenario.running(rules=rules, lifecycle={"max_backoff": "1 s"}) as service:
                health = service._run.health
                _wait(lambda: "topic rules: the rules cannot" in health.readiness().reason)
                assert health.live().ok
                broker.resume()
                stream.send(("k", "a", 0))
                _wait(lambda: _states(service) == {"first": "active"})
                assert health.readiness().ok
        finally:
            broker.resume()


def test_rules_of_a_table(scenario: Scenario, tmp_path: Path) -> None:
    """One arrives; the table goes, also over a restart, and what ran before runs on."""
    stream = Stream(scenario)
    table = SqliteStore(tmp_path / "rules.db")
    rules = {**table.given, "refresh_interval": "100 ms"}
    table.put("first", _text("first", "b"))
    with scenario.running(rules=rules) as service:
        stream.send(("k", "a", 0))
        _wait(lambda: _states(service) == {"first": "active"})
        table.put("second", _text("second", "c"))
        _wait(lambda: _states(service).get("second") == "active")
        table.away()
        _wait(lambda: scenario.metric(_READ) == 0)
        stream.send(("k", "a", 10))
        scenario.wait_for_records(2)
    with scenario.running(rules=rules) as service:
        _wait(lambda: _states(service).get("second") == "active")
        assert scenario.metric(_READ) == 0
        stream.send(("k", "b", 20), ("k", "c", 30), ("k", "x", 40))
        outputs = scenario.wait_for(lambda outputs: outputs.of("second")[0])
        table.back()
        _wait(lambda: scenario.metric(_READ) == 1)
        table.remove("second")
        _wait(lambda: "second" not in _states(service))
    assert outputs.of("first")[0][0] == found("first", "k", at(20), a=0, b=2)
    assert outputs.of("second")[0] == [found("second", "k", at(30), a=1, c=3)]
