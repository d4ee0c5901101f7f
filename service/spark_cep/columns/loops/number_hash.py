"""A hash of a few numbers that a rule and its events make, for tables of one run in memory."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import inlined

_PRIME = np.uint64(0x9E3779B97F4A7C15)


@inlined
def mixed_with(found, number):
    """Return the hash of what has the hash ``found``, and of one number more."""
    product = (np.uint64(found) ^ np.uint64(number)) * _PRIME
    return product ^ (product >> np.uint64(29))
