"""Keys of blocks of packed columns, read in part or whole.

A rule is a number that the caller gives it. Instances of unknown numbers are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from spark_cep.columns.compilation import FOREVER, I64, NONE
from spark_cep.columns.packed_columns import ChosenRows, damaged
from spark_cep.columns.texts import TextSet
from spark_cep.columns.vectors import Bytes, Flags, no_texts
from spark_cep.matcher.keys import ENGINES, KeysState
from spark_cep.matcher.keys_state import chosen
from spark_cep.matcher.snapshot.columns import as_bytes, events_of, packed_columns, starts_of
from spark_cep.matcher.snapshot.tables import (
    EVENTS_OF_STATE,
    IN_LAYOUT,
    INSTANCES,
    KEYS,
    LAYOUT,
    OF_STATE,
    PLACE,
    STATE,
    TABLES,
)

_OF_EVENTS = IN_LAYOUT[EVENTS_OF_STATE, "time"], IN_LAYOUT[EVENTS_OF_STATE, "payload"]


class StoredKeys:
    """The keys of some blocks of state, read together: what is not asked for is not decoded.
    ``stored``: by bucket its blocks, oldest first; ``rules``: by the number that names it, the
    number of each rule that there is now. StateError when a block is damaged.

    A key is named by its row; a bucket has a row for each block that says something of the key, of
    which the last holds. Rows are in the order of buckets and blocks.
    """

    def __init__(self, stored: Sequence[Sequence[bytes]], rules: Mapping[int, int]) -> None:
        blocks = [block for bucket in stored for block in bucket]
        self._packed = packed_columns(STATE, blocks, OF_STATE)
        self._rules = rules
        #: The engines of which there are instances, and their tables.
        self._engines = [
            (engine, table)
            for engine, table in enumerate(INSTANCES)
            if self._packed.starts[table, -1]
        ]
        self._homes = np.repeat(np.arange(len(stored)), [len(bucket) for bucket in stored])
        #: How many rows each bucket has.
        self.sizes = np.bincount(self._homes, self._packed.counts[KEYS], len(stored)).astype(
            np.int64
        )

    def __len__(self) -> int:
        return int(self._packed.starts[KEYS, -1])

    @property
    def forgotten(self) -> Flags:
        """Per bucket, whether it has something of rules that are gone."""
        found = np.zeros(len(self.sizes), bool)
        for _, table in self._engines:
            names, blocks = self._packed.different(PLACE[table, "rule"])
            found[self._homes[blocks[_now(names, self._rules) == NONE]]] = True
        return found

    def rows(self, buckets: Flags) -> I64:
        """All rows of some buckets."""
        return self._rows(KEYS, buckets)

    def _rows(self, table: int, buckets: Flags) -> I64:
        if buckets.all():
            return self._packed.rows(table)
        return np.flatnonzero(np.repeat(buckets[self._homes], self._packed.counts[table]))

    def homes(self, rows: I64) -> I64:
        """The bucket of each of these rows."""
        if len(self.sizes) == 1:
            return np.zeros(len(rows), np.int64)
        starts = self._packed.starts[KEYS]
        return self._homes[np.searchsorted(starts, rows, "right") - 1]

    def find(self, keys: TextSet) -> tuple[I64, I64]:
        """The rows of these keys, and the number of the key of each."""
        return self._packed.search(PLACE[KEYS, "key"], keys)

    def texts(self, rows: I64) -> Bytes:
        """The keys of some rows."""
        if not len(rows):  # without blocks, nothing says what columns are
            return no_texts()
        return as_bytes(self._packed.vector(PLACE[KEYS, "key"], rows))

    def due(self, buckets: Flags) -> tuple[I64, I64]:
        """The rows of some buckets, and for each the watermark at which something is due of it;
        ``FOREVER`` for never."""
        rows = self._rows(KEYS, buckets)
        due = np.full(len(rows), FOREVER, np.int64)
        for engine, table in self._engines:
            instances = self._rows(table, buckets)
            read = partial(self._column, table, rows=instances)
            of_instances = ENGINES[engine].due(read)
            of_instances[_now(read("rule"), self._rules) == NONE] = FOREVER
            counts = self._column(KEYS, table, rows)
            if counts.min(initial=0) < 0 or int(counts.sum()) != len(instances):
                raise damaged()
            np.minimum(due, _least_of(of_instances, counts), out=due)
        return rows, due

    def _remembered(self, rows: I64) -> Flags:
        """Return whether something is remembered of the keys of some rows."""
        remembered = np.zeros(len(rows), bool)
        for _, table in self._engines:
            remembered |= self._column(KEYS, table, rows) > 0
        return remembered

    def _column(self, table: int, name: str | int, rows: I64) -> I64:
        return self._packed.numbers(PLACE[table, name], rows)

    def chosen(self, rows: I64) -> KeysState:
        """Return the state of the keys of some rows, in ascending order."""
        if not len(rows):
            return KeysState()
        found = self._packed.chosen(LAYOUT, rows)
        remembered = found.of_first[INSTANCES].any(axis=0)
        if not remembered.all():
            return self.chosen(rows[remembered])
        of_keys = found.of_first[EVENTS_OF_STATE]
        state = KeysState(
            self.texts(rows).compacted(),
            events_of(
                self._packed,
                PLACE[EVENTS_OF_STATE, "payload"],
                found.rows(EVENTS_OF_STATE),
                found.columns(*_OF_EVENTS),
            ),
            np.repeat(np.arange(len(rows)), of_keys),
            *(self._part(engine, found) for engine in range(len(ENGINES))),
        )
        return _known(state)

    def _part(self, engine: int, found: ChosenRows) -> Any:
        """The state of an engine for some keys."""
        stored, of_instances = ENGINES[engine], INSTANCES[engine]
        if not found.sizes[of_instances]:
            return stored.nothing
        tables = {}
        for table in stored.tables:
            number, _ = TABLES[engine, table.name]
            tables[table.name] = rows = np.zeros(int(found.sizes[number]), table.kind)
            first = IN_LAYOUT[number, table.columns[0]]
            columns = found.columns(first, first + len(table.columns))
            for name, numbers in zip(table.columns, columns, strict=True):
                rows[name] = numbers
        instances = tables["instances"]
        counts = found.of_first[of_instances]
        key = np.repeat(np.arange(len(counts)), counts)
        instances["key"] = key
        instances["rule"] = rule = _now(instances["rule"], self._rules)
        known = rule != NONE
        codes = (key * (int(rule.max()) + 1) + rule)[known]
        if not (codes[1:] > codes[:-1]).all() and len(np.unique(codes)) < len(codes):
            raise damaged()
        return stored.of(*tables.values())

    def gone(self, rows: I64) -> Bytes:
        """The keys of those of some rows that say that nothing is remembered any more."""
        return self.texts(rows[~self._remembered(rows)]) if len(rows) else no_texts()


def decode(data: bytes, rules: Mapping[int, int]) -> KeysState:
    """All that a block of state holds."""
    stored = StoredKeys([[data]], rules)
    return stored.chosen(np.arange(len(stored)))


def _known(state: KeysState) -> KeysState:
    """The state without instances of unknown rules. Nodes of keys that have others go with the next
    run."""
    if all((part.instances["rule"] != NONE).all() for part in state.remembered):
        return state
    known = [part.instances["rule"] != NONE for part in state.remembered]
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
        least[some] = np.minimum.reduceat(values, starts_of(counts)[some])
    return least


def _now(rules: I64, numbers: Mapping[int, int]) -> I64:
    """The numbers that rules have now, ``NONE`` where there is none."""
    if len(numbers) == 1:
        ((name, number),) = numbers.items()
        return np.where(rules == name, number, NONE)
    now = np.full(len(rules), NONE, np.int64)
    if numbers:
        names = np.array(sorted(numbers), np.int64)
        place = np.minimum(np.searchsorted(names, rules), len(names) - 1)
        known = names[place] == rules
        now[known] = np.array([numbers[name] for name in names.tolist()], np.int64)[place[known]]
    return now
