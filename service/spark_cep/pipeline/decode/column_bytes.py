"""Columns of texts and bytes out of the bytes of records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_cep.columns.byte_column import ByteColumn
from spark_cep.columns.vectors import Bytes, fixed

#: Most bytes of a column that is made at once. Records may have many times as many as were read: a
#: default of the reader schema is a few bytes in none of them and all of its own in each.
MOST_BYTES = 64 << 20


class TooManyBytesError(Exception):
    """A column of the records has more than ``MOST_BYTES``."""


def texts_of(texts: pa.Array) -> ByteColumn:
    """Arrow's texts, the same bytes; not to be written to."""
    _, ends, data = texts.buffers()
    if not len(texts):
        return ByteColumn(np.frombuffer(bytes(1), np.uint8), np.frombuffer(bytes(8), np.int64))
    # Compiled loops are made for one kind of arrays.
    places = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    longs = places.astype(np.int64)
    longs.flags.writeable = False
    has_bytes = data is not None and data.size
    return ByteColumn(fixed(np.frombuffer(data if has_bytes else bytes(1), np.uint8)), longs)


def taken(values: pa.Array, places: NDArray[np.int64], null: NDArray[np.bool_]) -> pa.Array:
    """The values at ``places``. Raises TooManyBytesError."""
    lengths = pc.binary_length(values).fill_null(0).to_numpy().astype(np.int64)
    if int(lengths[places[~null]].sum()) > MOST_BYTES and len(places) > 1:
        raise TooManyBytesError
    return values.take(pa.array(places, mask=null))


def bytes_at(
    data: NDArray[np.uint8],
    places: NDArray[np.int64],
    null: NDArray[np.bool_],
    kind: pa.DataType,
) -> pa.Array:
    """Return the values at ``places``, as a column of texts or bytes. Raises TooManyBytesError."""
    found = Bytes(places, null, data)
    if int(found.lengths.sum()) > MOST_BYTES and len(places) > 1:
        raise TooManyBytesError
    whole = ByteColumn.of_vector(found)
    valid = pa.array(~null).buffers()[1]
    ends = pa.py_buffer(whole.ends.astype(np.int32))
    return pa.Array.from_buffers(kind, len(places), [valid, ends, pa.py_buffer(whole.data)])
