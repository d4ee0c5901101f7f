"""Keys of events as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_cep.codecs.record_reader import Read
from spark_cep.columns.loops.text_hash import SEED
from spark_cep.compiler.key_text import ESCAPED, escaped
from spark_cep.pattern.types import STRING
from spark_cep.pipeline.decode.column_bytes import bytes_at, taken
from spark_cep.pipeline.decode.evaluation import ColumnVector, Evaluation
from spark_cep.pipeline.state.key_groups import key_groups_of
from spark_cep.pipeline.wire.arrow_bytes import bytes_of

_Rows = NDArray[np.intp]
_Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class KeyPart:
    """A part of a key, by record type: a column of text or whole numbers, any other expression that
    gives text, or none, where it is NULL."""

    of: tuple[ColumnVector | Evaluation | None, ...]


class KeyTexts:
    """A part of the key of a batch's events, of record types ``of`` (-1: none has a key)."""

    def __init__(self, part: KeyPart, read: Read, of: NDArray[np.int32]) -> None:
        self._part, self._read, self._of = part, read, of
        #: Which events have none.
        self.missing = np.ones(len(of), bool)
        #: By record type, texts of expressions and the place of each row's.
        self._texts: dict[int, tuple[pa.Array, NDArray[np.int64]]] = {}
        for number, source in enumerate(part.of):
            if source is None:
                continue
            mine = of == number
            if isinstance(source, ColumnVector):
                self.missing[mine] = read.nulls[mine, source.vector] != 0
                continue
            rows = np.flatnonzero(mine)
            found = source.of(read, rows)
            places = np.zeros(len(of), np.int64)
            places[rows] = found.places
            self._texts[number] = pa.array(found.values, pa.string()), places
            self.missing[rows] = np.array([v is None for v in found.values], bool)[found.places]

    def of_rows(self, rows: _Rows, here: _Flags) -> pa.Array:
        """The texts of the rows that are ``here`` and have one."""
        types = self._of[rows]
        here = here & ~self.missing[rows]
        present = np.flatnonzero(np.bincount(types[here], minlength=1)).tolist()
        if len(present) == 1:
            return self._of_type(present[0], rows, ~here)
        texts = pa.nulls(len(rows), pa.string())
        for number in present:
            mine = here & (types == number)
            texts = pc.if_else(pa.array(mine), self._of_type(number, rows, ~mine), texts)
        return texts

    def _of_type(self, number: int, rows: _Rows, null: _Flags) -> pa.Array:
        source = self._part.of[number]
        if isinstance(source, ColumnVector):
            values = self._read.wholes[rows, source.vector]
            if source.kind == STRING:
                return bytes_at(self._read.data, values, null, pa.string())
            return pa.array(values, mask=null).cast(pa.string())
        texts, places = self._texts[number]
        return taken(texts, places[rows], null)


def keys_of(
    parts: Sequence[KeyTexts], rows: _Rows, here: _Flags, key_groups: int
) -> tuple[pa.Array, NDArray[np.int32]]:
    """The keys of the rows that are ``here``, and their key groups."""
    if not parts:
        # All events have the same.
        return pa.nulls(len(rows), pa.string()), np.full(len(rows), SEED % key_groups, np.int32)
    texts = [part.of_rows(rows, here) for part in parts]
    key = texts[0] if len(texts) == 1 else _joined(texts, here)
    return key, key_groups_of(bytes_of(key), key_groups).astype(np.int32)


def _joined(parts: Sequence[pa.Array], here: _Flags) -> pa.Array:
    """The parts of each key as one text (:mod:`spark_cep.compiler.key_text`)."""
    absent = len(here) - np.count_nonzero(here)
    complete = all(part.null_count == absent for part in parts)
    between: list[Any] = [
        pa.array([None if t is None else escaped(t) for t in part.to_pylist()], pa.string())
        if pc.any(pc.match_substring_regex(part, ESCAPED)).as_py()
        else part
        for part in parts
    ]
    if complete:
        # Most are, and it takes half the time.
        joined = pc.binary_join_element_wise(*between, '","')
        return pc.binary_join_element_wise('["', joined, '"]', "")
    quoted = [pc.binary_join_element_wise('"', part, '"', "") for part in between]
    joined = pc.binary_join_element_wise(
        *quoted, ",", null_handling="replace", null_replacement="null"
    )
    key = pc.binary_join_element_wise("[", joined, "]", "")
    return pc.if_else(pa.array(here), key, pa.scalar(None, pa.string()))
