"""``spark-cep run`` from a start to each of its ends: JSON lines and nothing else, without warnings
where nothing is wrong, and with a last line that says how it ended."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from examples.embedded.process import free_ports
from spark_cep.cli.exit_codes import ADVICE, ExitCode
from tests.e2e.command import Command, running
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence
from tests.kafka_access import KafkaAccess

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

#: A little longer than Spark keeps a Python process that does nothing.
IDLE_SECONDS = 75.0


@pytest.fixture
def scenario(kafka: KafkaAccess, registry: str, tmp_path: Path) -> Scenario:
    """A scenario whose job is a process."""
    scenario = Scenario(kafka, registry, None, tmp_path)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    return scenario


def _document(scenario: Scenario, **conf: str) -> dict[str, Any]:
    return scenario.document(
        trigger={"mode": "continuous", "latency": "100 ms"},
        spark={"conf": {"spark.driver.memory": "1g", **conf}},
        observability={
            "metrics_host": "127.0.0.1",
            "metrics_port": free_ports(1)[0],
            "log_level": "info",
            "log_format": "json",
        },
    )


def _lines(command: Command) -> list[dict[str, Any]]:
    """All that it wrote, each line of which is JSON."""
    return [json.loads(line) for line in command.log.read_text("utf-8").splitlines()]


def _last(command: Command, code: ExitCode) -> dict[str, Any]:
    """The last line, once it has ended with ``code``."""
    assert command.wait() == code, command.end_of_log()
    *_, last = lines = _lines(command)
    assert [line["event"] for line in lines].count("ended") == 1
    assert last["event"] == "ended"
    assert (last["exit_code"], last["name"]) == (int(code), code.name)
    assert last["advice"] == ADVICE[code]
    return last


def _java(command: Command) -> int:
    for pid in command.processes():
        with suppress(OSError):
            if Path(f"/proc/{pid}/exe").readlink().name == "java":
                return pid
    raise AssertionError("no Java")


def test_nothing_is_wrong(scenario: Scenario) -> None:
    """A start, two batches, a minute of idleness, in which Spark ends Python processes, and a stop:
    no line is a warning."""
    stream = Stream(scenario)
    stream.send(("k", "a", 0))
    with running(scenario.folder, _document(scenario)) as command:
        command.wait_for(lambda: command.events("batch_done"))
        stream.send(("k", "b", 1))
        command.wait_for(lambda: len(command.events("batch_done")) > 1)
        idle = time.monotonic()
        command.wait_for(lambda: time.monotonic() > idle + IDLE_SECONDS)
        command.signal(signal.SIGTERM)
        last = _last(command, ExitCode.DONE)
    assert last["reason"] == "stopped as asked"
    assert last["last_batch"] == command.events("batch_done")[-1]["batch"]
    assert [line for line in _lines(command) if line["level"] not in ("debug", "info")] == []


def test_processes_are_killed(scenario: Scenario) -> None:
    """As by the kernel when memory is short. Without the process that plans the input the query is
    started again, without the one that writes the output its tasks; Java's end is named, with few
    lines, and has a code of its own."""
    stream = Stream(scenario)
    stream.send(("k", "a", 0))
    with running(scenario.folder, _document(scenario)) as command:
        command.wait_for(lambda: command.events("batch_done"))
        planner = max(command.processes(b"python -m pyspark.sql.streaming.python_streaming"))
        os.kill(planner, signal.SIGKILL)
        command.wait_for(lambda: command.events("source_process_lost"))
        stream.send(("k", "b", 1))
        command.wait_for(lambda: len(command.events("batch_done")) > 1)
        (delivery,) = command.processes(b"spark-cep: delivery")
        os.kill(delivery, signal.SIGKILL)
        stream.send(("k", "a", 2), ("k", "b", 3))
        command.wait_for(lambda: len(command.events("batch_done")) > 2)
        before = len(_lines(command))
        os.kill(_java(command), signal.SIGKILL)
        last = _last(command, ExitCode.JAVA_ENDED)
        command.wait_until_alone()
    assert last["reason"].startswith("the Java process was killed by SIGKILL")
    assert last["last_batch"] == command.events("batch_done")[-1]["batch"]
    assert len(_lines(command)) - before < 10


def test_java_runs_out_of_memory(scenario: Scenario) -> None:
    """Which memory it was is named."""
    Stream(scenario).send(("k", "a", 0))
    conf = {"spark.driver.memory": "40m", "spark.testing.memory": "1073741824"}
    with running(scenario.folder, _document(scenario, **conf)) as command:
        last = _last(command, ExitCode.JAVA_ENDED)
    assert last["reason"] == ("the Java process ran out of memory: Java heap space (exit code 3)")


def test_a_second_signal(scenario: Scenario) -> None:
    """Also the quickest end has its last line."""
    Stream(scenario).send(("k", "a", 0))
    with running(scenario.folder, _document(scenario)) as command:
        command.wait_for(lambda: command.events("batch_done"))
        # A query whose Java stands still cannot be stopped.
        os.kill(_java(command), signal.SIGSTOP)
        command.signal(signal.SIGTERM)
        command.wait_for(lambda: command.events("stopping"))
        time.sleep(0.4)  # else it is the same signal
        command.signal(signal.SIGTERM)
        last = _last(command, ExitCode.ENDED_AT_ONCE)
    assert last["reason"] == "a second signal came"
    assert last["last_batch"] == command.events("batch_done")[-1]["batch"]
