"""Columns that SELECT computes of the columns of the result, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Objects, Vector, reader
from spark_cep.matcher.findings.named_values import Measured
from spark_cep.pattern.expressions import bind
from spark_cep.pattern.sql.query import Computed, OutputColumn
from spark_cep.pattern.types import SqlType


def computed_column(
    column: OutputColumn,
    computed: Computed,
    sources: Sequence[tuple[Vector, SqlType | None]],
    result_of: I64,
) -> tuple[Measured, list[tuple[int, str]]]:
    """The column, and of each value that could not be computed, and is NULL, the number of its
    result and the error. ``sources`` are the values that it is computed of, and their types;
    ``result_of`` is the result of each row."""
    places = {path: place for place, (path, _) in enumerate(computed.sources)}
    compute = bind(computed.expression, places, {}, computed.row)
    readers = [reader(values, kind) for values, kind in sources]
    values: list[Any] = []
    failures: list[tuple[int, str]] = []
    for row, result in enumerate(result_of.tolist()):
        value = None
        try:
            value = compute(tuple(read(row) for read in readers), ())
        except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
            failures.append((result, repr(error)))
        values.append(value)
    return Measured(column.name, Objects(values), column.type), failures
