"""Sets of true conditions: words where they are found, a column on their way, one number where they
are asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_cep.pipeline.wire.event_packets import WORD_BITS

#: A word that has bits, in a set of several words.
_NUMBERED = np.dtype([("number", "<u2"), ("bits", "<i8")])


def condition_sets(words: NDArray[np.int64]) -> pa.Array:
    """Return the sets of events by their words (shape: events, words), lowest word first: ``int64``
    where there is one word, otherwise bytes, the words that are not 0, each behind its number."""
    if words.shape[1] == 1:
        return pa.array(words[:, 0])
    events, numbers = words.nonzero()
    packed = np.empty(len(events), _NUMBERED)
    packed["number"], packed["bits"] = numbers, words[events, numbers]
    ends = np.zeros(len(words) + 1, np.int32)
    np.cumsum(np.bincount(events, minlength=len(words)) * _NUMBERED.itemsize, out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(packed)]
    return pa.Array.from_buffers(pa.binary(), len(words), buffers)


def distinct_masks(sets: pa.Array) -> tuple[list[int], NDArray[np.int64]]:
    """Return the distinct ones among sets of events, as one number each, and for each event the
    place of its own. The inverse of :func:`condition_sets`."""
    encoded = sets.dictionary_encode()
    places = encoded.indices.to_numpy().astype(np.int64)
    if pa.types.is_int64(sets.type):
        return encoded.dictionary.to_pylist(), places
    return _masks(encoded.dictionary), places


def _masks(sets: pa.Array) -> list[int]:
    """Sets of several words as one number each."""
    _, ends, data = sets.buffers()
    ends = np.frombuffer(ends, np.int32, len(sets) + 1) // _NUMBERED.itemsize
    words = np.frombuffer(data or b"", _NUMBERED, ends[-1])
    rows = np.repeat(np.arange(len(sets)), np.diff(ends))
    masks = [0] * len(sets)
    each = zip(rows.tolist(), words["number"].tolist(), words["bits"].tolist(), strict=True)
    for row, number, bits in each:
        masks[row] |= bits << WORD_BITS * number
    return masks
