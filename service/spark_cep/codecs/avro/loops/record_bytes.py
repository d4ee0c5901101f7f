"""The compiled loops of :mod:`spark_cep.codecs.avro.record_layout`, which says what they are given.

They answer as the Avro Java library's decoder does for bytes that a writer could have written, and
refuse lengths and indexes below zero, of which that one makes what it can.
"""

from __future__ import annotations

import numpy as np

from spark_cep.codecs.registry.loops.framing_loops import BY_GUID, UNFRAMED, known_guid, schema_of
from spark_cep.codecs.registry.loops.framing_loops import NOT_FRAMED as NO_SCHEMA
from spark_cep.columns.compilation import compiled
from spark_cep.columns.loops.byte_loops import is_utf8
from spark_cep.columns.loops.text_hash import little_endian

#: What became of a record: it was read; there is no value; its type is not read; it does not begin
#: as the registry's framing; its schema id is none of those given; its bytes are not those of its
#: schema; its schema cannot be read; a text is not UTF-8, a decimal has too many digits, or a time
#: or day is outside the years 1 to 9999; its types nest too deeply; fields that it does not have
#: bytes for take too much memory.
(
    READ, ABSENT, NOT_READ, NOT_FRAMED, UNKNOWN_ID, UNDECODABLE, UNREADABLE, BAD_VALUE, TOO_DEEP,
    TOO_LARGE,
) = range(10)  # fmt: skip

#: Operations: ``code, a, b, c``. The end, with the outcome *a*; a number of *a* bytes at most.
END, SKIP_NUMBER, SKIP_BYTES, SKIP_TEXT, UNION, JUMP, ITEMS, NEXT_ITEM, CALL, RETURN = range(10)
#: The record is of type *a*.
TYPE = 10
#: Into vector *a* (below 0: it is only looked at); numbers of *b* bytes at most.
READ_WHOLE, READ_TEXT, READ_BOOLEAN, READ_FLOAT, READ_DOUBLE = range(11, 16)
READ_DATE, READ_MILLIS, READ_MICROS = range(16, 19)
#: A whole number as FLOAT, and as DOUBLE.
READ_AS_FLOAT, READ_AS_DOUBLE = 19, 20
#: One of *b* symbols; that many rows follow with the place of each (below 0: there is none).
READ_SYMBOL = 21
#: A decimal below *b* in *c* bytes (below 0: their number stands in front).
READ_DECIMAL = 22
#: A decimal of *a* bytes (as *c* above) below the number of 128 bits of which *b* and *c* are the
#: upper and the lower half.
CHECK_DECIMAL = 23
#: A constant *b*; a constant text, at place *b* among those of symbols.
SET, SET_TEXT = 24, 25
#: A value whose place goes into vector *a* begins, and ends; it is read as vector *b* is told, by
#: *c*.
BEGIN, FINISH = 26, 27
#: Fields that have no bytes here, and take *a* bytes of memory.
ADDED = 28

_FIRST_MICROS, _LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_MOST_MILLIS = (2**63 - 1) // 1_000
#: Most bytes of a number.
INT_BYTES, LONG_BYTES = 5, 10
#: Types that contain themselves may do so this often in one record.
MOST_DEEP = 10_000
#: Most memory that fields without bytes take in one record: an item of a byte may have hundreds of
#: defaults.
MOST_ADDED = 64 << 20


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
def _unscaled(data, at, length):
    """Upper and lower half of a big-endian number, and whether it needs no more than both."""
    sign = np.uint64(0)
    if data[at] >= 128:
        sign = ~sign
    filler = np.uint8(sign & np.uint64(255))
    first = at
    while at + length - first > 16:
        if data[first] != filler:
            return sign, sign, False
        first += 1
    upper = lower = sign
    for place in range(first, at + length):
        upper = upper << np.uint64(8) | lower >> np.uint64(56)
        lower = lower << np.uint64(8) | np.uint64(data[place])
    # Of 16 bytes the first one has the sign.
    return upper, lower, (upper >> np.uint64(63)) == (sign & np.uint64(1))


