"""The order of rows of equal event time, where ORDER BY has further columns.

All events of one time are applied together: a batch is cut between times, and what comes after the
watermark has passed a time is late. So it makes no difference how they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Numbers, Objects, Vector
from spark_cep.matcher.engine import NewEvents

_NUMBERS = (bool, int, float, Decimal)


class RowOrder:
    """Orders rows of equal time. ``ties``: for each further column of ORDER BY its place among the
    columns of events, whether it descends, and whether NULLs stand first."""

    def __init__(self, ties: Sequence[tuple[int, bool, bool]]) -> None:
        self._ties = ties

    def of(self, rows: I64, fresh: NewEvents) -> I64:
        """Return some new events, which are in the order of application, in the order of rows."""
        columns = fresh.events.columns
        if not self._ties or columns is None or len(rows) <= 1:
            return rows
        at = fresh.held + rows
        key, time, micros = fresh.key[rows], fresh.events.time[at], fresh.micros[rows]
        same = (key[1:] == key[:-1]) & (time[1:] == time[:-1]) & (micros[1:] == micros[:-1])
        if not same.any():
            return rows
        # Rows that share their time with no other keep their place: only the others are ranked.
        tied = np.append(same, [False]) | np.append([False], same)
        group = np.cumsum(np.append([True], ~same))[tied]
        ranks = [
            rank
            for place, descending, nulls_first in self._ties
            for rank in _ranks(columns[place].take(at[tied]), descending, nulls_first)
        ]
        ordered = rows.copy()
        ordered[tied] = rows[tied][np.lexsort((*reversed(ranks), group))]
        return ordered


def _ranks(column: Vector, descending: bool, nulls_first: bool) -> tuple[NDArray[Any], I64]:
    """Numbers that order the values of a column: first those that say which are NULL."""
    nulls, values = _values(column)
    _, rank = np.unique(values, return_inverse=True) if len(values) else (None, values)
    ranks = np.zeros(len(nulls), np.int64)
    ranks[~nulls] = -rank if descending else rank
    return (~nulls if nulls_first else nulls), ranks


def _values(column: Vector) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Flags of the values of a column that are NULL, and the others, as NumPy can sort them."""
    if isinstance(column, Numbers):
        return column.nulls, column.values[~column.nulls]
    given: list[Any]
    if isinstance(column, Objects):
        given = [None if value is None else _sortable(value) for value in column.values]
    else:
        # By their bytes, as texts are compared.
        given = column.values()
    nulls = np.array([value is None for value in given], bool)
    values = np.empty(len(given), object)
    for place, value in enumerate(given):
        values[place] = value
    return nulls, values[~nulls]


def _sortable(value: Any) -> tuple[str, Any]:
    """A value that can be compared with those of other types."""
    if isinstance(value, _NUMBERS):
        return "", value
    if isinstance(value, str):
        return "text", value.encode()
    if isinstance(value, (date, datetime, bytes)):
        return type(value).__name__, value
    return type(value).__name__, repr(value)
