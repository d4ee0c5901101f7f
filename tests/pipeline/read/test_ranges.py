"""Ranges of a real broker's records, read into columns."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer, TopicPartition
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spark_cep.config.kafka import Kafka
from spark_cep.errors import ConfigurationError, KafkaUnavailableError, StateError
from spark_cep.pipeline.librdkafka.consumer import check
from spark_cep.pipeline.read import ranges
from spark_cep.pipeline.read.ranges import records_left, records_of
from spark_cep.pipeline.read.record_range import Range
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.reports import LostRecords
from tests.kafka_access import KafkaAccess, Sent

pytestmark = pytest.mark.kafka

Row = dict[str, Any]
HEADERS: list[list[tuple[str, str | bytes | None]]] = [
    [],
    [("é", b"x" * 5_000), ("none", None)],
    [("", b""), ("a", b"1"), ("a", b"\x00\xff")],
]
BYTES = st.none() | st.binary(max_size=5) | st.just(b"\x00large\xff" * 20_000)
RECORDS = st.lists(st.tuples(BYTES, BYTES, st.sampled_from(HEADERS)), min_size=1, max_size=30)


def topic_of(kafka: KafkaAccess, partitions: int = 1, **config: str) -> str:
    """A new one."""
    name = f"ranges.{uuid.uuid4().hex[:10]}"
    kafka.create_topics(
        {name: partitions}, {each.replace("_", "."): v for each, v in config.items()}
    )
    return name


def config(kafka: KafkaAccess, **more: Any) -> dict[str, Any]:
    """As the job has it."""
    own = Kafka(bootstrap_servers=kafka.bootstrap).reader_config()
    return {**own, "enable.partition.eof": True, **more}


def rows(records: KafkaRecords) -> list[Row]:
    """All columns, of all of them."""
    every = np.arange(len(records))
    made = records.rows(every, np.ones(len(every), bool))
    columns = {name: column.to_pylist() for name, column in made.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def read(kafka: KafkaAccess, topic: str, start: int, end: int, **more: Any) -> list[Row]:
    """The records of a range."""
    found = records_of([Range(topic, 0, start, end)], config(kafka, **more))
    return [row for each in found for row in rows(each)]


def read_what_is_left(
    kafka: KafkaAccess, topic: str, start: int, end: int
) -> list[int | LostRecords]:
    """The offsets of a range, and what is there no more, in the order in which they come."""
    found: list[int | LostRecords] = []
    for each in records_left([Range(topic, 0, start, end)], config(kafka)):
        if isinstance(each, LostRecords):
            found.append(each)
        else:
            found += each.offset.tolist()
    return found


@settings(
    max_examples=15,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(RECORDS, st.integers(0, 30), st.integers(0, 30), st.integers(1, 7))
def test_records_are_as_they_were_sent(
    kafka: KafkaAccess,
    monkeypatch: pytest.MonkeyPatch,
    records: list[tuple[bytes | None, bytes | None, list[tuple[str, str | bytes | None]]]],
    begin: int,
    size: int,
    together: int,
) -> None:
    """Keys, values, headers and timestamps, none of them or large, however many are looked at
    together; and no others than those of the range."""
    topic = topic_of(kafka)
    start = min(begin, len(records) - 1)
    end = min(start + size, len(records))
    sent = [
        Sent(value, key, timestamp=1_600_000_000_000 + number, headers=headers)
        for number, (value, key, headers) in enumerate(records)
    ]
    kafka.send(topic, sent)
    monkeypatch.setattr(ranges, "ROWS_TOGETHER", together)
    found = read(kafka, topic, start, end)
    assert [row["offset"] for row in found] == list(range(start, end))
    for row in found:
        value, key, headers = records[row["offset"]]
        assert (row["value"], row["record_key"]) == (value, key)
        assert (row["topic"], row["partition"]) == (topic, 0)
        assert row["kafka_time"] == 1_600_000_000_000 + row["offset"]
        assert row["size"] == len(value or b"") + len(key or b"")
        told = [(h["key"], h.get("value")) for h in json.loads(row["headers"] or "[]")]
        assert [name for name, _ in told] == [name for name, _ in headers]
        assert [value is None for _, value in told] == [value is None for _, value in headers]
        if headers is HEADERS[2]:
            assert row["headers"] == (
                '[{"key":"","value":""},{"key":"a","value":"MQ=="},{"key":"a","value":"AP8="}]'
            )


def test_what_is_looked_at_together_is_bounded(
    kafka: KafkaAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In records and in bytes, but for the last record."""
    topic = topic_of(kafka)
    kafka.send(topic, [Sent(b"x" * 10_000) for _ in range(100)])
    monkeypatch.setattr(ranges, "BYTES_TOGETHER", 45_000)
    whole = Range(topic, 0, 0, 100)
    found = list(records_of([whole], config(kafka)))
    assert {len(each) for each in found} == {5}
    assert [int(offset) for each in found for offset in each.offset] == list(range(100))
    monkeypatch.setattr(ranges, "ROWS_TOGETHER", 3)
    assert max(len(each) for each in records_of([whole], config(kafka))) == 3


