"""The places of the events' columns in arrays with a row for each event.

A *vector* holds whole numbers, truth (0, 1), dates (days), moments (µs) and decimals of up to 18
digits (without their point) as 64-bit numbers, FLOAT and DOUBLE as doubles. A text is its place
among the bytes of all records, ``start << 32 | length``; for each part of it that conditions
compare, another vector has the part's *number* among the texts that conditions name, -1 for all
others. Any other value is the place of its bytes as they were written, and another vector says how
they are read (:mod:`spark_cep.codecs.avro.record_layout`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from spark_cep.columns.representation import Representation, representation
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.expressions.values.like import Place
from spark_cep.pattern.types import STRING, SqlType


class TextPart(NamedTuple):
    """The part of a text that is compared: all of it, some bytes at its start or end, or a ``text``
    in it."""

    place: Place = Place.WHOLE
    length: int = 0
    text: str = ""


@dataclass
class ColumnVectors:
    """The vectors of columns, each numbered when it is first asked for."""

    values: dict[tuple[ColumnPath, SqlType], int] = field(default_factory=dict)
    #: By the vector of the text, and what of it.
    numbers: dict[tuple[int, TextPart], int] = field(default_factory=dict)
    #: By the vector of the value.
    readers: dict[int, int] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.values) + len(self.numbers) + len(self.readers)

    def value(self, path: ColumnPath, kind: SqlType) -> int:
        """The vector of a column."""
        return self.values.setdefault((path, kind), self.width)

    def number(self, path: ColumnPath, part: TextPart) -> int:
        """The vector with the numbers of a part of a text column."""
        return self.numbers.setdefault((self.value(path, STRING), part), self.width)

    def reader(self, vector: int) -> int:
        """The vector that says how the values of a vector of ``Representation.OBJECT`` are read."""
        return self.readers.setdefault(vector, self.width)

    def reader_of(self, vector: int, kind: SqlType) -> int:
        """The vector of :meth:`reader` for a column of this type; -1 where its values need none."""
        return self.reader(vector) if representation(kind) is Representation.OBJECT else -1
