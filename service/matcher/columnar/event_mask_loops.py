"""The compiled loops of :mod:`service.matcher.columnar.event_masks`."""

from __future__ import annotations

import numpy as np

from service.matcher.columnar import kernel
from service.matcher.columnar.kernel import compiled, holds
from service.matcher.columnar.text_hash import text_hash

#: The row of a look-up's masks that is the first constant's.
OF_FIRST = 2


@compiled
def _number_of(data, at, end, pool, pool_ends, table):
    last = np.uint64(len(table) - 1)
    place = text_hash(data, at, end) & last
    while table[place] >= 0:
        number = table[place]
        first = pool_ends[number]
        if pool_ends[number + 1] - first == end - at:
            alike = True
            for step in range(end - at):
                if data[at + step] != pool[first + step]:
                    alike = False
                    break
            if alike:
                return number
        place = (place + np.uint64(1)) & last
    return np.int64(-1)


@compiled
def number_texts(numbered, data, pool, pool_ends, table, wholes, nulls):
    """Write lanes with the numbers of texts. ``numbered``: the lanes of texts and of numbers;
    ``table``: numbers of the pool's texts where their hashes lead."""
    for event in range(len(wholes)):
        for row in range(len(numbered)):
            text, lane = numbered[row, 0], numbered[row, 1]
            nulls[event, lane] = nulls[event, text]
            if not nulls[event, text]:
                at = wholes[event, text] >> 32
                end = at + (wholes[event, text] & 0xFFFFFFFF)
                wholes[event, lane] = _number_of(data, at, end, pool, pool_ends, table)


@compiled
def set_masks(
    types, base, look_up_ends, look_ups, masks, program_ends, targets, questions, operations,
    looks, wholes, doubles, nulls, stack, path, nodes, out,
):  # fmt: skip
    """Write the words of each event: ``base`` by record type, ``masks`` from the row that a look-up
    begins with, and the ``targets`` (word and mask) of programs that hold."""
    words = out.shape[1]
    for event in range(len(types)):
        of = types[event]
        if of < 0:
            continue
        for word in range(words):
            out[event, word] = base[of, word]
        for each in range(look_up_ends[of], look_up_ends[of + 1]):
            row = look_ups[each, 2]
            if not nulls[event, look_ups[each, 0]]:
                row += OF_FIRST + wholes[event, look_ups[each, 1]]
            for word in range(words):
                out[event, word] |= masks[row, word]
        for each in range(program_ends[of], program_ends[of + 1]):
            if holds(
                questions[each], kernel.NONE, event, operations, looks, wholes, doubles, nulls,
                stack, path, nodes,
            ):  # fmt: skip
                out[event, targets[each, 0]] |= targets[each, 1]
