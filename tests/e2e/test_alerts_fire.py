"""A job as a process under a real Prometheus, with the chart's alerts sixty times as quick: minutes
are seconds. They fire for what is wrong, and not longer, and the dashboard is green for what is
well alone. ``make test-alerts`` builds Prometheus; without it the test is left out."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.embedded import EmbeddedBroker
from examples.embedded.process import free_ports
from tests.chart.files import ALERTS, tool
from tests.chart.test_dashboard_colours import COLOURED, when_green
from tests.conftest import JARS
from tests.e2e.command import running
from tests.e2e.scenario import Scenario
from tests.e2e.stream import BEGIN, Stream, sequence
from tests.kafka_access import KafkaAccess

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

QUICKER = 60
#: About the machine: its disk and its speed.
OF_THE_MACHINE = {"SparkCepCheckpointDiskFull", "SparkCepBatchesSlow", "SparkCepDecisionsSlow"}
TITLES = {panel["title"] for panel in COLOURED}


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker that may be stopped."""
    with EmbeddedBroker(tmp_path / "broker", JARS) as started:
        yield started


def quick(text: str) -> str:
    """Alerts with all their durations divided."""
    text = re.sub(r"\b(\d+)m\b", r"\1s", text)
    text = re.sub(r"\b(\d+)h\b", r"\1m", text)
    return re.sub(
        r"(process_start_time_seconds < )(\d+)", lambda m: f"{m[1]}{int(m[2]) / QUICKER:g}", text
    )


