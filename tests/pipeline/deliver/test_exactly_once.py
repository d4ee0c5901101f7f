"""Transactions against a real broker: once, fenced, taken over, refused."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from examples.embedded import EmbeddedBroker
from spark_cep.config.kafka import Kafka
from spark_cep.errors import (
    ConfigurationError,
    KafkaUnavailableError,
    OutputError,
    StateError,
    TakenOverError,
)
from spark_cep.pipeline.deliver import exactly_once
from spark_cep.pipeline.deliver.commit_markers import CommitMarker, CommitMarkers
from spark_cep.pipeline.deliver.exactly_once import ExactlyOnce, TransactionalProducer
from spark_cep.pipeline.deliver.output import WriteOutcome, WrittenBatch
from spark_cep.pipeline.driver.checkpoint import fencing
from spark_cep.pipeline.driver.checkpoint.fencing import disagreement, fence_earlier_runs
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles, Position
from spark_cep.pipeline.driver.checkpoint.partly_written import PartlyWritten, partly_written
from spark_cep.pipeline.librdkafka.messages import Messages
from tests.conftest import JARS
from tests.kafka_access import KafkaAccess

pytestmark = pytest.mark.kafka

QUERY = "9b2f3c1e-0000-4000-8000-000000000001"
OFFSETS = "0123456789abcdef"
FIRST = WrittenBatch(QUERY, 0, "1-3", OFFSETS)


def _position(query: str, batch: int) -> Position:
    return Position(query, batch, batch, 2, 2, 2, 2, {}, {}, None)


class _Files(CheckpointFiles):
    """A checkpoint of which nothing but its position, and the digest of its batches, is there."""

    def __init__(self, position: Position | None, offsets: str | None = OFFSETS) -> None:
        self.location = "s3a://bucket/checkpoint"
        self._position = position
        self._offsets = offsets

    def offset(self, batch: int) -> Any:
        return None if self._offsets is None else SimpleNamespace(digest=self._offsets)

    def position(self) -> Position | None:
        return self._position


class Job:
    """A delivery with a topic of its own, and this process as its worker."""

    def __init__(self, kafka: KafkaAccess) -> None:
        name = f"once-{uuid.uuid4().hex[:8]}"
        self.kafka = kafka
        self.topic = f"{name}.out"
        settings = Kafka(bootstrap_servers=kafka.bootstrap)
        self.delivery = ExactlyOnce(
            settings.producer_config(), settings.consumer_config(name), name, "run-1", 60_000
        )
        kafka.create_topics({self.topic: 2, self.delivery.markers_topic: 2})
        self.markers = CommitMarkers(self.delivery.consumer_config, self.delivery.markers_topic)

    def write(
        self,
        batch: int,
        *texts: str,
        first: bool = False,
        partition: int = 0,
        run: str = "run-1",
        offsets: str = OFFSETS,
    ) -> WriteOutcome:
        """One task, to its end."""
        output = replace(self.delivery, run=run).output(
            partition, WrittenBatch(QUERY, batch, "1-3", offsets), first
        )
        for text in texts:
            output.write(Messages.of_records([(self.topic, None, text.encode(), [])]))
        outcome = output.finish()
        if outcome is WriteOutcome.COMMITTED:
            self.seen(partition, run, batch)
        return outcome

    def seen(self, partition: int, run: str, batch: int) -> None:
        """Return once readers see the marker of the batch: brokers say that a transaction is
        committed a moment before."""
        deadline = time.monotonic() + 30
        while (marker := self.markers.read(partition)) is None or (
            (marker.run, marker.batch) != (run, batch)
        ):
            assert time.monotonic() < deadline, marker

    def fence(self, run: str, checkpoint: Position | None, *, go_on: bool = False) -> None:
        """What a service does at start."""
        delivery = replace(self.delivery, run=run)
        fence_earlier_runs(delivery, 2, _Files(checkpoint), go_on)

    def texts(self) -> list[str]:
        """What consumers see."""
        return sorted((m.value() or b"").decode() for m in self.kafka.read(self.topic))


def forget() -> None:
    """Drop what this process keeps from task to task, as if it had just started."""
    exactly_once._kept.clear()
    readers = exactly_once._readers.by_topic
    while readers:
        readers.popitem()[1].close()


@pytest.fixture
def job(kafka: KafkaAccess) -> Iterator[Job]:
    """A job in a process that has kept nothing yet."""
    forget()
    made = Job(kafka)
    yield made
    made.markers.close()
    forget()


def test_a_batch_that_runs_again_is_not_written_again(job: Job) -> None:
    """In the same process, in another one, and after the query was restarted."""
    assert job.write(0, "a", "b") is WriteOutcome.COMMITTED
    assert job.write(0, "a", "b") is WriteOutcome.BEFORE
    assert job.write(0, "a", "b", first=True) is WriteOutcome.BEFORE
    forget()
    assert job.write(0, "a", "b") is WriteOutcome.BEFORE
    assert job.write(1, "c") is WriteOutcome.COMMITTED
    assert job.texts() == ["a", "b", "c"]


@pytest.mark.parametrize(("batch", "offsets"), [(3, "fedcba9876543210"), (2, OFFSETS)])
def test_a_batch_of_other_records_is_refused(job: Job, batch: int, offsets: str) -> None:
    """The output holds its number: dropping the records as written before would lose them."""
    job.write(3, "a")
    with pytest.raises(StateError, match=f"holds batch 3, and batch {batch} .* restore the check"):
        job.write(batch, "b", first=True, offsets=offsets)
    assert job.texts() == ["a"]


def test_a_task_without_records_has_no_transaction(job: Job) -> None:
    """Nothing is written, and the marker stays what it was."""
    job.write(0, "a")
    assert job.write(1) is WriteOutcome.NOTHING
    marker = _marker_of(job)
    assert (marker.batch, marker.query, job.markers.read(1)) == (0, QUERY, None)


def _marker_of(job: Job) -> CommitMarker:
    """The marker of state partition 0."""
    marker = job.markers.read(0)
    assert marker is not None
    return marker


def test_a_producer_is_kept_for_as_long_as_it_wrote_last(job: Job) -> None:
    """The marker names the writer; another process in between ends the first one's turn."""
    writers = []
    for batch in range(3):
        if batch == 2:
            forget()
        job.write(batch, "x")
        writers.append(_marker_of(job).writer)
    assert writers[0] == writers[1] != writers[2]


