"""Events that wait, as one block and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spark_cep.columns.packed_columns import PackedColumn, blocks
from spark_cep.columns.vectors import Bytes
from spark_cep.matcher.batch.events import micros_or_none
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.snapshot.columns import (
    EVENT,
    among,
    as_bytes,
    event_columns,
    events_of,
    packed_columns,
)

#: The format of a block.
BATCH = 5

_KEYS, _MASKS, _EVENTS = 0, 1, 2
_OF_BATCH = (
    (_KEYS, "key"),
    (_MASKS, "mask"),
    *((_EVENTS, name) for name in ("key", "mask", "micros", *EVENT, "payload")),
)


def encode_batch(batch: InputBatch) -> bytes:
    """Events that wait, as one block."""
    masks = [mask.to_bytes((mask.bit_length() + 7) // 8, "little") for mask in batch.masks]
    columns = [
        PackedColumn(_KEYS, batch.keys),
        PackedColumn(_MASKS, Bytes.of(masks)),
        PackedColumn(_EVENTS, batch.key),
        PackedColumn(_EVENTS, batch.mask),
        PackedColumn(_EVENTS, batch.events.all_micros),
        *event_columns(_EVENTS, batch.events),
    ]
    ends = [np.array([len(each)]) for each in (batch.keys, masks, batch.events)]
    (block,) = blocks(BATCH, columns, ends)
    return block


def decode_batch(data: bytes) -> InputBatch:
    """The events that :func:`encode_batch` wrote. StateError when they are damaged."""
    packed = packed_columns(BATCH, [data], _OF_BATCH)
    rows = packed.rows(_EVENTS)
    masks = as_bytes(packed.vector(1, packed.rows(_MASKS)))
    keys = as_bytes(packed.vector(0, packed.rows(_KEYS))).compacted()
    return InputBatch(
        keys,
        [int.from_bytes(masks.value(row) or b"", "little") for row in range(len(masks))],
        among(packed.numbers(2, rows), len(keys), "the key of an event"),
        among(packed.numbers(3, rows), len(masks), "the conditions of an event"),
        replace(
            events_of(packed, 5 + len(EVENT), rows, packed.several(5, len(EVENT), rows)),
            micros=micros_or_none(packed.numbers(4, rows)),
        ),
    )
