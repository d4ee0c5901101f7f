"""Sets of true conditions: columns of words on their way, one number where they are asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_cep.pipeline.wire.event_packets import WORD_BITS


def distinct_masks(words: NDArray[np.int64]) -> tuple[list[int], NDArray[np.int64]]:
    """The distinct ones among rows of words, lowest word first, and for each row the place of its
    own."""
    rows = np.ascontiguousarray(words)
    count = rows.shape[1]
    kind = pa.int64() if count == 1 else pa.binary(8 * count)
    encoded = pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(rows)]).dictionary_encode()
    places = encoded.indices.to_numpy().astype(np.int64)
    return [_mask(each) for each in encoded.dictionary.to_pylist()], places


def _mask(words: bytes | int) -> int:
    """A set of conditions, given as its only word or the bytes of all, as one number."""
    if isinstance(words, int):
        return words
    found = np.frombuffer(words, np.int64).tolist()
    return sum(each << WORD_BITS * number for number, each in enumerate(found))
