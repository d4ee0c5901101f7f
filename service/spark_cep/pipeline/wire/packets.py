"""Packets between the stages: each kind of content is a frozen dataclass with its bytes.

To Spark a packet is a key group's label, a number for its kind, and opaque bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes
from spark_cep.packing import pack, reading_packet, unpack

#: Bytes of one packet, of any kind, about: the last record in it may exceed it.
BYTES_PER_PACKET: Final = 1 << 19
_RECORDS_PER_PACKET: Final = 1_000

Header = tuple[str, bytes | None]
#: Topic, key, value and headers of a record for Kafka; see
#: :class:`spark_cep.codecs.output.outputs.OutputRecord`.
Record = tuple[str, bytes | None, bytes | None, list[Header]]


class PartitionTime(NamedTuple):
    """The newest event time of a Kafka partition, in milliseconds; ``None``: no record had one."""

    topic: str
    partition: int
    time: int | None


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The largest event time of each partition that a decoding task read."""

    partitions: tuple[PartitionTime, ...]

    def encode(self) -> bytes:
        """The packet."""
        return pack(self.partitions)

    @classmethod
    def decode(cls, packet: bytes) -> EventTimes:
        """Decode the bytes that :meth:`encode` makes. Raises StateError for other bytes, as every
        decoder here does."""
        with reading_packet():
            return cls(tuple(PartitionTime(*each) for each in unpack(packet)))


class Unkeyed(NamedTuple):
    """An event without the key of some rule. Whether it is late, or a dead letter for the reason
    ``detail``, is for a key group to say: here nobody knows the time. ``headers``: as JSON;
    ``used``: a rule with another key can use it."""

    topic: str
    partition: int
    offset: int
    time: int
    record_key: bytes | None
    value: bytes
    headers: str | None
    detail: str
    used: bool = False


@dataclass(frozen=True, slots=True)
class UnkeyedEvents:
    """Events without a key."""

    events: tuple[Unkeyed, ...]

    def encode(self) -> bytes:
        """The packet."""
        return pack(self.events)

    @classmethod
    def several(cls, events: Iterable[Unkeyed]) -> Iterator[UnkeyedEvents]:
        """All these events, for packets of bounded size."""
        waiting: list[Unkeyed] = []
        size = 0
        for event in events:
            waiting.append(event)
            size += len(event.value) + len(event.record_key or b"") + len(event.headers or "")
            if size >= BYTES_PER_PACKET:
                yield cls(tuple(waiting))
                waiting, size = [], 0
        if waiting:
            yield cls(tuple(waiting))

    @classmethod
    def decode(cls, packet: bytes) -> UnkeyedEvents:
        """Decode the bytes that :meth:`encode` makes."""
        with reading_packet():
            return cls(tuple(Unkeyed(*each) for each in unpack(packet)))


@dataclass(frozen=True, slots=True)
class OutputRecords:
    """Records that writers hand to Kafka as they are."""

    records: tuple[Record, ...]

    def encode(self) -> bytes:
        """The packet."""
        return pack(self.records)

    @classmethod
    def decode(cls, packet: bytes) -> OutputRecords:
        """Decode the bytes that :meth:`encode` makes."""
        with reading_packet():
            return cls(
                tuple(
                    (topic, key, value, [(name, content) for name, content in headers])
                    for topic, key, value, headers in unpack(packet)
                )
            )


class RecordPackets:
    """Records on their way into packets of bounded size."""

    def __init__(self) -> None:
        self._waiting: list[Record] = []
        self._size = 0

    def add(self, record: Record) -> Iterator[bytes]:
        """A packet, if it is full with this record."""
        _, key, value, _ = record
        self._waiting.append(record)
        self._size += len(key or b"") + len(value or b"")
        full = len(self._waiting) >= _RECORDS_PER_PACKET or self._size >= BYTES_PER_PACKET
        return self.rest() if full else iter(())

    def rest(self) -> Iterator[bytes]:
        """A packet with what is left, if there is something."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting:
            yield OutputRecords(tuple(waiting)).encode()

    @classmethod
    def of(cls, records: Iterable[Record]) -> Iterator[bytes]:
        """The packets of all these records."""
        packets = cls()
        for record in records:
            yield from packets.add(record)
        yield from packets.rest()


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """Results as columns, for one ``topic``: record *r* has the headers of ``headers[rule[r]]`` and
    its match id from ``ids`` (empty: none), and the key ``keys[key[r]]`` (-1: none)."""

    topic: str
    headers: Sequence[Sequence[Header]]
    rule: I64
    key: I64
    keys: Bytes
    ids: Bytes
    values: Bytes

    def encode(self) -> bytes:
        """The packet."""
        numbers = (self.rule, self.key)
        columns: list[Any] = []
        for column in (self.keys, self.ids, self.values):
            whole = column.compacted()
            columns += whole.data, np.append(0, np.cumsum(whole.lengths))
        return pack([self.topic, self.headers, *(each.tobytes() for each in (*numbers, *columns))])

    @classmethod
    def decode(cls, packet: bytes) -> ResultColumns:
        """Decode the bytes that :meth:`encode` makes."""
        with reading_packet():
            topic, headers, rule, key, *columns = unpack(packet)
            shared = [[(name, content) for name, content in each] for each in headers]
            keys, ids, values = (
                _texts(*column) for column in zip(columns[::2], columns[1::2], strict=True)
            )
            rule, key = np.frombuffer(rule, np.int64), np.frombuffer(key, np.int64)
            if not len(rule) == len(key) == len(ids) == len(values):
                raise ValueError("columns of results are not of one length")
            if _outside(rule, 0, len(shared)) or _outside(key, -1, len(keys)):
                raise ValueError("a result has headers or a key that are not there")
            return cls(topic, shared, rule, key, keys, ids, values)

    @property
    def size(self) -> int:
        """Bytes of all keys and values."""
        return int(self.values.lengths.sum() + self.keys.sizes(self.key).sum())


def _texts(data: bytes, ends: bytes) -> Bytes:
    """A column out of its bytes. Raises ValueError for ends outside of them."""
    places = np.frombuffer(ends, np.int64)
    if not len(places) or places[0] or places[-1] != len(data) or (np.diff(places) < 0).any():
        raise ValueError("a column has ends outside of its bytes")
    return Bytes.of_ends(np.frombuffer(data, np.uint8), places)


def _outside(numbers: I64, least: int, most: int) -> bool:
    return bool(((numbers < least) | (numbers >= most)).any())
