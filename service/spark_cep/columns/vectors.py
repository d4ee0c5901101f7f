"""Column vectors: one column of many events.

A column is :class:`Numbers`, :class:`Bytes` or :class:`Objects`, by its
:class:`~spark_cep.columns.representation.Representation`.
Arrays are never changed in place: vectors share them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.compilation import I64
from spark_cep.columns.loops.byte_loops import copy_bytes
from spark_cep.columns.representation import Representation, from_whole, representation, to_whole
from spark_cep.errors import damaged_state
from spark_cep.pattern.types import SqlType

#: A text is ``start << LENGTH_BITS | length``.
LENGTH_BITS = 32
LENGTH_MASK = (1 << LENGTH_BITS) - 1
_LITTLE = 4_096
_MOST_BYTES = 1 << (63 - LENGTH_BITS)
Rows = NDArray[np.intp] | I64 | slice
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Numbers:
    """``values`` (int64 or float64) and where they are NULL."""

    values: NDArray[Any]
    nulls: Flags

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Rows) -> Numbers:
        """The values of these rows."""
        return Numbers(self.values[rows], self.nulls[rows])


@dataclass(frozen=True, slots=True)
class Bytes:
    """Texts, or other bytes: ``places`` in ``data`` (start and length, see ``LENGTH_BITS``), and
    where they are NULL."""

    places: I64
    nulls: Flags
    data: NDArray[np.uint8]

    def __post_init__(self) -> None:
        """See :func:`fixed`. Raises OverflowError for more bytes than places can point into."""
        if len(self.data) >= _MOST_BYTES:
            raise OverflowError(
                f"a column of bytes has less than 2 GiB, and here are {len(self.data)} bytes"
            )
        if self.data.flags.writeable:
            object.__setattr__(self, "data", fixed(self.data.view()))

    @classmethod
    def of(cls, values: Sequence[bytes | None]) -> Bytes:
        """These values."""
        lengths = np.array([0 if value is None else len(value) for value in values], np.int64)
        nulls = np.array([value is None for value in values], bool)
        joined = b"".join(value for value in values if value is not None)
        return cls.packed(lengths, nulls, np.frombuffer(joined, np.uint8))

    @classmethod
    def packed(cls, lengths: I64, nulls: Flags, data: NDArray[np.uint8]) -> Bytes:
        """Values that stand one behind the other in ``data``; a NULL has length 0."""
        starts = np.cumsum(lengths) - lengths
        return cls(starts << LENGTH_BITS | lengths, nulls, data)

    @classmethod
    def of_ends(cls, data: NDArray[np.uint8], ends: I64, nulls: Flags | None = None) -> Bytes:
        """Values that stand one behind the other, value *i* at ``data[ends[i]:ends[i + 1]]``."""
        places = ends[:-1] << LENGTH_BITS | np.diff(ends)
        return cls(places, np.zeros(len(places), bool) if nulls is None else nulls, data)

    @classmethod
    def numbered(cls, values: Iterable[bytes | None]) -> tuple[Bytes, I64]:
        """Those of the values that are there, and for each value its number among them; -1: it is
        not there."""
        given = list(values)
        there = np.array([value is not None for value in given], bool)
        numbers = np.where(there, np.cumsum(there) - 1, -1)
        return cls.of([value for value in given if value is not None]), numbers

    def __len__(self) -> int:
        return len(self.places)

    @property
    def pool(self) -> tuple[NDArray[np.uint8], I64]:
        """Bytes and places, as compiled loops take them."""
        return self.data, self.places

    def sizes(self, numbers: I64) -> I64:
        """Bytes of the values with these numbers; -1: there is none."""
        sizes: I64 = np.append(self.lengths, 0)[numbers]
        return sizes

    def values(self) -> list[bytes | None]:
        """All values."""
        return [self.value(row) for row in range(len(self))]

    @property
    def lengths(self) -> I64:
        """Bytes of each value; 0 for NULL."""
        return np.where(self.nulls, 0, self.places & LENGTH_MASK)

    def take(self, rows: Rows) -> Bytes:
        """The values of these rows, with the same ``data``."""
        return Bytes(self.places[rows], self.nulls[rows], self.data)

    def compacted(self) -> Bytes:
        """Return the column with its values one behind the other and no other bytes in ``data``."""
        lengths = self.lengths
        data = np.empty(int(lengths.sum()), np.uint8)
        copy_bytes(self.data, self.places, self.nulls, data)
        return Bytes.packed(lengths, self.nulls, fixed(data))

    def text(self, row: int) -> str | None:
        """One value, as text."""
        value = self.value(row)
        return None if value is None else _decoded(value)

    def value(self, row: int) -> bytes | None:
        """One value."""
        if self.nulls[row]:
            return None
        place = int(self.places[row])
        start = place >> LENGTH_BITS
        return self.data[start : start + (place & LENGTH_MASK)].tobytes()


@dataclass(frozen=True, slots=True)
class Objects:
    """Python values; ``None`` is NULL."""

    values: list[Any]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Rows) -> Objects:
        """The values of these rows."""
        if isinstance(rows, slice):
            return Objects(self.values[rows])
        return Objects([self.values[row] for row in rows.tolist()])


Vector = Numbers | Bytes | Objects
_NO_TEXTS, _NO_NUMBERS = Bytes.of(()), np.zeros(0, np.int64)


def texts_of(texts: Collection[str | None]) -> Bytes:
    """Texts as a vector."""
    if not texts:
        return no_texts()
    return Bytes.of([None if text is None else text.encode() for text in texts])


def no_texts() -> Bytes:
    """A column of no texts."""
    return _NO_TEXTS


def no_numbers() -> I64:
    """No numbers."""
    return _NO_NUMBERS


def nulls_of(kind: SqlType | None, count: int) -> Vector:
    """Return a column of ``count`` NULLs of a type."""
    return nulls_like(vector((), kind, ""), count)


def nulls_like(column: Vector, count: int) -> Vector:
    """Return a column of ``count`` NULLs in the representation of another one."""
    all_null = np.ones(count, bool)
    if isinstance(column, Objects):
        return Objects([None] * count)
    if isinstance(column, Bytes):
        return Bytes(np.zeros(count, np.int64), all_null, column.data[:0])
    return Numbers(np.zeros(count, column.values.dtype), all_null)


def with_nulls(column: Vector, nulls: Flags) -> Vector:
    """The column, NULL in these rows, too."""
    if not nulls.any():
        return column
    if isinstance(column, Objects):
        pairs = zip(column.values, nulls.tolist(), strict=True)
        return Objects([None if null else value for value, null in pairs])
    if isinstance(column, Numbers):
        return Numbers(column.values, column.nulls | nulls)
    return Bytes(column.places, column.nulls | nulls, column.data)


def vector(values: Sequence[Any], kind: SqlType | None, name: str) -> Vector:
    """Python values as a vector. ValueError, with the column's ``name``, when one is of another
    type."""
    of = representation(kind)
    if kind is None or of is Representation.OBJECT:
        return Objects(list(values))
    try:
        if of is Representation.TEXT:
            return texts_of(values)
        convert: Callable[[Any], Any] = float if of is Representation.DOUBLE else to_whole(kind)
        return Numbers(
            np.array(
                [0 if value is None else convert(value) for value in values],
                np.float64 if of is Representation.DOUBLE else np.int64,
            ),
            np.array([value is None for value in values], bool),
        )
    except (TypeError, ValueError, OverflowError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"column {name} has a value that is no {kind}: {error}") from error


def reader(column: Vector, kind: SqlType | None) -> Callable[[int], Any]:
    """The function that gives the Python value of a row."""
    if isinstance(column, Objects):
        return column.values.__getitem__
    nulls = column.nulls
    if isinstance(column, Bytes):
        return _text_reader(column)
    values = column.values
    if values.dtype == np.float64:
        return lambda row: None if nulls[row] else float(values[row])
    assert kind is not None
    convert = from_whole(kind)
    return lambda row: None if nulls[row] else convert(int(values[row]))


def _text_reader(column: Bytes) -> Callable[[int], str | None]:
    places, nulls, data = column.places, column.nulls, column.data

    def read(row: int) -> str | None:
        if nulls[row]:
            return None
        place = int(places[row])
        start = place >> LENGTH_BITS
        return _decoded(data[start : start + (place & LENGTH_MASK)].tobytes())

    return read


def values_at(column: Vector, kind: SqlType | None, rows: I64) -> list[Any]:
    """The Python values of some rows: those of :func:`reader`, of many rows in less time."""
    if isinstance(column, Objects):
        return column.take(rows).values
    part = column.take(rows)
    if isinstance(part, Bytes):
        found: list[Any] = _texts(part)
    elif part.values.dtype == np.float64:
        found = part.values.tolist()
    else:
        assert kind is not None
        convert = from_whole(kind)
        found = part.values.tolist() if convert is int else [*map(convert, part.values.tolist())]
    for row in np.flatnonzero(part.nulls).tolist():
        found[row] = None
    return found


def _texts(column: Bytes) -> list[str]:
    """All texts; that of NULL is empty."""
    column = column.compacted()
    whole = _decoded(column.data.tobytes())
    if len(whole) == len(column.data):
        ends = np.cumsum(column.lengths).tolist()
        return [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    read = _text_reader(column)
    return [read(row) or "" for row in range(len(column))]


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        # Decoders take no other bytes for text, so these were stored.
        raise damaged_state(f"a text is not UTF-8: {error.reason}") from error


def concatenated(parts: Sequence[Vector]) -> Vector:
    """Vectors of one representation as one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, Objects):
        return Objects([value for part in parts for value in _same(part, Objects).values])
    if isinstance(first, Numbers):
        numbers = [_same(part, Numbers) for part in parts]
        return Numbers(
            np.concatenate([part.values for part in numbers]),
            np.concatenate([part.nulls for part in numbers]),
        )
    return texts_together([_same(part, Bytes) for part in parts])


