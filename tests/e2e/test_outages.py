"""Kafka or the registry away while the job runs: it waits, says so, and then goes on as if nothing
had been."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from examples.embedded import EmbeddedBroker, EmbeddedRegistry
from examples.embedded.process import free_ports
from spark_cep.cli.exit_codes import ExitCode
from spark_cep.errors import KafkaUnavailableError, RegistryUnavailableError
from spark_cep.observability.health import Health
from spark_cep.pipeline.wire.reports import Count
from tests.conftest import JARS
from tests.e2e.command import running
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import field, record
from tests.e2e.stream import EVENT, Stream, at, sequence
from tests.kafka_access import KafkaAccess, Sent
from tests.relay import Relay

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

(EXTRA,) = record("e2e.Event", extra=field("string", default="d"))["fields"]
NEWER = {**EVENT, "fields": [*EVENT["fields"], EXTRA]}
QUICK = {"backoff": "100 ms", "max_backoff": "1 second"}
UNAVAILABLE_SECONDS = 35.0


def _until(condition: Callable[[], Any], seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


def _waits_for(health: Health, who: str) -> bool:
    readiness = health.readiness()
    return not readiness.ok and f"waits for {who}" in readiness.reason


@pytest.fixture(scope="module")
def own_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRegistry]:
    """A registry that may be stopped."""
    with EmbeddedRegistry(tmp_path_factory.mktemp("registry"), JARS) as started:
        yield started


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker that may be stopped."""
    with EmbeddedBroker(tmp_path / "broker", JARS) as started:
        yield started


