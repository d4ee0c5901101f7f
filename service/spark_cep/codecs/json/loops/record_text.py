"""The compiled loop of :mod:`spark_cep.codecs.json.text_layout`, which says what it is given.

A record is one JSON object (RFC 8259). All of it must be JSON; of values, only those that the
layout has are looked at. Of several fields with one name the last one counts.
"""

from __future__ import annotations

import numpy as np

from spark_cep.codecs.json.loops.scalars import (
    BEYOND_ASCII,
    ESCAPED,
    base64_bytes,
    day_at,
    exact_double,
    fits_decimal,
    micros_at,
    number_at,
    scaled,
    string_end,
    unescape,
    whole,
)
from spark_cep.codecs.registry.loops.framing_loops import NOT_FRAMED as NO_SCHEMA
from spark_cep.codecs.registry.loops.framing_loops import OF_GLUE, UNFRAMED, schema_of
from spark_cep.columns.compilation import compiled, inlined
from spark_cep.columns.loops.byte_loops import is_utf8

#: What became of a record: it was read; there is no value; it is not framed as it should be; it is
#: not JSON, or not as the layout has it; it nests too deeply; fields that it does not have take
#: too much memory.
READ, ABSENT, NOT_FRAMED, UNDECODABLE, TOO_DEEP, TOO_LARGE = 0, 1, 3, 5, 8, 9

#: Kinds of values.
(
    ANYTHING, NOTHING, BOOLEAN, WHOLE, FLOAT, DOUBLE, TEXT, SYMBOL, DATE, MILLIS, MICROS, DECIMAL,
    WIDE_DECIMAL, BASE64, RECORD, ARRAY, MAP, SEVERAL,
) = range(18)  # fmt: skip

#: Columns of a layout's nodes: the kind; the vector that the value goes to (-1: it is looked at);
#: the vector that says how a value is read that is left in place (-1: it is not), and what it says;
#: whether the value may be null; two numbers by kind; its table of names, and the table's size less
#: 1.
NODE_COLUMNS = 9
KIND, VECTOR, READER_VECTOR, READER, NULLABLE, A, B, TABLE, MASK = range(NODE_COLUMNS)
#: ``A`` of a record: its first field; of an array or a map: the node of its items; of a union: the
#: first of its ``CHOICES``; of a whole number: its bits; of a decimal: its precision; of base64:
#: its bytes, -1 for any number. ``B`` of a record: the number of its fields; of a decimal: its
#: scale.
CHOICES = 6
_OF_TEXT, _OF_WHOLE, _OF_NUMBER, _OF_BOOLEAN, _OF_OBJECT, _OF_ARRAY = range(CHOICES)

#: Columns of its fields: the node of the value; what is done where there is none; the constants of
#: a default, from and to; the memory that it takes; the vectors inside, from and to.
FIELD_COLUMNS = 7
NODE, ABSENT_FIELD, SET, SET_END, ADDED_BYTES, INSIDE, INSIDE_END = range(FIELD_COLUMNS)
#: Where there is no value, that is NULL, or the default, or the record cannot be read.
IS_NULL, HAS_DEFAULT, IS_NEEDED = range(3)

#: Columns of the stack: the node (-1: it is not looked at); whether it is an object; where it
#: begins; a union that is left in place around it; the number of the opening; how many fields there
#: were; the field whose value is read.
STACK_COLUMNS = 7
_OPEN_NODE, _IS_OBJECT, _START, _AROUND, _OPENING, _FOUND, _FIELD = range(STACK_COLUMNS)
#: Levels of objects and arrays in each other.
MOST_DEEP = 256
#: Most memory that fields which are not there take in one record.
MOST_ADDED = 64 << 20
#: Of all records: the number of openings, the bytes of ``out`` that are used, the memory that
#: fields which are not there take, and the doubles that are left (:data:`LEFT`).
OPENINGS, USED, ADDED, DOUBLES_LEFT = range(4)
#: In place of 0 or 1 among the nulls: a double of which the vector has the place of its text.
LEFT = 2

