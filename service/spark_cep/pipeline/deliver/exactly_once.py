"""Delivery in transactions: a batch's records and its commit marker are committed together.

Each state partition has one transactional id for good, so a producer that starts with it fences
all others (KIP-98). A task that runs a batch again finds its marker, and writes nothing. Output of
a batch is the same each time it is run, which is what makes the marker enough.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from spark_cep.durations import format_duration
from spark_cep.errors import (
    RESTORE,
    ConfigurationError,
    KafkaUnavailableError,
    OutputError,
    SparkCepError,
    StateError,
    TakenOverError,
)
from spark_cep.kafka_errors import ErrorKind, kind_of, unavailable_or
from spark_cep.pipeline.deliver.commit_markers import KEY, CommitMarker, CommitMarkers
from spark_cep.pipeline.deliver.kafka_retry import record_may_pass, retried
from spark_cep.pipeline.deliver.output import WriteOutcome, WrittenBatch
from spark_cep.pipeline.librdkafka.messages import Messages
from spark_cep.pipeline.librdkafka.producer import Producer

_ATTEMPT_SECONDS: Final = 10.0
#: How clients and brokers without transactions answer.
_NO_TRANSACTIONS: Final = ("_UNSUPPORTED_FEATURE", "UNSUPPORTED_VERSION")
_MOST_KEPT: Final = 128
_MOST_READERS: Final = 8
_IDLE_SECONDS: Final = 3_600.0
"""Well below ``transactional.id.expiration.ms`` of any sensible broker (its default: 7 days)."""


class TransactionalProducer(Producer):
    """A producer that knows why a transaction fails: the commit says no more than that records
    were not delivered."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        # Not bound to the producer, which would then not end with its last user.
        self._failed: list[KafkaError] = []
        super().__init__(config, partial(_note_first, self._failed))

    def failure(self) -> KafkaError | None:
        """The error of the first record that was not delivered."""
        self.flush(0)
        return self._failed[0] if self._failed else None


def _note_first(failed: list[KafkaError], _topic: str, error: KafkaError) -> None:
    if not failed:
        failed.append(error)


@dataclass(frozen=True)
class ExactlyOnce:
    """Delivery in transactions. Travels to the tasks; its configurations hold secrets."""

    producer_config: Mapping[str, Any]
    consumer_config: Mapping[str, Any]
    prefix: str
    run: str
    timeout_ms: int

    @property
    def markers_topic(self) -> str:
        """The topic of markers."""
        return f"{self.prefix}.commit-markers"

    def transactional_id(self, partition: int) -> str:
        """The transactional id of a state partition."""
        return f"{self.prefix}-{partition}"

    def output(self, partition: int, batch: WrittenBatch, first: bool) -> ExactlyOnceOutput:
        """The output of one task. ``first``: the batch is the first one since the query was
        started, so it may have been tried before."""
        return ExactlyOnceOutput(self, partition, batch, first)

    def start_producer(self, partition: int, seconds: float | None = None) -> TransactionalProducer:
        """A producer that may begin transactions; all others of the partition are fenced, and
        what they had not committed is undone. ``seconds``: how long each question is asked again
        while an error may pass; by default as long as a transaction may take.

        Raises ConfigurationError when the brokers refuse the time-out, else OutputError.
        """
        name = self.transactional_id(partition)
        # The acknowledgement of a record is part of the commit.
        own = {"transactional.id": name, "transaction.timeout.ms": self.timeout_ms}
        try:
            producer = TransactionalProducer({**self.producer_config, **own})
            # Without a connection librdkafka looks for the coordinator every 500 ms only, and what
            # answers first may be the connection that it is about to replace.
            for _ in range(2):
                self._retried(
                    lambda: producer.ask_for(self.markers_topic, _ATTEMPT_SECONDS), seconds
                )
            self._retried(lambda: producer.init_transactions(_ATTEMPT_SECONDS), seconds)
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() == KafkaError.INVALID_TRANSACTION_TIMEOUT:
                raise ConfigurationError(
                    f"outputs.transaction_timeout {format_duration(self.timeout_ms)} is refused:"
                    " the brokers allow at most their transaction.max.timeout.ms (15 minutes by"
                    " default)"
                ) from error
            if reason.name() in _NO_TRANSACTIONS:
                raise ConfigurationError(
                    f"the brokers have no transactions ({reason.str()}), and output is written in"
                    " them: kafka.bootstrap_servers must be those of Kafka 0.11 or newer"
                ) from error
            message = f"transactional id {name} cannot be used: {reason.str()}"
            if reason.name() == "_TIMED_OUT":
                message += (
                    " (brokers that answer otherwise have no coordinator of transactions yet, or"
                    " never, if their transaction.state.log.replication.factor is above their"
                    " number)"
                )
            raise unavailable_or(OutputError, reason, message) from error
        return producer

    def begin(self, producer: Producer, partition: int, marker: CommitMarker) -> None:
        """Begin a transaction, with the marker as its first record: it is on its way while others
        are made. Raises KafkaException."""
        producer.begin_transaction()
        producer.produce_to(self.markers_topic, partition, KEY, marker.packed())

    def commit(self, producer: Producer) -> None:
        """End the transaction. Raises KafkaException: nothing is committed, or it is not known
        whether it is; the marker will tell."""
        self._retried(lambda: producer.commit_transaction(_ATTEMPT_SECONDS))

    def _retried(self, call: Callable[[], Any], seconds: float | None = None) -> None:
        """Ask again for ``seconds``, or for as long as a transaction may take."""
        retried(call, self.timeout_ms / 1000 if seconds is None else seconds)


