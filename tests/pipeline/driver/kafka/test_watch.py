"""What the watch makes of Kafka's answers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, KafkaUnavailableError, StartError
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.kafka.input_position import Lag
from spark_cep.pipeline.driver.kafka.watch import KafkaWatch, quick_cluster

ENDS = {("t", 0): 7}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a job that there is not."""
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9"},
            "inputs": {"t": {"topics": ["t"]}},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": str(tmp_path / "checkpoint")},
            "rules": {"folder": str(tmp_path / "rules")},
        }
    )


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([ENDS, KafkaUnavailableError("a"), ENDS], ["back", "back"]),
        (
            [
                KafkaUnavailableError("a"),
                KafkaUnavailableError("b"),
                KafkaUnavailableError("c"),
                ENDS,
            ],
            ["b", "c", "back"],
        ),
        ([ConfigurationError("a"), ConfigurationError("refused")], ["refused"]),
        ([StartError("not allowed"), StartError("not allowed")], ["back", "back"]),
    ],
)
def test_one_missed_answer_is_no_outage(
    settings: Settings, answers: list[Any], told: list[str]
) -> None:
    """The second is, and what lag there is nobody knows then; a refused request is an answer."""
    heard: list[str] = []
    outage: Any = SimpleNamespace(
        unavailable=lambda error: heard.append(str(error)), back=lambda: heard.append("back")
    )
    metrics = Metrics()
    lag = Lag(metrics)
    lag.read({("t", 0): 5}, {})
    watch = KafkaWatch(settings, ["t"], lag, outage, "run")

    def ends(topics: list[str], partitions: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
        assert (topics, partitions) == (["t"], [("t", 0)])
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    missed = 0
    cluster: Any = SimpleNamespace(ends=ends)
    while answers:
        missed = 0 if watch._ask(cluster, missed) else missed + 1
        at = {"topic": "t", "partition": "0"}
        shown = metrics.registry.get_sample_value("spark_cep_consumer_lag_records", at)
        assert (shown is None) == (missed > 1)
    assert heard == told


@pytest.mark.parametrize("own", [{}, {"reconnect.backoff.ms": "5000"}, {"socket.timeout.ms": "70"}])
def test_the_users_own_settings_win(settings: Settings, own: dict[str, str]) -> None:
    """Also where one of ours would contradict them."""
    kafka = settings.kafka.model_copy(update={"sink_properties": own})
    cluster = quick_cluster(settings.model_copy(update={"kafka": kafka}))
    assert cluster._config.items() >= own.items()


def _answered(asked: TopicPartition, answer: int | KafkaError) -> Any:
    """What the client makes of an answer: it leaves the offset where there is none."""
    error, offset = (answer, asked.offset) if isinstance(answer, KafkaError) else (None, answer)
    return SimpleNamespace(topic=asked.topic, partition=asked.partition, offset=offset, error=error)


@pytest.mark.parametrize(
    ("leader", "answer", "expected"),
    [
        (1, 7, {("t", 0): 7}),
        (1, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), {}),
        (1, -1, "the leader of t, partition 0, does not answer"),
        (-1, 7, r"t, partitions \[0\]: no leader"),
        (1, KafkaException(KafkaError(KafkaError._TIMED_OUT)), "does not answer"),
        (1, KafkaError(KafkaError._NOENT, "no leader"), "no leader"),
        (1, KafkaError(KafkaError.UNKNOWN_LEADER_EPOCH), "epoch is newer"),
    ],
)
def test_where_partitions_end(
    settings: Settings, leader: int, answer: Any, expected: dict[Any, int] | str
) -> None:
    """A partition that has no leader, or whose leader is silent (for which the client gives an
    offset that there is not), is an outage; one that Kafka does not know is not."""
    cluster = Cluster(settings)
    # A client of its own would notice that there is no broker at this address.
    cluster._admin = SimpleNamespace(poll=lambda _: None)
    partitions = {0: SimpleNamespace(leader=leader)}

    def offsets(wanted: list[TopicPartition], _seconds: float) -> list[Any]:
        if isinstance(answer, KafkaException):
            raise answer
        return [_answered(each, answer) for each in wanted]

    reader: Any = SimpleNamespace(
        poll=lambda _: None,
        list_topics=lambda topic, timeout: SimpleNamespace(
            topics={topic: SimpleNamespace(partitions=partitions)}
        ),
        offsets_for_times=offsets,
    )
    cluster._readers[False] = reader
    if isinstance(expected, str):
        with pytest.raises(KafkaUnavailableError, match=expected):
            cluster.ends(["t"], [("t", 0)])
    else:
        assert cluster.ends(["t"], [("t", 0)]) == expected
