"""ISO 8601 texts to times, column by column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

#: An offset from UTC, at the end and behind a time of day.
_ZONED = r"[T ].*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
#: Digits behind the microsecond, which PyArrow refuses.
_BEHIND_MICROS = r"(\.[0-9]{6})[0-9]+"
_LOCAL, _UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")


def micros_of(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The microseconds since 1970 of texts, UTC where they have no offset, and which of them are
    times. Digits behind the microsecond are cut off."""
    texts = pc.replace_substring_regex(texts, _BEHIND_MICROS, r"\1")
    zoned = pc.match_substring_regex(texts, _ZONED)
    parts = [
        _parsed(pc.if_else(mine, texts, pa.scalar(None, pa.string())), kind)
        for mine, kind in ((zoned, _UTC), (pc.invert(zoned), _LOCAL))
    ]
    times = pc.coalesce(*parts)
    known = pc.is_valid(times).to_numpy(zero_copy_only=False)
    return times.fill_null(0).to_numpy(zero_copy_only=False), known


def _parsed(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Whole numbers, NULL where a text is not of this kind: those are found by halves, since
    PyArrow refuses a column as a whole."""
    try:
        return texts.cast(kind).cast(pa.int64())
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return pa.nulls(1, pa.int64())
        half = len(texts) // 2
        return pa.concat_arrays([_parsed(part, kind) for part in (texts[:half], texts[half:])])
