"""SipHash-1-3 (Aumasson and Bernstein, 2012), the hash of tables of texts in memory.

Who writes records chooses their keys. Keys that have one XXH64, whatever its seed, can be computed,
and a table that has its places by it takes as many steps for each of them as there are such keys.
Without the secret of this process nobody can choose keys that share a place here.
"""

from __future__ import annotations

import os

import numpy as np

from spark_cep.columns.compilation import compiled, inlined
from spark_cep.columns.loops.text_hash import little_endian, rotated

#: What the tables of this process, and of those that it forks, are hashed with. It is handed to
#: loops: a global of theirs would be kept with the compiled code.
SECRET = np.array(np.frombuffer(os.urandom(16), np.uint64))

_ONE = np.uint64(0x736F6D6570736575)
_TWO = np.uint64(0x646F72616E646F6D)
_THREE = np.uint64(0x6C7967656E657261)
_FOUR = np.uint64(0x7465646279746573)


@inlined
def _round(one, two, three, four):
    one += two
    two = rotated(two, 13) ^ one
    one = rotated(one, 32)
    three += four
    four = rotated(four, 16) ^ three
    one += four
    four = rotated(four, 21) ^ one
    three += two
    two = rotated(two, 17) ^ three
    three = rotated(three, 32)
    return one, two, three, four


@compiled
def keyed_hash(secret, data, at, end):
    """Return the hash of the bytes from ``at`` to ``end``."""
    length = np.uint64(end - at)
    one, two = secret[0] ^ _ONE, secret[1] ^ _TWO
    three, four = secret[0] ^ _THREE, secret[1] ^ _FOUR
    while at + 8 <= end:
        word = little_endian(data, at, 8)
        one, two, three, four = _round(one, two, three, four ^ word)
        one ^= word
        at += 8
    word = length << np.uint64(56) | little_endian(data, at, end - at)
    one, two, three, four = _round(one, two, three, four ^ word)
    one ^= word
    three ^= np.uint64(0xFF)
    for _ in range(3):
        one, two, three, four = _round(one, two, three, four)
    return one ^ two ^ three ^ four
