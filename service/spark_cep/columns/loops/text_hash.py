"""XXH64 of texts, as Spark's ``xxhash64`` of a string (``org.apache.spark.sql.catalyst.expressions.
XXH64``, seed 42), which says to what key group a key belongs.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import compiled, inlined

#: What Spark's ``xxhash64`` begins with, and what it says of NULL.
SEED = 42

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)


@inlined
def rotated(value, bits):
    """Return 64 bits moved to the left, those that fall out at the right."""
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@compiled
def little_endian(data, at, count):
    """``count`` bytes as one number."""
    found = np.uint64(0)
    for place in range(count):
        found |= np.uint64(data[at + place]) << np.uint64(8 * place)
    return found


@inlined
def _mixed(lane, value):
    return rotated(lane + value * _P2, 31) * _P1


@compiled
def text_hash(data, at, end):
    """Return the hash of the bytes from ``at`` to ``end``."""
    length = np.uint64(end - at)
    seed = np.uint64(SEED)
    if end - at >= 32:
        one, two, three, four = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while at + 32 <= end:
            one = _mixed(one, little_endian(data, at, 8))
            two = _mixed(two, little_endian(data, at + 8, 8))
            three = _mixed(three, little_endian(data, at + 16, 8))
            four = _mixed(four, little_endian(data, at + 24, 8))
            at += 32
        found = rotated(one, 1) + rotated(two, 7) + rotated(three, 12) + rotated(four, 18)
        for lane in (one, two, three, four):
            found = (found ^ _mixed(np.uint64(0), lane)) * _P1 + _P4
    else:
        found = seed + _P5
    found += length
    while at + 8 <= end:
        found ^= _mixed(np.uint64(0), little_endian(data, at, 8))
        found = rotated(found, 27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        found ^= little_endian(data, at, 4) * _P1
        found = rotated(found, 23) * _P2 + _P3
        at += 4
    while at < end:
        found ^= np.uint64(data[at]) * _P5
        found = rotated(found, 11) * _P1
        at += 1
    found ^= found >> np.uint64(33)
    found *= _P2
    found ^= found >> np.uint64(29)
    found *= _P3
    return found ^ (found >> np.uint64(32))


@compiled
def place_hashes(data, places, nulls, out):
    """Hash each value of a column vector, as a signed number; the places of NULLs stay as they
    are."""
    for row in range(len(out)):
        if not nulls[row]:
            start = places[row] >> 32
            out[row] = np.int64(text_hash(data, start, start + (places[row] & 0xFFFF_FFFF)))
