"""The compiled loops of :mod:`spark_cep.codecs.output.result_columns` and
:mod:`spark_cep.codecs.output.avro_results`, which say what each column is.

Texts are at ``places`` in ``data`` (:mod:`spark_cep.columns.vectors`). What is written goes to
``out``, and where each row ends to ``out_ends``.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import compiled, inlined

#: Writes of a part of a record: a number, a byte, eight bytes, a text, bytes as they are, the same
#: ones in all records, values by name, and items of the next level.
LONG, BYTE, DOUBLE, TEXT, RAW, CONSTANT, VALUES, ITEMS = range(8)


@compiled
def _put_long(out, at, number):
    """Zigzag, seven bits a byte; returns the place behind."""
    rest = np.uint64((number << 1) ^ (number >> 63))
    while rest >= np.uint64(128):
        out[at] = np.uint8(rest & np.uint64(127)) | np.uint8(128)
        rest >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(rest)
    return at + 1


@compiled
def _put_integer(out, at, number):
    """Eight bytes, big endian."""
    rest = np.uint64(number)
    for place in range(8):
        out[at + place] = np.uint8((rest >> np.uint64(56 - 8 * place)) & np.uint64(255))
    return at + 8


@compiled
def _put(out, at, data, place):
    """The text at a place."""
    start = place >> 32
    for source in range(start, start + (place & 0xFFFFFFFF)):
        out[at] = data[source]
        at += 1
    return at


@compiled
def _put_counted(out, at, data, place):
    """The text at a place, its length in front."""
    at = _put_integer(out, at, place & 0xFFFFFFFF)
    return _put(out, at, data, place)


@inlined
def _end_of_step(step, at, end):
    """Return the end of the events of the step at ``at``."""
    behind = at + 1
    while behind < end and step[behind] == step[at]:
        behind += 1
    return behind


@compiled
def _steps_taken(step, first, end):
    """Return the number of steps with events among those of a row."""
    steps = 0
    while first < end:
        steps += 1
        first = _end_of_step(step, first, end)
    return steps


@inlined
def _put_optional(out, at, number, data, places):
    """Put down whether there is a text with this number, and the text."""
    out[at] = number >= 0
    at += 1
    if number >= 0:
        at = _put_counted(out, at, data, places[number])
    return at


@compiled
def write_identities(
    rule, version, key, ends, step, topic, partition, offset, first_step, by_name,
    rule_data, rules, key_data, keys, step_data, steps, topic_data, topics,
    out, out_ends,
):  # fmt: skip
    """Write the bytes that the id of each row is the hash of; ``by_name`` has the steps of each
    rule in the order of their names."""
    at = 0
    for row in range(len(rule)):
        first = ends[row - 1] if row else 0
        end = ends[row]
        at = _put_counted(out, at, rule_data, rules[rule[row]])
        at = _put_integer(out, at, version[row])
        at = _put_optional(out, at, key[row], key_data, keys)
        at = _put_integer(out, at, _steps_taken(step, first, end))
        for place in range(first_step[rule[row]], first_step[rule[row] + 1]):
            wanted = by_name[place]
            # The events of a row are in the order of its steps.
            low, high = first, end
            while low < high:
                middle = (low + high) // 2
                if step[middle] < wanted:
                    low = middle + 1
                else:
                    high = middle
            if low == end or step[low] != wanted:
                continue
            behind = _end_of_step(step, low, end)
            at = _put_counted(out, at, step_data, steps[wanted])
            at = _put_integer(out, at, behind - low)
            for event in range(low, behind):
                at = _put_counted(out, at, topic_data, topics[topic[event]])
                at = _put_integer(out, at, partition[event])
                at = _put_integer(out, at, offset[event])
        out_ends[row + 1] = at


@compiled
def write_row_identities(
    rule, version, key, match, number, topic, partition, offset,
    rule_data, rules, key_data, keys, match_data, matches, topic_data, topics,
    out, out_ends,
):  # fmt: skip
    """Write the bytes that the id of each row of ALL ROWS PER MATCH is the hash of."""
    at = 0
    for row in range(len(rule)):
        at = _put_counted(out, at, rule_data, rules[rule[row]])
        at = _put_integer(out, at, version[row])
        at = _put_optional(out, at, key[row], key_data, keys)
        at = _put_optional(out, at, match[row], match_data, matches)
        at = _put_integer(out, at, number[row])
        at = _put_counted(out, at, topic_data, topics[topic[row]])
        at = _put_integer(out, at, partition[row])
        at = _put_integer(out, at, offset[row])
        out_ends[row + 1] = at


@compiled
def _put_value(out, at, kind, number, data, places):
    """A number, or the text with this number."""
    if kind == LONG:
        return _put_long(out, at, number)
    if kind == BYTE:
        out[at] = number
        return at + 1
    if kind == DOUBLE:
        rest = np.uint64(number)
        for place in range(8):
            out[at + place] = np.uint8(rest >> np.uint64(8 * place) & np.uint64(255))
        return at + 8
    if kind == TEXT:
        at = _put_long(out, at, places[number] & 0xFFFFFFFF)
    return _put(out, at, data, places[number])


@compiled
def _put_values(out, at, values, first, end, data, places):
    """A map: of each of its ``values`` the text that is its name, kind, branch, and number."""
    if first < end:
        at = _put_long(out, at, end - first)
    for each in range(first, end):
        at = _put_value(out, at, TEXT, values[each, 0], data, places)
        if values[each, 2] >= 0:
            out[at] = values[each, 2]
            at += 1
        at = _put_value(out, at, values[each, 1], values[each, 3], data, places)
    out[at] = 0
    return at + 1


@inlined
def _put_part(out, at, parts, part, numbers, row, values, data, places):
    """Write one of ``parts``: its kind; its row of numbers (of values the first row of two, from
    where to where they go), or the text that it is if constant; of a union the byte of its branch,
    and the row that says where it is NULL (both else -1)."""
    kind, which, branch, nulls = parts[part, 0], parts[part, 1], parts[part, 2], parts[part, 3]
    number = which if kind == CONSTANT else numbers[which, row]
    if branch >= 0:
        out[at] = branch
        at += 1
    if nulls >= 0 and numbers[nulls, row]:
        out[at - 1] = 0
    elif kind == VALUES:
        at = _put_values(out, at, values, number, numbers[which + 1, row], data, places)
    else:
        at = _put_value(out, at, kind, number, data, places)
    return at


@compiled
def write_values(
    ends, taken, step, of_row, row_numbers, of_step, of_event, event_numbers, values, data, places,
    out, out_ends,
):  # fmt: skip
    """The values in Avro: parts ``of_row``, among them the items of its steps, with parts
    ``of_step``, among them the items of its events, with parts ``of_event``. The numbers of a step
    are those at its first event. Of the events of a row, so many are ``taken``: all or none."""
    at = 0
    for row in range(len(ends)):
        first = ends[row - 1] if row else 0
        end = first + taken[row]
        for part in range(len(of_row)):
            if of_row[part, 0] != ITEMS:
                at = _put_part(out, at, of_row, part, row_numbers, row, values, data, places)
                continue
            if first < end:
                at = _put_long(out, at, _steps_taken(step, first, end))
            event = first
            while event < end:
                behind = _end_of_step(step, event, end)
                for inner in range(len(of_step)):
                    if of_step[inner, 0] != ITEMS:
                        at = _put_part(
                            out, at, of_step, inner, event_numbers, event, values, data, places
                        )
                        continue
                    at = _put_long(out, at, behind - event)
                    for each in range(event, behind):
                        for last in range(len(of_event)):
                            at = _put_part(
                                out, at, of_event, last, event_numbers, each, values, data, places
                            )
                    out[at] = 0
                    at += 1
                event = behind
            out[at] = 0
            at += 1
        out_ends[row + 1] = at
