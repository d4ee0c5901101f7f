"""``spark-cep run`` as a process that gets signals, at every stage of its life."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from examples.embedded.process import free_ports
from spark_cep.cli.exit_codes import ExitCode
from tests.e2e.command import Command, running
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import KafkaAccess

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

BACKLOG = 8_000
TRACES = ("Traceback", "\n\tat ")


def _document(scenario: Scenario, **sections: Any) -> dict[str, Any]:
    spark = {
        "master": "local[2]",
        "conf": {
            "spark.driver.memory": "1g",
            "spark.local.dir": str(scenario.folder / "scratch"),
            "spark.sql.warehouse.dir": str(scenario.folder / "warehouse"),
        },
    }
    observability = {
        "metrics_host": "127.0.0.1",
        "metrics_port": free_ports(1)[0],
        "log_level": "debug",
        "log_format": "json",
    }
    trigger = {"mode": "continuous", "latency": "0 ms"}
    given = {"spark": spark, "observability": observability, "trigger": trigger, **sections}
    return scenario.document(**given)


def _in_flight(command: Command, run: int = 1) -> bool:
    """Whether a batch of the newest of ``run`` runs has begun and has not ended."""
    begun = command.events("batch_started")
    done = {(line["run"], line["batch"]) for line in command.events("batch_done")}
    runs = {line["run"] for line in begun}
    return len(runs) == run and (begun[-1]["run"], begun[-1]["batch"]) not in done


class _Probe:
    """What the pages say, as often as they can be asked, until nobody answers."""

    def __init__(self, command: Command) -> None:
        self.readiness: list[tuple[int, str]] = []
        self.liveness: list[int] = []
        self._command = command
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def _ask(self) -> None:
        while True:
            status, text = self._command.page("/readyz")
            if status == 0:
                return
            self.readiness.append((status, json.loads(text)["reason"]))
            live, _ = self._command.page("/livez")
            if live:
                self.liveness.append(live)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask while the block runs, and on until the end of the pages."""
        self._thread.start()
        yield
        self._thread.join(60)


@pytest.fixture
def scenario(kafka: KafkaAccess, registry: str, tmp_path: Path) -> Scenario:
    """A scenario whose job is a process."""
    return Scenario(kafka, registry, None, tmp_path)


