"""Aggregates of a column over the events of each result, for all results at once."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import NONE, Table
from spark_cep.columns.representation import MOST_WHOLE_DIGITS
from spark_cep.columns.vectors import Bytes, Numbers, Vector, nulls_like, with_nulls
from spark_cep.matcher.findings.chains import SomeEvents
from spark_cep.matcher.findings.loops.chain_loop import aggregate_numbers, pick_texts
from spark_cep.pattern.types import BIGINT, DOUBLE, FLOAT, INT, DecimalType, SqlType
from spark_cep.programs.loops.aggregate_loop import AGGREGATES, SPREADS
from spark_cep.programs.loops.expression_loop import LOOK, VALUE, Columns

_MOST_WHOLE = 10**MOST_WHOLE_DIGITS
_FUNCTIONS = {**AGGREGATES, **SPREADS}
_OF_VALUES = ("MIN", "MAX")


def aggregate_column(
    function: str, column: Vector, kind: SqlType | None, of: SomeEvents
) -> tuple[Vector, SqlType | None] | None:
    """The aggregate of the values that each result's events have in ``column``, of type ``kind``,
    and its type; ``None`` where no loop is compiled for these. The values are those of
    :func:`spark_cep.pattern.expressions.aggregate`."""
    if isinstance(column, Bytes) and function in _OF_VALUES:
        return _pick_texts(function, column, of), kind
    found = _type_of(function, kind) if function in _FUNCTIONS else None
    if found is None or not isinstance(column, Numbers):
        return None
    values = _aggregate_numbers(function, column, of)
    numbers = values["double" if found in (DOUBLE, FLOAT) else "whole"].copy()
    nulls = values["null"] != 0
    if isinstance(found, DecimalType) and function == "SUM":
        # NULL is also a sum beyond 64 bits.
        beyond = (numbers <= -_MOST_WHOLE) | (numbers >= _MOST_WHOLE)
        if np.where(nulls, values["given"] > 0, beyond).any():
            return None
    return Numbers(numbers, nulls), found


def _type_of(function: str, kind: SqlType | None) -> SqlType | None:
    """The type of an aggregate of numbers that the loops compute."""
    if function == "COUNT":
        return BIGINT
    if function in _OF_VALUES:
        return kind
    if isinstance(kind, DecimalType):
        return DecimalType(MOST_WHOLE_DIGITS, kind.scale) if function == "SUM" else None
    if kind in (INT, BIGINT):
        return BIGINT if function == "SUM" else DOUBLE
    return DOUBLE if kind in (FLOAT, DOUBLE) else None


def _aggregate_numbers(function: str, column: Numbers, of: SomeEvents) -> Table:
    aggregate = np.zeros(1, LOOK)
    aggregate["function"] = _FUNCTIONS[function]
    aggregate["double"] = column.values.dtype == np.float64
    taken = column.take(of.events)
    given = taken.values.reshape(-1, 1)
    columns = Columns(
        given.view(np.int64), given.view(np.float64), taken.nulls.view(np.uint8).reshape(-1, 1)
    )
    values = np.empty(len(of.first), VALUE)
    aggregate_numbers(aggregate, columns, of.first, of.end, values)
    return values


def _pick_texts(function: str, column: Bytes, of: SomeEvents) -> Vector:
    taken, found = column.take(of.events), np.empty(len(of.first), np.int64)
    pick_texts(taken.data, taken.places, taken.nulls, of.first, of.end, function == "MAX", found)
    if not len(taken):
        return nulls_like(column, len(found))
    return with_nulls(taken.take(np.maximum(found, 0)), found == NONE)