def test_what_transactions_leave(kafka: KafkaAccess) -> None:
    """Offsets without a record, also at the end of a range and of the partition; nothing of a
    transaction that was aborted, nor of one that is open."""
    topic = topic_of(kafka)
    producer = Producer(kafka.config(**{"transactional.id": topic}))
    producer.init_transactions(30)
    # Two records and a marker each: 0 to 2, 3 to 5, ...
    for number, commit in enumerate((True, False, True, False)):
        producer.begin_transaction()
        for _ in range(2):
            producer.produce(topic, str(number))
        producer.flush(30)
        (producer.commit_transaction if commit else producer.abort_transaction)(30)

    def offsets(start: int, end: int) -> list[int]:
        return [row["offset"] for row in read(kafka, topic, start, end)]

    assert offsets(0, 12) == [0, 1, 6, 7]
    for start, end in pairwise(range(13)):
        assert offsets(start, end) == [start] * (start in (0, 1, 6, 7))
    assert offsets(3, 6) == offsets(8, 12) == []
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(30)
    assert offsets(7, 12) == [7]


def test_a_range_is_left_early(kafka: KafkaAccess) -> None:
    """As when a task is given up: the next range is read all the same, by the same client."""
    topic = topic_of(kafka)
    kafka.send(topic, [Sent(str(number).encode()) for number in range(50_000)])
    reading = records_of([Range(topic, 0, 0, 50_000)], config(kafka))
    assert next(reading).offset[0] == 0
    reading.close()  # type: ignore[attr-defined]
    assert [row["value"] for row in read(kafka, topic, 7, 9)] == [b"7", b"8"]


@pytest.mark.parametrize(("ahead", "records"), [(16, 20_000), (3, 20_000), (16, 5)])
def test_many_ranges(
    kafka: KafkaAccess, monkeypatch: pytest.MonkeyPatch, ahead: int, records: int
) -> None:
    """They come one after the other, however many are fetched beside each other; also empty ones,
    two of the same partition, and some of which records are gone."""
    monkeypatch.setattr(ranges, "_RANGES_TOGETHER", ahead)
    monkeypatch.setattr(ranges, "_RECORDS_OF_RANGES", records)
    topic = topic_of(kafka, partitions=40)
    kafka.send(topic, [Sent(b"%d" % n, partition=n % 40) for n in range(400)])
    wanted = [Range(topic, partition, partition % 3, 4 + partition % 5) for partition in range(40)]
    wanted[7:7] = [Range(topic, 7, 8, 10), Range(topic, 8, 4, 4)]
    expected = [(each.partition, n) for each in wanted for n in range(each.start, each.end)]

    def offsets(found: Iterable[KafkaRecords | LostRecords]) -> list[tuple[int, int]]:
        return [
            (each.partition, offset)
            for each in found
            if isinstance(each, KafkaRecords)
            for offset in each.offset.tolist()
        ]

    assert offsets(records_of(wanted, config(kafka))) == expected
    reading = records_of(wanted, config(kafka))
    assert next(reading).partition == 0
    reading.close()  # type: ignore[attr-defined]
    assert offsets(records_of(wanted, config(kafka))) == expected
    admin = kafka.admin()  # must outlive the futures
    for each in admin.delete_records([TopicPartition(topic, 20, 4)]).values():
        each.result(30)
    with pytest.raises(StateError, match=f"{topic}, partition 20: Kafka has deleted"):
        offsets(records_of(wanted, config(kafka)))
    left = list(records_left(wanted, config(kafka)))
    assert [each for each in left if isinstance(each, LostRecords)] == [
        LostRecords(topic, 20, 2, 4)
    ]
    assert offsets(left) == [each for each in expected if each not in ((20, 2), (20, 3))]


