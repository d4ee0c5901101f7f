"""Scalars of JSON in compiled loops: numbers, strings, and what strings stand for."""

from __future__ import annotations

import numpy as np

from spark_cep.codecs.json.loops.doubles import nearest_double
from spark_cep.columns.compilation import compiled
from spark_cep.columns.loops.wide_words import PLAIN_WIDTH, plain_bytes

#: Properties of a string: it has escapes; it has characters beyond ASCII.
ESCAPED, BEYOND_ASCII = 1, 2
#: Digits that fit into 64 bits.
MOST_DIGITS = 19
_LARGEST_POWER = 1_000_000
_BACKSLASH, _QUOTE, _COLON, _POINT, _PLUS, _MINUS = 92, 34, 58, 46, 43, 45
_DAY = 86_400_000_000


@compiled
def _hex_digits(data, at, end):
    """The number of four hexadecimal digits; -1: they are none."""
    if at + 4 > end:
        return -1
    found = 0
    for place in range(at, at + 4):
        byte = np.int64(data[place])
        if 48 <= byte <= 57:
            digit = byte - 48
        elif 97 <= byte | 32 <= 102:
            digit = (byte | 32) - 87
        else:
            return -1
        found = found << 4 | digit
    return found


@compiled
def string_end(data, at, end):
    """The place of the quote that ends a string, which is read from behind its first one (-1: it is
    no string), and its properties."""
    properties = 0
    while at < end:
        while at + PLAIN_WIDTH <= end:
            plain = plain_bytes(data, at)
            at += plain
            if plain < PLAIN_WIDTH:
                break
        if at >= end:
            break
        byte = data[at]
        if byte == _QUOTE:
            return at, properties
        if byte == _BACKSLASH:
            properties |= ESCAPED
            at += 1
            if at >= end:
                return -1, properties
            byte = data[at]
            if byte == 117:
                if _hex_digits(data, at + 1, end) < 0:
                    return -1, properties
                at += 4
            elif not (
                byte in (_QUOTE, _BACKSLASH, 47, 98, 102) or byte in (110, 114, 116)
            ):  # fmt: skip
                return -1, properties
        elif byte < 0x20:
            return -1, properties
        elif byte >= 0x80:
            properties |= BEYOND_ASCII
        at += 1
    return -1, properties


@compiled
def unescape(data, at, end, out, to):
    """Put the text of a string without its escapes to ``to``; the place behind it, -1 where an
    escape is one half of a character."""
    while at < end:
        byte = data[at]
        if byte != _BACKSLASH:
            out[to] = byte
            to += 1
            at += 1
            continue
        mark = data[at + 1]
        if mark != 117:
            if mark == 98:
                out[to] = 8
            elif mark == 102:
                out[to] = 12
            elif mark == 110:
                out[to] = 10
            elif mark == 114:
                out[to] = 13
            elif mark == 116:
                out[to] = 9
            else:
                out[to] = mark
            to += 1
            at += 2
            continue
        code = _hex_digits(data, at + 2, end)
        at += 6
        if 0xD800 <= code < 0xDC00:
            if at + 6 > end or data[at] != _BACKSLASH or data[at + 1] != 117:
                return -1
            low = _hex_digits(data, at + 2, end)
            if not 0xDC00 <= low < 0xE000:
                return -1
            at += 6
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        elif 0xDC00 <= code < 0xE000:
            return -1
        if code < 0x80:
            out[to] = code
            to += 1
        elif code < 0x800:
            out[to] = 0xC0 | code >> 6
            out[to + 1] = 0x80 | code & 63
            to += 2
        elif code < 0x10000:
            out[to] = 0xE0 | code >> 12
            out[to + 1] = 0x80 | code >> 6 & 63
            out[to + 2] = 0x80 | code & 63
            to += 3
        else:
            out[to] = 0xF0 | code >> 18
            out[to + 1] = 0x80 | code >> 12 & 63
            out[to + 2] = 0x80 | code >> 6 & 63
            out[to + 3] = 0x80 | code & 63
            to += 4
    return to


@compiled
def _digits(data, at, end, number, count, zeros):
    """Take digits into a number of ``count`` digits, without the ``zeros`` at its end."""
    while at < end:
        digit = np.int64(data[at]) - 48
        if digit < 0 or digit > 9:
            break
        if digit > 0:
            count += zeros + 1
            if count <= MOST_DIGITS:
                for _ in range(zeros):
                    number *= np.uint64(10)
                number = number * np.uint64(10) + np.uint64(digit)
            zeros = 0
        elif count > 0:
            zeros += 1
        at += 1
    return at, number, count, zeros


@compiled
def number_at(data, at, end):
    """A number as JSON writes it: the place behind it (-1: it is none), whether it is below 0, its
    digits without the zeros at both ends as one number, how many they are (of more than
    ``MOST_DIGITS`` the number says nothing), and the power of ten that it is multiplied by."""
    number = np.uint64(0)
    count = zeros = power = 0
    below = False
    if at < end and data[at] == _MINUS:
        below = True
        at += 1
    first = at
    at, number, count, zeros = _digits(data, at, end, number, count, zeros)
    if at == first or (data[first] == 48 and at > first + 1):
        return -1, below, number, count, power
    if at < end and data[at] == _POINT:
        first = at + 1
        at, number, count, zeros = _digits(data, first, end, number, count, zeros)
        if at == first:
            return -1, below, number, count, power
        power = first - at
    if at < end and data[at] | 32 == 101:
        at += 1
        sign = 1
        if at < end and (data[at] == _PLUS or data[at] == _MINUS):
            if data[at] == _MINUS:
                sign = -1
            at += 1
        first = at
        exponent = 0
        while at < end and 48 <= data[at] <= 57:
            exponent = min(exponent * 10 + np.int64(data[at]) - 48, _LARGEST_POWER)
            at += 1
        if at == first:
            return -1, below, number, count, power
        power += sign * exponent
    power += zeros
    if count == 0:
        power = 0
    return at, below, number, count, power


