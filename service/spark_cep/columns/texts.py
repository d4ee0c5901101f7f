"""Texts of one run by number: the same number for equal ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from spark_cep.columns.compilation import I32, I64, NONE
from spark_cep.columns.loops.byte_loops import find_text, find_texts, number_texts
from spark_cep.columns.loops.keyed_hash import SECRET
from spark_cep.columns.vectors import LENGTH_BITS, LENGTH_MASK, Bytes, texts_of, texts_together

#: The table of no texts.
_NO_TABLE = np.full(2, NONE, np.int32)


class Texts:
    """The texts of some columns, and some constants, numbered from 0; more can be added.

    With ``ordered``, the numbers of those that are there at first are in the order of the texts.
    """

    def __init__(
        self, columns: Sequence[Bytes], constants: Sequence[str], *, ordered: bool
    ) -> None:
        given = [*columns, texts_of(constants)]
        every = texts_together(given)
        numbers, table, firsts = _numbered(every, 2)
        count = len(firsts)
        if ordered:
            texts = [_bytes_at(every.data, int(place)) for place in firsts]
            order = np.array(sorted(range(count), key=texts.__getitem__), np.int64)
            ranks = np.empty(count, np.int32)
            ranks[order] = np.arange(count)
            firsts = firsts[order]
            table = np.where(table < 0, table, ranks.take(np.maximum(table, 0))) if count else table
            numbers = ranks[numbers].astype(np.int64) if count else numbers
        self._data, self._table, self._firsts = every.data, table, firsts
        self._texts: dict[int, str] = {}
        self._added: dict[str, int] = {}
        ends = [*accumulate(map(len, given))]
        *self.columns, self.constants = (
            numbers[end - len(column) : end] for column, end in zip(given, ends, strict=True)
        )

    columns: list[I64]
    """The number of each text of the columns; any for NULL."""
    constants: I64

    def text(self, number: int) -> str:
        """The text of a number."""
        found = self._texts.get(number)
        if found is None:
            place = int(self._firsts[number])
            found = self._texts[number] = _bytes_at(self._data, place).decode()
        return found

    def number(self, text: str) -> int:
        """The number of a text, which is new where it is not among them."""
        found = self._added.get(text)
        if found is None:
            encoded = np.frombuffer(text.encode(), np.uint8)
            found = int(find_text(SECRET, encoded, self._data, self._table, self._firsts))
            if found < 0:
                found = len(self._firsts) + len(self._added)
            self._added[text] = found
            self._texts[found] = text
        return found


class TextSet:
    """Some texts, NULL maybe among them, to look others up in: equal ones have one number, of those
    from 0 to ``len``."""

    def __init__(self, *columns: Bytes) -> None:
        texts = texts_together(columns)
        self.texts = texts
        # Most look-ups find nothing, and end at the first place if that is free.
        #: The number of each text, of one column behind the other.
        self.numbers, self.table, self.firsts = _numbered(texts, 8)
        count = len(self.firsts)
        #: The number of NULL; ``NONE`` where it is not among them.
        self.of_null = NONE
        if texts.nulls.any():
            self.of_null = count
            self.numbers[texts.nulls] = count
            count += 1
        self._count = count

    def __len__(self) -> int:
        return self._count

    def different(self) -> list[str]:
        """The texts, in the order in which they come first."""
        return [_bytes_at(self.texts.data, place).decode() for place in self.firsts.tolist()]

    def find(self, column: Bytes) -> I64:
        """The number of each value of a column; ``NONE`` where it is none of them."""
        found = np.empty(len(column), np.int64)
        find_texts(
            SECRET, column.data, column.places, column.nulls, self.texts.data, self.table,
            self.firsts, self.of_null, found,
        )  # fmt: skip
        return found


def with_more(known: Bytes, more: Bytes) -> tuple[Bytes, I64]:
    """Texts that are ``known``, and behind them what else is among ``more``, each of which has no
    text twice; and the place of each of ``more`` there."""
    both = TextSet(known, more)
    place = np.full(len(both), NONE, np.int64)
    place[both.numbers[: len(known)]] = np.arange(len(known))
    places = place[both.numbers[len(known) :]]
    new = np.flatnonzero(places == NONE)
    places[new] = len(known) + np.arange(len(new))
    return texts_together([known, more.take(new)]), places


def _numbered(texts: Bytes, room: int) -> tuple[I64, I32, I64]:
    """For each text its number, the table of numbers with ``room`` times the places that are
    needed, and by number the place of the text. The table is read all over: half the bytes are in
    the processor's cache twice as long."""
    numbers = np.zeros(len(texts), np.int64)
    if not len(texts):
        return numbers, _NO_TABLE, numbers
    table = np.full(1 << max(1, (room * len(texts)).bit_length()), NONE, np.int32)
    firsts = np.zeros(len(texts), np.int64)
    count = number_texts(SECRET, *texts.pool, texts.nulls, table, firsts, 0, numbers)
    return numbers, table, firsts[:count]


def _bytes_at(data: np.ndarray[tuple[int], np.dtype[np.uint8]], place: int) -> bytes:
    start = place >> LENGTH_BITS
    return data[start : start + (place & LENGTH_MASK)].tobytes()
