"""Large records, many of them, and batches of any size, in a small part of memory."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from examples.embedded.process import free_ports
from spark_cep.pipeline.driver import start_plan
from spark_cep.pipeline.wire.reports import Count
from tests.e2e.command import Command, running
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import MILLIS, record
from tests.e2e.stream import BEGIN, sequence
from tests.kafka_access import KafkaAccess

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

EVENT = record("e2e.Sized", ts=MILLIS, k="string", name="string", note="bytes")
LARGEST = 8 << 20
#: Pairs of an a and a b behind it, by the size of their notes: 73 MB.
PAIRS = {100: 500, 2_000: 200, 20_000: 80, 200_000: 20, 5_000_000: 6}


class Sizes:
    """A topic that takes large records, and a rule that wants all of them."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.topic = scenario.topic("sized")
        admin = AdminClient({"bootstrap.servers": scenario.kafka.bootstrap})
        new = NewTopic(self.topic, 2, 1, config={"max.message.bytes": str(LARGEST)})
        for made in admin.create_topics([new]).values():
            made.result(30)
        scenario.inputs["sized"] = {"topics": [self.topic], "event_time": "ts"}
        self._schema = scenario.register("sized", EVENT)
        scenario.rule(sequence("ab", "a", "followed_by b"))
        self._count = 0

    def send(self, pairs: dict[int, int]) -> int:
        """Produce pairs in a random order of sizes, then what lets time pass; how many records."""
        sizes = [size for size, count in pairs.items() for _ in range(count)]
        random.Random(3).shuffle(sizes)
        producer = Producer(
            {"bootstrap.servers": self.scenario.kafka.bootstrap, "message.max.bytes": LARGEST}
        )
        for number, size in enumerate(sizes, self._count):
            for name in "ab":
                self._produce(producer, number % 2, f"k{number}", name, 2 * number, size)
        self._count += len(sizes)
        for partition in range(2):
            self._produce(producer, partition, "end", "x", 2 * self._count, 0)
        assert producer.flush(60) == 0
        return 2 * len(sizes) + 2

    def _produce(
        self, producer: Producer, partition: int, k: str, name: str, at: int, size: int
    ) -> None:
        datum = {"ts": BEGIN + at, "k": k, "name": name, "note": bytes(size)}
        value = self.scenario.avro(self._schema, datum)
        producer.produce(self.topic, value, k, partition)
        producer.poll(0)


def document(scenario: Scenario, **source: Any) -> dict[str, Any]:
    """Settings of a job whose JVM has little room."""
    return scenario.document(
        source=source,
        spark={
            "master": "local[2]",
            "conf": {
                "spark.driver.memory": "512m",
                "spark.driver.extraJavaOptions": "-XX:MaxDirectMemorySize=160m",
                "spark.local.dir": str(scenario.folder / "scratch"),
                "spark.sql.warehouse.dir": str(scenario.folder / "warehouse"),
            },
        },
        state={
            "checkpoint": str(scenario.folder / "checkpoint"),
            "state_partitions": 2,
            "rocksdb_memory": "32 MiB",
        },
        observability={
            "metrics_host": "127.0.0.1",
            "metrics_port": free_ports(1)[0],
            "log_level": "info",
            "log_format": "json",
        },
    )


@pytest.fixture(scope="module")
def sizes(kafka: KafkaAccess, registry: str, tmp_path_factory: pytest.TempPathFactory) -> Sizes:
    """The topic, empty."""
    return Sizes(Scenario(kafka, registry, None, tmp_path_factory.mktemp("sizes")))


@pytest.fixture(scope="module")
def worked_off(sizes: Sizes) -> Iterator[tuple[Command, int]]:
    """A job that was killed with one batch planned for all, and started again with a bound of
    1 MiB; how many records that batch had."""
    scenario = sizes.scenario
    count = sizes.send(PAIRS)
    planned = Path(scenario.folder / "checkpoint" / "offsets" / "0")
    endless = document(scenario, max_offsets_per_trigger=None, max_bytes_per_trigger=None)
    with running(scenario.folder, endless) as first:
        first.wait_for(planned.exists)
        first.kill()
    assert not scenario.outputs().matches
    bounded = document(scenario, max_bytes_per_trigger="1 MiB")
    with running(scenario.folder, bounded) as second:
        assert second.wait(240) == 0, second.end_of_log()
        yield second, count


def test_a_batch_planned_larger_is_worked_off(
    sizes: Sizes, worked_off: tuple[Command, int]
) -> None:
    """With records of 100 bytes to 5 MB, 73 MB together, in a heap of 512 MiB: every pair is found,
    and nothing is a dead letter."""
    command, count = worked_off
    first, *_ = command.events("batch_done")
    assert first["records"] == count
    outputs = sizes.scenario.outputs()
    assert len(outputs.of("ab")[0]) == sum(PAIRS.values())
    assert outputs.dead_letters == []


def test_batches_follow_the_size_of_records(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample that takes records for half as large as they are costs one large batch."""
    sized = Sizes(scenario)
    sized.send({10_000: 200})
    monkeypatch.setattr(start_plan, "mean_size", lambda *_: 5_000.0)
    scenario.run(source={"max_bytes_per_trigger": "1 MiB"})
    first, *others = [
        report.total(Count.RECORDS) for report in scenario.reports if report.partitions_read
    ]
    assert 190 <= first <= 210
    assert max(others) <= 110
    assert sum(others) == 402 - first


def test_the_first_batch_is_bounded_by_a_sample(scenario: Scenario) -> None:
    """Nothing is known of the records at the first start."""
    sized = Sizes(scenario)
    sized.send({10_000: 200})
    scenario.run(source={"max_bytes_per_trigger": "1 MiB"})
    sizes = [report.total(Count.BYTES) for report in scenario.reports if report.partitions_read]
    assert sum(sizes) > 4e6
    assert max(sizes) <= 1.3 * 2**20
