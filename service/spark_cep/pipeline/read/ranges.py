"""The records of ranges of offsets, read from Kafka in the task that decodes them.

Each range begins with a wait for the broker, some ten milliseconds. So those with few records are
fetched beside each other, and then read in turn.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ctypes import c_int64
from functools import lru_cache
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaError, KafkaException
from numpy.typing import NDArray

from spark_cep.columns.vectors import Bytes
from spark_cep.errors import KafkaUnavailableError, StartError, StateError
from spark_cep.kafka_errors import ErrorKind, kind_of, may_pass, unavailable_or
from spark_cep.pipeline.librdkafka.consumer import PartitionClient, PartitionFetch
from spark_cep.pipeline.librdkafka.library import addresses, error_of
from spark_cep.pipeline.read.loops import message_loops as loops
from spark_cep.pipeline.read.record_range import Range
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.reports import LostRecords

_FUNCTIONS: Final = addresses(loops.FUNCTIONS)
#: Records that are looked at together, and bytes of them, but for the last one.
ROWS_TOGETHER: Final = 20_000
BYTES_TOGETHER: Final = 16 << 20
#: Ranges that are fetched beside each other, and records of all of them.
_RANGES_TOGETHER: Final = 16
_RECORDS_OF_RANGES: Final = 20_000
#: Messages that are asked for at once.
_FETCHED: Final = 1_000
_WAIT_MS: Final = 100
#: Bytes of values, keys and headers that there is room for at first.
_FIRST_SIZES: Final = (1 << 20, 1 << 18, 1)
#: How long nothing may come of records that Kafka says there are.
PATIENCE_SECONDS: Final = 20.0


def records_of(wanted: Iterable[Range], config: Mapping[str, Any]) -> Iterator[KafkaRecords]:
    """All records of ranges, one range after the other, some records together; ``config``:
    librdkafka's properties of the consumer.

    Raises KafkaUnavailableError when none comes for a while, StateError when some are there no
    more, and StartError when Kafka refuses to send them.
    """
    for found in _read(wanted, config, fail_on_data_loss=True):
        if isinstance(found, KafkaRecords):
            yield found


def records_left(
    wanted: Iterable[Range], config: Mapping[str, Any]
) -> Iterator[KafkaRecords | LostRecords]:
    """Do as :func:`records_of`, but go on behind records that are there no more, and tell of them,
    in the order of offsets."""
    return _read(wanted, config, fail_on_data_loss=False)


def _read(
    wanted: Iterable[Range], config: Mapping[str, Any], *, fail_on_data_loss: bool
) -> Iterator[KafkaRecords | LostRecords]:
    # The client itself would go on behind what is gone, and not tell.
    properties = {**config, "auto.offset.reset": "error"}
    client = _client(tuple(properties.items()))
    left = deque(each for each in wanted if each.start < each.end)
    begun: deque[_Reading] = deque()
    try:
        while left or begun:
            while left and _together([*(each.wanted for each in begun), left[0]]):
                begun.append(_Reading(left.popleft(), client, fail_on_data_loss=fail_on_data_loss))
                begun[-1].begin()
            yield from begun[0].records()
            begun.popleft().end()
    finally:
        for each in begun:
            each.end()


def _together(ranges: Sequence[Range]) -> bool:
    """Return whether ranges may be fetched beside each other: a client fetches a partition once."""
    if len(ranges) == 1:
        return True
    records = sum(each.end - each.start for each in ranges)
    places = {(each.topic, each.partition) for each in ranges}
    return len(places) == len(ranges) <= _RANGES_TOGETHER and records <= _RECORDS_OF_RANGES


def read_nothing() -> None:
    """Call compiled loops as for a range, with no message."""
    nothing = np.zeros(1, np.int64)
    _Columns(_FIRST_SIZES).append(nothing, 0, 0, Range("", 0, 0, 0), nothing)
    loops.destroy(nothing, 0, 0, _FUNCTIONS)


@lru_cache(maxsize=1)
def _client(config: tuple[tuple[str, Any], ...]) -> PartitionClient:
    """A process has one task at a time, and keeps its connections for the next one."""
    try:
        return PartitionClient(dict(config))
    except KafkaException as error:
        raise StartError(f"kafka: the input cannot be read: {error.args[0].str()}") from error


class _Reading:
    """One range that is being read."""

    def __init__(
        self, wanted: Range, client: PartitionClient, *, fail_on_data_loss: bool = True
    ) -> None:
        self.wanted = wanted
        self._client = client
        self._fetch: PartitionFetch | None = None
        self._fail_on_data_loss = fail_on_data_loss
        #: Kafka does not have the next offset.
        self._deleted = False
        self._messages = np.zeros(_FETCHED, np.int64)
        self._errors = np.zeros(_FETCHED, np.int64)
        #: Which of the messages are not given back yet.
        self._first = self._fetched = 0
        self._last = wanted.start - 1
        self._done = False
        #: Bytes of values, keys and headers that were together before.
        self._sizes: Sequence[int] = _FIRST_SIZES

    def begin(self) -> None:
        topic, partition, *_ = self.wanted
        self._fetch = self._client.begin(topic, partition, self._last + 1)

    def records(self) -> Iterator[KafkaRecords | LostRecords]:
        while not self._done:
            gathered = self._gathered()
            if gathered is not None:
                yield gathered
            if self._deleted:
                yield self._passed_over()

    def end(self) -> None:
        loops.destroy(self._messages, self._first, self._fetched, _FUNCTIONS)
        self._first = self._fetched
        if self._fetch is not None:
            self._fetch.end()
            self._fetch = None

    def _gathered(self) -> KafkaRecords | None:
        """The next records: as many as are looked at together, or all that are left."""
        columns = _Columns(self._sizes)
        at = columns.at
        at[loops.LAST] = self._last
        heard = time.monotonic()
        while not (self._done or self._deleted or columns.full):
            if self._first == self._fetched:
                assert self._fetch is not None
                self._first, self._fetched = 0, self._fetch.fetched(self._messages, _WAIT_MS)
            now = time.monotonic()
            if self._fetched:
                heard = now
            elif now - heard > PATIENCE_SECONDS:
                raise KafkaUnavailableError(
                    f"{self.wanted}: the records from offset {self._last + 1} to"
                    f" {self.wanted.end - 1} did not come within {PATIENCE_SECONDS:g} s"
                )
            self._first = columns.append(
                self._messages, self._first, self._fetched, self.wanted, self._errors
            )
            self._last = int(at[loops.LAST])
            self._done = self._last >= self.wanted.end - 1
            if at[loops.ERRORS]:
                self._judge(int(at[loops.ERRORS]))
                at[loops.ERRORS] = 0
        self._sizes = columns.sizes
        return columns.records(self.wanted)

    def _judge(self, count: int) -> None:
        reported = [
            (error_of(each), c_int64.from_address(each + loops.OFFSET).value)
            for each in self._errors[:count].tolist()
        ]
        loops.destroy(self._errors, 0, count, _FUNCTIONS)
        for error, offset in reported:
            if error.code() == KafkaError._PARTITION_EOF:
                # Behind the last record there may be offsets without one.
                self._done = self._done or offset >= self.wanted.end
            elif kind_of(error) is ErrorKind.DELETED:
                self._deleted = True
                if not self._fail_on_data_loss:
                    continue
                raise StateError(
                    f"{self.wanted}: Kafka has deleted the records from offset {self._last + 1} on"
                    " before they were read: start from a new checkpoint, or set"
                    " source.fail_on_data_loss to false to go on behind them"
                )
            elif kind_of(error) is not ErrorKind.NOTICE and not may_pass(error):
                raise StartError(f"{self.wanted}: cannot be read: {error.str()}")

    def _passed_over(self) -> LostRecords:
        """Go on where Kafka has records again: what lies between was deleted. Where the partition
        ends sooner, as one that was created again, the rest of the range is not there."""
        topic, partition, _, end = self.wanted
        begin = self._last + 1
        try:
            first, behind = self._client.bounds(topic, partition, round(PATIENCE_SECONDS * 1000))
        except KafkaException as error:
            reason = error.args[0]
            message = f"{self.wanted}: its first offset is not known: {reason.str()}"
            raise unavailable_or(StartError, reason, message) from error
        if first <= begin <= behind:
            raise KafkaUnavailableError(
                f"{self.wanted}: Kafka does not give offset {begin}, and has {first} to {behind}"
            )
        found = min(first, end) if begin < first else end
        self.end()
        self._last, self._deleted, self._done = found - 1, False, found >= end
        if not self._done:
            self.begin()
        return LostRecords(topic, partition, begin, found)


class _Columns:
    """Records as they come, with room for ``ROWS_TOGETHER``, and for so many ``sizes`` of bytes
    before more room is made."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.at = np.zeros(9, np.int64)
        self._room = np.array([ROWS_TOGETHER, *sizes], np.int64)
        self._offset, self._time = np.empty((2, ROWS_TOGETHER), np.int64)
        self._data = [np.empty(size, np.uint8) for size in sizes]
        self._ends = np.zeros((3, ROWS_TOGETHER + 1), np.int64)
        self._present = np.empty((3, ROWS_TOGETHER), np.uint8)
        self._scratch = np.zeros(5, np.int64)

    @property
    def full(self) -> bool:
        """Return whether there is enough to look at."""
        size = self.at[loops.VALUE] + self.at[loops.KEY] + self.at[loops.HEADERS]
        return bool(self.at[loops.ROWS] >= ROWS_TOGETHER or size >= BYTES_TOGETHER)

    @property
    def sizes(self) -> list[int]:
        """Bytes there is room for."""
        return [len(each) for each in self._data]

    def append(
        self, messages: NDArray[np.int64], first: int, last: int, wanted: Range, errors: Any
    ) -> int:
        """Take over messages; returns the number of the first one that waits for more room, which
        there is then."""
        value, key, headers = (each.ctypes.data for each in self._data)
        stopped: int = loops.append(
            messages, first, last, wanted.start, wanted.end, _FUNCTIONS,
            self._scratch, self._scratch.ctypes.data, errors, self.at, self._room, BYTES_TOGETHER,
            self._offset, self._time,
            value, self._ends[0], self._present[0],
            key, self._ends[1], self._present[1],
            headers, self._ends[2], self._present[2],
        )  # fmt: skip
        if stopped < last:
            for number in range(3):
                self._make_room(number)
        return stopped

    def _make_room(self, number: int) -> None:
        before = self._data[number]
        needed = int(self.at[loops.NEEDED_VALUE + number])
        if needed > len(before):
            more = np.empty(max(needed, 2 * len(before)), np.uint8)
            more[: self.at[loops.VALUE + number]] = before[: self.at[loops.VALUE + number]]
            self._data[number] = more
            self._room[loops.VALUE + number] = len(more)

    def records(self, wanted: Range) -> KafkaRecords | None:
        """Return the records of the range that exist; ``None`` without any."""
        rows = int(self.at[loops.ROWS])
        if not rows:
            return None
        texts = [
            Bytes.of_ends(data, ends[: rows + 1], present[:rows] == 0)
            for data, ends, present in zip(self._data, self._ends, self._present, strict=True)
        ]
        return KafkaRecords(
            wanted.topic, wanted.partition, self._offset[:rows], self._time[:rows], *texts
        )
