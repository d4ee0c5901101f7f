"""Columns of Kafka's own: what a record has beside its value, as columns of ``_kafka``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_cep.codecs.record_headers import headers_of
from spark_cep.codecs.record_reader import Read
from spark_cep.columns.vectors import LENGTH_BITS, Bytes, fixed
from spark_cep.pipeline.read.records import KafkaRecords


@dataclass(frozen=True)
class KafkaColumns:
    """The vectors of those that are wanted, by name; ``headers_reader``: the one that says how
    headers are read. ``has``: by record type whether its events have these columns."""

    vectors: Mapping[str, int]
    headers_reader: int
    has: tuple[bool, ...]

    def filled(self, read: Read, records: KafkaRecords) -> Read:
        """The columns of the records with these."""
        if not self.vectors:
            return read
        rows = np.flatnonzero(np.append(self.has, False)[read.types])
        data: list[NDArray[np.uint8]] = [read.data]
        readers = read.readers
        for name, vector in self.vectors.items():
            match name:
                case "partition":
                    self._put(read, rows, vector, np.int64(records.partition))
                case "offset":
                    self._put(read, rows, vector, records.offset[rows])
                case "timestamp":
                    known = rows[records.time[rows] >= 0]
                    self._put(read, known, vector, records.time[known] * 1_000)
                case "topic":
                    texts = Bytes.of([records.topic.encode()])
                    place = texts.places[0] + _moved(data)
                    data.append(texts.data)
                    self._put(read, rows, vector, place)
                case "key":
                    keys = _texts(records.key)
                    known = rows[~keys.nulls[rows]]
                    self._put(read, known, vector, keys.places[known] + _moved(data))
                    data.append(keys.data)
                case "headers":
                    headers = records.headers.compacted()
                    known = rows[~headers.nulls[rows]]
                    self._put(read, known, vector, headers.places[known] + _moved(data))
                    data.append(headers.data)
                    read.wholes[known, self.headers_reader] = len(readers)
                    readers = (*readers, headers_map)
        together = read.data if len(data) == 1 else fixed(np.concatenate(data))
        return read._replace(data=together, readers=readers)

    @staticmethod
    def _put(
        read: Read, rows: NDArray[np.intp], vector: int, values: NDArray[np.int64] | np.int64
    ) -> None:
        read.wholes[rows, vector] = values
        read.nulls[rows, vector] = 0


def _moved(data: Sequence[NDArray[np.uint8]]) -> int:
    """The distance by which places behind all of these bytes are moved."""
    return sum(map(len, data)) << LENGTH_BITS


def _texts(keys: Bytes) -> Bytes:
    """Keys that are text; others, which are not UTF-8, are NULL."""
    found = keys.compacted()
    if found.data.tobytes().isascii():
        return found
    wrong = [each is not None and not _is_text(each) for each in found.values()]
    return Bytes(found.places, found.nulls | np.array(wrong, bool), found.data)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def headers_map(packed: bytes) -> dict[str, str | None]:
    """The headers of a record as texts by name; of several with one name the last one counts. NULL
    is one without a value, and one that is not UTF-8."""
    return {
        name: value.decode() if value is not None and _is_text(value) else None
        for name, value in headers_of(packed)
    }
