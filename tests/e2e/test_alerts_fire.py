"""A job as a process under a real Prometheus, with the chart's alerts sixty times as quick: minutes
are seconds. They fire for what is wrong, and not longer, and the dashboard is green for what is
well alone. ``make test-alerts`` builds Prometheus; without it the test is left out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.embedded import EmbeddedBroker
from examples.embedded.process import free_ports
from tests.chart.files import tool
from tests.chart.test_dashboard_colours import COLOURED
from tests.conftest import JARS
from tests.e2e.command import running
from tests.e2e.quick_prometheus import OF_THE_MACHINE, prometheus, sending
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence
from tests.kafka_access import KafkaAccess

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

TITLES = {panel["title"] for panel in COLOURED}


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker that may be stopped."""
    with EmbeddedBroker(tmp_path / "broker", JARS) as started:
        yield started


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
        trigger={"mode": "continuous", "latency": "100 ms"},
        spark={"master": "local[2]"},
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
        trigger={"mode": "continuous", "latency": "100 ms"},
        spark={"master": "local[2]"},
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
