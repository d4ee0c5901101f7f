"""The compiled loop of :mod:`spark_cep.codecs.protobuf.wire_layout`, which says what it is given.

It reads the wire format as Protobuf's own parsers do: of a field that is there several times the
last value counts, the parts of a message are put together, a field of a oneof takes the place of
the others, and a field of another wire type is one that is not known. Fields that the layout does
not have are passed over by their lengths.
"""

from __future__ import annotations

import numpy as np

from spark_cep.codecs.protobuf.loops.message_framing import schema_and_message, varint, zigzag
from spark_cep.codecs.registry.loops.framing_loops import UNFRAMED
from spark_cep.columns.compilation import compiled, inlined
from spark_cep.columns.loops.byte_loops import is_utf8
from spark_cep.columns.loops.text_hash import little_endian

#: What became of a record: as in :mod:`spark_cep.codecs.avro.loops.record_bytes`.
READ, ABSENT, NOT_READ, NOT_FRAMED, UNKNOWN_ID, UNDECODABLE, UNREADABLE, BAD_VALUE = range(8)

#: Kinds of fields; a message is read field by field, an object is left where it is.
(
    WHOLE, UNSIGNED, ZIGZAG, INT, UNSIGNED_INT, ZIGZAG_INT, BOOLEAN, SYMBOL, FIXED, FIXED_UNSIGNED,
    DOUBLE, FIXED_INT, FIXED_UNSIGNED_INT, FLOAT, TEXT, BYTES, TIMESTAMP, MESSAGE, OBJECT,
) = range(19)  # fmt: skip

#: Columns of a layout's fields: the field's number; its kind and wire type; the vector of its value
#: (-1: there is none); the vector that says how a value is read that is left in place, and what it
#: says; the node of a message; its symbols, from and to; the fields of its oneof, from and to; the
#: vectors inside, from and to; the nodes inside, from and to.
FIELD_COLUMNS = 15
(
    NUMBER, KIND, WIRE, VECTOR, READER_VECTOR, READER, NODE, SYMBOLS, SYMBOLS_END, ONEOF, ONEOF_END,
    INSIDE, INSIDE_END, NODES, NODES_END,
) = range(FIELD_COLUMNS)  # fmt: skip
#: Columns of its nodes, which are messages: the table of the fields, and its size less 1; the
#: constants of fields that are not there, from and to.
NODE_COLUMNS = 4
SLOTS, MASK, CONSTANTS, CONSTANTS_END = range(NODE_COLUMNS)
#: Columns of constants: the vector; the value; what it is.
IS_VALUE, IS_TEXT, IS_PLACE = range(3)

#: Wire types.
VARINT, EIGHT_BYTES, LENGTH, GROUP, GROUP_END, FOUR_BYTES = range(6)
#: Groups in each other.
MOST_GROUPS = 100
_MOST_LENGTH = (1 << 31) - 1
_FIRST_MICROS, _LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799


@inlined
def _short_varint(data, at, end):
    """A tag or a length: at most five bytes, and 32 bits."""
    value, behind = varint(data, at, end)
    if behind - at > 5 or value >> np.uint64(32):
        behind = -1
    return np.int64(value), behind


@inlined
def _signed(value):
    """The lower 32 bits as a signed number."""
    low = np.int64(value & np.uint64(0xFFFFFFFF))
    return low - (np.int64(1) << 32) if low >> 31 else low


@compiled
def _passed(data, at, end, wire):
    """The place behind a value that is no group; -1: there is none."""
    if wire == VARINT:
        _, at = varint(data, at, end)
        return at
    if wire == LENGTH:
        length, at = _short_varint(data, at, end)
        if at < 0 or length > _MOST_LENGTH:
            return -1
        at += length
    elif wire == EIGHT_BYTES:
        at += 8
    elif wire == FOUR_BYTES:
        at += 4
    else:
        return -1
    return at if at <= end else -1


@compiled
def _skipped(data, at, end, wire, number, groups):
    """The place behind a field that is passed over; -1: it is not whole."""
    if wire != GROUP:
        return _passed(data, at, end, wire)
    top = 0
    groups[0] = number
    while top >= 0:
        tag, at = _short_varint(data, at, end)
        if at < 0 or tag >> 3 == 0:
            return -1
        wire = tag & 7
        if wire == GROUP:
            top += 1
            if top >= MOST_GROUPS:
                return -1
            groups[top] = tag >> 3
        elif wire == GROUP_END:
            if groups[top] != tag >> 3:
                return -1
            top -= 1
        else:
            at = _passed(data, at, end, wire)
            if at < 0:
                return -1
    return at


