"""Kafka's records as Spark reads them, on their way to loops compiled by Numba."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from service.codecs.record_bytes import copy_texts
from service.pipeline.crossing import Tally, tallies

_PARTITION_BITS = 15
_OFFSET_BITS = 48
_NOTHING = bytes(1)


def bare(records: DataFrame, topic: str | None) -> DataFrame:
    """Kafka's records with what :class:`BareRecords` reads; ``topic``: the only one, if there
    is only one."""
    fits = f"partition < {1 << _PARTITION_BITS} AND offset < {1 << _OFFSET_BITS}L"
    place = f"shiftleft(offset, {_PARTITION_BITS}) | partition"
    message = "'a partition above 32,767 or an offset above 2^48: set source.decoder to spark'"
    columns = [
        F.expr(f"IF({fits}, {place}, raise_error({message}))").alias("place"),
        F.unix_millis("timestamp").alias("kafka_time"),
        F.col("value"),
        F.col("key").alias("record_key"),
        # As text: Arrow takes several microseconds a row for an array, even where it is NULL.
        F.expr("IF(size(headers) > 0, to_json(headers), NULL)").alias("headers"),
    ]
    return records.select(*columns, *([] if topic is not None else ["topic"]))


class BareRecords:
    """Columns of :func:`bare`, whole."""

    def __init__(self, batches: Sequence[pa.RecordBatch], topic: str | None) -> None:
        def column(name: str) -> pa.Array:
            columns = [batch.column(name) for batch in batches]
            return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)

        place = column("place").to_numpy()
        self.partition = (place & (1 << _PARTITION_BITS) - 1).astype(np.int32)
        self.offset = place >> _PARTITION_BITS
        self.kafka_time = column("kafka_time").to_numpy()
        self._key, self._value = column("record_key"), column("value")
        self._headers = column("headers")
        self.data, self.ends = pool(self._value)
        self.present = pc.is_valid(self._value).to_numpy(zero_copy_only=False).view(np.uint8)
        lengths = (pc.fill_null(pc.binary_length(c), 0) for c in (self._key, self._value))
        self.sizes = pc.add(*lengths).to_numpy()
        self._topics: list[str] = [] if topic is None else [topic]
        self._topic: Any = 0
        if topic is None:
            encoded = column("topic").dictionary_encode()
            self._topics = encoded.dictionary.to_pylist()
            self._topic = encoded.indices.to_numpy()

    def rows(self, rows: NDArray[np.intp], whole: NDArray[np.bool_]) -> dict[str, pa.Array]:
        """The columns of some records; those that are ``whole`` with the record's own bytes."""
        take = pa.array(rows)
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
        with_bytes = whole[rows]
        for name, column in (
            ("record_key", self._key), ("value", self._value), ("headers", self._headers),
        ):  # fmt: skip
            taken = column.take(take)
            if not with_bytes.all():
                taken = pc.if_else(pa.array(with_bytes), taken, pa.scalar(None, taken.type))
            made[name] = taken
        return made

    def tallies(self, faults: NDArray[np.int32], time: NDArray[np.int64]) -> list[Tally]:
        """What all of them count."""
        return tallies(
            self._topics, self._topic, self.partition, faults, time,
            self.kafka_time, self.sizes,
        )  # fmt: skip


def pool(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The bytes of all, and where each begins and ends."""
    _, ends, data = texts.buffers()
    if not len(texts):
        return np.frombuffer(_NOTHING, np.uint8), np.frombuffer(bytes(4), np.int32)
    return (
        np.frombuffer(data if data is not None and data.size else _NOTHING, np.uint8),
        np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1],
    )


def texts_at(
    data: NDArray[np.uint8], places: NDArray[np.int64], null: NDArray[np.bool_]
) -> pa.Array:
    """The texts at ``places``, as a column."""
    ends = np.zeros(len(places) + 1, np.int32)
    size = int((places[~null] & 0xFFFFFFFF).sum())
    out = np.empty(size, np.uint8)
    copy_texts(data, places, null, out, ends)
    valid = pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(
        pa.string(), len(places), [valid, pa.py_buffer(ends), pa.py_buffer(out)]
    )
