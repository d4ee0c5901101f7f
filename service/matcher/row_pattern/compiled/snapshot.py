"""What is remembered of many keys as bytes, in blocks, and back
(:mod:`service.matcher.columnar.packed_columns`).

A block has tables of keys, threads, nodes and rows, those of a key together, in the order of keys.
A key's text and deadline stand beside what is remembered of it, so that any keys, and those that
are due, can be read without the others. What the numbers of topics and record types mean, and to
which plan all of it belongs (``RowPatternPlan.fingerprint``), is for the caller to keep.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.matcher.columnar.compilation import I64, NONE, Table
from service.matcher.columnar.events import EventTable, micros_or_none
from service.matcher.columnar.packed_columns import Column, PackedColumns, blocks, damaged
from service.matcher.columnar.texts import TextSet
from service.matcher.columnar.vectors import Bytes, nulls_like, texts_of
from service.matcher.row_pattern.compiled.states import RowPatternStates
from service.matcher.row_pattern.compiled.tables import EDGE, KEY, NODE, THREAD

#: The format of blocks.
STATE = 6

_KEYS, _THREADS, _NODES, _ROWS = range(4)
_KEY = tuple(KEY.names or ())
_THREAD = ("at", "node", "length")
_NODE = ("previous", "label")
_ROW = ("time", "topic", "partition", "offset", "type")
_COUNTS = {_THREADS: "threads", _NODES: "nodes", _ROWS: "rows"}
#: Table and name of each column, before those of rows' own.
_COLUMNS = (
    (_KEYS, "key"),
    (_KEYS, "deadline"),
    *((_KEYS, name) for name in _KEY),
    *((_THREADS, name) for name in _THREAD),
    *((_NODES, name) for name in _NODE),
    *((_ROWS, name) for name in ("bits", "micros", *_ROW, "payload")),
)
_PLACE = {column: place for place, column in enumerate(_COLUMNS)}
_TABLES = [table for table, _ in _COLUMNS]


def encode(
    states: RowPatternStates,
    keys: Sequence[str | None],
    deadlines: I64,
    homes: I64 | None = None,
    count: int = 1,
) -> list[bytes]:
    """The states as ``count`` blocks. ``keys``: the text of each key; ``homes``: its block;
    ``deadlines``: see :meth:`CompiledRowPattern.deadlines`."""
    homes = np.zeros(len(keys), np.int64) if homes is None else homes
    order = np.argsort(homes, kind="stable")
    chosen = states.take(order)
    of_keys, events = _plain(chosen.keys), chosen.rows
    nothing = nulls_like(Bytes.of([]), len(events))
    columns = [
        Column(_KEYS, texts_of([keys[key] for key in order.tolist()])),
        Column(_KEYS, deadlines[order]),
        *(Column(_KEYS, of_keys[name]) for name in _KEY),
        *(Column(_THREADS, chosen.threads[name]) for name in _THREAD),
        *(Column(_NODES, chosen.nodes[name]) for name in _NODE),
        Column(_ROWS, chosen.bits),
        Column(_ROWS, events.all_micros),
        *(Column(_ROWS, getattr(events, name)) for name in _ROW),
        Column(_ROWS, nothing if events.payload is None else events.payload),
        *(Column(_ROWS, column) for column in (events.columns or ()) if len(events)),
    ]
    key_ends = np.searchsorted(homes[order], np.arange(count), "right")
    of_tables = (np.cumsum([0, *of_keys[name].tolist()]) for name in _COUNTS.values())
    return blocks(STATE, columns, [key_ends, *(each[key_ends] for each in of_tables)])


def _plain(keys: Table) -> Table:
    """The keys with nothing left of attempts that are over."""
    plain = keys.copy()
    for flag, names in (
        ("attempt", ("start", "next_row")),
        ("found", ("found_at", "found_node", "found_length")),
        ("dropped", ("dropped_at", "dropped_node", "dropped_length")),
    ):
        for name in names:
            plain[name][plain[flag] == 0] = 0
    return plain


class StoredRowPatterns:
    """The keys of some blocks, read together: what is not asked for is not decoded. A key is named
    by its row, in the order of blocks. StateError when a block is damaged."""

    def __init__(self, stored: Sequence[bytes]) -> None:
        self._packed = PackedColumns(STATE, stored, _TABLES)

    def __len__(self) -> int:
        return int(self._packed.counts[_KEYS].sum())

    def find(self, keys: TextSet) -> tuple[I64, I64]:
        """The rows of these keys, in ascending order, and the number of the key of each."""
        return self._packed.search(_PLACE[_KEYS, "key"], keys)

    def texts(self, rows: I64) -> Bytes:
        """The keys of some rows, in ascending order."""
        found = self._packed.vector(_PLACE[_KEYS, "key"], rows)
        assert isinstance(found, Bytes)
        return found

    def deadlines(self) -> I64:
        """By row, the watermark at which something is due; ``FOREVER`` for never."""
        return self._packed.numbers(_PLACE[_KEYS, "deadline"], self._packed.rows(_KEYS))

    def chosen(self, rows: I64) -> RowPatternStates:
        """What is remembered of some rows, in ascending order."""
        if not len(rows):
            return RowPatternStates()
        keys = np.zeros(len(rows), KEY)
        for name in _KEY:
            keys[name] = self._packed.numbers(_PLACE[_KEYS, name], rows)
        threads, nodes, of_rows = (self._of_keys(table, rows) for table in _COUNTS)
        states = RowPatternStates(
            keys,
            self._table(_THREADS, THREAD, _THREAD, threads),
            self._table(_NODES, NODE, _NODE, nodes),
            self._events(of_rows),
            self._numbers("bits", of_rows),
        )
        _check(states)
        return states

    def _of_keys(self, table: int, rows: I64) -> I64:
        """The rows in another table that belong to some keys."""
        place = _PLACE[_KEYS, _COUNTS[table]]
        counts, starts = self._packed.numbers(place, rows), self._packed.starts[table]
        first = self._packed.sums(place, starts, rows)
        if counts.min() < 0 or first[-1] + counts[-1] > starts[-1]:
            raise damaged()
        found: I64 = np.repeat(first - (np.cumsum(counts) - counts), counts)
        return found + np.arange(counts.sum())

    def _numbers(self, name: str, rows: I64) -> I64:
        return self._packed.numbers(_PLACE[_ROWS, name], rows)

    def _table(self, table: int, kind: np.dtype[np.void], names: Sequence[str], rows: I64) -> Table:
        found = np.zeros(len(rows), kind)
        for name in names:
            found[name] = self._packed.numbers(_PLACE[table, name], rows)
        return found

    def _events(self, rows: I64) -> EventTable:
        time, topic, partition, offset, kind = (self._numbers(name, rows) for name in _ROW)
        place = _PLACE[_ROWS, "payload"]
        payload = self._packed.vector(place, rows)
        assert isinstance(payload, Bytes)
        columns = [
            self._packed.vector(column, rows) for column in range(place + 1, self._packed.columns)
        ]
        return EventTable(
            time,
            topic.astype(np.int32),
            partition.astype(np.int32),
            offset,
            kind.astype(np.int32),
            columns or None,
            None if payload.nulls.all() else payload,
            micros_or_none(self._numbers("micros", rows)),
        )


def _check(states: RowPatternStates) -> None:
    """Raise StateError where something points out of its key: the loops do not look."""
    keys, nodes = states.keys, states.nodes
    counts = keys["nodes"].astype(np.int64)
    own = np.arange(len(nodes)) - np.repeat(np.cumsum(counts) - counts, counts)
    of_threads = np.repeat(counts, keys["threads"])
    inside = [
        (nodes["previous"] >= NONE) & (nodes["previous"] < own),
        nodes["label"] >= EDGE,
        (states.threads["node"] >= NONE) & (states.threads["node"] < of_threads),
        (keys["start"] >= keys["first"]) | (keys["attempt"] == 0),
        keys["next_row"] <= keys["first"] + keys["rows"] + 1,
    ]
    inside += [
        (keys[name] == 0) | ((keys[f"{name}_node"] >= NONE) & (keys[f"{name}_node"] < counts))
        for name in ("found", "dropped")
    ]
    if not all(each.all() for each in inside):
        raise damaged()