def texts_together(texts: Sequence[Bytes]) -> Bytes:
    """Vectors of texts as one."""
    texts = [part for part in texts if len(part)] or texts[:1]
    if len(texts) == 1:
        return texts[0]
    # What a vector was cut out of is not copied along, unless it is so little that a copy takes
    # less time than to find out.
    texts = [
        t.compacted() if len(t.data) > _LITTLE and 2 * int(t.lengths.sum()) < len(t.data) else t
        for t in texts
    ]
    places, start = [], 0
    for part in texts:
        places.append(part.places + (start << LENGTH_BITS) if start else part.places)
        start += len(part.data)
    return Bytes(
        np.concatenate(places),
        np.concatenate([part.nulls for part in texts]),
        fixed(np.concatenate([part.data for part in texts])),
    )


def places_of(counts: I64, chosen: I64) -> I64:
    """The places of what belongs to some rows; ``counts``: how many belong to each row."""
    lengths = counts[chosen]
    starts = (np.cumsum(counts) - counts)[chosen]
    found: I64 = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(
        lengths.sum()
    )
    return found


def fixed(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bytes that are not written to any more, as those of a message are: compiled loops have a form
    for each of the two."""
    data.flags.writeable = False
    return data


def _same(part: Vector, kind: type[Any]) -> Any:
    if not isinstance(part, kind):
        raise TypeError(f"a column is {type(part).__name__} and {kind.__name__}")
    return part
