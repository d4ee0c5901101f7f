"""Columns of events as the numbers that programs compute with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spark_cep.columns.compilation import Table
from spark_cep.columns.texts import Texts
from spark_cep.columns.vectors import Bytes, Numbers, Vector
from spark_cep.programs.loops.expression_loop import Columns


class Values(NamedTuple):
    """The columns of a run as numbers, the operations with texts numbered as these are, and the
    texts."""

    columns: Columns
    operations: Table
    texts: Texts


def values_of(
    columns: Sequence[Vector],
    count: int,
    operations: Table,
    texts: Sequence[tuple[int, str]],
    *,
    names: Sequence[str] = (),
    ordered: bool = False,
) -> Values:
    """The ``columns`` of ``count`` events. ``texts``: the operations, by row, that have the number
    of a text; ``names``: further texts that are numbered, behind those among the constants.

    Of Python values the number is that of the event, by which Python finds them.
    """
    wholes = np.zeros((count, max(1, len(columns))), np.int64)
    doubles, nulls = wholes.view(np.float64), np.ones(wholes.shape, np.uint8)
    of_texts: list[tuple[int, Bytes]] = []
    for place, column in enumerate(columns):
        if isinstance(column, Numbers):
            target = doubles if column.values.dtype == np.float64 else wholes
            target[:, place] = column.values
            nulls[:, place] = column.nulls
        elif isinstance(column, Bytes):
            of_texts.append((place, column))
            nulls[:, place] = column.nulls
        else:
            wholes[:, place] = np.arange(count)
            nulls[:, place] = [value is None for value in column.values]
    constants = [*(text for _, text in texts), *names]
    numbered = Texts([column for _, column in of_texts], constants, ordered=ordered)
    for (place, _), numbers in zip(of_texts, numbered.columns, strict=True):
        wholes[:, place] = numbers
    if texts:
        operations = operations.copy()
        operations["whole"][[row for row, _ in texts]] = numbered.constants[: len(texts)]
    return Values(Columns(wholes, doubles, nulls), operations, numbered)