@compiled
def _is_below(upper, lower, most_upper, most_lower):
    """Return whether a number of 128 bits is nearer to 0 than another one, which is above 0."""
    if upper >> np.uint64(63):
        upper, lower = ~upper, ~lower + np.uint64(1)
        if lower == 0:
            upper += np.uint64(1)
    return upper < most_upper or (upper == most_upper and lower < most_lower)


@compiled
def _read_record(
    data, at, end, code, row, symbols, stack, single_bits, single, record, wholes, doubles, nulls,
    types, added,
):  # fmt: skip
    """Read one record into its row of the vectors; what became of it."""
    result = READ
    most_added = added[0] + MOST_ADDED
    top = -1
    while True:
        what, a, b = code[row, 0], code[row, 1], code[row, 2]
        row += 1
        if what == END:
            return max(result, a)
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
                if not is_utf8(data, at, at + length):
                    result = BAD_VALUE
                if a >= 0:
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
            # Blocks of an array or a map, whose items end at row ``a``; one that says how long it
            # is is passed over, unless its items are looked at (``b``).
            count = np.int64(-1)
            while count < 0:
                count, at = _number(data, at, end, LONG_BYTES)
                if at < 0:
                    return UNDECODABLE
                if count < 0:
                    length, at = _number(data, at, end, LONG_BYTES)
                    if at < 0 or length < 0 or length > end - at:
                        return UNDECODABLE
                    if b:
                        count = -count
                        if count < 0:
                            return UNDECODABLE
                    else:
                        at += length
            if count == 0:
                row = a
            else:
                top += 1
                if top >= len(stack):
                    return TOO_DEEP
                stack[top, 0], stack[top, 1] = count, row
        elif what == NEXT_ITEM:
            stack[top, 0] -= 1
            if stack[top, 0] > 0:
                row = stack[top, 1]
            else:
                # To the next block, which begins as the first one did.
                row = stack[top, 1] - 1
                top -= 1
        elif what == CALL:
            top += 1
            if top >= len(stack):
                return TOO_DEEP
            stack[top, 1] = row
            row = a
        elif what == RETURN:
            row = stack[top, 1]
            top -= 1
        elif what in (READ_DOUBLE, READ_FLOAT):
            size = 8 if what == READ_DOUBLE else 4
            if at + size > end:
                return UNDECODABLE
            if a >= 0:
                if what == READ_DOUBLE:
                    wholes[record, a] = np.int64(little_endian(data, at, 8))
                else:
                    single_bits[0] = np.uint32(little_endian(data, at, 4))
                    doubles[record, a] = single[0]
                nulls[record, a] = 0
            at += size
        elif what == READ_SYMBOL:
            index, at = _number(data, at, end, INT_BYTES)
            if at < 0 or not 0 <= index < b or code[row + index, 1] < 0:
                return UNDECODABLE
            if a >= 0:
                wholes[record, a] = (symbols << 32) + code[row + index, 1]
                nulls[record, a] = 0
            row += b
        elif what == READ_BOOLEAN:
            if at >= end:
                return UNDECODABLE
            if a >= 0:
                wholes[record, a] = data[at] == 1
                nulls[record, a] = 0
            at += 1
        elif what in (READ_DECIMAL, CHECK_DECIMAL):
            length = a if what == CHECK_DECIMAL else code[row - 1, 3]
            if length < 0:
                length, at = _number(data, at, end, LONG_BYTES)
            if at < 0 or length < 0 or length > end - at:
                return UNDECODABLE
            if length == 0:
                result = BAD_VALUE
                continue
            upper, lower, fits = _unscaled(data, at, length)
            at += length
            if what == CHECK_DECIMAL:
                most_upper, most_lower = np.uint64(b), np.uint64(code[row - 1, 3])
            else:
                most_upper, most_lower = np.uint64(0), np.uint64(b)
            if not (fits and _is_below(upper, lower, most_upper, most_lower)):
                result = BAD_VALUE
            elif what == READ_DECIMAL and a >= 0:
                wholes[record, a] = np.int64(lower)
                nulls[record, a] = 0
        elif what == TYPE:
            types[record] = a
        elif what == SET:
            wholes[record, a] = b
            nulls[record, a] = 0
        elif what == SET_TEXT:
            wholes[record, a] = (symbols << 32) + b
            nulls[record, a] = 0
        elif what == ADDED:
            added[0] += a
            if added[0] > most_added:
                added[0] = most_added - MOST_ADDED
                return TOO_LARGE
        elif what == BEGIN:
            wholes[record, a] = at
        elif what == FINISH:
            wholes[record, b] = code[row - 1, 3]
            wholes[record, a] = wholes[record, a] << 32 | (at - wholes[record, a])
            nulls[record, a] = 0
        else:
            value, at = _number(data, at, end, b)
            if at < 0:
                return UNDECODABLE
            if what == READ_MILLIS:
                if not -_MOST_MILLIS <= value <= _MOST_MILLIS:
                    return UNDECODABLE
                value *= 1_000
            if what == READ_DATE:
                if not _FIRST_DAY <= value <= _LAST_DAY:
                    result = BAD_VALUE
            elif READ_MILLIS <= what <= READ_MICROS and not (
                _FIRST_MICROS <= value <= _LAST_MICROS
            ):
                result = BAD_VALUE
            if a >= 0:
                if what == READ_AS_FLOAT:
                    single[0] = value
                    doubles[record, a] = single[0]
                elif what == READ_AS_DOUBLE:
                    doubles[record, a] = value
                else:
                    wholes[record, a] = value
                nulls[record, a] = 0


