"""Kafka is unavailable from a job with the time-outs and task retries of the default settings: the
job says so within ten seconds, and goes on by itself, or ends at its limit."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from examples.embedded import EmbeddedBroker
from examples.embedded.process import free_ports
from spark_cep.cli.exit_codes import ExitCode
from tests.conftest import JARS
from tests.e2e.command import Command, running
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import KafkaAccess

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

PAIRS = 30_000
SEEN_WITHIN = 10.0
BRIDGED = 60.0
LIMIT = 15.0


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker that may be stopped."""
    with EmbeddedBroker(tmp_path / "broker", JARS) as started:
        yield started


def _in_flight(command: Command) -> bool:
    """Whether a batch behind the first one has begun and has not ended."""
    begun, done = command.events("batch_started"), command.events("batch_done")
    return len(begun) > 1 and (not done or done[-1]["batch"] < begun[-1]["batch"])


def _metric(command: Command, name: str) -> list[str]:
    lines = command.page("/metrics")[1].splitlines()
    return [line.rpartition(" ")[2] for line in lines if line.startswith(name)]


def _sees_the_outage(command: Command, before: int, since: datetime) -> None:
    """Told within ten seconds by the log, and by page and metrics; the process is to live on."""
    command.wait_for(lambda: command.page("/readyz")[0] == 503)
    assert "waits for Kafka" in json.loads(command.page("/readyz")[1])["reason"]
    assert command.page("/livez")[0] == 200
    command.wait_for(lambda: len(command.events("waiting_for_kafka")) > before)
    # By the job's own clock: on a busy machine the page may take a while to answer.
    *older, waiting = command.events("waiting_for_kafka")
    assert len(older) == before
    told = datetime.fromisoformat(waiting["timestamp"])
    assert 0 <= (told - since).total_seconds() < SEEN_WITHIN
    assert _metric(command, "spark_cep_consumer_lag_records{") == []
    assert _metric(command, "spark_cep_consumer_lag_seconds{") == []
    assert _metric(command, "spark_cep_ready ") == ["0.0"]


def _document(scenario: Scenario, **sections: Any) -> dict[str, Any]:
    return scenario.document(
        **sections,
        spark={
            "conf": {
                "spark.driver.memory": "1g",
                "spark.local.dir": str(scenario.folder / "scratch"),
                "spark.sql.warehouse.dir": str(scenario.folder / "warehouse"),
            },
        },
        observability={
            "metrics_host": "127.0.0.1",
            "metrics_port": free_ports(1)[0],
            "log_level": "debug",
            "log_format": "json",
        },
    )


def test_kafka_dies_in_the_middle_of_a_batch(
    own_broker: EmbeddedBroker, registry: str, tmp_path: Path
) -> None:
    """Stopped for a moment (SIGSTOP), which its clients bridge; then killed (SIGKILL) for longer
    than a minute: the query is ended, and started again when Kafka is back. Nothing is missing and
    nothing is there twice."""
    scenario = Scenario(KafkaAccess(own_broker.bootstrap), registry, None, tmp_path / "job")
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    pairs = range(PAIRS)
    stream.send(*((f"k{n % 97}", name, n * 2 + s) for n in pairs for s, name in enumerate("ab")))
    document = _document(
        scenario,
        source={"max_offsets_per_trigger": 2 * PAIRS // 3},
        trigger={"mode": "available_now", "at_end_of_input": "decide"},
    )
    with running(scenario.folder, document) as command:
        command.wait_for(lambda: _in_flight(command))
        silent = datetime.now(UTC)
        own_broker.pause()
        _sees_the_outage(command, before=0, since=silent)
        own_broker.resume()
        command.wait_for(lambda: command.page("/readyz")[0] == 200)
        command.wait_for(lambda: command.events("kafka_back"))
        assert len(command.events("kafka_back")) == 1
        assert _metric(command, "spark_cep_consumer_lag_records{")
        assert len(command.events("query_started")) == 1

        batch = len(command.events("batch_started"))
        command.wait_for(lambda: len(command.events("batch_started")) > batch)
        dead = datetime.now(UTC)
        own_broker.kill()
        killed = time.monotonic()
        _sees_the_outage(command, before=1, since=dead)
        command.wait_for(lambda: time.monotonic() > killed + BRIDGED + SEEN_WITHIN)
        assert command.page("/livez")[0] == 200
        own_broker.start()
        assert command.wait() == ExitCode.DONE
    assert len(command.events("waiting_for_kafka")) == len(command.events("kafka_back")) == 2
    assert len(command.events("query_started")) >= 2
    matches, timeouts = scenario.outputs().of("ab")
    expected = [found("ab", f"k{n % 97}", at(n * 2 + 1), a=2 * n, b=2 * n + 1) for n in pairs]
    assert sorted(matches) == sorted(expected)
    assert timeouts == []


def test_kafka_stays_away_from_an_idle_job(
    own_broker: EmbeddedBroker, registry: str, tmp_path: Path
) -> None:
    """Silent (SIGSTOP) while Spark asks what is new: the job ends at its limit, and not when the
    clients have given up."""
    scenario = Scenario(KafkaAccess(own_broker.bootstrap), registry, None, tmp_path / "job")
    Stream(scenario).send(("k", "a", 0))
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    document = _document(
        scenario,
        trigger={"mode": "continuous", "latency": "100 ms"},
        lifecycle={"outage_limit": f"{LIMIT:g} seconds"},
    )
    with running(scenario.folder, document) as command:
        command.wait_for(lambda: command.events("batch_done"))
        command.wait_for(lambda: _metric(command, "spark_cep_consumer_lag_records{") == ["0.0"])
        silent = datetime.now(UTC)
        own_broker.pause()
        paused = time.monotonic()
        try:
            _sees_the_outage(command, before=0, since=silent)
            assert command.wait() == ExitCode.KAFKA_UNAVAILABLE
        finally:
            own_broker.resume()
        # Closing takes a while on a busy machine; clients by themselves give up after minutes.
        assert LIMIT < time.monotonic() - paused < LIMIT + 5 * SEEN_WITHIN
    (ended,) = command.events("ended")
    assert f"the limit is {LIMIT:g} s" in ended["reason"]
