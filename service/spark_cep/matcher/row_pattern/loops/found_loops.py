"""The compiled loops of :mod:`spark_cep.matcher.row_pattern.found`."""

from __future__ import annotations

from spark_cep.columns.compilation import NONE, compiled
from spark_cep.matcher.row_pattern.loops.tables import (
    EXCLUDED,
    MATCH,
    OMIT_EMPTY,
    ONE_ROW,
    UNMATCHED,
)


@compiled
def output_rows(results, labels, mode, result_of, current):
    """Write the result of each output row, and its place in the match; an unmatched row, and an
    empty match, are at 0. Returns how many there are; with too little room nothing is written."""
    count = 0
    for number in range(len(results)):
        result = results[number]
        if result.kind != MATCH and result.kind != UNMATCHED:
            continue
        first, end = 0, 1
        if result.kind == MATCH and result.length == 0:
            end = 0 if mode == OMIT_EMPTY else 1
        elif result.kind == MATCH:
            first, end = 0, result.length
            if mode == ONE_ROW:
                first = end - 1
        for place in range(first, end):
            if (
                mode == ONE_ROW
                or result.length == 0
                or labels[result.labels + place] < EXCLUDED
            ):  # fmt: skip
                if count < len(current):
                    result_of[count], current[count] = number, place
                count += 1
    return count


@compiled
def find_rows(results, labels, result_of, current, inside, forward, offset, final, out):
    """For each output row the row of the match, of the variables ``inside`` and so many from its
    first, or last, one, that a measure reads; ``NONE`` where there is none.

    A match's first output row is looked from; from there on what was found moves on, so that long
    matches take no more than their length.
    """
    before = NONE
    seen = count = 0
    found = NONE
    for number in range(len(result_of)):
        result = results[result_of[number]]
        last = result.length - 1 if final else current[number]
        if result.length == 0:
            last = -1
        if result_of[number] != before:
            before, seen, count, found = result_of[number], last + 1, 0, NONE
            for step in range(last + 1):
                at = step if forward else last - step
                if inside[labels[result.labels + at] & (EXCLUDED - 1)]:
                    count += 1
                    if count > offset:
                        found = at
                        break
        while seen <= last:
            if inside[labels[result.labels + seen] & (EXCLUDED - 1)]:
                count += 1
                if count > offset and (found == NONE or not forward):
                    found += 1
                    while not inside[labels[result.labels + found] & (EXCLUDED - 1)]:
                        found += 1
                    if forward:
                        found = seen
            seen += 1
        out[number] = found


@compiled
def count_rows(results, labels, result_of, current, inside, final, out):
    """For each output row, how many rows of the match, up to it, are of the variables."""
    before = NONE
    seen = count = 0
    for number in range(len(result_of)):
        result = results[result_of[number]]
        last = result.length - 1 if final else current[number]
        if result_of[number] != before:
            before, seen, count = result_of[number], 0, 0
        if result.length:
            while seen <= last:
                count += inside[labels[result.labels + seen] & (EXCLUDED - 1)]
                seen += 1
        out[number] = count


@compiled
def places_of(results, result_of, rows_at, row_ends, bases, found, shift, out):
    """The place of the row ``shift`` behind row ``found`` of the match of each output row; ``NONE``
    where there is none. ``bases``: the number of the first row of each key."""
    for number in range(len(result_of)):
        result = results[result_of[number]]
        out[number] = NONE
        if found[number] != NONE:
            key = result.key
            begin = row_ends[key - 1] if key else 0
            row = result.first + found[number] + shift
            at = begin + row - bases[key]
            if row >= 0 and begin <= at < row_ends[key]:
                out[number] = rows_at[at]