@dataclass
class _Kept:
    """A producer, and the marker that it wrote last. ``handled``: this process has handled all
    batches of the state partition since, up to this one."""

    producer: TransactionalProducer
    writer: str
    used: float = 0.0
    marker: CommitMarker | None = None
    handled: int = -1


class _Readers(threading.local):
    """Readers of commit markers by topic: a consumer is for one thread at a time."""

    def __init__(self) -> None:
        self.by_topic: OrderedDict[str, CommitMarkers] = OrderedDict()


#: Producers of this process by transactional id, the one used last at the end.
_kept: OrderedDict[str, _Kept] = OrderedDict()
_readers = _Readers()


@dataclass
class ExactlyOnceOutput:
    """One transaction, begun with the first record; a task without records has none."""

    delivery: ExactlyOnce
    partition: int
    batch: WrittenBatch
    first: bool
    _open: _Kept | None = field(default=None, init=False)
    _before: bool = field(default=False, init=False)

    def write(self, messages: Messages) -> None:
        """Hand records on, unless the batch was written before."""
        if self._before:
            return
        if self._open is None:
            self._begin()
            if self._before:
                return
        assert self._open is not None
        try:
            self._open.producer.produce(messages)
        except KafkaException as error:
            raise self._failure(error.args[0]) from error

    def finish(self) -> WriteOutcome:
        """Commit the records and the marker of the batch."""
        if self._before:
            return WriteOutcome.BEFORE
        batch = self.batch
        if self._open is None:
            kept = _kept.get(self.delivery.transactional_id(self.partition))
            if kept is not None and kept.handled == batch.number - 1:
                kept.handled = batch.number
            return WriteOutcome.NOTHING
        try:
            self.delivery.commit(self._open.producer)
        except KafkaException as error:
            failure = self._open.producer.failure()
            raise self._failure(error.args[0], failure) from error
        self._keep(self._open, self._marker_of(self._open))
        return WriteOutcome.COMMITTED

    def abandon(self) -> None:
        """Undo the transaction. Where that fails, the next producer of the id does it."""
        if self._open is not None:
            try:
                self._open.producer.purge()
                self._open.producer.abort_transaction(_ATTEMPT_SECONDS)
            except KafkaException:
                pass
            self._open = None

    def _begin(self) -> None:
        """Find out whether the batch was written, and begin its transaction if not.

        A kept producer serves if it wrote the last marker: then no other one was at work since.
        Where this process has handled every batch since, it knows that marker; another writer would
        have fenced the producer, whose commit fails then. The marker is read before a new producer
        starts, so that a run that was replaced does not fence the one that replaced it, and after,
        because then no commit can be on its way.
        """
        kept = _kept.pop(self.delivery.transactional_id(self.partition), None)
        if kept is not None and (self.first or time.monotonic() - kept.used > _IDLE_SECONDS):
            kept = None
        if kept is not None and kept.handled == self.batch.number - 1:
            marker = kept.marker
        else:
            marker = self._marker()
            if kept is not None and (marker is None or marker.writer != kept.writer):
                kept = None
        if kept is None and not self._written(marker):
            producer = self.delivery.start_producer(self.partition)
            kept = _Kept(producer, uuid.uuid4().hex[:12])
            marker = self._marker()
        if self._written(marker):
            self._before = True
            if kept is not None:
                self._keep(kept, marker)
            return
        assert kept is not None
        try:
            self.delivery.begin(kept.producer, self.partition, self._marker_of(kept))
        except KafkaException as error:
            raise self._failure(error.args[0]) from error
        self._open = kept

    def _marker_of(self, kept: _Kept) -> CommitMarker:
        batch = self.batch
        return CommitMarker(
            self.delivery.run,
            batch.query,
            batch.number,
            kept.writer,
            batch.schema_ids,
            batch.offsets,
        )

    def _written(self, marker: CommitMarker | None) -> bool:
        """Tell whether the batch is the one of the marker. StateError when the output holds another
        batch of this number, or a later one: it does not come from this checkpoint."""
        batch = self.batch
        if marker is None or marker.query != batch.query or marker.batch < batch.number:
            return False
        if marker.batch > batch.number or marker.offsets not in ("", batch.offsets):
            raise StateError(
                f"state partition {self.partition}: the output holds batch {marker.batch}, and"
                f" batch {batch.number} is to be written with other records than those, since files"
                f" of the checkpoint's offsets were lost or replaced: {RESTORE}"
            )
        return True

    def _marker(self) -> CommitMarker | None:
        delivery = self.delivery
        readers = _readers.by_topic
        reader = readers.get(delivery.markers_topic)
        if reader is None:
            while len(readers) >= _MOST_READERS:
                readers.popitem(last=False)[1].close()
            reader = readers[delivery.markers_topic] = CommitMarkers(
                delivery.consumer_config, delivery.markers_topic
            )
        marker = reader.read(self.partition)
        if marker is not None and marker.run != delivery.run:
            raise TakenOverError(
                f"another instance of the service (run {marker.run}) has taken over the output of"
                f" {delivery.prefix}; this one (run {delivery.run}) ends"
            )
        return marker

    def _keep(self, kept: _Kept, marker: CommitMarker | None) -> None:
        kept.used, kept.marker, kept.handled = time.monotonic(), marker, self.batch.number
        _kept[self.delivery.transactional_id(self.partition)] = kept
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)

    def _failure(self, error: KafkaError, of_record: KafkaError | None = None) -> SparkCepError:
        """Why the transaction failed; TakenOverError where another run is at work."""
        if kind_of(error) is not ErrorKind.FENCED:
            reason = of_record or error
            message = (
                f"batch {self.batch.number} of state partition {self.partition} could not be"
                f" written: {reason.str()}"
            )
            return (KafkaUnavailableError if record_may_pass(reason) else OutputError)(message)
        try:
            self._marker()
        except TakenOverError as taken:
            return taken
        return OutputError(
            f"the transaction of batch {self.batch.number} of state partition {self.partition}"
            " was ended from outside: another attempt at the batch was quicker, or it took longer"
            f" than outputs.transaction_timeout ({format_duration(self.delivery.timeout_ms)})"
        )