def test_partitions_are_apart(job: Job) -> None:
    """Each has its own transactional id and its own marker."""
    assert job.write(3, "a", partition=0) is WriteOutcome.COMMITTED
    assert job.write(3, "b", partition=1) is WriteOutcome.COMMITTED
    assert job.texts() == ["a", "b"]


def test_readers_see_nothing_of_a_batch_before_its_end(job: Job) -> None:
    """Neither while it is written nor after it was given up."""
    output = job.delivery.output(0, FIRST, False)
    for number in range(1000):
        output.write(Messages.of_records([(job.topic, None, b"%d" % number, [])]))
    assert _reached(job, 1000) == 1000
    assert job.texts() == []
    output.abandon()
    assert job.texts() == []
    assert job.write(0, "again") is WriteOutcome.COMMITTED
    assert job.texts() == ["again"]


def _reached(job: Job, wanted: int) -> int:
    """How many records a reader without transactions has seen when it saw enough."""
    settings = job.kafka.config(**{"group.id": "x", "isolation.level": "read_uncommitted"})
    reader = Consumer(settings)
    reader.assign([TopicPartition(job.topic, partition, 0) for partition in range(2)])
    seen: list[Message] = []
    while len(seen) < wanted:
        messages = reader.consume(wanted - len(seen), 30)
        assert messages, "the records did not arrive"
        seen += messages
    reader.close()
    return len(seen)


def test_a_zombie_is_fenced(job: Job) -> None:
    """A task that was thought lost and goes on cannot commit; its records are never seen."""
    zombie = job.delivery.output(0, FIRST, False)
    zombie.write(Messages.of_records([(job.topic, None, b"zombie", [])]))
    assert job.write(0, "second attempt", first=True) is WriteOutcome.COMMITTED
    with pytest.raises(OutputError, match="was ended from outside") as error:
        zombie.finish()
    assert not isinstance(error.value, TakenOverError)
    zombie.abandon()
    assert job.texts() == ["second attempt"]


def test_a_zombie_driver_is_told_so(job: Job) -> None:
    """After a take-over the earlier run ends: in the middle of a batch, and at the next one,
    where it must not fence the run that replaced it."""
    job.fence("run-1", None)
    zombie = job.delivery.output(0, FIRST, False)
    zombie.write(Messages.of_records([(job.topic, None, b"zombie", [])]))
    job.fence("run-2", None)
    with pytest.raises(TakenOverError, match="run-2"):
        zombie.finish()
    zombie.abandon()
    running = replace(job.delivery, run="run-2").output(0, FIRST, True)
    running.write(Messages.of_records([(job.topic, None, b"new", [])]))
    with pytest.raises(TakenOverError, match="another instance"):
        job.write(0, "zombie", first=True)
    assert running.finish() is WriteOutcome.COMMITTED
    job.seen(0, "run-2", 0)
    assert job.texts() == ["new"]


