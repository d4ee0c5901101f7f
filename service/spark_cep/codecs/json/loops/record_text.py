"""The compiled loop of :mod:`spark_cep.codecs.json.text_layout`, which says what it is given.

A record is one JSON object (RFC 8259). All of it must be JSON; of values, only those that the
layout has are looked at. Of several fields with one name the last one counts.
"""

from __future__ import annotations

import numpy as np

from spark_cep.codecs.json.loops.layout_tables import (
    ABSENT_FIELD,
    ADDED_BYTES,
    ANYTHING,
    ARRAY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HAS_DEFAULT,
    INSIDE,
    INSIDE_END,
    IS_NEEDED,
    KIND,
    LEFT,
    MAP,
    MASK,
    NODE,
    NULLABLE,
    READER,
    READER_VECTOR,
    RECORD,
    SET,
    SET_END,
    SEVERAL,
    SYMBOL,
    TABLE,
    TEXT,
    VECTOR,
    WHOLE,
    WIDE_DECIMAL,
    A,
    B,
)
from spark_cep.codecs.json.loops.names import find
from spark_cep.codecs.json.loops.scalars import (
    BEYOND_ASCII,
    ESCAPED,
    exact_double,
    number_at,
    string_end,
    unescape,
)
from spark_cep.codecs.json.loops.tokens import (
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COLON,
    COMMA,
    MINUS,
    NULL,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    TRUE,
    behind_space,
    behind_word,
    choice_of,
)
from spark_cep.codecs.json.loops.typed_values import FITS, NAN, from_number, from_text
from spark_cep.codecs.registry.loops.framing_loops import NOT_FRAMED as NO_SCHEMA
from spark_cep.codecs.registry.loops.framing_loops import OF_GLUE, UNFRAMED, schema_of
from spark_cep.columns.compilation import compiled, inlined
from spark_cep.columns.loops.byte_loops import is_utf8

#: What became of a record: it was read; there is no value; it is not framed as it should be; it is
#: not JSON, or not as the layout has it; it nests too deeply; fields that it does not have take
#: too much memory.
READ, ABSENT, NOT_FRAMED, UNDECODABLE, TOO_DEEP, TOO_LARGE = 0, 1, 3, 5, 8, 9

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


@compiled
def _set_default(field, fields, constants, record, wholes, nulls, constants_at):
    """Put the default of a field into its vectors."""
    for row in range(fields[field, SET], fields[field, SET_END]):
        vector, value = constants[row, 0], constants[row, 1]
        wholes[record, vector] = (constants_at << 32) + value if constants[row, 2] else value
        nulls[record, vector] = 0


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
        at = behind_space(data, at, end)
        if at >= end:
            return UNDECODABLE
        first, start = data[at], at
        kind = np.int64(ANYTHING)
        is_null = first == NULL
        if is_null:
            at = behind_word(data, at, end)
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
                choice = choice_of(data, at, end)
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
        elif first in (OPEN_OBJECT, OPEN_ARRAY):
            opens_object = first == OPEN_OBJECT
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
        elif first == QUOTE:
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
                        value, fits = from_text(
                            out, used, to, kind, a, b, table, mask, slots, entries, names
                        )
                    else:
                        value, fits = from_text(
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
                        elif fits == FITS:
                            wholes[record, vector] = value
                        else:
                            doubles[record, vector] = (
                                np.nan if fits == NAN else np.float64(value) * np.inf
                            )
                        nulls[record, vector] = 0
        elif first == MINUS or 48 <= first <= 57:
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
                value, is_one = from_number(
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
            at = behind_word(data, at, end)
            if at < 0 or (kind not in (ANYTHING, BOOLEAN)):
                return UNDECODABLE
            if kind == BOOLEAN:
                vector = nodes[node, VECTOR]
                if vector >= 0:
                    wholes[record, vector] = first == TRUE
                    nulls[record, vector] = 0
        if around >= 0:
            _leave(around, start << 32 | (at - start), nodes, record, wholes, nulls)
            around = np.int64(-1)
        # What comes behind it: the next value, the end of what it is in, or both in turn.
        while True:
            at = behind_space(data, at, end)
            if top < 0:
                return READ if at == end else UNDECODABLE
            if at >= end:
                return UNDECODABLE
            parent, is_object = stack[top, _OPEN_NODE], stack[top, _IS_OBJECT]
            if data[at] == (CLOSE_OBJECT if is_object else CLOSE_ARRAY):
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
                if data[at] != COMMA:
                    return UNDECODABLE
                at = behind_space(data, at + 1, end)
            node = np.int64(-1)
            if not is_object:
                if parent >= 0:
                    node = nodes[parent, A]
                break
            if at >= end or data[at] != QUOTE:
                return UNDECODABLE
            name = at + 1
            behind, properties = string_end(data, name, end)
            if behind < 0:
                return UNDECODABLE
            at = behind_space(data, behind + 1, end)
            if at >= end or data[at] != COLON:
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
                field = find(data, name, behind - name, table, mask, slots, entries, names)
            elif to >= 0:
                field = find(out, used, to - used, table, mask, slots, entries, names)
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
