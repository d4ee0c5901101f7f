"""Kafka's records of one partition, as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_cep.codecs.record_headers import headers_text
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes, Rows
from spark_cep.pipeline.wire.arrow_bytes import arrow_of


@dataclass(frozen=True, slots=True)
class KafkaRecords:
    """Some records of one partition, in the order of their offsets. ``time``: their own timestamps
    (ms; -1: none). ``headers``: as :mod:`spark_cep.codecs.record_headers` reads them."""

    topic: str
    partition: int
    offset: NDArray[np.int64]
    time: NDArray[np.int64]
    value: Bytes
    key: Bytes
    headers: Bytes

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def sizes(self) -> I64:
        """Bytes of key and value of each."""
        return self.value.lengths + self.key.lengths

    def between(self, start: int, end: int) -> KafkaRecords:
        """Some of them, one behind the other."""
        return self.take(slice(start, end))

    def take(self, rows: Rows) -> KafkaRecords:
        """Those of these rows."""
        return KafkaRecords(
            self.topic, self.partition, self.offset[rows], self.time[rows],
            *(column.take(rows) for column in (self.value, self.key, self.headers)),
        )  # fmt: skip

    def rows(self, rows: NDArray[np.intp], whole: NDArray[np.bool_]) -> dict[str, pa.Array]:
        """The columns of some records; those that are ``whole`` with the record's own bytes, and
        headers as JSON. The topic is a dictionary."""
        wanted = whole[rows]
        headers = _taken(self.headers, rows, wanted)
        if headers.null_count == len(rows):
            texts = pa.nulls(len(rows), pa.string())
        else:
            read = [each and headers_text(each) for each in headers.to_pylist()]
            texts = pa.array(read, pa.string())
        return {
            "topic": pa.DictionaryArray.from_arrays(np.zeros(len(rows), np.int32), [self.topic]),
            "partition": pa.repeat(pa.scalar(self.partition, pa.int32()), len(rows)),
            "offset": pa.array(self.offset[rows]),
            "kafka_time": pa.array(self.time[rows]),
            "size": pa.array(self.sizes[rows]),
            "record_key": _taken(self.key, rows, wanted),
            "value": _taken(self.value, rows, wanted),
            "headers": texts,
        }


def _taken(column: Bytes, rows: NDArray[np.intp], wanted: NDArray[np.bool_]) -> pa.Array:
    """The values at ``rows``, NULL where they are not ``wanted``: only what is wanted is copied."""
    nulls = column.nulls[rows] | ~wanted
    if nulls.all():
        return pa.nulls(len(rows), pa.binary())
    return arrow_of(Bytes(column.places[rows], nulls, column.data), pa.binary())
