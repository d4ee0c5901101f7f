"""When records of a topic were appended and when they became visible, by the broker's clock.

The broker's own log tells both. Each batch of records has a header with the time of its append,
where ``message.timestamp.type`` is ``LogAppendTime``; so has the marker that ends a transaction,
which clients never see. A ``read_committed`` consumer is given records before the last stable
offset, where the oldest open transaction begins; a record is visible once that has passed it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: Base offset, length behind it, leader epoch, format, checksum, attributes, last offset's
#: distance, first and largest time, id of the producer; its epoch, sequence and a count follow.
_HEADER = struct.Struct(">qiibIhiqqq")
#: Base offset and length are not part of the length.
_UNCOUNTED = 12
_FORMAT = 2
_LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x08, 0x10, 0x20

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of records: its first and last offset, and when it was appended. ``producer``: of its
    transaction, None outside one; ``ends``: it is the marker that ends this transaction."""

    first: int
    last: int
    appended_ms: int
    producer: int | None = None
    ends: bool = False


class PartitionLog:
    """Times of the records of one partition by their offsets, which begin at 0."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        firsts, appended, stable, stable_at = [0], [0], [0], [0]
        began: dict[int, int] = {}
        self.end = 0
        """The offset behind the last record."""
        for batch in batches:
            self.end = batch.last + 1
            firsts.append(batch.first)
            appended.append(batch.appended_ms)
            if batch.ends:
                began.pop(batch.producer or 0, None)
            elif batch.producer is not None:
                began.setdefault(batch.producer, batch.first)
            reaches = min(began.values(), default=self.end)
            if reaches > stable[-1]:
                stable.append(reaches)
                stable_at.append(batch.appended_ms)
        self._firsts, self._appended = np.array(firsts), np.array(appended)
        self._stable, self._stable_at = np.array(stable), np.array(stable_at)

    @property
    def visible_end(self) -> int:
        """The last stable offset."""
        return int(self._stable[-1])

    def appended_ms(self, offsets: Numbers) -> Numbers:
        """When records were appended, in milliseconds since 1970."""
        return self._appended[np.searchsorted(self._firsts, offsets, "right") - 1]

    def visible_ms(self, offsets: Numbers) -> Numbers:
        """When consumers of committed records could have them first, in milliseconds since 1970;
        they must be visible."""
        return self._stable_at[np.searchsorted(self._stable, offsets, "right")]


def read_log(data: Path, topic: str, partition: int) -> PartitionLog:
    """The log of a partition in a broker's folder of ``data``, as far as it is written."""
    segments = sorted((data / f"{topic}-{partition}").glob("*.log"))
    return PartitionLog(batch for segment in segments for batch in read_batches(segment))


def read_batches(segment: Path) -> Iterator[Batch]:
    """The batches of a segment; one that is being written is left out.

    Raises:
        ValueError: A batch does not have the broker's time, or is of an old format.
    """
    with segment.open("rb") as file:
        size = segment.stat().st_size
        at = 0
        while at + _HEADER.size <= size:
            file.seek(at)
            first, length, _, version, _, kind, distance, _, time, producer = _HEADER.unpack(
                file.read(_HEADER.size)
            )
            at += _UNCOUNTED + length
            if at > size:
                return
            if version != _FORMAT or not kind & (_LOG_APPEND_TIME | _CONTROL):
                raise ValueError(
                    f"{segment.parent.name}, offset {first}: the batch has format {version} and"
                    f" attributes {kind:#x}; allowed is format {_FORMAT} with"
                    " message.timestamp.type=LogAppendTime"
                )
            yield Batch(
                first,
                first + distance,
                time,
                producer if kind & _TRANSACTIONAL else None,
                bool(kind & _CONTROL),
            )
