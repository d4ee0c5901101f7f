"""Columns of blocks of both kinds, those of events among them, with checks of what was read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.packed_columns import PackedColumn, PackedColumns, damaged
from spark_cep.columns.vectors import Bytes, Vector, nulls_like
from spark_cep.errors import damaged_state
from spark_cep.matcher.batch.events import EventTable

#: The columns of an event that all have.
EVENT = ("time", "topic", "partition", "offset", "type")
#: Of a table whose rows are different, some column takes a byte a row at least: a block has not
#: many times as many rows as bytes.
_MOST_ROWS_OF_BYTE = 16
#: Bits of numbers of topics, partitions and types.
_SMALL = 31


def packed_columns(
    form: int, stored: Sequence[bytes], columns: Sequence[tuple[int, Any]]
) -> PackedColumns:
    """Blocks with these columns. StateError when one has more rows than it can have."""
    packed = PackedColumns(form, stored, [table for table, _ in columns])
    sizes = np.array([len(block) for block in stored], np.int64)
    if (packed.counts > sizes * _MOST_ROWS_OF_BYTE).any():
        raise damaged()
    return packed


def among(numbers: I64, most: I64 | int, what: str) -> I64:
    """The numbers, which are places among ``most``. StateError when one is not."""
    wrong = (numbers < 0) | (numbers >= most)
    if wrong.any():
        found = int(numbers[np.argmax(wrong)])
        raise damaged_state(f"{what} is {found}")
    return numbers


def event_columns(table: int, events: EventTable) -> list[PackedColumn]:
    """The columns of events in a table: those of all events, the payload, those that rules use."""
    payload = events.payload
    nothing = nulls_like(Bytes.of([]), len(events))
    return [
        *(PackedColumn(table, getattr(events, name)) for name in EVENT),
        PackedColumn(table, nothing if payload is None else payload),
        *(PackedColumn(table, column) for column in (events.columns or ()) if len(events)),
    ]


def events_of(packed: PackedColumns, payload: int, rows: I64, numbers: I64) -> EventTable:
    """The events of some rows. ``payload``: its column, behind which are those that rules use;
    ``numbers``: the columns ``EVENT``."""
    time, topic, partition, offset, kind = numbers
    if ((topic | partition | kind) >> _SMALL).any():
        for each in (topic, partition, kind):
            among(each, 1 << _SMALL, "the topic, partition or type of an event")
    original = None
    if not packed.is_null(payload):
        original = as_bytes(packed.vector(payload, rows))
    columns = [packed.vector(column, rows) for column in range(payload + 1, packed.columns)]
    return EventTable(
        time,
        topic.astype(np.int32),
        partition.astype(np.int32),
        offset,
        kind.astype(np.int32),
        columns or None,
        None if original is None or original.nulls.all() else original,
    )


def as_bytes(column: Vector) -> Bytes:
    """The column, which holds bytes. StateError when it does not."""
    if not isinstance(column, Bytes):
        raise damaged()
    return column


def starts_of(counts: I64) -> I64:
    """The first row of each group, of groups of so many rows."""
    return np.cumsum(counts) - counts


def inverse(order: Any) -> I64:
    """The place of each row in an order of rows."""
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found
