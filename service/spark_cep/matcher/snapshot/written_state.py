"""The state of many keys as blocks of packed columns.

A rule is a number that the caller gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spark_cep.columns.compilation import I64, NONE
from spark_cep.columns.packed_columns import PackedColumn, blocks
from spark_cep.columns.vectors import Rows, no_numbers
from spark_cep.matcher.engine import Remembered
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.snapshot.columns import event_columns, inverse, starts_of
from spark_cep.matcher.snapshot.tables import (
    EVENTS_OF_STATE,
    INSTANCES,
    KEYS,
    OF_KEYS,
    STATE,
    TABLES,
)


class _Rows(NamedTuple):
    """The rows of a table by the key of each: their order, how many each key has, and by row its
    place among those of its key."""

    order: Rows
    counts: I64
    places: I64

    @classmethod
    def of(cls, keys: I64, count: int) -> _Rows:
        """Rows of these of ``count`` keys."""
        if not len(keys):
            return cls(slice(None), np.zeros(count, np.int64), no_numbers())
        counts = np.bincount(keys, minlength=count)
        first = starts_of(counts)[keys]
        if (keys[1:] >= keys[:-1]).all():
            return cls(slice(None), counts, np.arange(len(keys)) - first)
        order = np.argsort(keys, kind="stable")
        return cls(order, counts, inverse(order) - first)

    def ends(self, key_ends: I64) -> I64:
        """The ends of the rows of the first so many keys."""
        if not len(self.places):
            return np.zeros_like(key_ends)
        ends: I64 = np.append(0, self.counts.cumsum())[key_ends]
        return ends


def encode(
    state: KeysState, numbers: Sequence[int], homes: I64 | None = None, count: int = 1
) -> list[bytes]:
    """The state as ``count`` blocks. ``homes``: the block of each key; ``numbers``: by rule, what
    names it."""
    if not count:
        return []
    homes = np.zeros(len(state.keys), np.int64) if homes is None else homes
    order = rank = np.arange(len(homes))
    if count > 1:
        order = np.argsort(homes, kind="stable")
        rank = inverse(order)
    event_key = rank[state.event_key]
    rows = {EVENTS_OF_STATE: _Rows.of(event_key, len(order))}
    columns = []
    for engine, part in enumerate(state.remembered):
        columns += _columns(engine, part, rank, event_key, numbers, rows)
    events = state.events.take(rows[EVENTS_OF_STATE].order)
    columns = [
        PackedColumn(KEYS, state.keys.take(order)),
        *(PackedColumn(KEYS, rows[table].counts) for table in OF_KEYS),
        *columns,
        *event_columns(EVENTS_OF_STATE, events),
    ]
    key_ends = np.searchsorted(homes[order], np.arange(count), "right")
    return blocks(
        STATE, columns, [key_ends, *(rows[table].ends(key_ends) for table in sorted(rows))]
    )


def _columns(
    engine: int,
    part: Remembered,
    rank: I64,
    event_key: I64,
    numbers: Sequence[int],
    rows: dict[int, _Rows],
) -> list[PackedColumn]:
    """The columns of what an engine remembers, and in ``rows`` those of its tables. ``rank``: by
    key, its place; ``event_key``: the place of each event's."""
    of_engine = [
        (number, table, getattr(part, table.name))
        for (of, _), (number, table) in TABLES.items()
        if of == engine
    ]
    if not any(len(values) for *_, values in of_engine):
        nothing = _Rows.of(no_numbers(), len(rank))
        rows |= {number: nothing for number, *_ in of_engine}
        return [
            PackedColumn(number, no_numbers())
            for number, table, _ in of_engine
            for _ in table.columns
        ]
    instance_key = rank[part.instances["key"]]
    for number, table, values in of_engine:
        if not table.of_keys:
            keys = np.repeat(instance_key, part.instances[table.name])
        else:
            keys = instance_key if number in INSTANCES else event_key[values["event"]]
        rows[number] = _Rows.of(keys, len(rank))
    columns = []
    for number, table, whole in of_engine:
        for name in table.columns:
            values = whole[name]
            if not len(values):
                columns.append(PackedColumn(number, no_numbers()))
                continue
            values = values[rows[number].order]
            if name in table.events:
                values = rows[EVENTS_OF_STATE].places[values]
            elif name in table.rows:
                places = rows[TABLES[engine, table.rows[name]][0]].places
                # Behind the last place stands that of no row.
                values = np.append(places, NONE)[values]
            elif number in INSTANCES and name == "rule":
                values = np.array(numbers, np.int64)[values]
            columns.append(PackedColumn(number, values))
    return columns
