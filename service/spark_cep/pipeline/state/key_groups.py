"""The key groups of keys: by a hash, modulo their number.

A key of group *g* of *n* is in one of the groups *g*, *g + n*, *g + 2n*, … of a multiple of *n*.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.loops.text_hash import SEED, place_hashes
from spark_cep.columns.vectors import Bytes, texts_of


def key_groups_of(keys: Bytes, count: int) -> I64:
    """Return the key group, of ``count``, of each key."""
    hashes = np.full(len(keys), SEED, np.int64)
    place_hashes(*keys.pool, keys.nulls, hashes)
    return hashes % count


def key_group(key: str | None, count: int) -> int:
    """The key group of a key, as its text stands in outputs; ``None``: of what has none."""
    return int(key_groups_of(texts_of([key]), count)[0])
