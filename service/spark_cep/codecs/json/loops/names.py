"""Names of fields and symbols, found in the tables of a layout."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import compiled, inlined


@compiled
def name_hash(text, at, length):
    """A number that differs for most names."""
    if length == 0:
        return 0
    first, last = np.int64(text[at]), np.int64(text[at + length - 1])
    return length * 7 + first * 31 + np.int64(text[at + length // 2]) * 131 + last * 8191


@inlined
def find(text, at, length, table, mask, slots, entries, names):
    """The number that a name has in a table; -1: it is not there."""
    slot = name_hash(text, at, length) & mask
    while True:
        entry = slots[table + slot]
        if entry < 0:
            return -1
        if entries[entry, 1] == length:
            start = entries[entry, 0]
            same = True
            for step in range(length):
                if names[start + step] != text[at + step]:
                    same = False
                    break
            if same:
                return entries[entry, 2]
        slot = (slot + 1) & mask
