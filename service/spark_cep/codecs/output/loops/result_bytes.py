"""The compiled loops of :mod:`spark_cep.codecs.output.result_columns`, which says what they are
given.

Texts come as a pool: ``…_data`` are the bytes of all, text ``i`` is at ``…_ends[i]`` to
``…_ends[i + 1]``. What is written goes to ``out``, and where each row ends to ``out_ends``.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import compiled, inlined

#: Characters of a match id.
ID_LENGTH = 32


@compiled
def put_long(out, at, number):
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
def _put(out, at, data, ends, place):
    """A text of a pool."""
    for source in range(ends[place], ends[place + 1]):
        out[at] = data[source]
        at += 1
    return at


@inlined
def _end_of_step(step, at, end):
    """Where the events of the step at ``at`` end."""
    behind = at + 1
    while behind < end and step[behind] == step[at]:
        behind += 1
    return behind


@compiled
def _steps_taken(step, first, end):
    """How many steps have events among those of a row."""
    steps = 0
    while first < end:
        steps += 1
        first = _end_of_step(step, first, end)
    return steps


@compiled
def write_identities(
    rule, key, ends, step, topic, type_, partition, offset, event_time, first_step, by_name,
    rule_data, rule_ends, key_data, key_ends, step_data, step_ends, topic_data, topic_ends,
    out, out_ends,
):  # fmt: skip
    """What the id of each row is the hash of."""
    at = 0
    for row in range(len(rule)):
        first = ends[row - 1] if row else 0
        end = ends[row]
        at = _put(out, at, rule_data, rule_ends, rule[row])
        at = _put(out, at, key_data, key_ends, key[row])
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
            at = _put(out, at, step_data, step_ends, wanted)
            at = _put_integer(out, at, behind - low)
            for event in range(low, behind):
                at = _put(out, at, topic_data, topic_ends, topic[event])
                at = _put_integer(out, at, partition[event])
                at = _put_integer(out, at, offset[event])
        out_ends[row + 1] = at


@compiled
def write_values(
    rule, key, ends, step, topic, type_, partition, offset, event_time, first_step, by_name,
    starts, time, already_matched, is_timeout, emitted_at, schema_id, ids,
    rule_data, rule_ends, key_data, key_ends, step_data, step_ends, topic_data, topic_ends,
    type_data, type_ends, out, out_ends,
):  # fmt: skip
    """The values, framing in front."""
    at = 0
    for row in range(len(rule)):
        first = ends[row - 1] if row else 0
        end = ends[row]
        out[at] = 0
        at += 1
        for place in range(4):
            out[at] = np.uint8((schema_id >> (24 - 8 * place)) & 255)
            at += 1
        at = put_long(out, at, ID_LENGTH)
        for place in range(ID_LENGTH):
            out[at + place] = ids[row * ID_LENGTH + place]
        at += ID_LENGTH
        at = _put(out, at, rule_data, rule_ends, rule[row])
        at = _put(out, at, key_data, key_ends, key[row])
        at = put_long(out, at, starts[row])
        at = put_long(out, at, time[row])
        if is_timeout:
            out[at] = already_matched[row]
            at += 1
        at = put_long(out, at, emitted_at)
        out[at] = 0  # no measures
        at += 1
        at = put_long(out, at, _steps_taken(step, first, end))
        event = first
        while event < end:
            behind = _end_of_step(step, event, end)
            at = _put(out, at, step_data, step_ends, step[event])
            at = put_long(out, at, behind - event)
            while event < behind:
                at = _put(out, at, topic_data, topic_ends, topic[event])
                at = put_long(out, at, partition[event])
                at = put_long(out, at, offset[event])
                at = put_long(out, at, event_time[event])
                at = _put(out, at, type_data, type_ends, type_[event])
                out[at] = 0  # no columns
                out[at + 1] = 0  # no payload
                at += 2
                event += 1
            out[at] = 0
            at += 1
        out[at] = 0
        at += 1
        out_ends[row + 1] = at
