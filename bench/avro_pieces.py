"""Avro by hand: pieces of records that are encoded once and joined for each event.

Ten times as fast as encoding each event with a library, which is what lets a million events be
written in seconds.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray


def long(value: int) -> bytes:
    """An int or a long, also the number of a union's branch or of an enum's symbol."""
    left = value << 1 if value >= 0 else (-value << 1) - 1
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


def binary(value: bytes) -> bytes:
    """Bytes."""
    return long(len(value)) + value


def text(value: str) -> bytes:
    """A string."""
    return binary(value.encode())


def double(value: float) -> bytes:
    """A double."""
    return struct.pack("<d", value)


def single(value: float) -> bytes:
    """A float."""
    return struct.pack("<f", value)


def boolean(value: bool) -> bytes:
    """A boolean."""
    return bytes([value])


def decimal(unscaled: int) -> bytes:
    """A decimal in bytes, by its digits without the point."""
    return binary(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True))


def array(items: list[bytes]) -> bytes:
    """An array, or a map whose items are key and value, joined."""
    return b"".join([long(len(items)), *items, long(0)]) if items else long(0)


def longs(values: NDArray[np.int64]) -> tuple[bytes, int]:
    """Positive longs of the same length one behind the other, and that length in bytes.

    Raises:
        ValueError: Their lengths differ.
    """
    shifted = values.astype(np.uint64) << np.uint64(1)
    length = len(long(int(values.min())))
    if length != len(long(int(values.max()))):
        raise ValueError("these numbers do not have the same length in Avro")
    steps = np.arange(length, dtype=np.uint64) * np.uint64(7)
    pieces = (shifted[:, None] >> steps & np.uint64(0x7F)).astype(np.uint8)
    pieces[:, :-1] |= 0x80
    return pieces.tobytes(), length