@pytest.mark.parametrize("how", ["refused", "silent"])
def test_the_registry_is_away_when_a_schema_is_new(
    how: str,
    kafka: KafkaAccess,
    own_registry: EmbeddedRegistry,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    """Nobody at its address, or a process that is stopped (SIGSTOP): the job waits, alive and not
    ready, and the records with the new schema are no dead letters."""
    url = urlsplit(own_registry.url)
    with Relay((str(url.hostname), own_registry.port)) as relay:
        behind = url._replace(netloc=f"127.0.0.1:{relay.port}").geturl()
        scenario = Scenario(kafka, behind, spark, tmp_path / "job")
        stream = Stream(scenario)
        scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
        impatient = {"timeout": "1 second", "max_attempts": 1}
        with scenario.running(registry=impatient, lifecycle=QUICK) as service:
            health = service._run.health
            stream.send(("k", "a", 0))
            scenario.wait_for_records(1)
            newer = scenario.register("events", NEWER)
            relay.cut() if how == "refused" else own_registry.pause()
            try:
                datum = {"ts": at(4), "k": "k", "name": "b", "v": 0.0, "extra": "e"}
                stream.send(Sent(scenario.avro(newer, datum)))
                _until(lambda: _waits_for(health, f"schema registry {behind} cannot be reached"))
                assert health.live().ok
                assert scenario.total(Count.RECORDS) == 1
            finally:
                relay.connect() if how == "refused" else own_registry.resume()
            scenario.wait_for_records(2)
            assert health.readiness().ok
            stream.send(("k", "x", 90))
            outputs = scenario.wait_for(lambda out: out.matches)
    assert outputs.of("ab") == ([found("ab", "k", at(4), a=0, b=1)], [])
    assert (outputs.dead_letters, outputs.late) == ([], [])
    assert scenario.metric("spark_cep_query_restarts_total", reason="new_schema") == 1


def test_the_registry_stays_away(
    kafka: KafkaAccess, own_registry: EmbeddedRegistry, spark: SparkSession, tmp_path: Path
) -> None:
    """At the limit the job ends, and says what it waited for; nothing was decided, so that the
    next start, with the registry back, reads the records."""
    url = urlsplit(own_registry.url)
    with Relay((str(url.hostname), own_registry.port)) as relay:
        behind = url._replace(netloc=f"127.0.0.1:{relay.port}").geturl()
        scenario = Scenario(kafka, behind, spark, tmp_path / "job")
        stream = Stream(scenario)
        scenario.rule(sequence("b", "b"))
        limits = {**QUICK, "outage_limit": "1 second"}

        def run() -> None:
            with scenario.running(registry={"max_attempts": 1}, lifecycle=limits) as service:
                stream.send(("k", "a", 0))
                scenario.wait_for_records(1)
                newer = scenario.register("events", NEWER)
                relay.cut()
                datum = {"ts": at(4), "k": "k", "name": "b", "v": 0.0, "extra": "e"}
                stream.send(Sent(scenario.avro(newer, datum)))
                _until(lambda: _waits_for(service._run.health, "schema registry"))
                _until(lambda: scenario._failures)

        with pytest.raises(RegistryUnavailableError, match=r"cannot be reached .*the limit is 1 s"):
            run()
        relay.connect()
        outputs = scenario.decide()
    assert outputs.of("b") == ([found("b", "k", at(4), b=1)], [])
    assert outputs.dead_letters == []


def test_the_broker_is_stopped_and_started(
    own_broker: EmbeddedBroker,
    registry: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For longer than a partition may be silent: the query is started again when the broker is
    back, no partition became idle meanwhile, and the results are those of an undisturbed run."""
    monkeypatch.setattr("spark_cep.pipeline.driver.lifecycle.outage._BRIDGED_SECONDS", 10.0)
    scenario = Scenario(KafkaAccess(own_broker.bootstrap), registry, spark, tmp_path / "job")
    stream = Stream(scenario, partitions=2)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    with scenario.running(
        kafka={"bootstrap_servers": own_broker.bootstrap},
        lifecycle=QUICK,
        time={"allowed_disorder": "0 ms", "partition_idle_after": "25 seconds"},
    ) as service:
        stream.send(stream.event("fast", "a", 100), stream.event("slow", "a", 0, partition=1))
        scenario.wait_for_records(2)
        own_broker.stop()
        began = time.monotonic()
        _until(lambda: _waits_for(service._run.health, "Kafka"))
        assert service._run.health.live().ok
        _until(lambda: time.monotonic() > began + UNAVAILABLE_SECONDS)
        own_broker.start()
        # Behind the newest event of the other partition: late, had this one become idle.
        stream.send(
            stream.event("slow", "b", 5, partition=1),
            stream.event("slow", "x", 200, partition=1),
            stream.event("fast", "b", 105),
            stream.event("fast", "x", 200),
        )
        scenario.wait_for_records(6)
        assert service._run.health.readiness().ok
        outputs = scenario.wait_for(lambda out: len(out.matches) >= 2)
    assert set(outputs.of("ab")[0]) == {
        found("ab", "slow", at(5), a=0, b=1),
        found("ab", "fast", at(105), a=0, b=1),
    }
    assert outputs.late == []
    restarts = scenario.metric("spark_cep_query_restarts_total", reason="kafka_unavailable")
    assert restarts is not None
    assert restarts >= 1


def test_the_broker_stays_away(
    own_broker: EmbeddedBroker, registry: str, spark: SparkSession, tmp_path: Path
) -> None:
    """At the limit the job ends with an error of its own."""
    scenario = Scenario(KafkaAccess(own_broker.bootstrap), registry, spark, tmp_path / "job")
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    kafka = {"bootstrap_servers": own_broker.bootstrap}

    def run() -> None:
        with scenario.running(kafka=kafka, lifecycle={**QUICK, "outage_limit": "2 seconds"}):
            stream.send(("k", "a", 0))
            scenario.wait_for_records(1)
            own_broker.stop()
            _until(lambda: scenario._failures)

    with pytest.raises(KafkaUnavailableError, match=r"does not answer.*the limit is 2 s"):
        run()


def test_the_broker_is_silent_in_the_middle_of_batches(
    own_broker: EmbeddedBroker, registry: str, tmp_path: Path
) -> None:
    """SIGSTOP for longer than the clients' time-outs, while a backlog is worked off: reading or
    writing fails, the batch is repeated when the broker goes on, and nothing is missing."""
    scenario = Scenario(KafkaAccess(own_broker.bootstrap), registry, None, tmp_path / "job")
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    pairs = range(5_000)
    stream.send(*((f"k{n % 97}", name, n * 2 + s) for n in pairs for s, name in enumerate("ab")))
    document = scenario.document(
        kafka={
            "bootstrap_servers": own_broker.bootstrap,
            "sink_properties": {"message.timeout.ms": 5000},
        },
        source={"max_offsets_per_trigger": 2_000},
        trigger={"mode": "available_now", "at_end_of_input": "decide"},
        lifecycle=QUICK,
        spark={
            "master": "local[2]",
            "conf": {
                "spark.driver.memory": "1g",
                "spark.network.timeout": "10s",
                "spark.network.timeoutInterval": "5s",
                "spark.executor.heartbeatInterval": "2s",
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
    with running(scenario.folder, document) as command:
        command.wait_for(lambda: len(command.events("batch_started")) > 1)
        own_broker.pause()
        command.wait_for(lambda: command.events("waiting_for_kafka"))
        status, text = command.page("/readyz")
        assert status == 503
        assert "waits for Kafka" in text
        assert command.page("/livez")[0] == 200
        own_broker.resume()
        assert command.wait() == ExitCode.DONE
    matches, timeouts = scenario.outputs().of("ab")
    expected = {found("ab", f"k{n % 97}", at(n * 2 + 1), a=2 * n, b=2 * n + 1) for n in pairs}
    assert set(matches) == expected
    assert timeouts == []
