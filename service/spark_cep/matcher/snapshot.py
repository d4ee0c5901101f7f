"""The state of many keys, and waiting events, as blocks of packed columns and back.

The columns of both are listed in ``_OF_STATE`` and ``_OF_BATCH``; behind them come those of the
events. Rows of a key stand together in each table, keys in their order, and refer to rows of the
same key: ``first``, ``last``, ``previous`` and ``event`` count from the key's first row. So any
keys can be read without the others. Of a key without instances nothing is remembered any more.

A rule is a number that the caller gives it. Instances of unknown numbers are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spark_cep.columns.compilation import FOREVER, I64, NONE
from spark_cep.columns.packed_columns import PackedColumn, PackedColumns, blocks, damaged
from spark_cep.columns.texts import TextSet
from spark_cep.columns.vectors import Bytes, Flags, Vector, no_texts, nulls_like
from spark_cep.matcher.batch.events import EventTable, micros_or_none
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.keys_state import chosen
from spark_cep.matcher.row_pattern import instances as row_pattern_instances
from spark_cep.matcher.row_pattern.instances import RowPatternInstances
from spark_cep.matcher.row_pattern.loops import tables as row_tables
from spark_cep.matcher.steps.held import INSTANCE, NODE, Held, due_of
from spark_cep.matcher.steps.loops.kernel_tables import FINISHED, PARTIAL

#: Formats of blocks.
STATE, BATCH = 6, 5

(
    _KEYS, _INSTANCES, _PARTIALS, _FINISHED, _NODES, _SQL_INSTANCES, _SQL_THREADS, _SQL_NODES,
    _SQL_ROWS,
    _EVENTS_OF_STATE,
) = range(10)  # fmt: skip
_INSTANCE = (
    "rule", "deadline", "quiet", "paused", "limited", "events_bound", "partials", "finished",
)  # fmt: skip
_PARTIAL = ("state", "first", "last", "deadline", "matched")
_FINISHED_FIELDS = ("first", "last", "time")
_NODE = ("previous", "step", "event")
_SQL_INSTANCE = tuple(name for name in row_pattern_instances.INSTANCE.names or () if name != "key")
_SQL_THREAD = ("at", "node", "length")
_SQL_NODE = ("previous", "label")
_SQL_ROW = ("event", "bits", "micros")
_EVENT = ("time", "topic", "partition", "offset", "type")
#: Table and name of each column; of keys the text, and how many rows they have in other tables.
_OF_STATE = (
    *((_KEYS, name) for name in ("key", "instances", "nodes", "sql_instances", "events")),
    *((_INSTANCES, name) for name in _INSTANCE),
    *((_PARTIALS, name) for name in _PARTIAL),
    *((_FINISHED, name) for name in _FINISHED_FIELDS),
    *((_NODES, name) for name in _NODE),
    *((_SQL_INSTANCES, name) for name in _SQL_INSTANCE),
    *((_SQL_THREADS, name) for name in _SQL_THREAD),
    *((_SQL_NODES, name) for name in _SQL_NODE),
    *((_SQL_ROWS, name) for name in _SQL_ROW),
    *((_EVENTS_OF_STATE, name) for name in (*_EVENT, "payload")),
)
_MASKS, _EVENTS_OF_BATCH = 1, 2
_OF_BATCH = (
    (_KEYS, "key"),
    (_MASKS, "mask"),
    *((_EVENTS_OF_BATCH, name) for name in ("key", "mask", "micros", *_EVENT, "payload")),
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
    instance_key = rank[held.instances["key"]]
    event_key = rank[state.event_key]
    of_partial = np.repeat(instance_key, held.instances["partials"])
    of_finished = np.repeat(instance_key, held.instances["finished"])
    of_node = event_key[held.nodes["event"]]
    rows = [
        np.argsort(key, kind="stable") for key in (instance_key, of_partial, of_finished, of_node)
    ]
    event_rows = np.argsort(event_key, kind="stable")
    sql_key = rank[state.row_patterns.instances["key"]]
    in_sql = state.row_patterns.take(np.argsort(sql_key, kind="stable"))
    sql_key = np.sort(sql_key)
    of_sql = {
        table: np.repeat(sql_key, in_sql.instances[name])
        for table, name in ((_SQL_THREADS, "threads"), (_SQL_NODES, "nodes"), (_SQL_ROWS, "rows"))
    }
    instances, partials, finished, nodes = (
        table[of_table] for table, of_table in zip(held, rows, strict=True)
    )
    counts = {
        table: np.bincount(key, minlength=len(order))
        for table, key in (
            (_INSTANCES, instance_key), (_PARTIALS, of_partial), (_FINISHED, of_finished),
            (_NODES, of_node), (_SQL_INSTANCES, sql_key), *of_sql.items(),
            (_EVENTS_OF_STATE, event_key),
        )
    }  # fmt: skip
    # Places within the rows of a key.
    event_at = _inverse(event_rows) - _starts(counts[_EVENTS_OF_STATE])[event_key]
    node_at = _inverse(rows[_NODES - _INSTANCES]) - _starts(counts[_NODES])[of_node]
    for table in (partials, finished):
        table["first"] = event_at[table["first"]]
        table["last"] = node_at[table["last"]]
    previous = nodes["previous"]
    nodes["previous"] = np.where(previous == NONE, NONE, node_at[previous]) if len(nodes) else 0
    nodes["event"] = event_at[nodes["event"]]
    names = np.array(numbers, np.int64)
    instances["rule"] = names[instances["rule"]] if len(instances) else 0
    in_sql.instances["rule"] = names[in_sql.instances["rule"]] if len(in_sql) else 0
    in_sql.rows = row_pattern_instances.moved_rows(in_sql.rows, event_at)
    columns = [
        PackedColumn(_KEYS, state.keys.take(order)),
        *(
            PackedColumn(_KEYS, counts[table])
            for table in (_INSTANCES, _NODES, _SQL_INSTANCES, _EVENTS_OF_STATE)
        ),
        *(PackedColumn(_INSTANCES, instances[name]) for name in _INSTANCE),
        *(PackedColumn(_PARTIALS, partials[name]) for name in _PARTIAL),
        *(PackedColumn(_FINISHED, finished[name]) for name in _FINISHED_FIELDS),
        *(PackedColumn(_NODES, nodes[name]) for name in _NODE),
        *(PackedColumn(_SQL_INSTANCES, in_sql.instances[name]) for name in _SQL_INSTANCE),
        *(PackedColumn(_SQL_THREADS, in_sql.threads[name]) for name in _SQL_THREAD),
        *(PackedColumn(_SQL_NODES, in_sql.nodes[name]) for name in _SQL_NODE),
        *(PackedColumn(_SQL_ROWS, in_sql.rows[name]) for name in _SQL_ROW),
        *_event_columns(_EVENTS_OF_STATE, state.events.take(event_rows)),
    ]
    key_ends = np.searchsorted(homes[order], np.arange(count), "right")
    ends = [key_ends, *(np.cumsum([0, *counts[table]])[key_ends] for table in sorted(counts))]
    return blocks(STATE, columns, ends)


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
    packed = PackedColumns(BATCH, [data], [table for table, _ in _OF_BATCH])
    rows = packed.rows(_EVENTS_OF_BATCH)
    masks = _as_bytes(packed.vector(1, packed.rows(_MASKS)))
    return InputBatch(
        _as_bytes(packed.vector(0, packed.rows(_KEYS))).compacted(),
        [int.from_bytes(masks.value(row) or b"", "little") for row in range(len(masks))],
        packed.numbers(2, rows),
        packed.numbers(3, rows),
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
        self._packed = PackedColumns(STATE, blocks, [table for table, _ in _OF_STATE])
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
        for table in (_INSTANCES, _SQL_INSTANCES):
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
        rows, instances = self._rows(_KEYS, buckets), self._rows(_INSTANCES, buckets)
        of_instances = due_of(
            *(self._instance(name, instances) for name in ("deadline", "quiet", "finished"))
        )
        of_instances[_now(self._instance("rule", instances), self._rules) == NONE] = FOREVER
        in_sql = self._rows(_SQL_INSTANCES, buckets)
        of_sql = self._packed.numbers(_PLACE[_SQL_INSTANCES, "due"], in_sql)
        rules = self._packed.numbers(_PLACE[_SQL_INSTANCES, "rule"], in_sql)
        of_sql[_now(rules, self._rules) == NONE] = FOREVER
        due = np.minimum(
            _least_of(of_instances, self._count("instances", rows)),
            _least_of(of_sql, self._count("sql_instances", rows)),
        )
        return rows, due

    def _remembered(self, rows: I64) -> Flags:
        """Return whether something is remembered of the keys of some rows."""
        return (self._count("instances", rows) > 0) | (self._count("sql_instances", rows) > 0)

    def _instance(self, name: str, rows: I64) -> I64:
        return self._packed.numbers(_PLACE[_INSTANCES, name], rows)

    def _count(self, name: str, rows: I64) -> I64:
        return self._packed.numbers(_PLACE[_KEYS, name], rows)

    def _of_rows(self, column: tuple[int, str], table: int, rows: I64) -> tuple[I64, I64]:
        """The rows in another table that belong to some rows, and how many belong to each.
        ``column`` has these counts for all."""
        place = _PLACE[column]
        counts = self._packed.numbers(place, rows)
        starts = self._packed.starts[table]
        first = self._packed.sums(place, starts, rows)
        if len(rows) and (counts.min() < 0 or first[-1] + counts[-1] > starts[-1]):
            raise damaged()
        return np.repeat(first - _starts(counts), counts) + np.arange(counts.sum()), counts

    def chosen(self, rows: I64) -> KeysState:
        """Return the state of the keys of some rows, in ascending order."""
        rows = rows[self._remembered(rows)]
        if not len(rows):
            return KeysState()
        of_instances, instances_of = self._of_rows((_KEYS, "instances"), _INSTANCES, rows)
        of_nodes, nodes_of = self._of_rows((_KEYS, "nodes"), _NODES, rows)
        of_sql, sql_of = self._of_rows((_KEYS, "sql_instances"), _SQL_INSTANCES, rows)
        of_events, events_of = self._of_rows((_KEYS, "events"), _EVENTS_OF_STATE, rows)
        of_partials, _ = self._of_rows((_INSTANCES, "partials"), _PARTIALS, of_instances)
        of_finished, _ = self._of_rows((_INSTANCES, "finished"), _FINISHED, of_instances)
        numbers = np.arange(len(rows))
        held = Held(
            self._table(_INSTANCES, INSTANCE, _INSTANCE, of_instances),
            self._table(_PARTIALS, PARTIAL, _PARTIAL, of_partials),
            self._table(_FINISHED, FINISHED, _FINISHED_FIELDS, of_finished),
            self._table(_NODES, NODE, _NODE, of_nodes),
        )
        instances, nodes = held.instances, held.nodes
        instances["rule"] = _now(instances["rule"], self._rules)
        instances["key"] = np.repeat(numbers, instances_of)
        event_start, node_start = _starts(events_of), _starts(nodes_of)
        for table, each in ((held.partials, "partials"), (held.finished, "finished")):
            key = np.repeat(instances["key"], instances[each])
            table["first"] += event_start[key].astype(np.int32)
            table["last"] += node_start[key].astype(np.int32)
        key = np.repeat(numbers, nodes_of)
        nodes["event"] += event_start[key].astype(np.int32)
        inner = nodes["previous"] != NONE
        nodes["previous"][inner] += node_start[key[inner]].astype(np.int32)
        state = KeysState(
            self.texts(rows).compacted(),
            _events(self._packed, _PLACE[_EVENTS_OF_STATE, "time"], of_events),
            np.repeat(numbers, events_of),
            held,
            self._row_patterns(of_sql, np.repeat(numbers, sql_of), event_start),
        )
        return _known(state)

    def _row_patterns(self, rows: I64, keys: I64, events: I64) -> RowPatternInstances:
        """Instances of rules in SQL. ``keys``: the number of each one's; ``events``: by key, where
        its events begin."""
        if not len(rows):
            return RowPatternInstances()
        threads, nodes, of_instances = (
            self._of_rows((_SQL_INSTANCES, name), table, rows)
            for name, table in (
                ("threads", _SQL_THREADS), ("nodes", _SQL_NODES), ("rows", _SQL_ROWS)
            )
        )  # fmt: skip
        found = RowPatternInstances(
            self._table(_SQL_INSTANCES, row_pattern_instances.INSTANCE, _SQL_INSTANCE, rows),
            self._table(_SQL_THREADS, row_tables.THREAD, _SQL_THREAD, threads[0]),
            self._table(_SQL_NODES, row_tables.NODE, _SQL_NODE, nodes[0]),
            self._table(_SQL_ROWS, row_pattern_instances.ROW, _SQL_ROW, of_instances[0]),
        )
        found.instances["key"] = keys
        found.instances["rule"] = _now(found.instances["rule"], self._rules)
        found.rows["event"] += events[np.repeat(keys, of_instances[1])]
        return found

    def _table(self, table: int, kind: np.dtype[Any], names: Sequence[str], rows: I64) -> Any:
        found = np.zeros(len(rows), kind)
        for name in names:
            found[name] = self._packed.numbers(_PLACE[table, name], rows)
        return found

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
    held, in_sql = state.held, state.row_patterns
    known, known_in_sql = held.instances["rule"] != NONE, in_sql.instances["rule"] != NONE
    if known.all() and known_in_sql.all():
        return state
    state.row_patterns = in_sql.take(np.flatnonzero(known_in_sql))
    state.held = held.of_instances(known)
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
    most = int(rules.max(initial=0))
    now = np.full(most + 1, NONE, np.int64)
    for name, number in numbers.items():
        if name <= most:
            now[name] = number
    return now[rules]


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


def _starts(counts: I64) -> I64:
    return np.cumsum(counts) - counts


def _inverse(order: Any) -> I64:
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found
