"""The rows of one key, as views on threads and matches read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.texts import TextSet
from spark_cep.columns.vectors import Bytes, Vector, values_at
from spark_cep.matcher.batch.events import EventTable, SlotType
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.matcher.row_pattern.python_calls.evaluation import PartitionRow, RowFold
from spark_cep.pattern.types import SqlType


class KeyRows:
    """The rows of a key by their numbers, as a view on a match reads them."""

    __slots__ = ("_at", "_base", "_columns", "_read", "_slots")

    def __init__(self, at: I64, base: int, events: EventTable, slots: Sequence[SlotType]) -> None:
        self._at, self._base, self._slots = at, base, slots
        self._columns = events.vectors(slots)
        self._read = events.row_columns(slots)

    def row(self, number: int) -> PartitionRow:
        """A row that is there."""
        return self._read(int(self._at[number - self._base]))

    def folded(self, fold: RowFold, folded: Any, start: int, numbers: I64) -> Any:
        """A fold that takes rows at once, with some more behind those of ``folded``; ``start``: the
        first row of the match."""
        assert fold.add_all is not None
        at = self._at[numbers - self._base]

        def read(column: int, *, different: bool, most: int | None) -> list[Any]:
            values, kind = self._columns[column], self._slots[column].kind
            return (_different if different else values_at)(values, kind, at[:most])

        return fold.add_all(folded, numbers - start, read)

    @property
    def end(self) -> int:
        """The number of the row that would come next."""
        return self._base + len(self._at)

    def place(self, number: int) -> int:
        """Return the place of the row among all rows."""
        return int(self._at[number - self._base])


def places(rows: tables.Rows, key: int) -> I64:
    """The places of a key's rows."""
    first = int(rows.ends[key - 1]) if key else 0
    return rows.at[first : int(rows.ends[key])]


def _different(column: Vector, kind: SqlType | None, rows: I64) -> list[Any]:
    """The values of some rows that are not NULL, in the order in which they come first. Only of
    those that are equal where they are the same."""
    part = column.take(rows)
    if isinstance(part, Bytes):
        return TextSet(part.take(np.flatnonzero(~part.nulls))).different()
    return values_at(column, kind, rows)
