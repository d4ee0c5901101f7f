"""Messages from columns to a real broker, and back by an ordinary consumer."""

from __future__ import annotations

import time
import uuid

import numpy as np
import pytest
from confluent_kafka import KafkaError

from spark_cep.columns.vectors import Bytes
from spark_cep.config.kafka import Kafka
from spark_cep.errors import OutputError
from spark_cep.pipeline.librdkafka.messages import Messages
from spark_cep.pipeline.librdkafka.producer import Producer
from spark_cep.pipeline.wire.packets import Record, ResultColumns
from tests.kafka_access import KafkaAccess
from tests.pipeline.librdkafka.records import records_of

RECORDS: list[Record] = [
    ("a", b"k", b"v", [("h", b"x"), ("h", b"y"), ("other", None)]),
    ("b", None, None, []),
    ("a", b"", b"", [("empty", b""), ("name", bytes(range(256)))]),
    ("b", "ключ".encode(), b"\0" * 70_000, [("имя", "значение".encode())]),
    ("a", b"k", b"v", [(f"h{n}", b"%d" % n) for n in range(100)]),
]
RESULTS = ResultColumns(
    "b",
    [[("rule", b"one"), ("version", b"1")], [("rule", b"two")]],
    np.array([0, 1, 0, 1]),
    np.array([1, -1, 0, 0]),
    Bytes.of([b"", b"key"]),
    Bytes.of([*(b"%032d" % n for n in range(3)), None]),
    Bytes.of([b"first", b"second", b"", b"fourth"]),
)


def test_records_are_messages() -> None:
    """With all that is absent or empty."""
    assert records_of(Messages.of_records(RECORDS)) == RECORDS
    assert records_of(Messages.of_records([])) == []


def test_results_are_messages() -> None:
    """Each has its rule's headers, and its match id last, if it has one."""
    assert records_of(Messages.of_results(RESULTS)) == [
        ("b", b"key", b"first",
         [("rule", b"one"), ("version", b"1"), ("spark-cep-match-id", b"%032d" % 0)]),
        ("b", None, b"second", [("rule", b"two"), ("spark-cep-match-id", b"%032d" % 1)]),
        ("b", b"", b"",
         [("rule", b"one"), ("version", b"1"), ("spark-cep-match-id", b"%032d" % 2)]),
        ("b", b"", b"fourth", [("rule", b"two")]),
    ]  # fmt: skip
    assert RESULTS.size == len(b"keyfirstsecondfourth")


class Topics:
    """Topics of one test, and a producer's settings."""

    def __init__(self, kafka: KafkaAccess) -> None:
        self.kafka = kafka
        self.prefix = f"produce-{uuid.uuid4().hex[:8]}"
        self.config = Kafka(bootstrap_servers=kafka.bootstrap).producer_config()
        kafka.create_topics({self.name("a"): 1, self.name("b"): 1})

    def name(self, topic: str) -> str:
        """Of a topic of the test."""
        return f"{self.prefix}.{topic}"

    def of(self, messages: Messages) -> Messages:
        """The same to topics of the test."""
        return messages._replace(topics=[self.name(topic) for topic in messages.topics])

    def there(self) -> list[Record]:
        """Everything in them, topic by topic."""
        return [
            (
                str(message.topic()).removeprefix(f"{self.prefix}."),
                message.key(),
                message.value(),
                list(message.headers() or []),  # type: ignore[arg-type]
            )
            for message in self.kafka.read(self.name("a"), self.name("b"))
        ]


@pytest.fixture
def topics(kafka: KafkaAccess) -> Topics:
    """With one partition each, so that order tells."""
    return Topics(kafka)


@pytest.mark.kafka
def test_messages_arrive_as_they_are(topics: Topics) -> None:
    """Keys, values and headers, absent, empty or of any bytes; in their order."""
    producer = Producer(topics.config)
    results = Messages.of_results(RESULTS)
    for messages in (Messages.of_records(RECORDS), results, Messages.of_records([])):
        producer.produce(topics.of(messages))
    producer.produce_to(topics.name("b"), 0, b"mark", b"{}")
    assert producer.flush(30) == 0
    ordered = sorted([*RECORDS, *records_of(results)], key=lambda record: record[0])
    assert topics.there() == [*ordered, ("b", b"mark", b"{}", [])]


@pytest.mark.kafka
def test_a_full_queue_is_waited_for(topics: Topics) -> None:
    """No message is lost, or handed on twice."""
    producer = Producer({**topics.config, "queue.buffering.max.messages": 7})
    records: list[Record] = [("a", None, b"%d" % number, []) for number in range(60)]
    producer.produce(topics.of(Messages.of_records(records)))
    assert producer.flush(30) == 0
    assert topics.there() == records


@pytest.mark.kafka
def test_a_record_that_is_refused(topics: Topics) -> None:
    """Its topic and the reason are told; those before it are on their way."""
    producer = Producer({**topics.config, "message.max.bytes": 1_000})
    records: list[Record] = [("a", None, b"small", []), ("b", None, bytes(2_000), [])]
    with pytest.raises(OutputError, match=rf"{topics.name('b')} is refused: .*too large"):
        producer.produce(topics.of(Messages.of_records(records)))
    assert producer.flush(30) == 0
    assert topics.there() == records[:1]


@pytest.mark.kafka
def test_a_record_that_is_not_delivered(topics: Topics) -> None:
    """Whoever waits is told of it, and of nothing else."""
    told: list[tuple[str, str]] = []

    def failed(topic: str, error: KafkaError) -> None:
        told.append((topic, error.str()))

    quick = {"topic.metadata.propagation.max.ms": 500, "message.timeout.ms": 3_000}
    producer = Producer({**topics.config, **quick}, failed)
    records: list[Record] = [("a", None, b"v", []), ("none", None, b"v", [])]
    producer.produce(topics.of(Messages.of_records(records)))
    ends = time.monotonic() + 30
    while not told and time.monotonic() < ends:
        producer.flush(1)
    assert told == [(topics.name("none"), "Broker: Unknown topic or partition")]
    assert topics.there() == records[:1]
