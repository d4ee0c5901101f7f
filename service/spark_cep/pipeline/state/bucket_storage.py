"""Buckets of a partitioning read from the entries of the state, and written to them.

What was written under a rule set whose columns meant something else, or with a version of a rule
that is carried over, is read in the terms of this one, and all of the bucket is then written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spark_cep.matcher.snapshot.written_state import encode
from spark_cep.packing import pack, unpack
from spark_cep.pipeline.state.buckets import (
    BucketKeys,
    StoredBuckets,
    Written,
    due_by_bucket,
    homes_of,
    whole,
)
from spark_cep.pipeline.state.entries import Entries, Load, Spread, Store
from spark_cep.pipeline.state.known_rules import KnownRules


@dataclass(frozen=True)
class BucketStorage:
    """The buckets of one partitioning in one key group, during one batch. ``fingerprints``: of the
    rules, by number."""

    entries: Entries
    spread: Spread
    fingerprints: Sequence[str]
    rules: KnownRules

    def read(self, buckets: Sequence[int], load: Load) -> BucketKeys:
        """The keys of these buckets, as they are stored."""
        entries, names = self.entries, [self.spread.names(bucket) for bucket in buckets]
        there = [name for pair in names for name in pair if name in entries]
        values = dict(zip(there, entries.loaded(there, load), strict=True))
        stored = StoredBuckets(
            numbers=np.array(buckets),
            bases=[[values[base]] if base in values else [] for base, _ in names],
            changes=[unpack(values[beside]) if beside in values else [] for _, beside in names],
            rewritten=np.array([bucket in self.spread.split for bucket in buckets], bool),
            base_due=np.array([entries.due_of(base) for base, _ in names]),
            changes_due=np.array([entries.due_of(beside) for _, beside in names]),
        )
        stale: dict[bytes, list[int]] = {}
        for place, (base, beside) in enumerate(names):
            meaning = entries.stale(base) or entries.stale(beside)
            if meaning is not None:
                stale.setdefault(meaning, []).append(place)
        for meaning, places in stale.items():
            self._renew(stored, meaning, places)
        return BucketKeys(stored, self.spread.before, self._rules)

    @property
    def _rules(self) -> dict[int, int]:
        return {name: number for number, name in enumerate(self._numbers)}

    @property
    def _numbers(self) -> list[int]:
        return self.rules.numbers(self.fingerprints)

    def _renew(self, stored: StoredBuckets, meaning: bytes, places: Sequence[int]) -> None:
        """Put the buckets at some places, which have another meaning, in the terms of this rule
        set. All of each is then to be written."""
        bases, changes = ([of[place] for place in places] for of in (stored.bases, stored.changes))
        state = self.rules.renewed(
            meaning, self.spread.prefix, self.fingerprints,
            lambda rules: whole(bases, changes, rules),
        )  # fmt: skip
        homes = homes_of(state.keys, stored.numbers[places], self.spread.before)
        for place, block in zip(
            places, encode(state, self._numbers, homes, len(places)), strict=True
        ):
            stored.bases[place], stored.changes[place], stored.rewritten[place] = [block], [], True

    def write(self, buckets: Sequence[int], written: Written, store: Store) -> None:
        """Write what has changed of these buckets."""
        entries, rewritten = self.entries, np.flatnonzero(written.rewritten).tolist()
        beside = np.flatnonzero(written.changed & ~written.rewritten)
        homes = np.searchsorted(beside, written.homes)
        newest = encode(written.changes, self._numbers, homes, len(beside))
        for place, block in zip(beside.tolist(), newest, strict=True):
            _, changes = self.spread.names(buckets[place])
            due = int(written.changes_due[place])
            entries.keep(changes, pack([*written.older[place], block]), due, store)
        for place in rewritten:
            entries.remove(self.spread.names(buckets[place])[1], store)
        targets = sorted(
            target for place in rewritten for target in self.spread.targets(buckets[place])
        )
        for target, (block, keys, due) in zip(targets, self._bases(targets, written), strict=True):
            base, _ = self.spread.names(target)
            if keys:
                entries.keep(base, block, due, store)
            else:
                entries.remove(base, store)
        for place in np.flatnonzero(~written.rewritten).tolist():
            base, changes = self.spread.names(buckets[place])
            entries.next_due(base, int(written.base_due[place]))
            entries.next_due(changes, int(written.changes_due[place]))

    def _bases(self, targets: Sequence[int], written: Written) -> Iterator[tuple[bytes, int, int]]:
        """For each of the buckets ``targets``, which are written whole: block, keys, and when
        something is due."""
        state = written.bases
        places = homes_of(state.keys, targets, self.spread.after)
        count = len(targets)
        return zip(
            encode(state, self._numbers, places, count),
            np.bincount(places, minlength=count).tolist(),
            due_by_bucket(state, places, count).tolist(),
            strict=True,
        )
