"""Columns of texts and bytes out of the bytes of records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_cep.columns.vectors import Bytes

_NOTHING = bytes(1)


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