def test_signals_while_batches_run(scenario: Scenario) -> None:
    """Four runs over one backlog. In the first the batch does not end within the grace period, in
    the second a second signal ends it at once: both leave a batch undone. In the third the batch
    is finished and committed, though the signal goes to all processes. The fourth goes on behind
    it, and in the end nothing is missing."""
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    stream = Stream(scenario)
    # Pairs of one key each, further apart than the window: as many matches as pairs.
    pairs = range(BACKLOG // 2)
    stream.send(*((f"k{n % 97}", name, n * 2 + s) for n in pairs for s, name in enumerate("ab")))
    size = {"max_offsets_per_trigger": BACKLOG // 2}

    hasty = _document(scenario, source=size, lifecycle={"stop_grace": "1 ms"})
    with running(scenario.folder, hasty) as command:
        command.wait_for(lambda: _in_flight(command))
        command.signal(signal.SIGTERM)
        assert command.wait() == ExitCode.GRACE_RAN_OUT
        command.wait_until_alone()
    assert command.events("batch_done") == []

    patient = _document(scenario, source=size, lifecycle={"stop_grace": "1 minute"})
    with running(scenario.folder, patient) as command:
        command.wait_for(lambda: _in_flight(command, run=2))
        before = command.log.read_text("utf-8")
        command.signal(signal.SIGINT)
        command.wait_for(lambda: command.page("/readyz") == (503, _reason("stopping")))
        command.signal(signal.SIGTERM)
        assert command.wait() == ExitCode.ENDED_AT_ONCE
        command.wait_until_alone()
        after = command.log.read_text("utf-8").removeprefix(before)
        assert not any(trace in after for trace in TRACES), after
    assert command.events("batch_done") == []

    with running(scenario.folder, patient) as command:
        command.wait_for(lambda: _in_flight(command, run=3))
        probe = _Probe(command)
        with probe.asking():
            command.signal_all(signal.SIGTERM)
            assert command.wait() == ExitCode.DONE
        command.wait_until_alone()
    (done,) = command.events("batch_done")
    log = command.log.read_text("utf-8")
    stopping = log.rindex('"stopping"')
    assert stopping < log.rindex('"batch_done"') < log.rindex('"stopped"')
    assert not any(trace in log[stopping:] for trace in TRACES), log[stopping:]
    # Not ready from the first, alive to the last.
    assert probe.readiness[-1] == (503, "stopping")
    assert all(status == 503 for status, _ in probe.readiness)
    assert set(probe.liveness) == {200}
    commits = {int(file.name) for file in (scenario.folder / "checkpoint/commits").glob("[0-9]*")}
    assert max(commits) == done["batch"]

    decide = {"mode": "available_now", "at_end_of_input": "decide"}
    with running(scenario.folder, {**patient, "trigger": decide}) as command:
        assert command.wait() == ExitCode.DONE
    assert [line["batch"] for line in command.events("batch_done")][1] == done["batch"] + 1
    matches, timeouts = scenario.outputs().of("ab")
    expected = [found("ab", f"k{n % 97}", at(n * 2 + 1), a=2 * n, b=2 * n + 1) for n in pairs]
    assert sorted(set(matches)) == sorted(expected)
    assert timeouts == []


def test_signals_at_start_and_idle(scenario: Scenario) -> None:
    """Told to stop before it has read its settings, before Spark is up, and with nothing to do:
    exit code 0, a last line, and nobody left."""
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    stream = Stream(scenario)
    document = _document(scenario)
    with running(scenario.folder, document) as command:
        command.wait_for(command.hears_signals)
        assert command.events("started") == []
        command.signal(signal.SIGTERM)
        assert command.wait() == ExitCode.DONE
        command.wait_until_alone()
    (ended,) = command.events("ended")
    assert ended["reason"] == "stopped as asked"

    with running(scenario.folder, document) as command:
        command.wait_for(lambda: command.events("topics_created"))
        command.signal_all(signal.SIGTERM)
        assert command.wait() == ExitCode.DONE
        command.wait_until_alone()
    assert command.events("query_started") == []

    stream.send(("k", "a", 0), ("k", "b", 0.5))
    with running(scenario.folder, document) as command:
        command.wait_for(lambda: command.page("/readyz")[0] == 200)
        command.wait_for(lambda: not _in_flight(command))
        begun = len(command.log.read_text("utf-8"))
        probe = _Probe(command)
        with probe.asking():
            command.signal(signal.SIGINT)
            assert command.wait() == ExitCode.DONE
        command.wait_until_alone()
    log = command.log.read_text("utf-8")[begun:]
    assert not any(trace in log for trace in TRACES), log
    answers = [status for status, _ in probe.readiness]
    assert answers == sorted(answers), "ready again after it was not"
    assert probe.readiness[-1] == (503, "stopping")


def test_waiting_for_kafka_at_start(scenario: Scenario) -> None:
    """Alive, not ready, and it says for what; Ctrl-C ends the wait, without a traceback, and so
    does its limit."""
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    Stream(scenario)
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    document = _document(scenario, kafka={"bootstrap_servers": nobody})
    with running(scenario.folder, document) as command:
        command.wait_for(lambda: command.events("waiting_for_kafka"))
        status, text = command.page("/readyz")
        assert status == 503
        assert nobody in json.loads(text)["reason"]
        assert "refused" in json.loads(text)["reason"]
        assert command.page("/livez")[0] == 200
        command.signal(signal.SIGINT)
        assert command.wait() == ExitCode.DONE
    # Kafka's client waits ten seconds for an answer. The end of Java comes after that.
    asked, stopped = (
        datetime.fromisoformat(command.events(name)[0]["timestamp"])
        for name in ("stopping", "stopped")
    )
    assert (stopped - asked).total_seconds() < 6
    # What Spark's own threads say as they end is for a debug log.
    said = [line for line in command.log.read_text("utf-8").splitlines() if '"debug"' not in line]
    assert [line for line in said if "Traceback" in line or "Exception in thread" in line] == []
    document["lifecycle"] = {"startup_limit": "1 second", "backoff": "100 ms"}
    with running(scenario.folder, document) as command:
        assert command.wait() == ExitCode.KAFKA_UNAVAILABLE
    (ended,) = (line for line in command.events("ended") if line["exit_code"])
    assert ended["reason"].startswith(f"Kafka (kafka.bootstrap_servers {nobody})")


def test_waiting_for_the_registry_at_start(scenario: Scenario) -> None:
    """As for Kafka, with a code of its own."""
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    Stream(scenario)
    nobody = f"http://127.0.0.1:{free_ports(1)[0]}"
    document = _document(
        scenario,
        registry={"url": nobody, "max_attempts": 1},
        lifecycle={"startup_limit": "2 seconds", "backoff": "100 ms"},
    )
    with running(scenario.folder, document) as command:
        command.wait_for(lambda: command.events("waiting_for_registry"))
        assert command.wait() == ExitCode.REGISTRY_UNAVAILABLE
    (ended,) = command.events("ended")
    assert ended["reason"].startswith(f"schema registry {nobody} cannot be reached")
    assert "the limit is 2 s" in ended["reason"]


def _reason(text: str) -> str:
    return json.dumps({"ok": False, "reason": text}) + "\n"
