"""A key group split into several: each key goes to the group that it has among more of them.

What is stored is read as it is, without rules: blocks keep the numbers of rules and the columns
that they have, and the group's value goes to all parts but for what counts or names entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.errors import damaged_state
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.keys_state import chosen
from spark_cep.matcher.snapshot.waiting_events import decode_batch, encode_batch
from spark_cep.matcher.snapshot.written_state import encode
from spark_cep.packing import pack, sealed, unpack, unsealed
from spark_cep.pipeline.state.buckets import buckets_of, whole
from spark_cep.pipeline.state.entries import (
    CHANGES,
    EntryMap,
    base_name,
    bucket_of,
    check_entry,
    checksum_of,
    compressed,
)
from spark_cep.pipeline.state.group_format import GROUP, check_format
from spark_cep.pipeline.state.group_values import check_values
from spark_cep.pipeline.state.key_groups import key_groups_of


def split_group(
    number: int, key_groups: int, bucket_size: int, entries: Callable[[int], EntryMap]
) -> None:
    """Split the key group ``number`` so that there are ``key_groups`` of them, a multiple of their
    number now. ``entries``: those of a group by its number, to be used before the next one is asked
    for. Buckets become fewer where a part has less than ``bucket_size`` bytes in each.

    Raises:
        StateError: The state of the group is not there, damaged or of another format.
    """
    _Split(number, key_groups, bucket_size, entries).run()


class _Part:
    """One of the groups that a group becomes, with its entries so far."""

    def __init__(self, number: int, stored: Mapping[str, Any], key_groups: int) -> None:
        self.number = number
        self.live: Counter[int] = Counter()
        self.values: dict[str, Any] = deepcopy({**stored, "entries": {}})
        self.values |= {"key_groups": key_groups, "stale": {}, "waiting": {}}

    def packed(self) -> bytes:
        """The group's value."""
        rules = {rule[2]: rule for rule in self.values["rules"].values()}
        for rule in rules.values():
            rule[3] = 0
        moves = {number: to for number, to, *_ in self.values["carried"]}
        for number, count in self.live.items():
            to = number
            while to in moves:
                to = moves[to]
            if to in rules:
                rules[to][3] += count
        return sealed(pack(self.values))


class _Split:
    def __init__(
        self,
        number: int,
        key_groups: int,
        bucket_size: int,
        entries: Callable[[int], EntryMap],
    ) -> None:
        self._number, self._key_groups = number, key_groups
        self._bucket_size = bucket_size
        self._entries = entries
        (value,) = entries(number).get([GROUP])
        if value is None:
            raise damaged_state(f"there is nothing of key group {number}")
        self._stored = unpack(unsealed(value))
        check_format(self._stored)
        check_values(self._stored)
        parts = range(number, key_groups, self._stored["key_groups"])
        self._parts = [_Part(part, self._stored, key_groups) for part in parts]
        known = [number for _, _, number, *_ in self._stored["rules"].values()]
        # Partial matches of a version that another takes over have its number until they are read.
        self._rules = sorted({*known, *(number for number, *_ in self._stored["carried"])})

    def run(self) -> None:
        waiting = [name for name in self._stored["entries"] if bucket_of(name) is None]
        for name in waiting:
            self._divide_waiting(name)
        for prefix in self._stored["buckets"]:
            self._divide_buckets(prefix)
        for part in self._parts:
            self._entries(part.number).put([(GROUP, part.packed())])
        own = next(part for part in self._parts if part.number == self._number)
        gone = self._stored["entries"].keys() - own.values["entries"].keys()
        self._entries(self._number).put([(name, None) for name in sorted(gone)])

    def _divide_waiting(self, name: str) -> None:
        (data,) = self._loaded([name])
        batch = decode_batch(data)
        for part, rows in self._by_part(key_groups_of(batch.keys, self._key_groups)[batch.key]):
            mine: InputBatch = batch.take(rows)
            due = int(mine.events.time.min())
            self._keep(part, name, name, encode_batch(mine), due)
            part.values["waiting"][name] = len(rows)

    def _divide_buckets(self, prefix: str) -> None:
        stored, count = self._stored, self._stored["buckets"][prefix]
        pairs = [(name, name + CHANGES) for name in (base_name(prefix, n) for n in range(count))]
        there = [name for pair in pairs for name in pair if name in stored["entries"]]
        size = sum(stored["entries"][name][1] for name in there) // len(self._parts)
        after = count
        # Columns of what was written under another rule set are others.
        if stored["stale"].keys().isdisjoint(there):
            after = min(count, max(1, size // self._bucket_size))
        # The buckets that become one: their hashes begin alike.
        targets = buckets_of(np.arange(count), after)
        for target in range(after):
            together = [pairs[number] for number in np.flatnonzero(targets == target).tolist()]
            self._divide(base_name(prefix, target), together)
        for part in self._parts:
            part.values["buckets"][prefix] = after

    def _divide(self, target: str, pairs: Sequence[tuple[str, str]]) -> None:
        """Divide the keys of some buckets, bases and changes; each part has one bucket of them."""
        entries = self._stored["entries"]
        names = [name for pair in pairs for name in pair if name in entries]
        if not names:
            return
        values = dict(zip(names, self._loaded(names), strict=True))
        state = whole(
            [[values[base]] if base in values else [] for base, _ in pairs],
            [unpack(values[beside]) if beside in values else [] for _, beside in pairs],
            {number: place for place, number in enumerate(self._rules)},
        )
        # Never later than when something is due of one of them.
        due = min(entries[name][0] for name in names)
        groups = key_groups_of(state.keys, self._key_groups)
        for part, keys in self._by_part(groups):
            mine = chosen(state, np.isin(np.arange(len(groups)), keys))
            (block,) = encode(mine, self._rules)
            self._keep(part, target, names[0], block, due)
            self._count(part, mine)

    def _by_part(self, groups: I64) -> Iterator[tuple[_Part, I64]]:
        """The rows of each part that has some."""
        for part in self._parts:
            rows = np.flatnonzero(groups == part.number)
            if len(rows):
                yield part, rows

    def _count(self, part: _Part, state: KeysState) -> None:
        for each in state.remembered:
            if len(each.instances):
                live = np.bincount(each.instances["rule"], each.live, len(self._rules))
                part.live.update(dict(zip(self._rules, live.astype(int).tolist(), strict=True)))

    def _loaded(self, names: Sequence[str]) -> list[bytes]:
        found = self._entries(self._number).get(names)
        return [
            check_entry(self._number, name, value, *self._stored["entries"][name][1:])
            for name, value in zip(names, found, strict=True)
        ]

    def _keep(self, part: _Part, name: str, was: str, data: bytes, due: int) -> None:
        """Write an entry of a part, with columns as those of ``was``."""
        stored = compressed(data)
        self._entries(part.number).put([(name, stored)])
        part.values["entries"][name] = [due, len(data), checksum_of(stored)]
        if was in self._stored["stale"]:
            part.values["stale"][name] = self._stored["stale"][was]
