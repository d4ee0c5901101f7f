"""Kafka's records of one partition, as columns."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_SIZE: Final = struct.Struct("<i")


@dataclass(frozen=True, slots=True)
class Texts:
    """Bytes of several records: those of record *i* are ``data[ends[i]:ends[i + 1]]``, if it has
    any (``present[i]``)."""

    data: NDArray[np.uint8]
    ends: NDArray[np.int32]
    present: NDArray[np.uint8]

    def take(self, rows: NDArray[np.intp], wanted: NDArray[np.bool_]) -> pa.Array:
        """Those at ``rows``, NULL where they are not ``wanted``: only what is wanted is copied."""
        return self._arrow().take(pa.array(rows, mask=~wanted))

    @property
    def sizes(self) -> NDArray[np.int32]:
        """The bytes of each."""
        return np.diff(self.ends)

    def _arrow(self) -> pa.Array:
        valid = None
        if not self.present.all():
            valid = pa.py_buffer(np.packbits(self.present, bitorder="little"))
        buffers = [valid, pa.py_buffer(self.ends), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.binary(), len(self.present), buffers)


@dataclass(frozen=True, slots=True)
class KafkaRecords:
    """Some records of one partition, in the order of their offsets. ``time``: their own timestamps
    (ms; -1: none). ``headers``: as :func:`headers_text` reads them."""

    topic: str
    partition: int
    offset: NDArray[np.int64]
    time: NDArray[np.int64]
    value: Texts
    key: Texts
    headers: Texts

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def sizes(self) -> NDArray[np.int32]:
        """Bytes of key and value of each."""
        return self.value.sizes + self.key.sizes

    def rows(self, rows: NDArray[np.intp], whole: NDArray[np.bool_]) -> dict[str, pa.Array]:
        """The columns of some records; those that are ``whole`` with the record's own bytes, and
        headers as JSON."""
        wanted = whole[rows]
        headers = self.headers.take(rows, wanted)
        if headers.null_count == len(rows):
            texts = pa.nulls(len(rows), pa.string())
        else:
            read = [each and headers_text(each) for each in headers.to_pylist()]
            texts = pa.array(read, pa.string())
        return {
            "topic": pa.repeat(pa.scalar(self.topic), len(rows)),
            "partition": pa.repeat(pa.scalar(self.partition, pa.int32()), len(rows)),
            "offset": pa.array(self.offset[rows]),
            "kafka_time": pa.array(self.time[rows]),
            "size": pa.array(self.sizes[rows]),
            "record_key": self.key.take(rows, wanted),
            "value": self.value.take(rows, wanted),
            "headers": texts,
        }


def headers_text(headers: bytes) -> str:
    """The headers of a record, in the form of :mod:`~spark_cep.pipeline.read.loops.message_loops`,
    as JSON: a list of objects with ``key`` and, where it has one, ``value`` in base64."""
    return json.dumps(list(_headers(headers)), ensure_ascii=False, separators=(",", ":"))


def _headers(packed: bytes) -> Iterator[dict[str, str]]:
    at = 0
    while at < len(packed):
        texts: list[bytes | None] = []
        for _ in range(2):
            (size,) = _SIZE.unpack_from(packed, at)
            at += _SIZE.size
            texts.append(None if size < 0 else packed[at : at + size])
            at += max(size, 0)
        name, value = texts
        header = {"key": (name or b"").decode("utf-8", "replace")}
        if value is not None:
            header["value"] = base64.b64encode(value).decode("ascii")
        yield header
