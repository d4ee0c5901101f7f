"""Events as they come, in Arrow, as the matcher's batches of column vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_cep.columns.compilation import I64
from spark_cep.columns.representation import Representation, representation
from spark_cep.columns.vectors import Bytes, Flags, Numbers, Objects, Vector
from spark_cep.matcher.batch.events import EventTable, Names, SlotType, micros_or_none
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.packing import unpack
from spark_cep.pipeline.wire.arrow_bytes import bytes_of
from spark_cep.pipeline.wire.event_packets import (
    MICROS_COLUMN,
    TYPE_COLUMN,
    conditions_column,
)
from spark_cep.pipeline.wire.masks import distinct_masks


def input_batch(
    rows: pa.RecordBatch,
    number: int,
    matcher: KeysMatcher,
    names: Names,
    type_names: Sequence[str | None],
) -> InputBatch:
    """The events of partitioning ``number`` for its matcher; ``names`` takes in what is new,
    ``type_names`` are record names by type number."""
    partitioning = matcher.partitioning
    keys, key = _dictionary(rows.column(f"key_{number}"))
    masks, mask = distinct_masks(rows.column(conditions_column(number)))
    unseen = partitioning.unseen_by_steps
    if unseen:
        without_key = np.array([*map(partitioning.has_null, keys.to_pylist())], bool)[key]
        mask = np.where(without_key, mask + len(masks), mask)
        masks += [each | unseen for each in masks]
    topic = rows.column("topic")
    topics = np.array([names.topic(name) for name in topic.dictionary.to_pylist()], np.int32)
    types, kind = _distinct(rows.column(TYPE_COLUMN).to_numpy())
    type_numbers = np.array([names.type(type_names[n]) for n in types], np.int32)
    columns = [
        vector_of(rows.column(f"slot_{number}_{place}"), slot)
        for place, slot in enumerate(matcher.slots)
    ]
    events = EventTable(
        time=rows.column("time").to_numpy(),
        topic=topics[topic.indices.to_numpy()],
        partition=rows.column("partition").to_numpy().astype(np.int32),
        offset=rows.column("offset").to_numpy(),
        type=type_numbers[kind],
        columns=columns or None,
        payload=_payload(rows.column("value")) if partitioning.keeps_payload else None,
        micros=_micros(rows),
    )
    return InputBatch(bytes_of(keys), masks, key, mask, events)


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


def _payload(column: pa.Array) -> Bytes:
    return bytes_of(column.cast(pa.binary()) if pa.types.is_null(column.type) else column)


def _nulls(column: pa.Array) -> Flags:
    nulls: Flags = pc.is_null(column).to_numpy(zero_copy_only=False)
    return nulls


def _filled(column: pa.Array) -> Any:
    filled = pc.fill_null(column, 0) if column.null_count else column
    return filled.to_numpy(zero_copy_only=False)


def _micros(rows: pa.RecordBatch) -> I64 | None:
    """Microseconds behind the milliseconds; ``None`` where there are none."""
    if MICROS_COLUMN not in rows.schema.names:
        return None
    return micros_or_none(rows.column(MICROS_COLUMN).to_numpy().astype(np.int64))


def _encoded(column: pa.Array) -> tuple[list[Any], Any]:
    """A column's values, each once, and for each row the place of its value."""
    values, places = _dictionary(column)
    return values.to_pylist(), places


def _distinct(numbers: Any) -> tuple[list[Any], Any]:
    """The numbers, each once in the order of their first places, and for each row the place of its
    number. Mostly all are equal."""
    if (numbers == numbers[0]).all():
        return numbers[:1].tolist(), np.zeros(len(numbers), np.int64)
    return _encoded(pa.array(numbers))


def _dictionary(column: pa.Array) -> tuple[pa.Array, Any]:
    """Return the dictionary of a column, in Arrow."""
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
