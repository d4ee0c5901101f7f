"""The procedures of docs/operations/procedures.md, run as they stand there, one after another on
one job."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import yaml

from tests.conftest import ROOT
from tests.docs.operations_page import procedures
from tests.e2e.outputs import Outputs
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence
from tests.kafka_access import KafkaAccess

# Spark starts eight times.
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(1500)]

RUN = "spark-cep run --config config.yaml"


class Machine:
    """The folder of a job, and a shell in it."""

    def __init__(self, scenario: Scenario, topic: str) -> None:
        self.scenario, self._topic = scenario, topic
        self.folder = scenario.folder
        programs = self.folder / "bin"
        programs.mkdir()
        program = programs / "spark-cep"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m spark_cep.cli.main "$@"\n')
        program.chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }
        document = scenario.document(
            state={"checkpoint": "checkpoint"},
            rules={"folder": "rules"},
            spark={
                "master": "local[2]",
                "conf": {"spark.driver.memory": "1g", "spark.local.dir": str(self.folder)},
            },
        )
        (self.folder / "config.yaml").write_text(yaml.safe_dump(document), "utf-8")

    def run(self, block: str, expected: int = 0) -> str:
        """Run a block of commands, with topics of this scenario; what it printed."""
        block = block.replace("logins", self._topic)
        block = block.replace("=replay", f"={self.scenario.topic('replay')}")
        done = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", block],
            cwd=self.folder,
            env=self._environment,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == expected, f"{block}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def match_ids(self, **topics: str) -> list[str]:
        """Ids of all matches in the topic, those written twice twice."""
        return self.scenario.outputs(**topics).match_ids()


@pytest.fixture(scope="module")
def page() -> dict[str, list[str]]:
    """The procedures for a job on a machine: all parts of the page with commands."""
    return procedures()


@pytest.fixture(scope="module")
def machine(kafka: KafkaAccess, registry: str, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A job that has read half of its input, and stopped with a partial match open."""
    scenario = Scenario(kafka, registry, None, tmp_path_factory.mktemp("operations"))
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 hour"))
    stream = Stream(scenario)
    machine = Machine(scenario, stream.topic)
    stream.send(("k", "a", 0), ("k", "b", 1), ("q", "a", 2), ("k", "x", 10))
    machine.run(RUN)
    stream.send(("q", "b", 11), ("r", "a", 12), ("r", "b", 13), ("k", "x", 30))
    return machine


def test_the_procedures(page: dict[str, list[str]], machine: Machine) -> None:
    """Check, back up, go on, lose the checkpoint, restore, go on, rescale, replay: at each point
    the matches are those that the page promises."""
    assert list(page) == [
        "Before a change",
        "Back up a checkpoint",
        "Restore a checkpoint",
        "Rescale",
        "Replay from an offset",
    ], "a procedure that this test does not run"
    first = machine.match_ids()
    assert len(first) == 1

    (before,) = page["Before a change"]
    assert "ab" in machine.run(before)
    # Nobody reads it any more: neither it nor its Java process leaves a trace.
    state = f"{before.splitlines()[-1]} 2> errors.txt | true"
    machine.run(f"set +o pipefail; {state}")
    errors = (machine.folder / "errors.txt").read_text("utf-8")
    assert not any(word in errors for word in ("Traceback", "Exception", "Error")), errors
    (back_up,) = page["Back up a checkpoint"]
    machine.run(back_up)
    machine.run(RUN)
    all_three = machine.match_ids()
    assert len(set(all_three)) == len(all_three) == 3

    restore, go_on = page["Restore a checkpoint"]
    machine.run(restore)
    assert "checkpoint" in machine.run(RUN, expected=7)
    machine.run(go_on)
    again = machine.match_ids()
    assert set(again) == set(all_three), "the same ids"
    assert len(again) == 5, "the two after the copy were written again"

    (rescale,) = page["Rescale"]
    assert "1 state partitions before, 2 now" in machine.run(rescale)

    (replay,) = page["Replay from an offset"]
    machine.run(replay)
    topics = {
        kind: machine.scenario.topic(f"replay.{kind.replace('_', '-')}") for kind in Outputs.KINDS
    }
    replayed = machine.match_ids(**topics)
    assert len(replayed) == 2, "the match before the offset is not there"
    assert set(replayed) < set(all_three), "with the ids that the job gave them"
