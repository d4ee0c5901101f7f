"""Columns of bytes: those of all values one behind the other, and where each ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes, places_of


@dataclass(frozen=True, slots=True)
class ByteColumn:
    """Value *i* is ``data[ends[i]:ends[i + 1]]``, if there is one (``present[i]``; without it all
    are there)."""

    data: NDArray[np.uint8]
    ends: I64
    present: NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, values: Sequence[bytes]) -> ByteColumn:
        """These values."""
        ends = np.zeros(len(values) + 1, np.int64)
        np.cumsum([len(value) for value in values], out=ends[1:])
        return cls(np.frombuffer(b"".join(values), np.uint8), ends)

    @classmethod
    def of_vector(cls, values: Bytes) -> ByteColumn:
        """The values of a vector, with no bytes for NULL."""
        whole = values.compacted()
        ends = np.zeros(len(whole) + 1, np.int64)
        np.cumsum(whole.lengths, out=ends[1:])
        return cls(whole.data, ends)

    @classmethod
    def optional(cls, values: Iterable[bytes | None]) -> tuple[ByteColumn, I64]:
        """Those of the values that are there, and for each value its number among them; -1: it is
        not there."""
        there: list[bytes] = []
        numbers = []
        for value in values:
            numbers.append(-1 if value is None else len(there))
            if value is not None:
                there.append(value)
        return cls.of(there), np.array(numbers, np.int64)

    @classmethod
    def of_length(cls, data: NDArray[np.uint8], length: int) -> ByteColumn:
        """Values of ``length`` bytes each."""
        return cls(data, np.arange(0, len(data) + 1, length, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def pool(self) -> tuple[NDArray[np.uint8], I64]:
        """Bytes and ends, as compiled loops take them."""
        return self.data, self.ends

    @property
    def lengths(self) -> I64:
        """Bytes of each value."""
        lengths: I64 = np.diff(self.ends)
        return lengths

    def take(self, rows: I64) -> ByteColumn:
        """The values of some rows, all of which are there."""
        lengths = self.lengths
        ends = np.append(0, np.cumsum(lengths[rows]))
        return ByteColumn(self.data[places_of(lengths, rows)], ends)

    def between(self, start: int, end: int) -> ByteColumn:
        """The values of some rows, with the same bytes."""
        present = None if self.present is None else self.present[start:end]
        return ByteColumn(self.data, self.ends[start : end + 1], present)

    def sizes(self, numbers: I64) -> I64:
        """Bytes of the values with these numbers; -1: there is none."""
        sizes: I64 = np.append(self.lengths, 0)[numbers]
        return sizes

    def values(self) -> list[bytes]:
        """All values."""
        data = self.data.tobytes()
        return [data[start:end] for start, end in pairwise(self.ends.tolist())]
