"""Columns of texts and bytes out of the bytes of records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_cep.columns.vectors import Bytes
from spark_cep.pipeline.wire.arrow_bytes import arrow_of

#: Most bytes of a column that is made at once. Records may have many times as many as were read: a
#: default of the reader schema is a few bytes in none of them and all of its own in each.
MOST_BYTES = 64 << 20


class TooManyBytesError(Exception):
    """A column of the records has more than ``MOST_BYTES``."""


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
    return arrow_of(found, kind)
