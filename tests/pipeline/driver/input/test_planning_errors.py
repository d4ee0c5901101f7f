"""What becomes of each error of Kafka when a batch is planned."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, SparkCepError, StartError
from spark_cep.kafka_errors import KINDS, ErrorKind
from spark_cep.pipeline.driver.input.offsets import InputOffsets
from spark_cep.pipeline.driver.kafka.cluster import Cluster

#: A code that neither Kafka nor its client has.
NEW = 999


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """With a client that asks nobody."""
    return Cluster(
        Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": "localhost:9"},
                "inputs": {"t": {"topics": ["t"]}},
                "registry": {"url": "http://localhost"},
                "state": {"checkpoint": "/c"},
            }
        )
    )


def planned(cluster: Cluster, code: int, times: int) -> tuple[dict[tuple[str, int], int], float]:
    """Where the next batch ends, when offsets cannot be had so often; and how long it took."""
    errors = [KafkaError(code)] * times
    there = SimpleNamespace(
        topics={"t": SimpleNamespace(partitions={0: SimpleNamespace(leader=1)})}
    )

    def offsets(wanted: list[TopicPartition], _seconds: float) -> list[Any]:
        (at,) = wanted
        error = errors.pop() if errors else None
        return [SimpleNamespace(topic=at.topic, partition=at.partition, offset=9, error=error)]

    reader: Any = SimpleNamespace(
        poll=lambda _: None,
        list_topics=lambda _topic, timeout: there,
        offsets_for_times=offsets,
    )
    cluster._readers[True] = reader
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    planner = InputOffsets(cluster._settings, lambda: cluster, lambda: now[0], sleep)
    return planner.latest({("t", 0): 5}, None), now[0]


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind != ErrorKind.NOTICE])
def test_an_error_is_waited_for_or_told(cluster: Cluster, name: str) -> None:
    """A broker that was stopped for some seconds answers with errors of leaders and epochs for a
    moment: the next batch is planned when it does no more."""
    code, kind = getattr(KafkaError, name), KINDS[name]
    if kind in (
        ErrorKind.RETRIABLE,
        ErrorKind.UNKNOWN_TOPIC,
        ErrorKind.UNREACHABLE,
        ErrorKind.ABORTED,
    ):
        ends, waited = planned(cluster, code, times=24)
        assert ends == {("t", 0): 9}
        assert waited == pytest.approx(6.0)
        return
    expected: type[SparkCepError] = ConfigurationError if kind is ErrorKind.LOGIN else StartError
    with pytest.raises(SparkCepError) as told:
        planned(cluster, code, times=1)
    assert type(told.value) is expected


def test_an_error_that_nobody_knows_yet(cluster: Cluster) -> None:
    """It is waited for."""
    assert planned(cluster, NEW, times=4)[0] == {("t", 0): 9}
