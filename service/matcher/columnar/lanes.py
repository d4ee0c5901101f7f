"""Which column of events stands where, in arrays with a row for each event.

A *lane* holds whole numbers, truth and moments (µs) as 64-bit numbers, FLOAT and DOUBLE as doubles.
A text is its place among the bytes of all records, ``start << 32 | length``; where conditions read
it, a second lane has its *number* among the texts that conditions name, -1 for all others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from service.pattern.expressions import ColumnPath
from service.pattern.types import SqlType


@dataclass
class Lanes:
    """The lanes of columns, each numbered when it is first asked for."""

    values: dict[tuple[ColumnPath, SqlType], int] = field(default_factory=dict)
    #: By the lane of the text.
    numbers: dict[int, int] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """How many there are."""
        return len(self.values) + len(self.numbers)

    def value(self, path: ColumnPath, kind: SqlType) -> int:
        """The lane of a column."""
        return self.values.setdefault((path, kind), self.width)

    def number(self, text: int) -> int:
        """The lane with the numbers of the texts in the lane ``text``."""
        return self.numbers.setdefault(text, self.width)
