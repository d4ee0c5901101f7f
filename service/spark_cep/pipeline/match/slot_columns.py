"""Columns of events between Arrow and the matcher's column vectors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_cep.columns.representation import Representation, representation
from spark_cep.columns.vectors import Flags, Numbers, Objects, Vector
from spark_cep.matcher.batch.events import SlotType
from spark_cep.packing import unpack
from spark_cep.pipeline.wire.arrow_bytes import bytes_of


def vector_of(column: pa.Array, slot: SlotType) -> Vector:
    """A slot's column as the decoder writes it: ``int64`` for whole numbers, ``float64``, text, or
    packed values as bytes."""
    if pa.types.is_null(column.type):
        column = column.cast(pa.int64())
    match representation(slot.kind):
        case Representation.WHOLE:
            return Numbers(_filled(column), _nulls(column))
        case Representation.DOUBLE:
            return Numbers(_filled(column.cast(pa.float64())), _nulls(column))
        case Representation.TEXT:
            return bytes_of(column)
    values = column.to_pylist()
    if pa.types.is_binary(column.type):
        values = [None if value is None else unpack(value) for value in values]
    return Objects(values)


def _nulls(column: pa.Array) -> Flags:
    nulls: Flags = pc.is_null(column).to_numpy(zero_copy_only=False)
    return nulls


def _filled(column: pa.Array) -> Any:
    filled = pc.fill_null(column, 0) if column.null_count else column
    return filled.to_numpy(zero_copy_only=False)
