"""The records of a range of offsets, read from Kafka in the task that decodes them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from confluent_kafka import KafkaError, KafkaException
from numpy.typing import NDArray

from service.errors import KafkaAwayError, StartError, StateError
from service.pipeline.read import message_loops
from service.pipeline.read.librdkafka import (
    ADDRESSES,
    PartitionClient,
    error_of,
    given_back,
)
from service.pipeline.read.records import KafkaRecords, Texts

#: Records that are looked at together, and bytes of them, but for the last one.
ROWS_TOGETHER: Final = 20_000
BYTES_TOGETHER: Final = 16 << 20
#: Messages that are asked for at once.
_FETCHED: Final = 1_000
_WAIT_MS: Final = 100
#: How long nothing may come of records that Kafka says there are.
PATIENCE_SECONDS: Final = 20.0
_GONE: Final = (
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001  librdkafka's local errors are named so
    KafkaError.OFFSET_OUT_OF_RANGE,
)
_FOR_GOOD: Final = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
)


class Range(NamedTuple):
    """The records of a partition from offset ``start`` to before ``end``, as far as there are any:
    compaction and transactions leave gaps."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}, partition {self.partition}"


def records_of(wanted: Range, config: Mapping[str, Any]) -> Iterator[KafkaRecords]:
    """All records of a range, some together; ``config``: librdkafka's properties of the consumer.

    Raises KafkaAwayError when none comes for a while, StateError when they are there no more and
    ``auto.offset.reset`` is ``error``, and StartError when Kafka refuses to send them.
    """
    reading = _Reading(wanted, _client(tuple(config.items())))
    try:
        yield from reading.records()
    finally:
        reading.end()


@lru_cache(maxsize=1)
def _client(config: tuple[tuple[str, Any], ...]) -> PartitionClient:
    """A process has one task at a time, and keeps its connections for the next one."""
    try:
        return PartitionClient(dict(config))
    except KafkaException as error:
        raise StartError(f"kafka: the input cannot be read: {error.args[0].str()}") from error


class _Reading:
    """One range that is being read."""

    def __init__(self, wanted: Range, client: PartitionClient) -> None:
        self._wanted = wanted
        self._client = client
        self._messages = np.zeros(ROWS_TOGETHER, np.int64)
        self._errors = np.zeros(_FETCHED, np.int64)
        self._waiting = 0
        self._last = wanted.start - 1
        self._done = wanted.start >= wanted.end

    def records(self) -> Iterator[KafkaRecords]:
        if not self._done:
            self._client.begin(self._wanted.topic, self._wanted.partition, self._wanted.start)
        while not self._done:
            self._gather()
            if self._waiting:
                yield self._taken()

    def end(self) -> None:
        given_back(self._messages, self._waiting)
        self._waiting = 0
        self._client.end()

    def _gather(self) -> None:
        """Fetch until there is enough to look at, or all is there."""
        found = np.array([0, self._last, 0], np.int64)
        heard = time.monotonic()
        while (
            not self._done
            and self._waiting < ROWS_TOGETHER
            and found[message_loops.SIZE] < BYTES_TOGETHER
        ):
            room = self._messages[self._waiting : self._waiting + _FETCHED]
            fetched = self._client.fetched(room, _WAIT_MS)
            now = time.monotonic()
            if fetched:
                heard = now
            elif now - heard > PATIENCE_SECONDS:
                raise KafkaAwayError(
                    f"{self._wanted}: the records from offset {self._last + 1} to"
                    f" {self._wanted.end - 1} did not come within {PATIENCE_SECONDS:g} s"
                )
            self._waiting = message_loops.sift(
                self._messages, self._waiting, self._waiting + fetched,
                self._wanted.start, self._wanted.end, ADDRESSES, self._errors, found,
            )  # fmt: skip
            self._last = int(found[message_loops.LAST])
            self._done = self._last >= self._wanted.end - 1
            if found[message_loops.ERRORS]:
                self._judge(self._errors[: found[message_loops.ERRORS]])

    def _judge(self, errors: NDArray[np.int64]) -> None:
        told = [(error_of(each), message_loops.offset_of(each)) for each in errors.tolist()]
        given_back(errors, len(errors))
        for error, offset in told:
            if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                # Behind the last record there may be offsets without one.
                self._done = self._done or offset >= self._wanted.end
            elif error.code() in _GONE:
                raise StateError(
                    f"{self._wanted}: Kafka has deleted the records from offset {self._last + 1} on"
                    " before they were read: start from a new checkpoint, or set"
                    " source.fail_on_data_loss to false to go on behind them"
                )
            elif error.code() in _FOR_GOOD:
                raise StartError(f"{self._wanted}: cannot be read: {error.str()}")

    def _taken(self) -> KafkaRecords:
        count, self._waiting = self._waiting, 0
        messages, scratch = self._messages, np.zeros(5, np.int64)
        place = scratch.ctypes.data
        found = np.zeros(3, np.int64)
        message_loops.sizes(messages, count, ADDRESSES, scratch, place, found)
        offset, written = np.empty(count, np.int64), np.empty(count, np.int64)
        value, key, headers = (_texts(count, int(size)) for size in found)
        number = np.empty(1, np.int32)
        message_loops.take(
            messages, count, ADDRESSES, scratch, place, offset, written,
            value.data.ctypes.data, value.ends, value.present,
            key.data.ctypes.data, key.ends, key.present,
            headers.data.ctypes.data, headers.ends, headers.present, number.ctypes.data, number,
        )  # fmt: skip
        given_back(messages, count)
        for each in (value, key, headers):
            # Compiled loops are made for one kind of arrays.
            each.data.flags.writeable = each.ends.flags.writeable = False
        return KafkaRecords(
            self._wanted.topic, self._wanted.partition, offset, written, value, key, headers
        )


def _texts(count: int, size: int) -> Texts:
    ends = np.zeros(count + 1, np.int32)
    data: NDArray[np.uint8] = np.empty(max(size, 1), np.uint8)
    return Texts(data, ends, np.empty(count, np.uint8))
