"""Expressions that no compiled loop computes, of many events: once for each set of values.

Columns come from the vectors of :class:`spark_cep.codecs.record_reader.Read`; only here, and
only of the rows that are asked for, they become Python values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_cep.codecs.record_reader import Read
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.representation import Representation, from_whole, representation
from spark_cep.pattern.expressions import ColumnPath, Evaluator, Expression, bind
from spark_cep.pattern.types import BIGINT, INT, RecordType, SqlType, column_type
from spark_cep.pipeline.decode.column_bytes import bytes_at

_Rows = NDArray[np.intp]


class Distinct(NamedTuple):
    """The values of a column or an expression, few of them twice, and for each row the place of its
    own; ``errors``: by place, why there is no value (which is ``None`` then)."""

    values: list[Any]
    places: NDArray[np.int64]
    errors: Mapping[int, Exception] = {}


class ColumnVector(NamedTuple):
    """The place of a column of this type; ``reader``: the vector of its reader, where it has
    one."""

    vector: int
    kind: SqlType
    reader: int

    @classmethod
    def of(cls, path: ColumnPath, kind: SqlType, vectors: ColumnVectors) -> ColumnVector:
        """The vector of a column."""
        vector = vectors.value(path, kind)
        return cls(vector, kind, vectors.reader_of(vector, kind))

    def texts(self, read: Read, rows: _Rows) -> pa.Array:
        """The texts of a column of text in these rows, in none of which it is NULL."""
        return bytes_at(
            read.data, read.wholes[rows, self.vector], np.zeros(len(rows), bool), pa.string()
        )

    def distinct(self, read: Read, rows: _Rows) -> Distinct:
        """The column's values in these rows."""
        null = read.nulls[rows, self.vector] != 0
        values = read.wholes[rows, self.vector]
        match representation(self.kind):
            case Representation.TEXT:
                return _encoded(bytes_at(read.data, values, null, pa.string()))
            case Representation.WHOLE:
                found = _encoded(pa.array(values, mask=null))
                if self.kind in (INT, BIGINT):
                    return found
                known = [None if v is None else from_whole(self.kind)(v) for v in found.values]
                return found._replace(values=known)
            case Representation.DOUBLE:
                # By their bits: NaN is itself then, and 0 has a sign.
                found = _encoded(pa.array(values, mask=null))
                bits = np.array([v or 0 for v in found.values], np.int64).view(np.float64).tolist()
                doubles = zip(found.values, bits, strict=True)
                return found._replace(values=[None if v is None else d for v, d in doubles])
            case Representation.OBJECT:
                return self._read(read, rows, null)

    def _read(self, read: Read, rows: _Rows, null: NDArray[np.bool_]) -> Distinct:
        """The values of bytes, by the reader of their writer."""
        values: list[Any] = [None]
        places = np.zeros(len(rows), np.int64)
        readers = read.wholes[rows, self.reader]
        for number in np.unique(readers[~null]).tolist():
            mine = np.flatnonzero(~null & (readers == number))
            if number < 0:
                places[mine] = len(values)
                values.append(read.constants[-1 - number])
                continue
            at = read.wholes[rows[mine], self.vector]
            found = _encoded(bytes_at(read.data, at, np.zeros(len(mine), bool), pa.binary()))
            places[mine] = found.places + len(values)
            values += map(read.readers[number], found.values[:-1])
        return Distinct(values, places)


def _encoded(column: pa.Array) -> Distinct:
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    places = encoded.indices.fill_null(len(values)).to_numpy().astype(np.int64)
    return Distinct([*values, None], places)


@dataclass(frozen=True)
class Evaluation:
    """An expression over events of one record type; picklable."""

    expression: Expression
    event: RecordType
    columns: tuple[tuple[ColumnPath, ColumnVector], ...]

    @classmethod
    def over(cls, expression: Expression, event: RecordType, vectors: ColumnVectors) -> Evaluation:
        """The expression, whose columns all are some of the event's, in ``vectors``."""
        columns = []
        for path in sorted(expression.columns):
            kind = column_type(event, path)
            assert kind is not None
            columns.append((path, ColumnVector.of(path, kind, vectors)))
        return cls(expression, event, tuple(columns))

    @cached_property
    def _evaluate(self) -> Evaluator:
        places = {path: place for place, (path, _) in enumerate(self.columns)}
        return bind(self.expression, places, {}, self.event)

    def of(self, read: Read, rows: _Rows) -> Distinct:
        """Its values in these rows."""
        columns = [vector.distinct(read, rows) for _, vector in self.columns]
        sets, places = _together(columns, len(rows))
        values: list[Any] = []
        errors: dict[int, Exception] = {}
        for each in sets:
            try:
                values.append(self._evaluate(each, ()))
            except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
                errors[len(values)] = error
                values.append(None)
        return Distinct(values, places, errors)


def _together(
    columns: Sequence[Distinct], rows: int
) -> tuple[list[tuple[Any, ...]], NDArray[np.int64]]:
    """The sets of values that columns have in some row, and the place of each row's."""
    if not columns:
        return [()], np.zeros(rows, np.int64)
    first, *others = columns
    # Not every value stands in some row: there may be no NULL, and what fails for it is no error.
    found = _encoded(pa.array(first.places))
    sets = [(first.values[place],) for place in found.values[:-1]]
    places = found.places
    for column in others:
        both = _encoded(pa.array(places * len(column.values) + column.places))
        sets = [
            (*sets[each // len(column.values)], column.values[each % len(column.values)])
            for each in both.values[:-1]
        ]
        places = both.places
    return sets, places
