"""Aggregates of the values that the events of each result have, compiled.

The values of result ``i`` are those at ``first[i]`` to ``end[i]``.
"""

from __future__ import annotations

from spark_cep.columns.compilation import NONE, compiled
from spark_cep.columns.vectors import LENGTH_BITS, LENGTH_MASK
from spark_cep.programs.loops.aggregate_loop import clear, result, take


@compiled
def aggregate_numbers(aggregates, columns, first, end, values):
    """Write the aggregate of each result into a row of ``values``. ``aggregates`` has one row."""
    aggregate = aggregates[0]
    for number in range(len(values)):
        value = values[number]
        clear(value)
        for place in range(first[number], end[number]):
            take(aggregate, place, columns, value)
        result(aggregate.function, aggregate.double, value, value)


@compiled
def pick_texts(data, places, nulls, first, end, greatest, found):
    """Write the place of the first of each result's texts that is the least, or the greatest, of
    them; ``NONE`` where all are NULL."""
    for number in range(len(found)):
        best = NONE
        for place in range(first[number], end[number]):
            if nulls[place]:
                continue
            if best == NONE:
                best = place
            elif greatest:
                if _is_less(data, places[best], places[place]):
                    best = place
            elif _is_less(data, places[place], places[best]):
                best = place
        found[number] = best


@compiled
def _is_less(data, one, other):
    """Return whether a text is before another: the order of UTF-8 is that of code points."""
    start, of_other = one >> LENGTH_BITS, other >> LENGTH_BITS
    length, longest = one & LENGTH_MASK, other & LENGTH_MASK
    for at in range(min(length, longest)):
        if data[start + at] != data[of_other + at]:
            return data[start + at] < data[of_other + at]
    return length < longest
