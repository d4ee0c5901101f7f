"""Compiled loops over bytes: copies of what is at places (see
:mod:`spark_cep.columns.vectors`), numbers for texts, the same number for equal ones, bytes as
ASCII characters, and whether bytes are a text."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import compiled
from spark_cep.columns.loops.keyed_hash import keyed_hash


@compiled
def copy_bytes(data, places, nulls, out):
    """Put the bytes at ``places`` one behind the other; where NULL, nothing."""
    at = 0
    for row in range(len(places)):
        if not nulls[row]:
            start = places[row] >> 32
            for source in range(start, start + (places[row] & 0xFFFFFFFF)):
                out[at] = data[source]
                at += 1


@compiled
def place_of(secret, text, at, length, data, table, firsts):
    """Return the place in the table of the number of a text of ``length`` bytes from ``at`` on, or
    a free place. ``secret``: what the table is hashed with."""
    last = np.uint64(len(table) - 1)
    slot = keyed_hash(secret, text, at, at + length) & last
    while table[slot] >= 0:
        first = firsts[table[slot]]
        if first & 0xFFFFFFFF == length:
            start = first >> 32
            same = True
            for step in range(length):
                if data[start + step] != text[at + step]:
                    same = False
                    break
            if same:
                break
        slot = (slot + np.uint64(1)) & last
    return slot


@compiled
def number_texts(secret, data, places, nulls, table, firsts, known, out):
    """Number texts in the order in which they are first met, from ``known`` on; returns how many
    there are. ``table``: numbers where hashes lead (a power of two, -1: free; at least twice as
    many as there may be texts). ``firsts``: by number, the place of the text."""
    for row in range(len(places)):
        if nulls[row]:
            continue
        at, length = places[row] >> 32, places[row] & 0xFFFFFFFF
        slot = place_of(secret, data, at, length, data, table, firsts)
        if table[slot] < 0:
            table[slot] = known
            firsts[known] = places[row]
            known += 1
        out[row] = table[slot]
    return known


@compiled
def find_text(secret, text, data, table, firsts):
    """The number of a text among those that :func:`number_texts` has met; -1: none of them."""
    return table[place_of(secret, text, 0, len(text), data, table, firsts)]


@compiled
def find_texts(secret, texts, places, nulls, data, table, firsts, of_null, out):
    """For each text, its number among those that :func:`number_texts` has met; -1: none of them.
    ``of_null``: the number of NULL."""
    for row in range(len(places)):
        if nulls[row]:
            out[row] = of_null
        else:
            at, length = places[row] >> 32, places[row] & 0xFFFFFFFF
            out[row] = table[place_of(secret, texts, at, length, data, table, firsts)]


@compiled
def write_ascii(data, out):
    """The lower seven bits of each byte, then the upper bits of seven bytes at a time."""
    count = len(data)
    whole = count // 7 * 7
    for place in range(count):
        out[place] = data[place] & 0x7F
    at = count
    for first in range(0, whole, 7):  # a fixed number of steps, so that they are unrolled
        upper = 0
        for bit in range(7):
            upper |= (data[first + bit] >> 7) << bit
        out[at] = upper
        at += 1
    if whole < count:
        upper = 0
        for bit in range(count - whole):
            upper |= (data[whole + bit] >> 7) << bit
        out[at] = upper


@compiled
def read_ascii(text, out):
    """The bytes of which :func:`write_ascii` has written ``text``."""
    count = len(out)
    whole = count // 7 * 7
    at = count
    for first in range(0, whole, 7):
        upper = text[at]
        at += 1
        for bit in range(7):
            out[first + bit] = text[first + bit] | (upper >> bit & 1) << 7
    for place in range(whole, count):
        out[place] = text[place] | (text[at] >> (place - whole) & 1) << 7


@compiled
def is_utf8(data, at, end):
    """Return whether the bytes are well-formed UTF-8 (RFC 3629)."""
    while at < end:
        first = data[at]
        at += 1
        if first < 0x80:
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if at + more > end or not low <= data[at] <= high:
            return False
        for place in range(at + 1, at + more):
            if not 0x80 <= data[place] <= 0xBF:
                return False
        at += more
    return True
