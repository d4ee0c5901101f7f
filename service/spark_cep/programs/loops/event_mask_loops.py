"""The compiled loops of :mod:`spark_cep.programs.event_masks`."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import compiled
from spark_cep.columns.loops.text_hash import text_hash
from spark_cep.pattern.expressions.values.like import Place
from spark_cep.programs.loops.expression_loop import holds_of_event

_START, _END, _ANYWHERE = int(Place.START), int(Place.END), int(Place.ANYWHERE)

#: The row of a look-up's masks that is the first constant's.
OF_FIRST = 2


@compiled
def _is_at(data, at, pool, first, length):
    """Return whether so many bytes of the pool are at this place."""
    for step in range(length):  # noqa: SIM110  Numba has no generators here
        if data[at + step] != pool[first + step]:
            return False
    return True


@compiled
def _number_of(data, at, end, pool, pool_ends, table):
    last = np.uint64(len(table) - 1)
    place = text_hash(data, at, end) & last
    while table[place] >= 0:
        number = table[place]
        first = pool_ends[number]
        if pool_ends[number + 1] - first == end - at and _is_at(data, at, pool, first, end - at):
            return number
        place = (place + np.uint64(1)) & last
    return np.int64(-1)


@compiled
def border_texts(pool, pool_ends, borders):
    """Write for each byte of a text of the pool how long the longest beginning of the text is that
    also ends there, other than all up to there (Knuth, Morris and Pratt, 1977)."""
    for number in range(len(pool_ends) - 1):
        first, matched = pool_ends[number], 0
        for place in range(first, pool_ends[number + 1]):
            if place == first:
                borders[place] = 0
                continue
            while matched > 0 and pool[place] != pool[first + matched]:
                matched = borders[first + matched - 1]
            if pool[place] == pool[first + matched]:
                matched += 1
            borders[place] = matched


@compiled
def _number_in(data, at, end, pool, pool_ends, borders, number):
    """``number`` where that text is in this one, else -1; each byte of this one is passed once."""
    first = pool_ends[number]
    length = pool_ends[number + 1] - first
    if length == 0:
        return number
    matched = 0
    for place in range(at, end):
        while matched > 0 and data[place] != pool[first + matched]:
            matched = borders[first + matched - 1]
        if data[place] == pool[first + matched]:
            matched += 1
            if matched == length:
                return number
    return np.int64(-1)


@compiled
def number_texts(numbered, data, pool, pool_ends, borders, table, wholes, nulls):
    """Write vectors with the numbers of texts. ``numbered``: the vectors of texts and of numbers,
    the part's place, and its length or its text's number; ``table``: numbers of the pool's texts
    where their hashes lead."""
    for event in range(len(wholes)):
        for row in range(len(numbered)):
            text, vector = numbered[row, 0], numbered[row, 1]
            place, argument = numbered[row, 2], numbered[row, 3]
            nulls[event, vector] = nulls[event, text]
            if nulls[event, text]:
                continue
            at = wholes[event, text] >> 32
            end = at + (wholes[event, text] & 0xFFFFFFFF)
            if place == _ANYWHERE:
                wholes[event, vector] = _number_in(
                    data, at, end, pool, pool_ends, borders, argument
                )
                continue
            if place == _START:
                end = min(end, at + argument)
            elif place == _END:
                at = max(at, end - argument)
            wholes[event, vector] = _number_of(data, at, end, pool, pool_ends, table)


@compiled
def set_masks(
    types, base, look_up_ends, look_ups, masks, program_ends, targets, programs, columns, stack, out
):  # fmt: skip
    """Write the words of each event: of ``base`` by record type what is left of it by the ``masks``
    from the row that a look-up begins with, and by programs, without the ``targets`` (word and
    mask) of those that do not hold."""
    words = out.shape[1]
    for event in range(len(types)):
        of = types[event]
        if of < 0:
            continue
        for word in range(words):
            out[event, word] = base[of, word]
        for each in range(look_up_ends[of], look_up_ends[of + 1]):
            vector, row = look_ups[each, 0], look_ups[each, 1]
            if not columns.nulls[event, vector]:
                row += OF_FIRST + columns.wholes[event, vector]
            for word in range(words):
                out[event, word] &= masks[row, word]
        possible = np.int64(0)
        for word in range(words):
            possible |= out[event, word]
        if possible == 0:
            continue
        for each in range(program_ends[of], program_ends[of + 1]):
            word, mask = targets[each, 0], targets[each, 1]
            if out[event, word] & mask and not holds_of_event(
                programs.conditions[each], event, programs, columns, stack
            ):
                out[event, word] &= ~mask


@compiled
def relevant_events(words, first, strict, inputs, bits, out):
    """Write for each event, whose words begin at ``first``, whether a bit of ``strict`` is set or a
    test holds, and whether a test holds: its bit of ``inputs`` (word and mask) is set, and one of
    its ``bits``."""
    for event in range(len(words)):
        holds = False
        for test in range(len(inputs)):
            if holds or not words[event, first + inputs[test, 0]] & inputs[test, 1]:
                continue
            for word in range(bits.shape[1]):
                if words[event, first + word] & bits[test, word]:
                    holds = True
                    break
        needed = holds
        for word in range(len(strict)):
            needed |= words[event, first + word] & strict[word] != 0
        out[event, 0], out[event, 1] = needed, holds
