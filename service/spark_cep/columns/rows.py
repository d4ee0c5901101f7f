"""Orders of rows, and the numbers that occur in columns of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.compilation import I64

_Column = NDArray[np.signedinteger]
_MOST_COMBINED = 1 << 62


def sorted_rows(first: Sequence[_Column], then: Sequence[_Column]) -> I64:
    """The rows in the order of the columns ``first``, the most significant one first; those that
    are equal in all of these in the order of ``then``.

    One number is made of ``first`` where that fits: it is sorted much sooner than each column for
    itself, and few rows are left to be sorted by ``then``.
    """
    combined = _combined(first)
    if combined is None:
        return np.lexsort([*reversed(then), *reversed(first)])
    order = np.argsort(combined)
    ordered = combined[order]
    same = ordered[1:] == ordered[:-1]
    if same.any():
        equal = np.zeros(len(order), bool)
        equal[1:] = same
        equal[:-1] |= same
        rows = order[equal]
        keys = [*(column[rows] for column in reversed(then)), ordered[equal]]
        order[equal] = rows[np.lexsort(keys)]
    return order


def _combined(columns: Sequence[_Column]) -> I64 | None:
    """A number for each row, in the order of the columns; ``None`` where it takes too many bits."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    spans = [(int(column.min()), int(column.max())) for column in columns]
    room = 1
    for least, most in spans:
        room *= most - least + 1
    if room > _MOST_COMBINED:
        return None
    combined = np.zeros(len(columns[0]), np.int64)
    for column, (least, most) in zip(columns, spans, strict=True):
        combined *= most - least + 1
        combined += column - least
    return combined


def numbers_in(columns: Iterable[I64], count: int) -> I64:
    """Those of so many numbers that occur in the columns, in ascending order. A sort would take
    longer than all else with events that partial matches hold very often."""
    occurs = np.zeros(count, bool)
    for column in columns:
        occurs[column] = True
    return np.flatnonzero(occurs)


def places_among(used: I64, count: int) -> I64:
    """The place of each of so many numbers among those that are ``used``; any for others."""
    places = np.zeros(count, np.int64)
    places[used] = np.arange(len(used))
    return places