#: A value of a text that is a number, but for one that has no digits.
_FITS, _NAN, _INFINITE = 1, 2, 3

_QUOTE, _COMMA, _COLON, _MINUS = 34, 44, 58, 45
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 123, 125, 91, 93
_NULL, _TRUE, _FALSE = 110, 116, 102

_FIRST_MICROS, _LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_MOST_MILLIS = (2**63 - 1) // 1_000


@compiled
def name_hash(text, at, length):
    """A number that differs for most names."""
    if length == 0:
        return 0
    first, last = np.int64(text[at]), np.int64(text[at + length - 1])
    return length * 7 + first * 31 + np.int64(text[at + length // 2]) * 131 + last * 8191


@inlined
def _find(text, at, length, table, mask, slots, entries, names):
    """The number that a name has in a table; -1: it is not there."""
    slot = name_hash(text, at, length) & mask
    while True:
        entry = slots[table + slot]
        if entry < 0:
            return -1
        if entries[entry, 1] == length:
            start = entries[entry, 0]
            same = True
            for step in range(length):
                if names[start + step] != text[at + step]:
                    same = False
                    break
            if same:
                return entries[entry, 2]
        slot = (slot + 1) & mask


@inlined
def _behind_space(data, at, end):
    while at < end and data[at] <= 32:
        byte = data[at]
        if byte != 32 and byte != 10 and byte != 13 and byte != 9:
            break
        at += 1
    return at


@compiled
def _behind_word(data, at, end):
    """The place behind ``null``, ``true`` or ``false``, whichever begins here; -1: none does."""
    first = data[at]
    if first == _FALSE:
        if (
            at + 5 <= end and data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115
            and data[at + 4] == 101
        ):  # fmt: skip
            return at + 5
    elif first == _TRUE:
        if at + 4 <= end and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
            return at + 4
    elif (
        first == _NULL and at + 4 <= end and data[at + 1] == 117 and data[at + 2] == 108
        and data[at + 3] == 108
    ):  # fmt: skip
        return at + 4
    return -1


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
def _from_number(below, number, count, power, kind, a, b):
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
        return value, _FIRST_DAY <= value <= _LAST_DAY
    if kind == MILLIS:
        if not -_MOST_MILLIS <= value <= _MOST_MILLIS:
            return value, False
        value *= 1_000
        return value, _FIRST_MICROS <= value <= _LAST_MICROS
    if kind == MICROS:
        return value, _FIRST_MICROS <= value <= _LAST_MICROS
    return value, False


@compiled
def _from_text(text, at, end, kind, a, b, table, mask, slots, entries, names):
    """A text as a value of a kind, and whether it is one: for FLOAT and DOUBLE, which one."""
    value = np.int64(0)
    if kind == SYMBOL:
        return value, _FITS * (_find(text, at, end - at, table, mask, slots, entries, names) >= 0)
    if kind == DATE:
        value, behind = day_at(text, at, end)
        return value, _FITS * (behind == end)
    if kind in (MILLIS, MICROS):
        value, fits = micros_at(text, at, end)
        if kind == MILLIS:
            value = value // 1_000 * 1_000
        return value, _FITS * (fits and _FIRST_MICROS <= value <= _LAST_MICROS)
    if kind in (DECIMAL, WIDE_DECIMAL):
        behind, below, number, count, power = number_at(text, at, end)
        value, fits = _from_number(below, number, count, power, kind, a, b)
        return value, _FITS * (fits and behind == end)
    if kind == BASE64:
        size = base64_bytes(text, at, end)
        return value, _FITS * (size >= 0 and (a < 0 or size == a))
    if kind in (FLOAT, DOUBLE):
        if _is_word(text, at, end, _WORD_NAN):
            return value, _NAN
        below = at < end and text[at] == _MINUS
        if below:
            at += 1
        if _is_word(text, at, end, _WORD_INFINITY):
            return np.int64(-1 if below else 1), _INFINITE
    return value, 0


@compiled
def _set_default(field, fields, constants, record, wholes, nulls, constants_at):
    """Put the default of a field into its vectors."""
    for row in range(fields[field, SET], fields[field, SET_END]):
        vector, value = constants[row, 0], constants[row, 1]
        wholes[record, vector] = (constants_at << 32) + value if constants[row, 2] else value
        nulls[record, vector] = 0


@compiled
def _choice(data, at, end):
    """The kind of the value that begins here, among those of a union; -1: it is none."""
    first = data[at]
    if first == _QUOTE:
        return _OF_TEXT
    if first in (_TRUE, _FALSE):
        return _OF_BOOLEAN
    if first == _OPEN_OBJECT:
        return _OF_OBJECT
    if first == _OPEN_ARRAY:
        return _OF_ARRAY
    behind, below, number, count, power = number_at(data, at, end)
    if behind < 0:
        return -1
    _, fits = whole(below, number, count, power, 63)
    return _OF_WHOLE if fits else _OF_NUMBER


@compiled
def _leave(node, place, nodes, record, wholes, nulls):
    """Leave a value in its place."""
    vector = nodes[node, VECTOR]
    wholes[record, vector] = place
    wholes[record, nodes[node, READER_VECTOR]] = nodes[node, READER]
    nulls[record, vector] = 0


@inlined
def _read_record(
    data, at, end, root, nodes, fields, entries, slots, names, constants, inside, choices, stack,
    seen, counts, single, record, wholes, doubles, nulls, out,
):  # fmt: skip
    """Read one record into its row of the vectors; what became of it."""
    constants_at = np.int64(len(data))
    most_added = counts[ADDED] + MOST_ADDED
    top = -1
    node = np.int64(root)
    around = np.int64(-1)
    while True:
        # A value.
        at = _behind_space(data, at, end)
        if at >= end:
            return UNDECODABLE
        first, start = data[at], at
        kind = np.int64(ANYTHING)
        is_null = first == _NULL
        if is_null:
            at = _behind_word(data, at, end)
            if at < 0:
                return UNDECODABLE
            if node >= 0 and not nodes[node, NULLABLE]:
                if top < 0 or nodes[stack[top, _OPEN_NODE], KIND] != RECORD:
                    return UNDECODABLE
                field = stack[top, _FIELD]
                if fields[field, ABSENT_FIELD] != HAS_DEFAULT:
                    return UNDECODABLE
                _set_default(field, fields, constants, record, wholes, nulls, constants_at)
                counts[ADDED] += fields[field, ADDED_BYTES]
        elif node >= 0:
            kind = nodes[node, KIND]
            if kind == SEVERAL:
                choice = _choice(data, at, end)
                if choice < 0:
                    return UNDECODABLE
                if nodes[node, VECTOR] >= 0:
                    around = node
                node = choices[nodes[node, A] + choice]
                if node < 0:
                    return UNDECODABLE
                kind = nodes[node, KIND]
        just_opened = False
        if is_null:
            pass
        elif first in (_OPEN_OBJECT, _OPEN_ARRAY):
            opens_object = first == _OPEN_OBJECT
            if opens_object and kind not in (ANYTHING, RECORD, MAP):
                return UNDECODABLE
            if not opens_object and kind not in (ANYTHING, ARRAY):
                return UNDECODABLE
            top += 1
            if top >= len(stack):
                return TOO_DEEP
            stack[top, _OPEN_NODE], stack[top, _IS_OBJECT] = node, opens_object
            stack[top, _START], stack[top, _AROUND] = start, around
            counts[OPENINGS] += 1
            stack[top, _OPENING], stack[top, _FOUND] = counts[OPENINGS], 0
            around = np.int64(-1)
            just_opened = True
            at += 1
        elif first == _QUOTE:
            behind, properties = string_end(data, at + 1, end)
            if behind < 0:
                return UNDECODABLE
            at = behind + 1
            if kind != ANYTHING:
                text, length = start + 1, behind - start - 1
                vector = nodes[node, VECTOR]
                if properties & BEYOND_ASCII and not is_utf8(data, text, behind):
                    return UNDECODABLE
                place = text << 32 | length
                used = counts[USED]
                if properties & ESCAPED:
                    to = unescape(data, text, behind, out, used)
                    if to < 0:
                        return UNDECODABLE
                    place = (constants_at + used) << 32 | (to - used)
                if kind == TEXT:
                    if vector >= 0:
                        wholes[record, vector] = place
                        nulls[record, vector] = 0
                        if properties & ESCAPED:
                            counts[USED] = to
                else:
                    a, b = nodes[node, A], nodes[node, B]
                    table, mask = nodes[node, TABLE], nodes[node, MASK]
                    if properties & ESCAPED:
                        value, fits = _from_text(
                            out, used, to, kind, a, b, table, mask, slots, entries, names
                        )
                    else:
                        value, fits = _from_text(
                            data, text, behind, kind, a, b, table, mask, slots, entries, names
                        )
                    if not fits:
                        return UNDECODABLE
                    if vector < 0:
                        pass
                    elif nodes[node, READER_VECTOR] >= 0:
                        _leave(node, start << 32 | (at - start), nodes, record, wholes, nulls)
                    else:
                        if kind == SYMBOL:
                            wholes[record, vector] = place
                            if properties & ESCAPED:
                                counts[USED] = to
                        elif fits == _FITS:
                            wholes[record, vector] = value
                        else:
                            doubles[record, vector] = (
                                np.nan if fits == _NAN else np.float64(value) * np.inf
                            )
                        nulls[record, vector] = 0
        elif first == _MINUS or 48 <= first <= 57:
            at, below, number, count, power = number_at(data, at, end)
            if at < 0:
                return UNDECODABLE
            if kind in (FLOAT, DOUBLE):
                vector = nodes[node, VECTOR]
                if vector >= 0:
                    value_of, exact = exact_double(below, number, count, power)
                    if exact:
                        if kind == FLOAT:
                            single[0] = value_of
                            value_of = np.float64(single[0])
                        doubles[record, vector] = value_of
                        nulls[record, vector] = 0
                    else:
                        wholes[record, vector] = start << 32 | (at - start)
                        nulls[record, vector] = LEFT
                        counts[DOUBLES_LEFT] += 1
            elif kind != ANYTHING:
                if not (kind == WHOLE or DATE <= kind <= WIDE_DECIMAL):
                    return UNDECODABLE
                value, is_one = _from_number(
                    below, number, count, power, kind, nodes[node, A], nodes[node, B]
                )
                if not is_one:
                    return UNDECODABLE
                vector = nodes[node, VECTOR]
                if vector < 0:
                    pass
                elif nodes[node, READER_VECTOR] >= 0:
                    _leave(node, start << 32 | (at - start), nodes, record, wholes, nulls)
                else:
                    wholes[record, vector] = value
                    nulls[record, vector] = 0
        else:
            at = _behind_word(data, at, end)
            if at < 0 or (kind not in (ANYTHING, BOOLEAN)):
                return UNDECODABLE
            if kind == BOOLEAN:
                vector = nodes[node, VECTOR]
                if vector >= 0:
                    wholes[record, vector] = first == _TRUE
                    nulls[record, vector] = 0
        if around >= 0:
            _leave(around, start << 32 | (at - start), nodes, record, wholes, nulls)
            around = np.int64(-1)
        # What comes behind it: the next value, the end of what it is in, or both in turn.
        while True:
            at = _behind_space(data, at, end)
            if top < 0:
                return READ if at == end else UNDECODABLE
            if at >= end:
                return UNDECODABLE
            parent, is_object = stack[top, _OPEN_NODE], stack[top, _IS_OBJECT]
            if data[at] == (_CLOSE_OBJECT if is_object else _CLOSE_ARRAY):
                at += 1
                if parent >= 0:
                    if nodes[parent, KIND] == RECORD and stack[top, _FOUND] < nodes[parent, B]:
                        opening, first_field = stack[top, _OPENING], nodes[parent, A]
                        for field in range(first_field, first_field + nodes[parent, B]):
                            if seen[field] == opening:
                                continue
                            if fields[field, ABSENT_FIELD] == IS_NEEDED:
                                return UNDECODABLE
                            if fields[field, ABSENT_FIELD] == HAS_DEFAULT:
                                _set_default(
                                    field, fields, constants, record, wholes, nulls, constants_at
                                )
                                counts[ADDED] += fields[field, ADDED_BYTES]
                                if counts[ADDED] > most_added:
                                    counts[ADDED] = most_added - MOST_ADDED
                                    return TOO_LARGE
                    place = stack[top, _START] << 32 | (at - stack[top, _START])
                    if nodes[parent, VECTOR] >= 0:
                        _leave(parent, place, nodes, record, wholes, nulls)
                    if stack[top, _AROUND] >= 0:
                        _leave(stack[top, _AROUND], place, nodes, record, wholes, nulls)
                top -= 1
                just_opened = False
                continue
            if not just_opened:
                if data[at] != _COMMA:
                    return UNDECODABLE
                at = _behind_space(data, at + 1, end)
            node = np.int64(-1)
            if not is_object:
                if parent >= 0:
                    node = nodes[parent, A]
                break
            if at >= end or data[at] != _QUOTE:
                return UNDECODABLE
            name = at + 1
            behind, properties = string_end(data, name, end)
            if behind < 0:
                return UNDECODABLE
            at = _behind_space(data, behind + 1, end)
            if at >= end or data[at] != _COLON:
                return UNDECODABLE
            at += 1
            if parent < 0:
                break
            used = counts[USED]
            to = used
            if properties & ESCAPED:
                to = unescape(data, name, behind, out, used)
            if nodes[parent, KIND] == MAP:
                if to < 0 or (properties & BEYOND_ASCII and not is_utf8(data, name, behind)):
                    return UNDECODABLE
                node = nodes[parent, A]
                break
            table, mask = nodes[parent, TABLE], nodes[parent, MASK]
            field = np.int64(-1)
            if not properties & ESCAPED:
                field = _find(data, name, behind - name, table, mask, slots, entries, names)
            elif to >= 0:
                field = _find(out, used, to - used, table, mask, slots, entries, names)
            if field >= 0:
                if seen[field] == stack[top, _OPENING]:
                    # The last one counts.
                    for row in range(fields[field, INSIDE], fields[field, INSIDE_END]):
                        nulls[record, inside[row]] = 1
                else:
                    seen[field] = stack[top, _OPENING]
                    stack[top, _FOUND] += 1
                stack[top, _FIELD] = field
                node = fields[field, NODE]
            break


@compiled
def read_texts(
    data, places, absent, framing, root, nodes, fields, entries, slots, names, constants, inside,
    choices, stack, seen, counts, single, wholes, doubles, nulls, outcomes, out,
):  # fmt: skip
    """Read all records, which are at ``places``, framed as ``framing`` says; that of a registry,
    which JSON cannot begin with, may be missing. Texts without their escapes are put behind
    ``counts[USED]`` in ``out``, whose bytes are counted from the end of ``data`` on."""
    for record in range(len(places)):
        at = places[record] >> 32
        end = at + (places[record] & 0xFFFFFFFF)
        if absent[record]:
            outcomes[record] = ABSENT
            continue
        if framing != UNFRAMED:
            nothing = np.int64(0)
            found, _, _, body = schema_of(data, at, end, framing, data, nothing, nothing)
            if framing == OF_GLUE and found == NO_SCHEMA:
                outcomes[record] = NOT_FRAMED
                continue
            at = body
        outcomes[record] = _read_record(
            data, at, end, root, nodes, fields, entries, slots, names, constants, inside, choices,
            stack, seen, counts, single, record, wholes, doubles, nulls, out,
        )  # fmt: skip
