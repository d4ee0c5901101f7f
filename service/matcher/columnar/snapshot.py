"""What is remembered of many keys, and events on their way, as blocks of packed columns and back.

The columns of both are listed in ``_OF_STATE`` and ``_OF_BATCH``; behind them come those of the
events. Rows of a key stand together in each table, keys in their order, and refer to rows of the
same key: ``first``, ``last``, ``previous`` and ``event`` count from the key's first row. So any
keys can be read without the others. A key without units is one of which nothing is remembered any
more.

A rule is a number that the caller gives it. Units of numbers that are unknown by now are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from service.matcher.columnar.compilation import FOREVER, I64, NONE
from service.matcher.columnar.events import EventTable
from service.matcher.columnar.input_batch import InputBatch
from service.matcher.columnar.kernel_tables import FINISHED, PARTIAL
from service.matcher.columnar.keys import KeysState
from service.matcher.columnar.keys_state import chosen
from service.matcher.columnar.matcher import NODE, UNIT, Held, due_of
from service.matcher.columnar.packed_columns import Column, PackedColumns, blocks
from service.matcher.columnar.texts import TextSet, hashes
from service.matcher.columnar.vectors import Bytes, Flags, Vector, nulls_like

#: Formats of blocks.
STATE, BATCH = 3, 4

_KEYS, _UNITS, _PARTIALS, _FINISHED, _NODES, _EVENTS_OF_STATE = range(6)
_UNIT = (
    "rule", "deadline", "quiet", "paused", "limited", "events_bound", "partials", "finished",
)  # fmt: skip
_PARTIAL = ("state", "first", "last", "deadline", "matched")
_FINISHED_FIELDS = ("first", "last", "time")
_NODE = ("previous", "step", "event")
_EVENT = ("time", "topic", "partition", "offset", "type")
#: Table and name of each column; of keys the text, and how many rows they have in other tables.
_OF_STATE = (
    *((_KEYS, name) for name in ("key", "units", "nodes", "events")),
    *((_UNITS, name) for name in _UNIT),
    *((_PARTIALS, name) for name in _PARTIAL),
    *((_FINISHED, name) for name in _FINISHED_FIELDS),
    *((_NODES, name) for name in _NODE),
    *((_EVENTS_OF_STATE, name) for name in (*_EVENT, "payload")),
)
_MASKS, _EVENTS_OF_BATCH = 1, 2
_OF_BATCH = (
    (_KEYS, "key"),
    (_MASKS, "mask"),
    *((_EVENTS_OF_BATCH, name) for name in ("key", "mask", *_EVENT, "payload")),
)
_PLACE = {column: place for place, column in enumerate(_OF_STATE)}


def encode(
    state: KeysState, numbers: Sequence[int], homes: I64 | None = None, count: int = 1
) -> list[bytes]:
    """The state as ``count`` blocks. ``homes``: the block of each key; ``numbers``: by rule, what
    names it."""
    homes = np.zeros(len(state.keys), np.int64) if homes is None else homes
    order = np.argsort(homes, kind="stable")
    rank = _inverse(order)
    held = state.held
    unit_key = rank[held.units["key"]]
    event_key = rank[state.event_key]
    of_partial = np.repeat(unit_key, held.units["partials"])
    of_finished = np.repeat(unit_key, held.units["finished"])
    of_node = event_key[held.nodes["event"]]
    rows = [np.argsort(key, kind="stable") for key in (unit_key, of_partial, of_finished, of_node)]
    event_rows = np.argsort(event_key, kind="stable")
    units, partials, finished, nodes = (
        table[of_table] for table, of_table in zip(held, rows, strict=True)
    )
    counts = {
        table: np.bincount(key, minlength=len(order))
        for table, key in (
            (_UNITS, unit_key), (_PARTIALS, of_partial), (_FINISHED, of_finished),
            (_NODES, of_node), (_EVENTS_OF_STATE, event_key),
        )
    }  # fmt: skip
    # Places within the rows of a key.
    event_at = _inverse(event_rows) - _starts(counts[_EVENTS_OF_STATE])[event_key]
    node_at = _inverse(rows[_NODES - _UNITS]) - _starts(counts[_NODES])[of_node]
    for table in (partials, finished):
        table["first"] = event_at[table["first"]]
        table["last"] = node_at[table["last"]]
    previous = nodes["previous"]
    nodes["previous"] = np.where(previous == NONE, NONE, node_at[previous]) if len(nodes) else 0
    nodes["event"] = event_at[nodes["event"]]
    units["rule"] = np.array(numbers, np.int64)[units["rule"]] if len(units) else 0
    keys = [state.keys[row] for row in order.tolist()]
    columns = [
        Column(_KEYS, Bytes.of([None if key is None else key.encode() for key in keys])),
        *(Column(_KEYS, counts[table]) for table in (_UNITS, _NODES, _EVENTS_OF_STATE)),
        *(Column(_UNITS, units[name]) for name in _UNIT),
        *(Column(_PARTIALS, partials[name]) for name in _PARTIAL),
        *(Column(_FINISHED, finished[name]) for name in _FINISHED_FIELDS),
        *(Column(_NODES, nodes[name]) for name in _NODE),
        *_event_columns(_EVENTS_OF_STATE, state.events.take(event_rows)),
    ]
    key_ends = np.searchsorted(homes[order], np.arange(count), "right")
    ends = [key_ends, *(np.cumsum([0, *counts[table]])[key_ends] for table in sorted(counts))]
    return blocks(STATE, columns, ends)


def encode_batch(batch: InputBatch) -> bytes:
    """Events that wait, as one block."""
    keys = [None if key is None else key.encode() for key in batch.keys]
    masks = [mask.to_bytes((mask.bit_length() + 7) // 8, "little") for mask in batch.masks]
    columns = [
        Column(_KEYS, Bytes.of(keys)),
        Column(_MASKS, Bytes.of(masks)),
        Column(_EVENTS_OF_BATCH, batch.key),
        Column(_EVENTS_OF_BATCH, batch.mask),
        *_event_columns(_EVENTS_OF_BATCH, batch.events),
    ]
    ends = [np.array([len(each)]) for each in (keys, masks, batch.events)]
    (block,) = blocks(BATCH, columns, ends)
    return block


def decode_batch(data: bytes) -> InputBatch:
    """The events that :func:`encode_batch` wrote. StateError when they are damaged."""
    packed = PackedColumns(BATCH, [data], [table for table, _ in _OF_BATCH])
    rows = packed.rows(_EVENTS_OF_BATCH)
    masks = _as_bytes(packed.vector(1, packed.rows(_MASKS)))
    return InputBatch(
        _texts(_as_bytes(packed.vector(0, packed.rows(_KEYS)))),
        [int.from_bytes(masks.value(row) or b"", "little") for row in range(len(masks))],
        packed.numbers(2, rows),
        packed.numbers(3, rows),
        _events(packed, 4, rows),
    )


class StoredKeys:
    """The keys of some blocks of state, read together: what is not asked for is not decoded.
    ``rules``: by the number that names it, the number of each rule that there is now. StateError
    when a block is damaged."""

    def __init__(self, stored: Sequence[bytes], rules: Mapping[int, int]) -> None:
        self._packed = PackedColumns(STATE, stored, [table for table, _ in _OF_STATE])
        #: How many keys each block has, and the block of each key.
        self.sizes = self._packed.counts[_KEYS]
        self.home = np.repeat(np.arange(len(stored)), self.sizes)
        keys = self._packed.rows(_KEYS)
        self._texts = _as_bytes(self._packed.vector(0, keys))
        self._units, self._nodes, self._events = (
            self._packed.numbers(_PLACE[_KEYS, name], keys) for name in ("units", "nodes", "events")
        )
        rows = self._packed.rows(_UNITS)
        self._rule = _now(self._unit("rule", rows), rules)
        self._partials, self._finished = self._unit("partials", rows), self._unit("finished", rows)

    def __len__(self) -> int:
        return len(self.home)

    def _unit(self, name: str, rows: I64) -> I64:
        return self._packed.numbers(_PLACE[_UNITS, name], rows)

    @cached_property
    def forgotten(self) -> Flags:
        """Per block, whether it has something of rules that are gone."""
        found = np.zeros(len(self.sizes), bool)
        gone = self._rule == NONE
        if gone.any():
            found[np.repeat(self.home, self._units)[gone]] = True
        return found

    @property
    def texts(self) -> TextSet:
        """All keys."""
        return TextSet(self._texts)

    @cached_property
    def due(self) -> I64:
        """Per key, the watermark at which something of it is due; ``FOREVER`` for never."""
        rows = self._packed.rows(_UNITS)
        due = due_of(self._unit("deadline", rows), self._unit("quiet", rows), self._finished)
        due[self._rule == NONE] = FOREVER
        return self._of_keys(np.minimum, due, FOREVER)

    @cached_property
    def known(self) -> Flags:
        """Per key, whether something is remembered of it, for a rule that there is."""
        return np.not_equal(self._of_keys(np.maximum, self._rule, NONE), NONE)

    def _of_keys(self, function: np.ufunc, values: I64, nothing: int) -> I64:
        """A function of the units of each key."""
        found = np.full(len(self), nothing, np.int64)
        some = self._units > 0
        if some.any():
            found[some] = function.reduceat(values, _starts(self._units)[some])
        return found

    def among(self, keys: TextSet) -> Flags:
        """Per key, whether it is one of these."""
        return keys.has(self._texts, self._hashes)

    @cached_property
    def _hashes(self) -> I64:
        return hashes(self._texts)

    def keys(self, wanted: Flags) -> list[str | None]:
        """Some keys."""
        return _texts(self._texts.take(np.flatnonzero(wanted)))

    def chosen(self, wanted: Flags) -> KeysState:
        """What is remembered of some keys."""
        if not wanted.any():
            return KeysState()
        counts = {
            _UNITS: self._units, _NODES: self._nodes, _EVENTS_OF_STATE: self._events
        }  # fmt: skip
        rows = {
            table: np.flatnonzero(np.repeat(wanted, of_keys)) for table, of_keys in counts.items()
        }
        counts = {table: of_keys[wanted] for table, of_keys in counts.items()}
        of_units = np.repeat(wanted, self._units)
        rows[_PARTIALS] = np.flatnonzero(np.repeat(of_units, self._partials))
        rows[_FINISHED] = np.flatnonzero(np.repeat(of_units, self._finished))
        numbers = np.arange(int(wanted.sum()))
        held = Held(
            self._table(_UNITS, UNIT, _UNIT, rows),
            self._table(_PARTIALS, PARTIAL, _PARTIAL, rows),
            self._table(_FINISHED, FINISHED, _FINISHED_FIELDS, rows),
            self._table(_NODES, NODE, _NODE, rows),
        )
        units, nodes = held.units, held.nodes
        units["rule"] = self._rule[rows[_UNITS]]
        units["key"] = np.repeat(numbers, counts[_UNITS])
        event_start, node_start = _starts(counts[_EVENTS_OF_STATE]), _starts(counts[_NODES])
        for table, each in ((held.partials, "partials"), (held.finished, "finished")):
            key = np.repeat(units["key"], units[each])
            table["first"] += event_start[key].astype(np.int32)
            table["last"] += node_start[key].astype(np.int32)
        key = np.repeat(numbers, counts[_NODES])
        nodes["event"] += event_start[key].astype(np.int32)
        inner = nodes["previous"] != NONE
        nodes["previous"][inner] += node_start[key[inner]].astype(np.int32)
        state = KeysState(
            self.keys(wanted),
            _events(self._packed, _PLACE[_EVENTS_OF_STATE, "time"], rows[_EVENTS_OF_STATE]),
            np.repeat(numbers, counts[_EVENTS_OF_STATE]),
            held,
        )
        return _known(state)

    def _table(
        self, table: int, kind: np.dtype[Any], names: Sequence[str], rows: Mapping[int, I64]
    ) -> Any:
        found = np.zeros(len(rows[table]), kind)
        for name in names:
            found[name] = self._packed.numbers(_PLACE[table, name], rows[table])
        return found


def decode(data: bytes, rules: Mapping[int, int]) -> KeysState:
    """All that a block of state holds."""
    stored = StoredKeys([data], rules)
    return stored.chosen(stored.known)


def _known(state: KeysState) -> KeysState:
    """The state without units of unknown rules. Nodes of keys that have others go with the next
    run."""
    held = state.held
    known = held.units["rule"] != NONE
    if known.all():
        return state
    state.held = Held(
        held.units[known],
        held.partials[np.repeat(known, held.units["partials"])],
        held.finished[np.repeat(known, held.units["finished"])],
        held.nodes,
    )
    used = np.zeros(len(state.keys), bool)
    used[state.held.units["key"]] = True
    return chosen(state, used)


def _now(rules: I64, numbers: Mapping[int, int]) -> I64:
    """The numbers that rules have now, ``NONE`` where there is none."""
    most = int(rules.max(initial=0))
    now = np.full(most + 1, NONE, np.int64)
    for name, number in numbers.items():
        if name <= most:
            now[name] = number
    return now[rules]


def _event_columns(table: int, events: EventTable) -> list[Column]:
    payload = events.payload
    nothing = nulls_like(Bytes.of([]), len(events))
    return [
        *(Column(table, getattr(events, name)) for name in _EVENT),
        Column(table, nothing if payload is None else payload),
        *(Column(table, column) for column in (events.columns or ()) if len(events)),
    ]


def _events(packed: PackedColumns, first: int, rows: I64) -> EventTable:
    """Events whose columns begin with the ``first``."""
    numbers = [packed.numbers(first + place, rows) for place in range(len(_EVENT))]
    time, topic, partition, offset, kind = numbers
    payload = first + len(_EVENT)
    original = _as_bytes(packed.vector(payload, rows))
    columns = [packed.vector(column, rows) for column in range(payload + 1, packed.columns)]
    return EventTable(
        time,
        topic.astype(np.int32),
        partition.astype(np.int32),
        offset,
        kind.astype(np.int32),
        columns or None,
        None if original.nulls.all() else original,
    )


def _as_bytes(column: Vector) -> Bytes:
    assert isinstance(column, Bytes)
    return column


def _texts(column: Bytes) -> list[str | None]:
    whole = column.compacted()
    data, ends = whole.data.tobytes(), np.cumsum(whole.lengths).tolist()
    return [
        None if null else data[start:end].decode()
        for start, end, null in zip([0, *ends], ends, whole.nulls.tolist(), strict=False)
    ]


def _starts(counts: I64) -> I64:
    return np.cumsum(counts) - counts


def _inverse(order: Any) -> I64:
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found


@cache
def no_keys() -> bytes:
    """The block of no keys."""
    return encode(KeysState(), ())[0]
