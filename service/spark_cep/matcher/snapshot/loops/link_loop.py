"""The compiled loop that checks links between rows of a key, which count from the key's first row,
and lets them count from the first row of all."""

from __future__ import annotations

from spark_cep.columns.compilation import NONE, compiled


@compiled
def link(numbers, counts, sizes, own):
    """Let each row's number of a row in another table count from the first of all; each key has so
    many rows (``counts``), and so many in the other table (``sizes``). ``own``: that is the rows'
    own table, where they refer to rows before them, or to none, so that such links have an end.
    Returns the first row whose number is none of the key's; ``NONE``: there is no such row."""
    row, first = 0, 0
    for key in range(len(counts)):
        for place in range(counts[key]):
            number = numbers[row]
            if not own or number != NONE:
                if number < 0 or number >= (place if own else sizes[key]):
                    return row
                numbers[row] = first + number
            row += 1
        first += sizes[key]
    return NONE