@pytest.mark.parametrize("more", [True, False])
def test_a_zombie_driver_whose_producer_knows(job: Job, more: bool) -> None:
    """librdkafka may have heard that the producer is fenced before the next record, or before the
    marker: it takes no message then, and says nothing but that the client has failed."""
    assert job.write(0, "a") is WriteOutcome.COMMITTED
    job.fence("run-2", _position(QUERY, 0))
    zombie = job.delivery.output(0, WrittenBatch(QUERY, 1, "1-3", OFFSETS), False)
    record = Messages.of_records([(job.topic, None, b"zombie", [])])

    def go_on() -> None:
        # It may know already here, where this thread waits for a processor.
        zombie.write(record)
        assert zombie._open is not None
        zombie._open.producer.flush(10)
        if more:
            zombie.write(record)
        else:
            zombie.finish()

    with pytest.raises(TakenOverError, match="run-2"):
        go_on()
    zombie.abandon()
    assert job.texts() == ["a"]


class _Overtaken(ExactlyOnce):
    """Delivery of an instance that another one overtakes between its two steps."""

    def start_producer(self, partition: int, seconds: float | None = None) -> TransactionalProducer:
        """A producer that is fenced already."""
        producer = super().start_producer(partition, seconds)
        super().start_producer(partition, seconds)
        return producer


def test_an_instance_that_another_one_overtakes_at_its_start(job: Job) -> None:
    """Of three instances that start at once, those that do not go on were taken over."""
    delivery = job.delivery
    job.delivery = _Overtaken(
        delivery.producer_config, delivery.consumer_config, delivery.prefix, "", delivery.timeout_ms
    )
    with pytest.raises(TakenOverError, match="another instance of the service starts"):
        job.fence("run-1", None)
    job.delivery = delivery
    job.fence("run-2", None)


def test_markers_are_found_behind_many_given_up_transactions(job: Job) -> None:
    """Aborted transactions leave offsets without records at the end of the topic."""
    job.write(0, "a")
    for _ in range(2):
        producer = job.delivery.start_producer(0)
        for _ in range(20):
            producer.begin_transaction()
            producer.produce_to(job.delivery.markers_topic, 0, b"commit-marker", b"{}")
            producer.flush(10)
            producer.abort_transaction(10)
    marker = job.markers.read(0)
    assert marker is not None
    assert marker.batch == 0
    assert job.write(0, "a", first=True) is WriteOutcome.BEFORE


def test_something_else_in_the_topic_of_commit_markers_is_refused(job: Job) -> None:
    """The message names topic, partition and what stands there."""
    producer = job.delivery.start_producer(0)
    producer.begin_transaction()
    producer.produce_to(job.delivery.markers_topic, 0, b"commit-marker", b"hello")
    producer.commit_transaction(10)
    with pytest.raises(
        StateError, match=r"\.commit-markers, partition 0: .* not a commit marker .*hello"
    ):
        job.write(0, "a")


def test_an_output_topic_that_was_recreated(job: Job) -> None:
    """The kept producer goes on in a topic of the same name."""
    job.write(0, "a")
    job.kafka.delete_topics([job.topic])
    job.kafka.create_topics({job.topic: 2})
    assert job.write(1, "b") is WriteOutcome.COMMITTED
    assert job.texts() == ["b"]


def test_a_missing_output_topic(job: Job) -> None:
    """The error names batch, state partition and the reason; the batch can run again."""
    job.kafka.delete_topics([job.topic])
    quick = {**job.delivery.producer_config, "topic.metadata.propagation.max.ms": 500}
    job.delivery = replace(job.delivery, producer_config=quick)
    with pytest.raises(OutputError, match="batch 0 of state partition 0 could not be written"):
        job.write(0, "a")
    forget()
    job.kafka.create_topics({job.topic: 2})
    assert job.write(0, "a", first=True) is WriteOutcome.COMMITTED


def test_a_broker_that_is_silent_for_too_long(tmp_path: Path) -> None:
    """Records that time out are those of a broker that is unavailable; the batch can run again."""
    with EmbeddedBroker(tmp_path, JARS) as broker:
        job = Job(KafkaAccess(broker.bootstrap))
        assert job.write(0, "a") is WriteOutcome.COMMITTED
        forget()
        quick = {**job.delivery.producer_config, "message.timeout.ms": 2_000}
        job.delivery = replace(job.delivery, producer_config=quick)
        output = job.delivery.output(0, WrittenBatch(QUERY, 1, "1-3", OFFSETS), False)
        record = Messages.of_records([(job.topic, None, b"b", [])])
        # The transaction begins while the broker answers.
        output.write(Messages.of_records([]))
        broker.pause()
        try:
            output.write(record)
            with pytest.raises(KafkaUnavailableError, match=r"batch 1 of .*Message timed out"):
                output.finish()
        finally:
            broker.resume()
        output.abandon()
        forget()
        assert job.write(1, "b", first=True) is WriteOutcome.COMMITTED
        assert job.texts() == ["a", "b"]


