"""Columns of texts and bytes between Arrow and the column vectors of the core."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_cep.columns.loops.byte_loops import copy_bytes
from spark_cep.columns.vectors import Bytes


def bytes_of(column: pa.Array) -> Bytes:
    """A column of Arrow's texts or bytes, with the same memory."""
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        raise TypeError(f"a column of texts or bytes is {column.type}")
    nulls = pc.is_null(column).to_numpy(zero_copy_only=False)
    _, ends, data = column.buffers()
    if data is None or not len(column):
        return Bytes(np.zeros(len(column), np.int64), nulls, np.zeros(0, np.uint8))
    ends = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
    return Bytes.of_ends(np.frombuffer(data, np.uint8), ends.astype(np.int64), nulls)


def arrow_of(column: Bytes, kind: pa.DataType) -> pa.Array:
    """The values, of which there are less than 2 GiB, as Arrow's texts or bytes."""
    ends = np.zeros(len(column) + 1, np.int32)
    np.cumsum(column.lengths, out=ends[1:])
    data = np.empty(ends[-1], np.uint8)
    copy_bytes(column.data, column.places, column.nulls, data)
    valid = pa.array(~column.nulls).buffers()[1]
    return pa.Array.from_buffers(kind, len(column), [valid, pa.py_buffer(ends), pa.py_buffer(data)])
