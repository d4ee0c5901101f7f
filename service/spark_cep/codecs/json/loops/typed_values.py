"""Numbers and texts of JSON as values of the kinds that a layout has."""

from __future__ import annotations

import numpy as np

from spark_cep.codecs.json.loops.layout_tables import (
    BASE64,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    MICROS,
    MILLIS,
    SYMBOL,
    WHOLE,
    WIDE_DECIMAL,
)
from spark_cep.codecs.json.loops.names import find
from spark_cep.codecs.json.loops.scalars import (
    base64_bytes,
    day_at,
    fits_decimal,
    micros_at,
    number_at,
    scaled,
    whole,
)
from spark_cep.codecs.json.loops.tokens import MINUS
from spark_cep.columns.compilation import compiled

#: A value of a text that is a number, but for one that has no digits.
FITS, NAN, INFINITE = 1, 2, 3

FIRST_MICROS, LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
_MOST_MILLIS = (2**63 - 1) // 1_000


@compiled
def _is_word(text, at, end, word):
    """Return whether a text is a short one, whose bytes ``word`` has, the first one lowest."""
    for place in range(at, end):
        if np.uint64(text[place]) != word & np.uint64(255):
            return False
        word >>= np.uint64(8)
    return word == np.uint64(0)


_WORD_NAN = np.uint64(int.from_bytes(b"NaN", "little"))
_WORD_INFINITY = np.uint64(int.from_bytes(b"Infinity", "little"))


@compiled
def from_number(below, number, count, power, kind, a, b):
    """A number as a value of a kind, and whether it is one."""
    if kind == WHOLE:
        return whole(below, number, count, power, a)
    if kind == DECIMAL:
        if not fits_decimal(count, power, a, b):
            return np.int64(0), False
        return scaled(below, number, count, power + b, np.uint64(1) << np.uint64(63))
    if kind == WIDE_DECIMAL:
        return np.int64(0), fits_decimal(count, power, a, b)
    value, fits = whole(below, number, count, power, 63)
    if not fits:
        return value, False
    if kind == DATE:
        return value, FIRST_DAY <= value <= LAST_DAY
    if kind == MILLIS:
        if not -_MOST_MILLIS <= value <= _MOST_MILLIS:
            return value, False
        value *= 1_000
        return value, FIRST_MICROS <= value <= LAST_MICROS
    if kind == MICROS:
        return value, FIRST_MICROS <= value <= LAST_MICROS
    return value, False


@compiled
def from_text(text, at, end, kind, a, b, table, mask, slots, entries, names):
    """A text as a value of a kind, and whether it is one: for FLOAT and DOUBLE, which one."""
    value = np.int64(0)
    if kind == SYMBOL:
        return value, FITS * (find(text, at, end - at, table, mask, slots, entries, names) >= 0)
    if kind == DATE:
        value, behind = day_at(text, at, end)
        return value, FITS * (behind == end)
    if kind in (MILLIS, MICROS):
        value, fits = micros_at(text, at, end)
        if kind == MILLIS:
            value = value // 1_000 * 1_000
        return value, FITS * (fits and FIRST_MICROS <= value <= LAST_MICROS)
    if kind in (DECIMAL, WIDE_DECIMAL):
        behind, below, number, count, power = number_at(text, at, end)
        value, fits = from_number(below, number, count, power, kind, a, b)
        return value, FITS * (fits and behind == end)
    if kind == BASE64:
        size = base64_bytes(text, at, end)
        return value, FITS * (size >= 0 and (a < 0 or size == a))
    if kind in (FLOAT, DOUBLE):
        if _is_word(text, at, end, _WORD_NAN):
            return value, NAN
        below = at < end and text[at] == MINUS
        if below:
            at += 1
        if _is_word(text, at, end, _WORD_INFINITY):
            return np.int64(-1 if below else 1), INFINITE
    return value, 0
