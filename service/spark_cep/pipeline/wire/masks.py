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
    distinct = np.frombuffer(encoded.dictionary.buffers()[1], np.uint64)
    return _masks(distinct[: len(encoded.dictionary) * count].reshape(-1, count)), places


def _masks(words: NDArray[np.uint64]) -> list[int]:
    """Rows of words as one number each."""
    rows, count = words.shape
    if count == 1:
        only: list[int] = words[:, 0].tolist()
        return only
    # Without the bits that a word leaves free, and with one word more, for what the last may reach.
    packed = np.zeros((rows, count + 1), np.uint64)
    for number in range(count):
        place, bit = divmod(WORD_BITS * number, 64)
        packed[:, place] |= words[:, number] << np.uint64(bit)
        if bit:
            packed[:, place + 1] |= words[:, number] >> np.uint64(64 - bit)
    each = packed.shape[1] * packed.itemsize
    data = packed.astype("<u8", copy=False).tobytes()
    return [int.from_bytes(data[at : at + each], "little") for at in range(0, len(data), each)]