@compiled
def _timestamp(data, at, end, seconds, nanos, groups):
    """Seconds and nanoseconds of a google.protobuf.Timestamp, and whether its bytes are sound.
    What is not there is as given."""
    while at < end:
        tag, at = _short_varint(data, at, end)
        if at < 0 or tag >> 3 == 0:
            return seconds, nanos, False
        if tag in (1 << 3, 2 << 3):
            value, at = varint(data, at, end)
            if at < 0:
                return seconds, nanos, False
            if tag == 1 << 3:
                seconds = np.int64(value)
            else:
                nanos = _signed(value)
        else:
            at = _skipped(data, at, end, tag & 7, tag >> 3, groups)
            if at < 0:
                return seconds, nanos, False
    return seconds, nanos, True


@inlined
def _entered(node, nodes, constants, record, wholes, nulls, data_end, body):
    """Put what fields have that are not there into their vectors."""
    for row in range(nodes[node, CONSTANTS], nodes[node, CONSTANTS_END]):
        vector, value, what = constants[row, 0], constants[row, 1], constants[row, 2]
        if what == IS_TEXT:
            value += data_end << 32
        elif what == IS_PLACE:
            value = body
        wholes[record, vector] = value
        nulls[record, vector] = 0


@inlined
def _cleared(field, fields, members, inside, inner, record, nulls, seen):
    """Take away what other fields of a oneof have."""
    for row in range(fields[field, ONEOF], fields[field, ONEOF_END]):
        other = members[row]
        for place in range(fields[other, INSIDE], fields[other, INSIDE_END]):
            nulls[record, inside[place]] = 1
        for place in range(fields[other, NODES], fields[other, NODES_END]):
            seen[inner[place]] = -1


@inlined
def _read_record(
    data, at, end, root, nodes, fields, slots, constants, symbols, members, inside, inner, stack,
    seen, groups, single_bits, single, record, wholes, doubles, nulls,
):  # fmt: skip
    """Read one record into its row of the vectors; what became of it."""
    result = READ
    data_end = np.int64(len(data))
    body = at << 32 | (end - at)
    top = -1
    node = np.int64(root)
    _entered(node, nodes, constants, record, wholes, nulls, data_end, body)
    while True:
        if at == end:
            if top < 0:
                return result
            end, node = stack[top, 0], stack[top, 1]
            top -= 1
            continue
        tag, at = _short_varint(data, at, end)
        if at < 0 or tag >> 3 == 0:
            return UNDECODABLE
        number, wire = tag >> 3, tag & 7
        slot = number & nodes[node, MASK]
        while True:
            field = slots[nodes[node, SLOTS] + slot]
            if field < 0 or fields[field, NUMBER] == number:
                break
            slot = slot + 1 & nodes[node, MASK]
        if field < 0 or fields[field, WIRE] != wire:
            at = _skipped(data, at, end, wire, number, groups)
            if at < 0:
                return UNDECODABLE
            continue
        _cleared(field, fields, members, inside, inner, record, nulls, seen)
        kind, vector = fields[field, KIND], fields[field, VECTOR]
        if wire == VARINT:
            value, at = varint(data, at, end)
            if at < 0:
                return UNDECODABLE
            if kind == SYMBOL:
                found = np.int64(-1)
                given = _signed(value)
                for row in range(fields[field, SYMBOLS], fields[field, SYMBOLS_END]):
                    if symbols[row, 0] == given:
                        found = symbols[row, 1]
                        break
                if vector >= 0:
                    wholes[record, vector] = (data_end << 32) + found
                    nulls[record, vector] = found < 0
                continue
            if kind in (WHOLE, UNSIGNED):
                whole = np.int64(value)
                if kind == UNSIGNED and whole < 0:
                    result = BAD_VALUE
            elif kind == ZIGZAG:
                whole = zigzag(value)
            elif kind == INT:
                whole = _signed(value)
            elif kind == UNSIGNED_INT:
                whole = np.int64(value & np.uint64(0xFFFFFFFF))
            elif kind == ZIGZAG_INT:
                whole = zigzag(value & np.uint64(0xFFFFFFFF))
            else:
                whole = np.int64(value != np.uint64(0))
            if vector >= 0:
                wholes[record, vector] = whole
                nulls[record, vector] = 0
        elif wire == EIGHT_BYTES:
            if at + 8 > end:
                return UNDECODABLE
            whole = np.int64(little_endian(data, at, 8))
            at += 8
            if kind == FIXED_UNSIGNED and whole < 0:
                result = BAD_VALUE
            if vector >= 0:
                wholes[record, vector] = whole
                nulls[record, vector] = 0
        elif wire == FOUR_BYTES:
            if at + 4 > end:
                return UNDECODABLE
            bits = little_endian(data, at, 4)
            at += 4
            if vector >= 0:
                if kind == FLOAT:
                    single_bits[0] = np.uint32(bits)
                    doubles[record, vector] = single[0]
                elif kind == FIXED_INT:
                    wholes[record, vector] = _signed(bits)
                else:
                    wholes[record, vector] = np.int64(bits)
                nulls[record, vector] = 0
        else:
            length, at = _short_varint(data, at, end)
            if at < 0 or length > end - at:
                return UNDECODABLE
            if kind in (TEXT, BYTES):
                if kind == TEXT and not is_utf8(data, at, at + length):
                    return UNDECODABLE
                if vector >= 0:
                    wholes[record, vector] = at << 32 | length
                    nulls[record, vector] = 0
                    if kind == BYTES:
                        wholes[record, fields[field, READER_VECTOR]] = fields[field, READER]
                at += length
            elif kind == TIMESTAMP:
                seconds, nanos = np.int64(0), np.int64(0)
                if vector >= 0 and nulls[record, vector] == 0:
                    seconds = wholes[record, vector] // 1_000_000
                    nanos = (wholes[record, vector] - seconds * 1_000_000) * 1_000
                seconds, nanos, sound = _timestamp(data, at, at + length, seconds, nanos, groups)
                if not sound:
                    return UNDECODABLE
                at += length
                if not (_FIRST_SECOND <= seconds <= _LAST_SECOND and 0 <= nanos <= 999_999_999):
                    result = BAD_VALUE
                elif vector >= 0:
                    wholes[record, vector] = seconds * 1_000_000 + nanos // 1_000
                    nulls[record, vector] = 0
            else:
                if vector >= 0:
                    wholes[record, vector] = body
                    wholes[record, fields[field, READER_VECTOR]] = fields[field, READER]
                    nulls[record, vector] = 0
                if kind == OBJECT:
                    at += length
                    continue
                top += 1
                stack[top, 0], stack[top, 1] = end, node
                end = at + length
                node = fields[field, NODE]
                if seen[node] != record:
                    seen[node] = record
                    _entered(node, nodes, constants, record, wholes, nulls, data_end, body)


