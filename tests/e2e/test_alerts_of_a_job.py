"""Each alert that :mod:`tests.e2e.test_alerts_fire` has not, made to fire by a real job and to
resolve. ``make test-alerts`` builds Prometheus; without it the tests are left out."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from examples.embedded import EmbeddedBroker
from examples.embedded.process import free_ports
from spark_cep.config import Settings
from spark_cep.pipeline.driver.lifecycle.outage import _BRIDGED_SECONDS
from spark_cep.rules.overrides import Override, PauseOrder, write_override
from tests.chart.files import tool
from tests.conftest import JARS
from tests.e2e.command import Command, running
from tests.e2e.quick_prometheus import Prometheus, prometheus, repeating
from tests.e2e.scenario import Scenario
from tests.e2e.small_disk import small_disk
from tests.e2e.stream import BEGIN, Stream, sequence
from tests.kafka_access import KafkaAccess

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@dataclass
class Rig:
    """A job, its stream, and the Prometheus that watches it."""

    scenario: Scenario
    stream: Stream
    document: dict[str, Any]
    server: Prometheus
    folder: Path
    volume_port: int

    def fires(self, name: str, seconds: float = 60) -> None:
        """Wait until the alert fires."""
        self.server.wait_until(lambda: name in self.server.firing(), seconds, f"{name} fires")

    def resolves(self, *names: str, seconds: float = 90) -> None:
        """Wait until none of the alerts fires."""
        self.server.wait_until(
            lambda: not self.server.firing() & set(names), seconds, f"{names} end"
        )

    @contextmanager
    def runs(self, *program: str) -> Iterator[Command]:
        """The job, ready; ``program``: what Python runs in its place."""
        with running(self.scenario.folder, self.document, *program) as command:
            command.wait_for(lambda: command.page("/readyz")[0] == 200)
            yield command

    @contextmanager
    def sends(self, make: Callable[[float], list[tuple[Any, ...]]]) -> Iterator[None]:
        """Events of a time, in seconds since the stream's beginning, twenty times a second."""

        def send(over: threading.Event) -> None:
            self.stream.send(*make(time.time() - BEGIN / 1000))
            over.wait(0.05)

        with repeating(send):
            yield


@contextmanager
def _rig(kafka: KafkaAccess, registry: str, folder: Path) -> Iterator[Rig]:
    """One with a rule of two steps, which gives up all but five partial matches of a key."""
    tool("prometheus")
    scenario = Scenario(kafka, registry, None, folder / "job")
    stream = Stream(scenario)
    limits = {"partial_matches": 5, "on_limit": "drop_oldest"}
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 hour", limits=limits))
    page, volume = free_ports(2)
    document = scenario.document(
        trigger={"mode": "continuous", "latency": "100 ms"},
        spark={"master": "local[2]"},
        observability={"metrics_port": page},
        source={"fail_on_data_loss": False},
    )
    with prometheus(folder / "prometheus", page, volume, bounds=True) as server:
        yield Rig(scenario, stream, document, server, folder, volume)


@pytest.fixture
def rig(kafka: KafkaAccess, registry: str, tmp_path: Path) -> Iterator[Rig]:
    """One on the broker that other tests use."""
    with _rig(kafka, registry, tmp_path) as made:
        yield made


def _steady(now: float) -> list[tuple[Any, ...]]:
    return [("k", "b", now)]


