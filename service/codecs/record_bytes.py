"""The compiled loops of :mod:`service.codecs.record_layout`, which says what they are given.

They answer as the Avro Java library's decoder does for bytes that a writer could have written, and
refuse lengths and indexes below zero, of which that one makes what it can.
"""

from __future__ import annotations

import numpy as np

from service.codecs.framing import PREFIX_LENGTH
from service.matcher.columnar.kernel import compiled
from service.matcher.columnar.text_hash import little_endian

#: What became of a record: it was read; its bytes are not those of its schema; they are, but a
#: text is not UTF-8 or a time or day outside the years 1 to 9999; there is no value; it does not
#: begin as the registry's framing; its schema id is none of those given; it is not to be read.
READ, UNDECODABLE, BAD_VALUE, ABSENT, NOT_FRAMED, UNKNOWN_ID, SKIPPED = range(7)

#: Operations: ``code, a``. Of a number *a* bytes at most.
END, SKIP_NUMBER, SKIP_BYTES, SKIP_TEXT, UNION, JUMP, ITEMS, NEXT_ITEM = range(8)
#: Into lane *a*.
READ_INT, READ_LONG, READ_TEXT, READ_BOOLEAN, READ_FLOAT, READ_DOUBLE = range(8, 14)
READ_MILLIS, READ_MICROS = 14, 15
#: Into lane *a*; the row that follows has their number, and then comes one with the place of each.
READ_SYMBOL = 16
#: Days since 1970 into lane *a*.
READ_DATE = 17

_FIRST_MICROS, _LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_MOST_MILLIS = (2**63 - 1) // 1_000
#: Most bytes of a number.
INT_BYTES, LONG_BYTES = 5, 10
#: Bytes of a text that is decoded.
MOST_TEXT = 16 << 20


@compiled
def _number(data, at, end, most):
    """A zigzag varint of at most ``most`` bytes and the place behind it; -1: there is none."""
    value = np.uint64(0)
    for place in range(most):
        if at >= end:
            return np.int64(0), -1
        byte = data[at]
        at += 1
        value |= np.uint64(byte & 127) << np.uint64(7 * place)
        if byte < 128:
            if most == INT_BYTES:
                value &= np.uint64(0xFFFFFFFF)
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), at
    return np.int64(0), -1


@compiled
def _is_utf8(data, at, end):
    """Whether the bytes are well-formed UTF-8 (RFC 3629)."""
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