@compiled
def read_messages(
    data, places, absent, framing, headers, header_places, no_headers, unframed, ids, guids, first,
    messages, readable, roots, nodes, fields, slots, constants, symbols, members, inside, inner,
    stack, seen, groups, single_bits, single, wholes, doubles, nulls, types, outcomes, bodies,
):  # fmt: skip
    """Read all records, which are at ``places``. ``messages``: from the place that ``first`` has
    for a schema on, the index and the type of each of its messages (-1: nobody reads it); a schema
    without any cannot be read. ``readable``: whether a type is read in the records' topic;
    ``unframed``: the type of records without framing (-1: nobody reads them); ``bodies``: for the
    places of bodies."""
    for record in range(len(places)):
        at = places[record] >> 32
        end = at + (places[record] & 0xFFFFFFFF)
        types[record] = -1
        if absent[record]:
            outcomes[record] = ABSENT
            continue
        number = np.int64(unframed)
        if framing != UNFRAMED:
            header = header_end = np.int64(0)
            if not no_headers[record]:
                header = header_places[record] >> 32
                header_end = header + (header_places[record] & 0xFFFFFFFF)
            known, index, at = schema_and_message(
                data, at, end, framing, headers, header, header_end, ids, guids
            )
            if known < 0:
                outcomes[record] = UNKNOWN_ID if known == -1 else NOT_FRAMED
                continue
            if first[known] == first[known + 1]:
                outcomes[record] = UNREADABLE
                continue
            number = np.int64(-2)
            for row in range(first[known], first[known + 1]):
                if messages[row, 0] == index:
                    number = messages[row, 1]
                    break
            if number == -2:
                outcomes[record] = UNDECODABLE
                continue
        if number < 0 or not readable[number]:
            outcomes[record] = NOT_READ
            continue
        types[record] = number
        bodies[record] = at << 32 | (end - at)
        outcomes[record] = _read_record(
            data, at, end, roots[number], nodes, fields, slots, constants, symbols, members, inside,
            inner, stack, seen, groups, single_bits, single, record, wholes, doubles, nulls,
        )  # fmt: skip