def test_deleted_records(kafka: KafkaAccess) -> None:
    """Records that are there no more end the task, or are passed over and told of; asked for again
    after more were deleted, too, as by a batch that is repeated."""
    topic = topic_of(kafka)
    kafka.send(topic, [Sent(str(number).encode()) for number in range(10)])
    admin = kafka.admin()
    for each in admin.delete_records([TopicPartition(topic, 0, 6)]).values():
        each.result(30)
    with pytest.raises(StateError, match=r"from offset 2 on before .*fail_on_data_loss"):
        read(kafka, topic, 2, 10)
    left = [LostRecords(topic, 0, 2, 6), 6, 7, 8, 9]
    assert read_what_is_left(kafka, topic, 2, 10) == left
    assert read_what_is_left(kafka, topic, 6, 10) == [6, 7, 8, 9]
    assert read_what_is_left(kafka, topic, 2, 5) == [LostRecords(topic, 0, 2, 5)]
    for each in admin.delete_records([TopicPartition(topic, 0, 9)]).values():
        each.result(30)
    assert read_what_is_left(kafka, topic, 2, 10) == [LostRecords(topic, 0, 2, 9), 9]
    for each in admin.delete_records([TopicPartition(topic, 0, 10)]).values():
        each.result(30)
    assert read_what_is_left(kafka, topic, 2, 10) == [LostRecords(topic, 0, 2, 10)]


def test_a_partition_that_ends_before_the_range(kafka: KafkaAccess) -> None:
    """As one of a topic that was created again: nothing of the range will come."""
    topic = topic_of(kafka)
    kafka.send(topic, [Sent(b"a"), Sent(b"b")])
    with pytest.raises(StateError, match=r"from offset 5 on before .*fail_on_data_loss"):
        read(kafka, topic, 5, 9)
    assert read_what_is_left(kafka, topic, 5, 9) == [LostRecords(topic, 0, 5, 9)]


def test_records_that_do_not_come(kafka: KafkaAccess, monkeypatch: pytest.MonkeyPatch) -> None:
    """A range beyond what there is, and a topic that is not there."""
    monkeypatch.setattr(ranges, "PATIENCE_SECONDS", 0.5)
    topic = topic_of(kafka)
    kafka.send(topic, [Sent(b"a")])
    with pytest.raises(KafkaUnavailableError, match=r"offset 1 to 4 did not come within 0\.5 s"):
        read(kafka, topic, 0, 5)
    with pytest.raises(KafkaUnavailableError, match=f"{topic}x, partition 0: "):
        read(kafka, f"{topic}x", 0, 5)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"default.api.timeout.ms": 5}, "No such configuration property"),
        ({"fetch.wait.max.ms": "soon"}, "fetch.wait.max.ms"),
    ],
)
def test_properties_that_there_are_not(properties: Mapping[str, Any], said: str) -> None:
    """They are refused before anything is read."""
    given = Kafka(bootstrap_servers="b:9", source_properties=dict(properties)).reader_config()
    with pytest.raises(ConfigurationError, match=rf"^kafka\.source_properties: .*{said}"):
        check(given)
    check(Kafka(bootstrap_servers="b:9").reader_config())