@compiled
def _read_record(
    data, at, end, code, row, symbols, stack, single_bits, single, record, wholes, doubles, nulls
):
    """Read one record into its row of the lanes; what became of it."""
    result = READ
    top = -1
    while True:
        what, a = code[row, 0], code[row, 1]
        row += 1
        if what == END:
            return result
        if what == SKIP_NUMBER:
            _, at = _number(data, at, end, a)
            if at < 0:
                return UNDECODABLE
        elif what == SKIP_BYTES:
            at += a
            if at > end:
                return UNDECODABLE
        elif what in (SKIP_TEXT, READ_TEXT):
            length, at = _number(data, at, end, LONG_BYTES)
            if at < 0 or length < 0 or length > end - at:
                return UNDECODABLE
            if what == READ_TEXT:
                if length > MOST_TEXT:
                    return UNDECODABLE
                if not _is_utf8(data, at, at + length):
                    result = BAD_VALUE
                wholes[record, a] = at << 32 | length
                nulls[record, a] = 0
            at += length
        elif what == UNION:
            # The rows that follow are jumps, one for each branch.
            branch, at = _number(data, at, end, INT_BYTES)
            if at < 0 or not 0 <= branch < a:
                return UNDECODABLE
            row = code[row + branch, 1]
        elif what == JUMP:
            row = a
        elif what == ITEMS:
            # Blocks of an array or a map, whose items end at row ``a``.
            count = np.int64(-1)
            while count < 0:
                count, at = _number(data, at, end, LONG_BYTES)
                if at < 0:
                    return UNDECODABLE
                if count < 0:
                    length, at = _number(data, at, end, LONG_BYTES)
                    if at < 0 or length < 0 or length > end - at:
                        return UNDECODABLE
                    at += length
            if count == 0:
                row = a
            else:
                top += 1
                stack[top, 0], stack[top, 1] = count, row
        elif what == NEXT_ITEM:
            stack[top, 0] -= 1
            if stack[top, 0] > 0:
                row = stack[top, 1]
            else:
                # To the next block, which begins as the first one did.
                row = stack[top, 1] - 1
                top -= 1
        elif what in (READ_DOUBLE, READ_FLOAT):
            size = 8 if what == READ_DOUBLE else 4
            if at + size > end:
                return UNDECODABLE
            if what == READ_DOUBLE:
                wholes[record, a] = np.int64(little_endian(data, at, 8))
            else:
                single_bits[0] = np.uint32(little_endian(data, at, 4))
                doubles[record, a] = single[0]
            nulls[record, a] = 0
            at += size
        elif what == READ_SYMBOL:
            index, at = _number(data, at, end, INT_BYTES)
            count = code[row, 1]
            if at < 0 or not 0 <= index < count:
                return UNDECODABLE
            wholes[record, a] = (symbols << 32) + code[row + 1 + index, 1]
            nulls[record, a] = 0
            row += 1 + count
        elif what == READ_BOOLEAN:
            if at >= end:
                return UNDECODABLE
            wholes[record, a] = data[at] == 1
            nulls[record, a] = 0
            at += 1
        else:
            most = INT_BYTES if what in (READ_INT, READ_DATE) else LONG_BYTES
            value, at = _number(data, at, end, most)
            if at < 0:
                return UNDECODABLE
            if what == READ_MILLIS:
                if not -_MOST_MILLIS <= value <= _MOST_MILLIS:
                    return UNDECODABLE
                value *= 1_000
            if what == READ_DATE:
                if not _FIRST_DAY <= value <= _LAST_DAY:
                    result = BAD_VALUE
            elif what >= READ_MILLIS and not _FIRST_MICROS <= value <= _LAST_MICROS:
                result = BAD_VALUE
            wholes[record, a] = value
            nulls[record, a] = 0


@compiled
def read_records(
    data, ends, present, ids, starts, code, symbols, stack, single_bits, single, wholes, doubles,
    nulls, layouts, outcomes,
):  # fmt: skip
    """Read all records of a pool. ``layouts``: the place of each one's schema id in ``ids``;
    ``symbols``: where those of enums begin in ``data``."""
    known = 0
    for record in range(len(present)):
        at, end = np.int64(ends[record]), np.int64(ends[record + 1])
        layouts[record] = -1
        if not present[record]:
            outcomes[record] = ABSENT
            continue
        if end - at < PREFIX_LENGTH or data[at] != 0:
            outcomes[record] = NOT_FRAMED
            continue
        schema = np.int64(0)
        for place in range(1, PREFIX_LENGTH):
            schema = schema << 8 | np.int64(data[at + place])
        if known >= len(ids) or ids[known] != schema:
            known = np.searchsorted(ids, schema)
            if known >= len(ids) or ids[known] != schema:
                outcomes[record] = UNKNOWN_ID
                continue
        layouts[record] = known
        if starts[known] < 0:
            outcomes[record] = SKIPPED
            continue
        outcomes[record] = _read_record(
            data, at + PREFIX_LENGTH, end, code, starts[known], symbols, stack, single_bits, single,
            record, wholes, doubles, nulls,
        )  # fmt: skip


@compiled
def copy_texts(data, places, nulls, out, out_ends):
    """The texts at ``places`` (start and length) as a pool of their own."""
    at = 0
    for row in range(len(places)):
        if not nulls[row]:
            start = places[row] >> 32
            for source in range(start, start + (places[row] & 0xFFFFFFFF)):
                out[at] = data[source]
                at += 1
        out_ends[row + 1] = at
