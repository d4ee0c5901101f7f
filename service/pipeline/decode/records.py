"""Kafka's records as Spark reads them, in the Python workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from service.matcher.columnar.vectors import Bytes
from service.pipeline.decode.tallies import Tally, tallies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NOTHING = bytes(1)
_BITS_OF_PIECE = 11
#: Bytes of a value, key or headers in one row, and characters of headers.
PIECE = 1 << _BITS_OF_PIECE
_IN_PIECES = ("value", "record_key", "headers")
_PLACE = ("partition", "offset")


def columns_of(records: DataFrame, topic: str | None) -> DataFrame:
    """Kafka's records with what :class:`KafkaRecords` reads; ``topic``: the only one, if there is
    only one. A record with a value, key or headers above ``PIECE`` bytes is several rows, one
    behind the other, each with a piece of them (see :mod:`service.pipeline.wire.fragments`)."""
    from pyspark.sql import functions as F

    topics = [] if topic is not None else ["topic"]
    read = records.select(
        *_PLACE,
        F.unix_millis("timestamp").alias("kafka_time"),
        *topics,
        "value",
        F.col("key").alias("record_key"),
        # As text: Arrow takes several microseconds a row for an array, even where it is NULL.
        F.when(F.size("headers") > 0, F.to_json("headers")).alias("headers"),
    )
    most = F.greatest(*map(F.octet_length, _IN_PIECES))
    last = F.shiftright(most - 1, _BITS_OF_PIECE)
    pieces = F.when(most > PIECE, F.sequence(F.lit(0), last)).otherwise(F.array(F.lit(0)))
    begin = F.col("piece") * PIECE + 1
    return read.select("*", F.explode(pieces).alias("piece")).select(
        *_PLACE,
        "kafka_time",
        *topics,
        *(
            F.when(most > PIECE, F.substring(name, begin, F.lit(PIECE)))
            .otherwise(F.col(name))
            .alias(name)
            for name in _IN_PIECES
        ),
    )


def rows_of_record_before(before: pa.RecordBatch, batch: pa.RecordBatch) -> int:
    """How many rows at the start of ``batch`` are pieces of the last record of ``before``."""
    same = np.ones(batch.num_rows, bool)
    for name in _PLACE:
        same &= batch.column(name).to_numpy() == before.column(name)[-1].as_py()
    return int(np.append(same, False).argmin())


class KafkaRecords:
    """Columns of :func:`columns_of`, of several batches together."""

    def __init__(self, batches: Sequence[pa.RecordBatch], topic: str | None) -> None:
        def column(name: str) -> pa.Array:
            columns = [batch.column(name) for batch in batches]
            return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)

        self.partition: NDArray[np.int32] = column("partition").to_numpy()
        self.offset: NDArray[np.int64] = column("offset").to_numpy()
        self.kafka_time: NDArray[np.int64] = column("kafka_time").to_numpy()
        topics = column("topic") if topic is None else None
        self._value, self._key, self._headers = map(column, _IN_PIECES)
        first = np.ones(len(self.offset), bool)
        first[1:] = (np.diff(self.offset) != 0) | (np.diff(self.partition) != 0)
        if not first.all():
            starts = np.flatnonzero(first)
            self.partition, self.offset = self.partition[starts], self.offset[starts]
            self.kafka_time = self.kafka_time[starts]
            topics = None if topics is None else topics.take(pa.array(starts))
            self._value, self._key, self._headers = (
                _joined(each, starts) for each in (self._value, self._key, self._headers)
            )
        self.data, self.ends = pool(self._value)
        self.present = pc.is_valid(self._value).to_numpy(zero_copy_only=False).view(np.uint8)
        lengths = (pc.fill_null(pc.binary_length(c), 0) for c in (self._key, self._value))
        self.sizes = pc.add(*lengths).to_numpy()
        self._topics: list[str] = [] if topic is None else [topic]
        self._topic: Any = 0
        if topics is not None:
            encoded = topics.dictionary_encode()
            self._topics = encoded.dictionary.to_pylist()
            self._topic = encoded.indices.to_numpy()

    def kinds(self, by_topic: Mapping[str, int], other: int) -> NDArray[np.int32]:
        """The kind of each one's topic, ``other`` where it is none of those named."""
        kinds = np.array([by_topic.get(topic, other) for topic in self._topics], np.int32)
        return np.broadcast_to(kinds.take(self._topic), len(self.present)).copy()

    def topic_at(self, row: int) -> str:
        """The topic of one record."""
        return self._topics[int(np.broadcast_to(self._topic, len(self.present))[row])]

    def rows(self, rows: NDArray[np.intp], whole: NDArray[np.bool_]) -> dict[str, pa.Array]:
        """The columns of some records; those that are ``whole`` with the record's own bytes."""
        take = pa.array(rows, mask=~whole[rows])
        topics = pa.array(self._topics, pa.string())
        if len(topics) == 1:
            topic = pa.repeat(topics[0], len(rows))
        else:
            topic = topics.take(pa.array(self._topic[rows]))
        made = {
            "topic": topic,
            "partition": pa.array(self.partition[rows]),
            "offset": pa.array(self.offset[rows]),
            "kafka_time": pa.array(self.kafka_time[rows]),
            "size": pa.array(self.sizes[rows]),
        }
        for name, column in (
            ("record_key", self._key), ("value", self._value), ("headers", self._headers),
        ):  # fmt: skip
            # Only what is wanted is copied.
            made[name] = column.take(take)
        return made

    def tallies(self, faults: NDArray[np.int32], time: NDArray[np.int64]) -> list[Tally]:
        """What all of them count."""
        return tallies(
            self._topics, self._topic, self.partition, faults, time, self.kafka_time, self.sizes
        )


def _joined(pieces: pa.Array, starts: NDArray[np.intp]) -> pa.Array:
    """The texts whose first pieces are at ``starts``; the bytes are not copied."""
    valid = pc.is_valid(pieces).take(pa.array(starts)).buffers()[1]
    ends = np.frombuffer(pieces.buffers()[1], np.int32)[pieces.offset :]
    ends = np.append(ends[starts], ends[len(pieces)])
    return pa.Array.from_buffers(
        pieces.type,
        len(starts),
        [valid, pa.py_buffer(ends), pieces.buffers()[2] or pa.py_buffer(_NOTHING)],
    )


def pool(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The bytes of all, and where each begins and ends; not to be written to."""
    _, ends, data = texts.buffers()
    if not len(texts):
        return np.frombuffer(_NOTHING, np.uint8), np.frombuffer(bytes(4), np.int32)
    found = (
        np.frombuffer(data if data is not None and data.size else _NOTHING, np.uint8),
        np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1],
    )
    # Compiled loops are made for one kind of arrays.
    for array in found:
        array.flags.writeable = False
    return found


def bytes_at(
    data: NDArray[np.uint8],
    places: NDArray[np.int64],
    null: NDArray[np.bool_],
    kind: pa.DataType,
) -> pa.Array:
    """What is at ``places``, as a column of texts or bytes."""
    whole = Bytes(places, null, data).compacted()
    ends = np.zeros(len(places) + 1, np.int32)
    np.cumsum(whole.lengths, out=ends[1:])
    valid = pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(
        kind, len(places), [valid, pa.py_buffer(ends), pa.py_buffer(whole.data)]
    )
