"""Values by name, as columns: the measures of results, and what rules emit of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Vector, reader
from spark_cep.pattern.types import SqlType


class Measured(NamedTuple):
    """A measure of each row: its name, and its values, which are of this type."""

    name: str
    values: Vector
    kind: SqlType | None


class OfType(NamedTuple):
    """Values of one type, and their places, in ascending order, among all."""

    places: I64
    values: Vector
    kind: SqlType | None


@dataclass(frozen=True, slots=True)
class NamedValues:
    """Values by name, any number of each row: those of row ``i`` are at ``ends[i - 1]`` to
    ``ends[i]`` of ``name``, which are places in ``names``. A value in no part of ``typed`` is
    NULL."""

    ends: I64
    names: Sequence[str]
    name: I64
    typed: Sequence[OfType]

    @classmethod
    def of_columns(cls, columns: Sequence[Measured], rows: int) -> NamedValues:
        """Columns that each row has a value in."""
        each, count = np.arange(rows), len(columns)
        return cls(
            (each + 1) * count,
            [column.name for column in columns],
            np.tile(np.arange(count), rows),
            [
                OfType(each * count + number, column.values, column.kind)
                for number, column in enumerate(columns)
            ],
        )

    def row(self, row: int) -> dict[str, Any]:
        """The values of one row."""
        first, end = int(self.ends[row - 1]) if row else 0, int(self.ends[row])
        names = [self.names[number] for number in self.name[first:end].tolist()]
        found: dict[str, Any] = dict.fromkeys(names)
        for places, values, kind in self.typed:
            low, high = np.searchsorted(places, (first, end)).tolist()
            read = reader(values, kind)
            for number in range(low, high):
                found[names[places[number] - first]] = read(number)
        return found


def nothing_named() -> NamedValues:
    """Return the values of no rows."""
    return NamedValues.of_columns((), 0)