@compiled
def scaled(below, number, count, power, limit):
    """A number times a power of ten as a whole number nearer to 0 than ``limit``, and whether it is
    one."""
    if power < 0 or count + power > MOST_DIGITS:
        return np.int64(0), False
    for _ in range(power):
        number *= np.uint64(10)
    if number >= limit:
        return np.int64(0), False
    value = np.int64(number)
    return -value if below else value, True


@compiled
def whole(below, number, count, power, bits):
    """A number as a whole number of so many bits beside its sign, and whether it is one."""
    limit = np.uint64(1) << np.uint64(bits)
    if below:
        limit += np.uint64(1)
    return scaled(below, number, count, power, limit)


@compiled
def whole_at(data, at, end, bits):
    """A text that is a number as a whole number of so many bits beside its sign, and whether it is
    one."""
    _, below, number, count, power = number_at(data, at, end)
    return whole(below, number, count, power, bits)


@compiled
def exact_double(below, number, count, power):
    """The double next to a number, and whether it can be told from the first digits."""
    if count > MOST_DIGITS:
        return 0.0, False
    value, exact = nearest_double(number, power)
    return -value if below else value, exact


@compiled
def fits_decimal(count, power, precision, scale):
    """Return whether a number is one of ``precision`` digits, ``scale`` of them behind the
    point."""
    return count == 0 or (power >= -scale and count + power <= precision - scale)


@compiled
def _two(text, at, end):
    """The number of two digits; -1: they are none."""
    if at + 2 > end:
        return -1
    one, two = np.int64(text[at]) - 48, np.int64(text[at + 1]) - 48
    if not (0 <= one <= 9 and 0 <= two <= 9):
        return -1
    return 10 * one + two


@compiled
def day_at(text, at, end):
    """A date as ``2026-01-31``: days since 1970, and the place behind it; -1: it is none."""
    if at + 10 > end or text[at + 4] != _MINUS or text[at + 7] != _MINUS:
        return 0, -1
    century, year = _two(text, at, end), _two(text, at + 2, end)
    month, day = _two(text, at + 5, end), _two(text, at + 8, end)
    if century < 0 or year < 0 or not 1 <= month <= 12 or day < 1:
        return 0, -1
    year += 100 * century
    days = 31
    if month in (4, 6, 9, 11):
        days = 30
    elif month == 2:
        days = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if day > days or year < 1:
        return 0, -1
    # Years begin in March, so that a leap day is the last one.
    if month <= 2:
        year -= 1
        month += 12
    of_year = (153 * (month - 3) + 2) // 5 + day - 1
    of_all = 365 * year + year // 4 - year // 100 + year // 400 + of_year
    return of_all - 719_468, at + 10


@compiled
def micros_at(text, at, end):
    """The microseconds since 1970 of a time in ISO 8601, which is UTC where it has no offset, and
    whether it is one. Digits behind the microsecond are cut off."""
    day, at = day_at(text, at, end)
    if at < 0:
        return 0, False
    micros = day * _DAY
    if at == end:
        return micros, True
    if text[at] != 84 and text[at] != 32:
        return 0, False
    hour = _two(text, at + 1, end)
    at += 3
    minute = second = 0
    if at < end and text[at] == _COLON:
        minute = _two(text, at + 1, end)
        at += 3
        if at < end and text[at] == _COLON:
            second = _two(text, at + 1, end)
            at += 3
            if at < end and text[at] == _POINT:
                at += 1
                first, unit = at, 100_000
                while at < end and 48 <= text[at] <= 57:
                    micros += (np.int64(text[at]) - 48) * unit
                    unit //= 10
                    at += 1
                if at == first:
                    return 0, False
    if not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59):
        return 0, False
    micros += ((hour * 60 + minute) * 60 + second) * 1_000_000
    if at < end and text[at] == 90:
        return micros, at + 1 == end
    if at < end and (text[at] == _PLUS or text[at] == _MINUS):
        sign = 1 if text[at] == _PLUS else -1
        hour, minute = _two(text, at + 1, end), 0
        at += 3
        if at < end:
            if text[at] == _COLON:
                at += 1
            minute = _two(text, at, end)
            at += 2
        if not (0 <= hour <= 23 and 0 <= minute <= 59):
            return 0, False
        micros -= sign * (hour * 60 + minute) * 60_000_000
    return micros, at == end


@compiled
def base64_bytes(text, at, end):
    """The number of bytes that a text in base64 stands for; -1: it is none."""
    length = end - at
    if length % 4:
        return -1
    padding = 0
    for place in range(at, end):
        byte = np.int64(text[place])
        if byte == 61:
            padding += 1
        elif padding or not (
            48 <= byte <= 57 or 65 <= byte <= 90 or 97 <= byte <= 122 or byte in (43, 47)
        ):
            return -1
    return length // 4 * 3 - padding if padding <= 2 else -1