@compiled
def read_records(
    data, places, absent, framing, headers, header_places, no_headers, unframed, ids, guids,
    programs, kinds, code, symbols, stack, single_bits, single, wholes, doubles, nulls, types,
    outcomes, added,
):  # fmt: skip
    """Read all records, which are at ``places``. ``framing``: of
    :mod:`~spark_cep.codecs.registry.loops.framing_loops`; without one the schema is ``unframed``.
    ``programs``: by kind of topic and place of the schema in ``ids``, or behind them in ``guids``,
    the row of ``code`` that is first; ``symbols``: where those of enums begin in ``data``;
    ``added``: for the memory that fields without bytes take in all records."""
    known = np.int64(0)
    for record in range(len(places)):
        at = places[record] >> 32
        end = at + (places[record] & 0xFFFFFFFF)
        types[record] = -1
        if absent[record]:
            outcomes[record] = ABSENT
            continue
        header = header_end = np.int64(0)
        if not no_headers[record]:
            header = header_places[record] >> 32
            header_end = header + (header_places[record] & 0xFFFFFFFF)
        found, schema, lower, body = schema_of(data, at, end, framing, headers, header, header_end)
        if found == NO_SCHEMA:
            outcomes[record] = NOT_FRAMED
            continue
        if found == BY_GUID:
            place = known_guid(schema, lower, guids)
            if place < 0:
                outcomes[record] = UNKNOWN_ID
                continue
            known = len(ids) + place
        else:
            wanted = unframed if framing == UNFRAMED else np.int64(schema)
            if known >= len(ids) or ids[known] != wanted:
                known = np.searchsorted(ids, wanted)
                if known >= len(ids) or ids[known] != wanted:
                    outcomes[record] = UNKNOWN_ID
                    continue
        outcomes[record] = _read_record(
            data, body, end, code, programs[kinds[record], known], symbols, stack,
            single_bits, single, record, wholes, doubles, nulls, types, added,
        )  # fmt: skip


@compiled
def cut_records(
    data, count, code, row, stack, single_bits, single, wholes, doubles, nulls, types, added,
    header, out, ends,
):  # fmt: skip
    """Copy ``count`` records that stand one behind the other in ``data`` to ``out``, each with
    ``header`` in front, and put down where each ends there. The operations from ``row`` on leave
    the place of a record in vector 0 of the only row. Returns how many could be cut; behind them is
    one whose bytes are not those of its schema."""
    at = to = 0
    for record in range(count):
        outcome = _read_record(
            data, at, len(data), code, row, 0, stack, single_bits, single, 0, wholes, doubles,
            nulls, types, added,
        )  # fmt: skip
        if outcome != READ:
            return record
        for place in range(len(header)):
            out[to + place] = header[place]
        to += len(header)
        length = wholes[0, 0] & 0xFFFFFFFF
        for place in range(at, at + length):
            out[to] = data[place]
            to += 1
        at += length
        ends[record + 1] = to
    return count