def test_of_the_input(rig: Rig) -> None:
    """Late events, a watermark that stands, a rule at its limit, a rule that is paused, another
    member of the consumer group, which keeps offsets from being committed, events that wait, a
    watermark ahead of the clock, and records that were deleted before they were read."""
    settings = Settings.model_validate(rig.document)
    with rig.runs():
        with rig.sends(lambda now: [*_steady(now), ("k", "b", now - 3600)]):
            rig.fires("SparkCepLateEvents")
        with rig.sends(_steady):
            rig.resolves("SparkCepLateEvents")
        stands = time.time() - BEGIN / 1000
        with rig.sends(lambda _: _steady(stands)):
            rig.fires("SparkCepWatermarkStands")
        with rig.sends(_steady):
            rig.resolves("SparkCepWatermarkStands")
        with rig.sends(lambda now: [("k", "a", now)]):
            rig.fires("SparkCepPartialMatchesDropped")
            rig.fires("SparkCepRuleErrors")
        with rig.sends(_steady):
            rig.resolves("SparkCepPartialMatchesDropped", "SparkCepRuleErrors")
        topic = rig.scenario.topic("rule_overrides")
        paused = Override(by="test", pause=PauseOrder(reason="a test"))
        with rig.sends(_steady):
            write_override(settings.kafka, topic, "ab", paused)
            rig.fires("SparkCepRulePaused")
            write_override(settings.kafka, topic, "ab", Override(by="test", pause=None))
            rig.resolves("SparkCepRulePaused")
            group = settings.source.consumer_group or settings.spark.app_name
            other = Consumer(rig.scenario.kafka.config(**{"group.id": group}))
            other.subscribe([rig.stream.topic])
            try:
                with repeating(lambda _: other.poll(0.2)):
                    rig.fires("SparkCepOffsetCommitsFail", 90)
            finally:
                other.close()
            rig.resolves("SparkCepOffsetCommitsFail")
        rig.fires("SparkCepEventsWait")
        with rig.sends(lambda now: _steady(now + 600)):
            rig.resolves("SparkCepEventsWait")
            rig.fires("SparkCepWatermarkAhead")
    (behind,) = rig.stream.send(_steady(time.time() - BEGIN / 1000)[0])
    deleted = TopicPartition(rig.stream.topic, 0, behind + 1)
    for each in rig.scenario.kafka.admin().delete_records([deleted]).values():
        each.result(30)
    with rig.runs():
        rig.fires("SparkCepRecordsLost")
        rig.resolves("SparkCepRecordsLost")


def _workers(command: Command, number: signal.Signals) -> None:
    for pid in command.python_processes(b"spark_cep.pipeline.spark.forking.worker_daemon"):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def test_of_a_job_that_stands(rig: Rig) -> None:
    """Spark's Python workers are stopped while records come."""
    standing = ("SparkCepBatchStuck", "SparkCepNoBatches")
    with rig.runs() as command:
        with rig.sends(lambda now: _steady(now) * 20):
            left = set(standing)
            deadline = time.monotonic() + 180
            # Stopped between two batches, none is running for long.
            while left:
                assert time.monotonic() < deadline, left
                time.sleep(1)
                _workers(command, signal.SIGSTOP)
                until = time.monotonic() + 22
                while left and time.monotonic() < until:
                    left -= rig.server.firing()
                    time.sleep(0.5)
                _workers(command, signal.SIGCONT)
        with rig.sends(_steady):
            rig.resolves(*standing)


def test_of_a_job_that_is_slow(rig: Rig) -> None:
    """The workers run a little at a time."""
    slow = ("SparkCepBatchesSlow", "SparkCepDecisionsSlow")

    def matches(now: float) -> list[tuple[Any, ...]]:
        return [("k", "a", now), ("k", "b", now + 0.001), *_steady(now + 0.002)]

    with rig.runs() as command:

        def throttle(over: threading.Event) -> None:
            _workers(command, signal.SIGSTOP)
            over.wait(4)
            _workers(command, signal.SIGCONT)
            over.wait(0.5)

        with rig.sends(matches):
            with repeating(throttle):
                for name in slow:
                    rig.fires(name, 90)
            rig.resolves(*slow)


def test_of_lag(rig: Rig) -> None:
    """More comes in than batches of forty records work off; then batches may be larger."""
    rig.document["source"] = {"max_offsets_per_trigger": 40}
    with rig.runs(), rig.sends(lambda now: _steady(now) * 30):
        rig.fires("SparkCepLagGrows", 90)
        rig.fires("SparkCepLagOld", 90)
    del rig.document["source"]
    with rig.runs():
        rig.resolves("SparkCepLagGrows", "SparkCepLagOld")


