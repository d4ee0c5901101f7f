"""What the service needs of a broker, the same for each one that tests run against."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from spark_cep.config import Settings
from spark_cep.errors import KafkaUnavailableError, StartError
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from tests.kafka_access import KafkaAccess, Sent

pytestmark = pytest.mark.kafka

#: A broker at work knows of a new topic, and that it leads it, a little after it was made.
SOON = Retrying(
    retry=retry_if_exception_type((KafkaUnavailableError, AssertionError)),
    stop=stop_after_delay(60),
    wait=wait_fixed(0.2),
    reraise=True,
)


def _topic(broker: KafkaAccess, partitions: int = 1) -> str:
    name = f"contract.{uuid.uuid4().hex[:10]}"
    broker.create_topics({name: partitions})
    return name


def _cluster(broker: KafkaAccess, folder: Path, *, create: bool = True) -> Cluster:
    return Cluster(
        Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": broker.bootstrap},
                "inputs": {"unused": {"topics": ["unused"]}},
                "outputs": {
                    "create_topics": {"enabled": create, "partitions": 3, "replication": 1}
                },
                "registry": {"url": "http://localhost"},
                "state": {"checkpoint": str(folder)},
            }
        ),
        SOON,
    )


def _transactional(broker: KafkaAccess, identity: str) -> Producer:
    producer = Producer(broker.config(**{"transactional.id": identity}))
    producer.init_transactions(30)
    return producer


def test_records_keep_bytes_headers_time_and_order(broker: KafkaAccess) -> None:
    """Key, value, repeated headers and timestamp come back as sent, in order of their offsets."""
    topic = _topic(broker)
    headers: list[tuple[str, str | bytes | None]] = [("a", b"1"), ("b", b"\x00\xff"), ("a", b"2")]
    sent = [Sent(bytes([n]), b"k", 0, 1_600_000_000_000 + n, headers) for n in range(5)]
    sent.append(Sent(None, b"tombstone"))
    broker.send(topic, sent)
    read = broker.read(topic)
    assert [m.offset() for m in read] == list(range(6))
    assert [(m.value(), m.key()) for m in read] == [(s.value, s.key) for s in sent]
    assert [m.headers() for m in read[:5]] == [headers] * 5
    assert [m.timestamp()[1] for m in read[:5]] == [s.timestamp for s in sent[:5]]


def test_an_idempotent_producer_is_accepted(broker: KafkaAccess) -> None:
    """The sink's own configuration writes each record once, partition by partition."""
    topic = _topic(broker, 2)
    broker.send(topic, [Sent(b"%d" % n, partition=n % 2) for n in range(100)])
    read = broker.read(topic)
    assert [int(m.value() or b"") for m in read] == [*range(0, 100, 2), *range(1, 100, 2)]


def test_only_committed_transactions_are_read(broker: KafkaAccess) -> None:
    """Read committed: an aborted transaction is never seen, an open one not yet."""
    topic = _topic(broker)
    producer = _transactional(broker, topic)
    for value, commit in ((b"aborted", False), (b"committed", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(30)
        (producer.commit_transaction if commit else producer.abort_transaction)(30)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(30)
    assert [m.value() for m in broker.read(topic)] == [b"committed"]
    producer.commit_transaction(30)
    assert [m.value() for m in broker.read(topic)] == [b"committed", b"open"]


def test_a_second_producer_of_the_same_identity_fences_the_first(broker: KafkaAccess) -> None:
    """What the first had open is aborted, and it can write no more."""
    topic = _topic(broker)
    first = _transactional(broker, topic)
    first.begin_transaction()
    first.produce(topic, b"zombie")
    first.flush(30)
    second = _transactional(broker, topic)
    with pytest.raises(KafkaException) as caught:
        first.commit_transaction(30)
    assert caught.value.args[0].code() in (
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    )
    second.begin_transaction()
    second.produce(topic, b"heir")
    second.commit_transaction(30)
    assert [m.value() for m in broker.read(topic)] == [b"heir"]


def test_a_batch_mark_commits_with_its_records(broker: KafkaAccess) -> None:
    """An offset's metadata, sent in a transaction, is there when the records are."""
    topic = _topic(broker)
    producer = _transactional(broker, topic)
    consumer = Consumer(broker.config(**{"group.id": topic, "enable.auto.commit": False}))
    try:
        for batch, commit in (("7", True), ("8", False)):
            producer.begin_transaction()
            producer.produce(topic, batch)
            mark = TopicPartition(topic, 0, 1, metadata=batch)
            producer.send_offsets_to_transaction([mark], consumer.consumer_group_metadata(), 30)
            (producer.commit_transaction if commit else producer.abort_transaction)(30)
        (found,) = consumer.committed([TopicPartition(topic, 0)], 30)
        assert (found.offset, found.metadata) == (1, "7")
    finally:
        consumer.close()
    assert [m.value() for m in broker.read(topic)] == [b"7"]


def test_partitions_that_hold_records_are_found(broker: KafkaAccess, tmp_path: Path) -> None:
    """The watermark waits for these at the start, and for no empty one."""
    topic = _topic(broker, 3)
    cluster = _cluster(broker, tmp_path)
    assert cluster.partitions_with_records([topic]) == []
    broker.send(topic, [Sent(b"a", partition=2), Sent(b"b", partition=0)])
    assert cluster.partitions_with_records([topic]) == [(topic, 0), (topic, 2)]


def test_missing_topics_are_made_once(broker: KafkaAccess, tmp_path: Path) -> None:
    """Creation is idempotent: what exists is left alone, with its partitions."""
    existing = _topic(broker, 1)
    fresh = f"{existing}.fresh"
    cluster = _cluster(broker, tmp_path)
    assert cluster.create_missing([existing, fresh]) == [fresh]
    for attempt in SOON:
        with attempt:
            assert fresh in cluster.topics()
    assert cluster.create_missing([existing, fresh]) == []
    assert {existing, fresh} <= set(cluster.topics())
    topics = broker.admin().list_topics(timeout=30).topics
    assert [len(topics[name].partitions) for name in (existing, fresh)] == [1, 3]


def test_missing_topics_are_refused_where_none_may_be_made(
    broker: KafkaAccess, tmp_path: Path
) -> None:
    """The error names the topic and the setting."""
    name = f"contract.{uuid.uuid4().hex[:10]}"
    with pytest.raises(StartError, match=rf"{name}.*outputs\.create_topics\.enabled"):
        _cluster(broker, tmp_path, create=False).create_missing([name])
