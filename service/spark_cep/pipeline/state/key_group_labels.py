"""Key groups by the names under which Spark's shuffle spreads them evenly.

Spark sends a grouping key to the state partition ``pmod(hash(key), partitions)``. Few numbers fall
unevenly there: of 16 key groups, by their numbers, one of 8 partitions gets four, and another none.
The *label* of key group *g* is a number whose hash is *g*: partition ``g % partitions`` gets
it, however many partitions there are. Its lower half is *g* itself.

The hash is ``org.apache.spark.unsafe.hash.Murmur3_x86_32.hashLong`` with Spark's seed, 42; each of
its steps can be undone.
"""

from __future__ import annotations

from functools import cache

_SEED = 42
_BITS = 32
#: The bits of a label that are its key group.
MASK = 0xFFFF_FFFF
_C1, _C2 = 0xCC9E_2D51, 0x1B87_3593
_ADDED = 0xE654_6B64
_LAST_1, _LAST_2 = 0x85EB_CA6B, 0xC2B2_AE35
#: Bytes of a long, which end the hash.
_LENGTH = 8


@cache
def label(group: int) -> int:
    """The grouping key of a key group, a signed 64-bit number."""
    state = _mixed(_SEED, _scrambled(group))
    before_last = _rotated((_unfinished(group) - _ADDED) * _inverse(5), -13)
    upper = _unscrambled(before_last ^ state)
    signed = upper - (1 << _BITS) if upper >> (_BITS - 1) else upper
    return signed << _BITS | group


def group_of(label: int) -> int:
    """The key group of a grouping key."""
    return label & MASK


def _rotated(value: int, by: int) -> int:
    value &= MASK
    by %= _BITS
    return (value << by | value >> (_BITS - by)) & MASK


def _inverse(factor: int) -> int:
    return pow(factor, -1, 1 << _BITS)


def _scrambled(half: int) -> int:
    """``mixK1``."""
    return _rotated(half * _C1, 15) * _C2 & MASK


def _unscrambled(value: int) -> int:
    return _rotated(value * _inverse(_C2), -15) * _inverse(_C1) & MASK


def _mixed(state: int, scrambled: int) -> int:
    """``mixH1``."""
    return (_rotated(state ^ scrambled, 13) * 5 + _ADDED) & MASK


def _unfinished(value: int) -> int:
    """Return the number that ``fmix`` turns into ``value``."""
    value ^= value >> 16
    value = value * _inverse(_LAST_2) & MASK
    value ^= value >> 13 ^ value >> 26
    value = value * _inverse(_LAST_1) & MASK
    value ^= value >> 16
    return value ^ _LENGTH
