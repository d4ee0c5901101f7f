"""The state of many keys, and waiting events, as blocks of packed columns and back.

The columns of both are listed in ``_OF_STATE`` and ``_OF_BATCH``, those of engines by themselves
(:data:`spark_cep.matcher.keys.ENGINES`); behind them come those of the events. Rows of a key stand
together in each table, keys in their order, and refer to rows of the same key: numbers of events,
and of rows of other tables, count from the key's first. So any keys can be read without the others.
Of a key without instances nothing is remembered any more.

A rule is a number that the caller gives it. Instances of unknown numbers are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spark_cep.columns.compilation import FOREVER, I64, NONE
from spark_cep.columns.packed_columns import PackedColumn, PackedColumns, blocks, damaged
from spark_cep.columns.texts import TextSet
from spark_cep.columns.vectors import Bytes, Flags, Vector, no_texts, nulls_like
from spark_cep.errors import damaged_state
from spark_cep.matcher.batch.events import EventTable, micros_or_none
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.engine import Remembered
from spark_cep.matcher.keys import ENGINES, KeysState
from spark_cep.matcher.keys_state import chosen

#: Formats of blocks.
STATE, BATCH = 7, 5

#: The tables of a state: keys, those of each engine, events.
_KEYS = 0
_TABLES = {
    (engine, table.name): (number, table)
    for number, (engine, table) in enumerate(
        ((engine, table) for engine, stored in enumerate(ENGINES) for table in stored.tables), 1
    )
}
_INSTANCES = [_TABLES[engine, "instances"][0] for engine in range(len(ENGINES))]
_EVENTS_OF_STATE = len(_TABLES) + 1
_OF_KEYS = [*(n for n, table in _TABLES.values() if table.of_keys), _EVENTS_OF_STATE]
_EVENT = ("time", "topic", "partition", "offset", "type")
#: Table and name of each column; of keys the text, and how many rows they have in other tables.
_OF_STATE: tuple[tuple[int, str | int], ...] = (
    (_KEYS, "key"),
    *((_KEYS, number) for number in _OF_KEYS),
    *((number, name) for number, table in _TABLES.values() for name in table.columns),
    *((_EVENTS_OF_STATE, name) for name in (*_EVENT, "payload")),
)
_MASKS, _EVENTS_OF_BATCH = 1, 2
_OF_BATCH = (
    (_KEYS, "key"),
    (_MASKS, "mask"),
    *((_EVENTS_OF_BATCH, name) for name in ("key", "mask", "micros", *_EVENT, "payload")),
)
_PLACE = {column: place for place, column in enumerate(_OF_STATE)}
#: Of a table whose rows are different, some column takes a byte a row at least: a block has not
#: many times as many rows as bytes.
_MOST_ROWS_OF_BYTE = 16


class _Rows(NamedTuple):
    """The rows of a table by the key of each: their order, how many each key has, and by row its
    place among those of its key."""

    order: I64
    counts: I64
    places: I64

    @classmethod
    def of(cls, keys: I64, count: int) -> _Rows:
        """Rows of these of ``count`` keys."""
        order, counts = np.argsort(keys, kind="stable"), np.bincount(keys, minlength=count)
        return cls(order, counts, _inverse(order) - _starts(counts)[keys])


def encode(
    state: KeysState, numbers: Sequence[int], homes: I64 | None = None, count: int = 1
) -> list[bytes]:
    """The state as ``count`` blocks. ``homes``: the block of each key; ``numbers``: by rule, what
    names it."""
    if not count:
        return []
    homes = np.zeros(len(state.keys), np.int64) if homes is None else homes
    order = np.argsort(homes, kind="stable")
    rank = _inverse(order)
    event_key = rank[state.event_key]
    rows = {_EVENTS_OF_STATE: _Rows.of(event_key, len(order))}
    columns = []
    for engine, part in enumerate(state.remembered):
        columns += _columns(engine, part, rank, event_key, numbers, rows)
    events = state.events.take(rows[_EVENTS_OF_STATE].order)
    columns = [
        PackedColumn(_KEYS, state.keys.take(order)),
        *(PackedColumn(_KEYS, rows[table].counts) for table in _OF_KEYS),
        *columns,
        *_event_columns(_EVENTS_OF_STATE, events),
    ]
    key_ends = np.searchsorted(homes[order], np.arange(count), "right")
    ends = [np.cumsum([0, *rows[table].counts])[key_ends] for table in sorted(rows)]
    return blocks(STATE, columns, [key_ends, *ends])


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
        for (of, _), (number, table) in _TABLES.items()
        if of == engine
    ]
    instance_key = rank[part.instances["key"]]
    for number, table, values in of_engine:
        if not table.of_keys:
            keys = np.repeat(instance_key, part.instances[table.name])
        else:
            keys = instance_key if number in _INSTANCES else event_key[values["event"]]
        rows[number] = _Rows.of(keys, len(rank))
    columns = []
    for number, table, whole in of_engine:
        values = whole[rows[number].order]
        for name in table.events:
            values[name] = rows[_EVENTS_OF_STATE].places[values[name]]
        for name, of in table.rows.items():
            inner = values[name] != NONE
            values[name][inner] = rows[_TABLES[engine, of][0]].places[values[name][inner]]
        if number in _INSTANCES:
            values["rule"] = np.array(numbers, np.int64)[values["rule"]] if len(values) else 0
        columns += [PackedColumn(number, values[name]) for name in table.columns]
    return columns


def encode_batch(batch: InputBatch) -> bytes:
    """Events that wait, as one block."""
    masks = [mask.to_bytes((mask.bit_length() + 7) // 8, "little") for mask in batch.masks]
    columns = [
        PackedColumn(_KEYS, batch.keys),
        PackedColumn(_MASKS, Bytes.of(masks)),
        PackedColumn(_EVENTS_OF_BATCH, batch.key),
        PackedColumn(_EVENTS_OF_BATCH, batch.mask),
        PackedColumn(_EVENTS_OF_BATCH, batch.events.all_micros),
        *_event_columns(_EVENTS_OF_BATCH, batch.events),
    ]
    ends = [np.array([len(each)]) for each in (batch.keys, masks, batch.events)]
    (block,) = blocks(BATCH, columns, ends)
    return block


def decode_batch(data: bytes) -> InputBatch:
    """The events that :func:`encode_batch` wrote. StateError when they are damaged."""
    packed = _packed(BATCH, [data], _OF_BATCH)
    rows = packed.rows(_EVENTS_OF_BATCH)
    masks = _as_bytes(packed.vector(1, packed.rows(_MASKS)))
    keys = _as_bytes(packed.vector(0, packed.rows(_KEYS))).compacted()
    return InputBatch(
        keys,
        [int.from_bytes(masks.value(row) or b"", "little") for row in range(len(masks))],
        _among(packed.numbers(2, rows), len(keys), "the key of an event"),
        _among(packed.numbers(3, rows), len(masks), "the conditions of an event"),
        replace(_events(packed, 5, rows), micros=micros_or_none(packed.numbers(4, rows))),
    )


class StoredKeys:
    """The keys of some blocks of state, read together: what is not asked for is not decoded.
    ``stored``: by bucket its blocks, oldest first; ``rules``: by the number that names it, the
    number of each rule that there is now. StateError when a block is damaged.

    A key is named by its row; a bucket has a row for each block that says something of the key, of
    which the last holds. Rows are in the order of buckets and blocks.
    """

    def __init__(self, stored: Sequence[Sequence[bytes]], rules: Mapping[int, int]) -> None:
        blocks = [block for bucket in stored for block in bucket]
        self._packed = _packed(STATE, blocks, _OF_STATE)
        self._rules = rules
        self._homes = np.repeat(np.arange(len(stored)), [len(bucket) for bucket in stored])
        #: How many rows each bucket has.
        self.sizes = np.bincount(self._homes, self._packed.counts[_KEYS], len(stored)).astype(
            np.int64
        )

    def __len__(self) -> int:
        return int(self.sizes.sum())

    @property
    def forgotten(self) -> Flags:
        """Per bucket, whether it has something of rules that are gone."""
        found = np.zeros(len(self.sizes), bool)
        for table in _INSTANCES:
            names, blocks = self._packed.different(_PLACE[table, "rule"])
            found[self._homes[blocks[_now(names, self._rules) == NONE]]] = True
        return found

    def rows(self, buckets: Flags) -> I64:
        """All rows of some buckets."""
        return self._rows(_KEYS, buckets)

    def _rows(self, table: int, buckets: Flags) -> I64:
        return np.flatnonzero(np.repeat(buckets[self._homes], self._packed.counts[table]))

    def homes(self, rows: I64) -> I64:
        """The bucket of each of these rows."""
        starts = self._packed.starts[_KEYS]
        return self._homes[np.searchsorted(starts, rows, "right") - 1]

    def find(self, keys: TextSet) -> tuple[I64, I64]:
        """The rows of these keys, and the number of the key of each."""
        return self._packed.search(_PLACE[_KEYS, "key"], keys)

    def texts(self, rows: I64) -> Bytes:
        """The keys of some rows."""
        if not len(rows):  # without blocks, nothing says what columns are
            return no_texts()
        return _as_bytes(self._packed.vector(_PLACE[_KEYS, "key"], rows))

    def due(self, buckets: Flags) -> tuple[I64, I64]:
        """The rows of some buckets, and for each the watermark at which something is due of it;
        ``FOREVER`` for never."""
        rows = self._rows(_KEYS, buckets)
        due = np.full(len(rows), FOREVER, np.int64)
        for stored, table in zip(ENGINES, _INSTANCES, strict=True):
            instances = self._rows(table, buckets)
            read = partial(self._column, table, rows=instances)
            of_instances = stored.due(read)
            of_instances[_now(read("rule"), self._rules) == NONE] = FOREVER
            counts = self._column(_KEYS, table, rows)
            if counts.min(initial=0) < 0 or int(counts.sum()) != len(instances):
                raise damaged()
            np.minimum(due, _least_of(of_instances, counts), out=due)
        return rows, due

    def _remembered(self, rows: I64) -> Flags:
        """Return whether something is remembered of the keys of some rows."""
        remembered = np.zeros(len(rows), bool)
        for table in _INSTANCES:
            remembered |= self._column(_KEYS, table, rows) > 0
        return remembered

    def _column(self, table: int, name: str | int, rows: I64) -> I64:
        return self._packed.numbers(_PLACE[table, name], rows)

    def _of_rows(self, column: tuple[int, str | int], table: int, rows: I64) -> tuple[I64, I64]:
        """The rows in another table that belong to some rows, and how many belong to each.
        ``column`` has these counts for all."""
        place = _PLACE[column]
        counts = self._packed.numbers(place, rows)
        starts = self._packed.starts[table]
        first = self._packed.sums(place, starts, rows)
        if len(rows):
            # Each before the next, so that all together are no more than there are.
            ends = first + counts
            if counts.min() < 0 or first[0] < 0 or (ends[:-1] > first[1:]).any():
                raise damaged()
            if ends[-1] > starts[-1]:
                raise damaged()
        return np.repeat(first - _starts(counts), counts) + np.arange(counts.sum()), counts

    def chosen(self, rows: I64) -> KeysState:
        """Return the state of the keys of some rows, in ascending order."""
        if len(rows):
            rows = rows[self._remembered(rows)]
        if not len(rows):
            return KeysState()
        events, of_keys = self._of_rows((_KEYS, _EVENTS_OF_STATE), _EVENTS_OF_STATE, rows)
        state = KeysState(
            self.texts(rows).compacted(),
            _events(self._packed, _PLACE[_EVENTS_OF_STATE, "time"], events),
            np.repeat(np.arange(len(rows)), of_keys),
            *(self._part(engine, rows, of_keys) for engine in range(len(ENGINES))),
        )
        return _known(state)

    def _part(self, engine: int, rows: I64, of_keys: I64) -> Any:
        """The state of an engine for some keys; ``of_keys``: the number of events of each."""
        stored, of_instances = ENGINES[engine], _INSTANCES[engine]
        instances, counts = self._of_rows((_KEYS, of_instances), of_instances, rows)
        if not len(instances):
            return stored.nothing
        instance_key = np.repeat(np.arange(len(rows)), counts)
        tables, keys, starts = {}, {}, {}
        for table in stored.tables:
            number, _ = _TABLES[engine, table.name]
            if table.of_keys:
                at, counts = self._of_rows((_KEYS, number), number, rows)
                keys[table.name] = np.repeat(np.arange(len(rows)), counts)
                starts[table.name] = _starts(counts)
            else:
                at, counts = self._of_rows((of_instances, table.name), number, instances)
                keys[table.name] = np.repeat(instance_key, counts)
            tables[table.name] = found = np.zeros(len(at), table.kind)
            first, count = _PLACE[number, table.columns[0]], len(table.columns)
            for name, column in zip(
                table.columns, self._packed.several(first, count, at), strict=True
            ):
                found[name] = column
        first_event = _starts(of_keys)
        for table in stored.tables:
            found, key = tables[table.name], keys[table.name]
            for name in table.events:
                what = f"column {name} of {table.name}"
                _among(found[name], of_keys[key], what)
                found[name] += first_event[key].astype(found[name].dtype)
            for name, of in table.rows.items():
                what = f"column {name} of {table.name}"
                sizes = np.bincount(keys[of], minlength=len(rows))
                own = of == table.name
                # A row refers to rows before it: such links have an end.
                most = np.arange(len(found)) - starts[of][key] if own else sizes[key]
                inner = found[name] != NONE if own else np.ones(len(found), bool)
                _among(found[name][inner], most[inner], what)
                found[name][inner] += starts[of][key[inner]].astype(found[name].dtype)
        tables["instances"]["key"] = instance_key
        tables["instances"]["rule"] = rule = _now(tables["instances"]["rule"], self._rules)
        known = rule != NONE
        codes = instance_key[known] * (int(rule.max()) + 1) + rule[known]
        if not (codes[1:] > codes[:-1]).all() and len(np.unique(codes)) < len(codes):
            raise damaged()
        return stored.of(*tables.values())

    def gone(self, rows: I64) -> Bytes:
        """The keys of those of some rows that say that nothing is remembered any more."""
        return self.texts(rows[~self._remembered(rows)])


def decode(data: bytes, rules: Mapping[int, int]) -> KeysState:
    """All that a block of state holds."""
    stored = StoredKeys([[data]], rules)
    return stored.chosen(np.arange(len(stored)))


def _known(state: KeysState) -> KeysState:
    """The state without instances of unknown rules. Nodes of keys that have others go with the next
    run."""
    known = [part.instances["rule"] != NONE for part in state.remembered]
    if all(each.all() for each in known):
        return state
    parts: list[Any] = [
        part.of_instances(each) for part, each in zip(state.remembered, known, strict=True)
    ]
    state = KeysState(state.keys, state.events, state.event_key, *parts)
    used = np.zeros(len(state.keys), bool)
    for remembered in state.remembered:
        used[remembered.instances["key"]] = True
    return chosen(state, used)


def _least_of(values: I64, counts: I64) -> I64:
    """The least of each group of values, of which there are so many; ``FOREVER`` of none."""
    least = np.full(len(counts), FOREVER, np.int64)
    some = counts > 0
    if some.any():
        least[some] = np.minimum.reduceat(values, _starts(counts)[some])
    return least


def _now(rules: I64, numbers: Mapping[int, int]) -> I64:
    """The numbers that rules have now, ``NONE`` where there is none."""
    now = np.full(len(rules), NONE, np.int64)
    if numbers:
        names = np.array(sorted(numbers), np.int64)
        place = np.minimum(np.searchsorted(names, rules), len(names) - 1)
        known = names[place] == rules
        now[known] = np.array([numbers[name] for name in names.tolist()], np.int64)[place[known]]
    return now


def _packed(
    form: int, stored: Sequence[bytes], columns: Sequence[tuple[int, Any]]
) -> PackedColumns:
    """Blocks with these columns. StateError when one has more rows than it can have."""
    packed = PackedColumns(form, stored, [table for table, _ in columns])
    sizes = np.array([len(block) for block in stored], np.int64)
    if (packed.counts > sizes * _MOST_ROWS_OF_BYTE).any():
        raise damaged()
    return packed


def _among(numbers: I64, most: I64 | int, what: str) -> I64:
    """The numbers, which are places among ``most``. StateError when one is not."""
    wrong = (numbers < 0) | (numbers >= most)
    if wrong.any():
        found = int(numbers[np.argmax(wrong)])
        raise damaged_state(f"{what} is {found}")
    return numbers


def _event_columns(table: int, events: EventTable) -> list[PackedColumn]:
    payload = events.payload
    nothing = nulls_like(Bytes.of([]), len(events))
    return [
        *(PackedColumn(table, getattr(events, name)) for name in _EVENT),
        PackedColumn(table, nothing if payload is None else payload),
        *(PackedColumn(table, column) for column in (events.columns or ()) if len(events)),
    ]


def _events(packed: PackedColumns, first: int, rows: I64) -> EventTable:
    """Events whose columns begin with the ``first``."""
    time, topic, partition, offset, kind = packed.several(first, len(_EVENT), rows)
    for numbers in (topic, partition, kind):
        _among(numbers, 1 << 31, "the topic, partition or type of an event")
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
    if not isinstance(column, Bytes):
        raise damaged()
    return column


def _starts(counts: I64) -> I64:
    return np.cumsum(counts) - counts


def _inverse(order: Any) -> I64:
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found