def test_of_state(rig: Rig) -> None:
    """Keys that begin and do not end; then their time is over, and a start reads what is left."""
    number = 0

    def keys(now: float) -> list[tuple[Any, ...]]:
        nonlocal number
        number += 50
        return [(f"key-{number + n}", "a", now) for n in range(50)]

    with rig.runs():
        with rig.sends(keys):
            rig.fires("SparkCepStateGrows", 180)
        with rig.sends(lambda now: _steady(now + 7200)):
            time.sleep(5)
    with rig.runs():
        rig.resolves("SparkCepStateGrows")


def test_of_outages(registry: str, tmp_path: Path) -> None:
    """Kafka is unavailable for more than a minute, which ends the query."""
    tool("prometheus")
    with (
        EmbeddedBroker(tmp_path / "broker", JARS) as broker,
        _rig(KafkaAccess(broker.bootstrap), registry, tmp_path) as rig,
        rig.runs(),
    ):
        with rig.sends(_steady):
            time.sleep(3)
        broker.kill()
        time.sleep(_BRIDGED_SECONDS + 15)
        broker.start()
        with rig.sends(_steady):
            rig.fires("SparkCepQueryRestarts")
            rig.resolves("SparkCepQueryRestarts", seconds=120)


def test_of_restarts(rig: Rig) -> None:
    """Killed three times in a minute, and then no more."""
    seen: list[float | None] = [None]

    def another() -> bool:
        return rig.server.value("process_start_time_seconds") not in seen

    for _ in range(3):
        with running(rig.scenario.folder, rig.document) as command:
            command.wait_for(another)
            seen.append(rig.server.value("process_start_time_seconds"))
    with rig.runs(), rig.sends(_steady):
        rig.fires("SparkCepRestarts", 20)
        rig.resolves("SparkCepRestarts")


def test_of_the_heap(rig: Rig) -> None:
    """Nearly all of the driver's heap is live, and then is free."""
    flag = rig.folder / "flag"
    rig.document["spark"]["conf"] = {"spark.driver.memory": "600m"}
    program = ("-c", "from tests.e2e.heap_ballast import run; run()", str(flag))
    with rig.runs(*program), rig.sends(_steady):
        flag.touch()
        rig.fires("SparkCepHeapFull", 300)
        flag.unlink()
        rig.resolves("SparkCepHeapFull")


def _room(volume: Path, figure: str) -> float:
    return float(getattr(shutil.disk_usage(volume), figure))


@contextmanager
def _kubelet(port: int, volume: Path) -> Iterator[None]:
    """What a kubelet shows of the volume."""
    registry = CollectorRegistry()
    for name, figure in (("available", "free"), ("capacity", "total")):
        metric = f"kubelet_volume_stats_{name}_bytes"
        gauge = Gauge(metric, metric, ["persistentvolumeclaim"], registry=registry)
        gauge.labels("checkpoint").set_function(partial(_room, volume, figure))
    server, thread = start_http_server(port, "127.0.0.1", registry)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_of_the_disk(rig: Rig) -> None:
    """It fills; the job says so while it runs, and the kubelet when it has ended."""
    with (
        small_disk(rig.folder / "disk", "40m") as disk,
        _kubelet(rig.volume_port, disk),
        rig.sends(_steady),
    ):
        rig.document["state"]["checkpoint"] = str(disk / "checkpoint")
        filler = disk / "filler"
        with rig.runs():
            filler.write_bytes(bytes(36_000_000))
            rig.fires("SparkCepCheckpointDiskFull")
            assert "SparkCepCheckpointVolumeFull" not in rig.server.firing()
        rig.fires("SparkCepCheckpointVolumeFull")
        filler.unlink()
        rig.resolves("SparkCepCheckpointVolumeFull")
        with rig.runs():
            rig.resolves("SparkCepCheckpointDiskFull")
