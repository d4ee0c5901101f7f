"""``spark-cep tap``, ``test`` and ``backtest`` over a job's topics and registry, while it need not
run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.main import app
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import KafkaAccess

pytestmark = pytest.mark.kafka

HOUR = 3_600.0
CASES = """\
rules: rules/two.yaml
cases:
  - case: typed by the registry
    events:
      - {send: {ts: 2026-01-01T00:00:00Z, k: ann, name: a, v: 1}}
      - {send: {ts: 2026-01-01T00:00:01Z, k: ann, name: b, v: 2}, at: 1 s}
    expect: {matches: [{key: ann}]}
"""


class Job:
    """Settings of a job that has not begun; its input has events of two keys in two hours, whose
    timestamps in Kafka are a second behind, and a record that cannot be read."""

    def __init__(self, kafka: KafkaAccess, registry: str, folder: Path) -> None:
        self.folder = folder
        scenario = Scenario(kafka, registry, None, folder)
        scenario.rule(sequence("two", "a", "followed_by b", within="1 minute"))
        self.stream = Stream(scenario, partitions=2)
        self.topic = self.stream.topic
        made = [
            self.stream.event(k, name, s, v, partition=p, timestamp=at(s + 1))
            for k, name, s, v, p in (
                ("ann", "a", 0, 1.0, 0), ("bob", "a", 1, 1.0, 1), ("ann", "b", 2, 2.0, 0),
                ("ann", "a", HOUR, 3.0, 0), ("ann", "x", HOUR + 5, 4.0, 1),
                ("ann", "b", HOUR + 9, 5.0, 0), ("ann", "a", 2 * HOUR, 6.0, 0),
            )
        ]  # fmt: skip
        self.stream.send(*made, self.stream.broken())
        self.config = folder / "config.yaml"
        self.config.write_text(yaml.safe_dump(scenario.document()), "utf-8")

    def run(self, *arguments: str, code: int = 0) -> Result:
        """A command with the settings."""
        done = CliRunner().invoke(app, [*arguments, "--config", str(self.config)])
        assert done.exit_code == code, done.output
        return done

    def tap(self, name: str, *options: str, code: int = 0) -> tuple[Result, str]:
        """The command, and the text of the case file."""
        file = self.folder / f"{name}.cases.yaml"
        done = self.run("tap", "--rule", "two", "--output", str(file), *options, code=code)
        return done, file.read_text("utf-8") if file.exists() else ""


@pytest.fixture(scope="module")
def job(kafka: KafkaAccess, registry: str, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """The job."""
    return Job(kafka, registry, tmp_path_factory.mktemp("authors"))


def test_a_case_of_all_topics(job: Job) -> None:
    """All events of the key, over partitions in the order of time; the case passes by itself, and
    with the schemas of the registry."""
    done, text = job.tap("all", "--key", "ann", "--mask", "k")
    assert "6 events, expects 2 matches, 1 timeout" in done.stdout
    assert [line.split("name: ")[1][0] for line in text.splitlines() if "send" in line] == [
        *"abaxba"
    ]
    assert "bob" not in text
    assert "ann" not in text
    case = str(job.folder / "all.cases.yaml")
    assert CliRunner().invoke(app, ["test", case]).exit_code == 0
    assert "1 passed, 0 failed" in job.run("test", case).stdout


def test_a_case_of_an_event(job: Job) -> None:
    """The key is the event's, by coordinates as a match, late event or dead letter has them; what
    lies within the rule's window of it is taken."""
    done, text = job.tap("event", "--event", f"{job.topic}/1/1")
    assert "3 events, expects 1 match" in done.stdout
    assert text.count("k: ann") == 3
    done, _ = job.tap("none", "--event", f"{job.topic}/0/77", code=ExitCode.CONFIGURATION)
    assert f"--event {job.topic}/0/77: rule two reads no such event" in done.stderr
    done, _ = job.tap("none", "--event", f"{job.topic}/0/5", code=ExitCode.CONFIGURATION)
    assert "it is a dead letter: undecodable: " in done.stderr
    done, _ = job.tap("none", "--event", "logins", code=ExitCode.CONFIGURATION)
    assert "allowed is TOPIC/PARTITION/OFFSET" in done.stderr


def test_topics_are_cut_by_their_timestamps(job: Job) -> None:
    """In all commands alike: an event before `--from` was recorded behind it."""
    cut = ("--input", job.topic, "--from", "2023-11-14T22:13:21Z", "--to", "2023-11-14T22:13:23Z")
    done, _ = job.tap("cut", "--key", "ann", *cut)
    assert "1 event, expects 1 timeout" in done.stdout
    found: Any = json.loads(job.run("backtest", "--json", *cut).stdout)
    assert (found["records"], found["rules"][0]["events"]) == (2, 2)
    account: Any = json.loads(job.run("why", "--json", "-r", "two", "-k", "ann", *cut).stdout)
    assert len(account["moments"]) == 1


def test_cases_with_the_types_of_the_registry(job: Job) -> None:
    """What a column cannot be is told, with the place."""
    file = job.folder / "typed.cases.yaml"
    file.write_text(CASES, "utf-8")
    assert "1 passed" in job.run("test", str(file)).stdout
    file.write_text(CASES.replace("v: 2", "v: much"), "utf-8")
    done = job.run("test", str(file), code=1)
    assert "cases.yaml:6:16: e2e.Event.v cannot be 'much': the column is DOUBLE" in done.stdout