class Prometheus:
    """A server that scrapes one page, each second."""

    def __init__(self, port: int) -> None:
        self._port = port

    def firing(self) -> set[str]:
        """Names of the alerts that fire."""
        alerts = self._asked("alerts")["alerts"]
        return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}

    def value(self, query: str) -> float | None:
        """Of an expression that has one value, or none."""
        result = self._asked(f"query?{urllib.parse.urlencode({'query': query})}")["result"]
        return float(result[0]["value"][1]) if result else None

    def green(self) -> set[str]:
        """Titles of the dashboard's values that are green."""
        return {
            panel["title"]
            for panel in COLOURED
            if any(self.value(query) is not None for query in when_green(panel))
        }

    def wait_until(self, condition: Callable[[], Any], seconds: float, what: str) -> None:
        """Wait until it holds, or fail with what fires."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{what}; firing: {self.firing()}"
            time.sleep(0.25)

    def _asked(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/{path}") as answer:
            return json.load(answer)["data"]


@contextmanager
def prometheus(folder: Path, target: int) -> Iterator[Prometheus]:
    """One that scrapes the port ``target`` as job fraud in the namespace cep."""
    (port,) = free_ports(1)
    folder.mkdir()
    names = {"NAMESPACE": "cep", "JOB": "fraud", "CLAIM": "none"}
    for path in ALERTS:
        text = quick(path.read_text("utf-8"))
        for name, value in names.items():
            text = text.replace(name, value)
        (folder / path.name).write_text(text, "utf-8")
    labels = {"job": "fraud", "namespace": "cep"}
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [path.name for path in ALERTS],
        "scrape_configs": [
            {
                "job_name": "fraud",
                "static_configs": [{"targets": [f"127.0.0.1:{target}"], "labels": labels}],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings), "utf-8")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        server = Prometheus(port)
        deadline = time.monotonic() + 30
        while True:
            try:
                server.firing()
                break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text("utf-8")
                assert time.monotonic() < deadline, (folder / "log").read_text("utf-8")
                time.sleep(0.1)
        yield server
    finally:
        process.kill()
        process.wait()


@contextmanager
def sending(stream: Stream) -> Iterator[threading.Event]:
    """A good event twenty times a second, and while the event is set, a broken one beside each."""
    poison, over = threading.Event(), threading.Event()

    def send() -> None:
        while not over.wait(0.05):
            now = time.time() - BEGIN / 1000
            broken = [stream.broken()] if poison.is_set() else []
            stream.send(("k", "x", now), *broken)

    thread = threading.Thread(target=send, name="sender")
    thread.start()
    try:
        yield poison
    finally:
        over.set()
        thread.join()


def test_alerts_fire_and_resolve(kafka: KafkaAccess, registry: str, tmp_path: Path) -> None:
    """None of a healthy job. Dead letters while they flow and for ten minutes more; a rule that is
    rejected, and a folder of rules that is gone; the absence of a job that was killed, until it is
    back, and then its dead letters of the first batch."""
    tool("prometheus")
    scenario = Scenario(kafka, registry, None, tmp_path / "job")
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    (page,) = free_ports(1)
    document = scenario.document(
        trigger={"mode": "continuous", "interval": "100 ms"},
        spark={"master": "local[2]", "jars_folder": str(JARS)},
        observability={"metrics_port": page},
    )

    def firing() -> set[str]:
        return server.firing() - OF_THE_MACHINE

    with prometheus(tmp_path / "prometheus", page) as server, sending(stream) as poison:
        server.wait_until(lambda: "SparkCepAbsent" in firing(), 60, "absence before the start")
        with running(scenario.folder, document) as command:
            command.wait_for(lambda: command.page("/readyz")[0] == 200)
            server.wait_until(lambda: not firing(), 60, "healthy")
            server.wait_until(lambda: server.green() == TITLES, 10, f"green: {server.green()}")
            for _ in range(20):
                assert not firing()
                time.sleep(0.5)

            poison.set()
            server.wait_until(lambda: "SparkCepDeadLetters" in firing(), 30, "dead letters flow")
            assert firing() == {"SparkCepDeadLetters"}
            assert server.green() == TITLES - {"Dead letters, last hour"}
            poison.clear()
            server.wait_until(lambda: not firing(), 60, "dead letters are over")

            wrong = scenario.rules_folder / "wrong.yaml"
            wrong.write_text("id: [", "utf-8")
            server.wait_until(lambda: firing() == {"SparkCepRuleRejected"}, 30, "a rule is wrong")
            wrong.unlink()
            server.wait_until(lambda: not firing(), 30, "the wrong rule is gone")
            away = scenario.rules_folder.rename(scenario.folder / "away")
            server.wait_until(lambda: firing() == {"SparkCepRulesNotRead"}, 30, "no folder")
            away.rename(scenario.rules_folder)
            server.wait_until(lambda: not firing(), 30, "the folder is back")

            command.kill()
            server.wait_until(lambda: not server.green(), 3, "nothing is green")
            server.wait_until(lambda: firing() == {"SparkCepAbsent"}, 30, "the job is killed")
            time.sleep(20)
            assert "SparkCepAbsent" in firing(), "it is still down"
        for _ in range(10):
            stream.send(stream.broken())
        with running(scenario.folder, document) as command:
            command.wait_for(lambda: command.page("/readyz")[0] == 200)
            server.wait_until(
                lambda: "SparkCepDeadLetters" in firing(), 30, "dead letters of the first batch"
            )
            server.wait_until(lambda: not firing(), 60, "healthy again")
            assert (server.value("sum(spark_cep_dead_letters_total)") or 0) >= 10


def test_kafka_dies_and_is_back(own_broker: EmbeddedBroker, registry: str, tmp_path: Path) -> None:
    """Within ten seconds nothing on the dashboard is green; the job is told to be not ready, and
    nothing else, until Kafka is back."""
    tool("prometheus")
    scenario = Scenario(KafkaAccess(own_broker.bootstrap), registry, None, tmp_path / "job")
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    (page,) = free_ports(1)
    document = scenario.document(
        trigger={"mode": "continuous", "interval": "100 ms"},
        spark={"master": "local[2]", "jars_folder": str(JARS)},
        observability={"metrics_port": page},
    )
    with (
        prometheus(tmp_path / "prometheus", page) as server,
        running(scenario.folder, document) as command,
    ):
        with sending(stream):
            command.wait_for(lambda: command.page("/readyz")[0] == 200)
            server.wait_until(lambda: server.green() == TITLES, 60, f"green: {server.green()}")
            server.wait_until(lambda: not server.firing() - OF_THE_MACHINE, 60, "healthy")
        own_broker.kill()
        server.wait_until(lambda: not server.green(), 12, "nothing is green")
        server.wait_until(lambda: "SparkCepNotReady" in server.firing(), 30, "not ready")
        assert server.firing() - OF_THE_MACHINE == {"SparkCepNotReady"}
        time.sleep(20)
        assert not server.green()
        assert "SparkCepNotReady" in server.firing()
        own_broker.start()
        with sending(stream):
            server.wait_until(lambda: not server.firing() - OF_THE_MACHINE, 90, "healthy again")
            server.wait_until(lambda: server.green() == TITLES, 60, f"green: {server.green()}")
