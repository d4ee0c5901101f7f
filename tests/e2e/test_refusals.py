"""What is wrong is said at the start, all at once, before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.embedded.process import free_ports
from spark_cep.errors import ConfigurationError, RegistryUnavailableError, RuleSetError, StateError
from spark_cep.pipeline.spark.starting import StartingSpark
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence
from tests.kafka_access import KafkaAccess

pytestmark = pytest.mark.kafka


class NoSpark(StartingSpark):
    """Does not start; otherwise it would go on in its thread when the test is over, and change the
    session of the next one."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch

    def session(self) -> SparkSession:
        """Must not be asked for."""
        pytest.fail("came as far as Spark")


@pytest.fixture
def sparkless(kafka: KafkaAccess, registry: str, tmp_path: Path) -> Scenario:
    """A scenario that never comes as far as Spark."""
    return Scenario(kafka, registry, NoSpark(tmp_path), tmp_path)


def test_every_wrong_rule_is_reported_at_once(sparkless: Scenario) -> None:
    """Problems of all files against the registry's schema, each underlined in its line."""
    Stream(sparkless)
    wrong_column = sequence("wrong-column", "a", "followed_by b")
    wrong_column["pattern"][0]["where"] = "nam = 'a'"
    wrong_type = sequence("wrong-type", "a", "followed_by b")
    wrong_type["pattern"][1]["where"] = "v > 'many'"
    sparkless.rule(wrong_column)
    sparkless.rule(wrong_type)
    sparkless.rule(sequence("wrong-input", "a", events="nowhere"))
    with pytest.raises(RuleSetError) as caught:
        sparkless.service().run()
    text = str(caught.value)
    assert {problem.rule for problem in caught.value.problems} == {
        "wrong-column", "wrong-type", "wrong-input",
    }  # fmt: skip
    assert "wrong-column.yaml:" in text
    assert "did you mean" in text or "name" in text
    assert "^^^" in text
    assert "nowhere" in text


def test_a_rule_text_is_refused_before_anything_is_asked(sparkless: Scenario) -> None:
    """Structural mistakes of several files are reported together."""
    Stream(sparkless)
    sparkless.rule({**sequence("no-window", "a", "not_followed_by b")})
    sparkless.rule({**sequence("twice", "a", "followed_by a")})
    with pytest.raises(RuleSetError) as caught:
        sparkless.service().run()
    assert {p.rule for p in caught.value.problems} == {"no-window", "twice"}


def test_an_unknown_topic_is_named(sparkless: Scenario) -> None:
    """The message names the setting, the topic and the topics that there are."""
    stream = Stream(sparkless)
    missing = {"events": {"topics": [sparkless.topic("missing")], "event_time": "ts"}}
    with pytest.raises(ConfigurationError) as caught:
        sparkless.service(inputs=missing).run()
    text = str(caught.value)
    assert "inputs.events.topics" in text
    assert sparkless.topic("missing") in text
    assert stream.topic in text


@pytest.mark.spark
def test_a_checkpoint_that_cannot_be_made(scenario: Scenario) -> None:
    """The error names the setting and its value."""
    Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    (scenario.folder / "file").write_text("not a folder", "utf-8")
    checkpoint = str(scenario.folder / "file" / "checkpoint")
    with pytest.raises(StateError, match=f"state.checkpoint {checkpoint}: .*: Not a directory"):
        scenario.service(state={"checkpoint": checkpoint}).run()


def test_a_registry_that_is_away_is_an_error_of_its_own(sparkless: Scenario) -> None:
    """At the limit of the wait the error names the address."""
    Stream(sparkless)
    sparkless.rule(sequence("ab", "a", "followed_by b"))
    url = f"http://127.0.0.1:{free_ports(1)[0]}"
    impatient = {"startup_limit": "100 ms"}
    with pytest.raises(RegistryUnavailableError, match=url):
        sparkless.service(registry={"url": url, "max_attempts": 1}, lifecycle=impatient).run()
