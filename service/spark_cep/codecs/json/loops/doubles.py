"""Numbers as the double next to them: Eisel and Lemire's algorithm (Lemire, *Number parsing at a
gigabyte per second*, 2021), which needs two products of 64 bits for what has up to 19 digits."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import compiled
from spark_cep.columns.loops.wide_words import double_of_bits, high_product, leading_zeros

#: Powers of ten that are told, whose doubles have all their digits.
_LEAST, _MOST = -290, 285
_BIAS = 1023
#: Of the bits of a product, those behind the ones that a double has and the next two.
_REST = np.uint64((1 << 9) - 1)
_ALL = np.uint64((1 << 64) - 1)


def _powers() -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """The first 128 bits of powers of five, rounded up where they are below one."""
    found = []
    for power in range(_LEAST, _MOST + 1):
        if power < 0:
            divisor = 5**-power
            bits = divisor.bit_length()
            bits += 127 if power >= -27 else bits + 128
            value = (1 << bits) // divisor + 1
        else:
            value = 5**power << 128
        value >>= max(0, value.bit_length() - 128)
        value <<= 128 - value.bit_length()
        found.append((value >> 64, value & (1 << 64) - 1))
    return np.array(found, np.uint64)


_POWERS = _powers()


@compiled
def nearest_double(number, power):
    """A number of 64 bits times a power of ten as a double, and whether it can be told so."""
    if number == np.uint64(0):
        return 0.0, True
    if not _LEAST <= power <= _MOST:
        return 0.0, False
    zeros = leading_zeros(number)
    number <<= np.uint64(zeros)
    upper_factor = _POWERS[power - _LEAST, 0]
    upper, lower = high_product(number, upper_factor), number * upper_factor
    if upper & _REST == _REST:
        more = high_product(number, _POWERS[power - _LEAST, 1])
        lower += more
        if lower < more:
            upper += np.uint64(1)
        if lower == _ALL:
            return 0.0, False
    top = upper >> np.uint64(63)
    shift = top + np.uint64(9)
    mantissa = upper >> shift
    exponent = ((217_706 * power) >> 16) + 63 + np.int64(top) - zeros + _BIAS
    if not 0 < exponent < 2 * _BIAS:
        return 0.0, False
    if (
        lower <= np.uint64(1) and -4 <= power <= 23
        and mantissa & np.uint64(3) == np.uint64(1) and mantissa << shift == upper
    ):  # fmt: skip
        # Half-way between two, of which the even one is taken.
        mantissa &= ~np.uint64(1)
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    if mantissa >= np.uint64(1 << 53):
        mantissa = np.uint64(1 << 52)
        exponent += 1
    mantissa &= np.uint64((1 << 52) - 1)
    return double_of_bits(np.uint64(exponent) << np.uint64(52) | mantissa), True
