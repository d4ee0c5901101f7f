"""Bodies in Glue's framing that are compressed, without their compression."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spark_cep.codecs.registry.framing import LARGEST_BODY, FramingError, decompressed
from spark_cep.codecs.registry.loops import framing_loops as loops
from spark_cep.columns.vectors import LENGTH_BITS, LENGTH_MASK, Bytes, fixed


class Plain(NamedTuple):
    """Values without compression; one that cannot be decompressed is as it was. ``added``: the
    bytes of what was decompressed; there is no more once it is beyond ``LARGEST_BODY``."""

    values: Bytes
    added: int


def without_compression(values: Bytes) -> Plain:
    """The values of records, those that zlib compressed with their bodies as they were before."""
    starts, data = values.places >> LENGTH_BITS, values.data
    long = ~values.nulls & (values.places & LENGTH_MASK >= loops.GLUE_LENGTH)
    rows = np.flatnonzero(long)
    at = starts[rows]
    rows = rows[(data[at] == loops.GLUE_MAGIC) & (data[at + 1] == loops.ZLIB)]
    places, added = values.places.copy(), 0
    parts, end = [data], len(data)
    for row in rows.tolist():
        if added > LARGEST_BODY:
            break
        value = values.value(row)
        assert value is not None
        try:
            body = decompressed(value[loops.GLUE_LENGTH :])
        except FramingError:
            continue
        plain = bytes([loops.GLUE_MAGIC, loops.PLAIN]) + value[2 : loops.GLUE_LENGTH] + body
        parts.append(np.frombuffer(plain, np.uint8))
        places[row] = end << LENGTH_BITS | len(plain)
        end += len(plain)
        added += len(body)
    if not added and len(parts) == 1:
        return Plain(values, 0)
    return Plain(Bytes(places, values.nulls, fixed(np.concatenate(parts))), added)