def test_a_start_that_finds_no_coordinator(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told soon, so that the start can say what it waits for, and end at its limit or when it
    is told to stop; not after as long as a transaction may take."""

    class Waiting(TransactionalProducer):
        def init_transactions(self, seconds: float) -> None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    monkeypatch.setattr(exactly_once, "TransactionalProducer", Waiting)
    monkeypatch.setattr(fencing, "_ATTEMPT_SECONDS", 0.2)
    began = time.monotonic()
    with pytest.raises(KafkaUnavailableError, match=r"state\.log\.replication\.factor"):
        job.fence("run-1", None)
    assert time.monotonic() - began < job.delivery.timeout_ms / 2000


def test_a_time_out_beyond_the_brokers_is_refused(job: Job) -> None:
    """At start, by the setting's name."""
    delivery = replace(job.delivery, timeout_ms=3_600_000)
    with pytest.raises(ConfigurationError, match=r"outputs\.transaction_timeout 1 hour .*refused"):
        fence_earlier_runs(delivery, 2, _Files(None), go_on=False)


@pytest.mark.parametrize(
    ("marker", "checkpoint", "offsets", "why"),
    [
        (CommitMarker("r"), None, None, None),
        (CommitMarker("r", QUERY, 5), _position(QUERY, 5), "a", None),
        (CommitMarker("r", QUERY, 5, offsets="a"), _position(QUERY, 5), "a", None),
        (CommitMarker("r", QUERY, 5, offsets="a"), _position(QUERY, 500), None, None),
        (CommitMarker("r", QUERY, 5), _position(QUERY, 4), None, "only come to batch 4"),
        (CommitMarker("r", QUERY, 5), None, None, "the checkpoint is empty"),
        (CommitMarker("r", QUERY, 5), _position("other", 9), "a", "belongs to query other"),
        (
            CommitMarker("r", QUERY, 5, offsets="a"), _position(QUERY, 6), "b",
            "offsets/5 of the checkpoint are of other records",
        ),
    ],
)  # fmt: skip
def test_when_output_and_checkpoint_disagree(
    marker: CommitMarker, checkpoint: Position | None, offsets: str | None, why: str | None
) -> None:
    """The output may not know more than the checkpoint, nor anything of another one, nor other
    records of a batch."""
    found = disagreement(marker, checkpoint, offsets)
    assert (found is None) if why is None else (found is not None and why in found)


def test_a_disagreement_is_refused_and_nothing_changed(job: Job) -> None:
    """The run that owns the output is not disturbed; ``go_on`` takes over."""
    job.fence("run-1", None)
    job.write(4, "a")
    for checkpoint in (None, _position(QUERY, 3), _position("other", 9)):
        with pytest.raises(StateError, match=r"output and checkpoint disagree: .*batch 4"):
            job.fence("run-2", checkpoint)
    assert job.write(5, "b") is WriteOutcome.COMMITTED
    job.fence("run-2", None, go_on=True)
    assert job.write(0, "a", first=True, run="run-2") is WriteOutcome.COMMITTED
    assert job.texts() == ["a", "a", "b"]


def test_a_take_over_keeps_what_is_known(job: Job) -> None:
    """The next run still knows the batch that the last one wrote."""
    job.fence("run-1", None)
    job.write(7, "a", partition=1)
    job.fence("run-2", _position(QUERY, 7))
    assert job.markers.read(0) == CommitMarker("run-2")
    assert job.markers.read(1) == CommitMarker("run-2", QUERY, 7, "", "1-3", OFFSETS)
    assert job.write(7, "a", first=True, partition=1, run="run-2") is WriteOutcome.BEFORE


def test_a_batch_that_is_there_in_part_is_known_with_its_schema_ids(job: Job) -> None:
    """Also after a take-over; not one that is done, or that nobody has written."""
    job.fence("run-1", None)
    job.write(7, "a", partition=1)
    planned = replace(_position(QUERY, 7), committed=6)
    job.fence("run-2", planned)

    def found(position: Position | None) -> PartlyWritten | None:
        return partly_written(job.delivery, 2, _Files(position))

    assert found(planned) == PartlyWritten(7, "1-3")
    assert found(None) is found(_position(QUERY, 7)) is None
    assert found(replace(_position(QUERY, 8), committed=7)) is None
