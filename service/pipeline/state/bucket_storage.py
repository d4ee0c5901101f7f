"""Buckets of a partitioning read from the entries of the state, and written to them.

What was written under a rule set whose columns meant something else is read in the terms of this
one, and all of the bucket is then written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from service.matcher.columnar.snapshot import StoredKeys, encode, no_keys
from service.pipeline.state.buckets import (
    BucketKeys,
    Written,
    buckets_of,
    due_by_bucket,
    hashes_of,
    whole,
)
from service.pipeline.state.entries import Entries, Load, Spread, Store
from service.pipeline.state.known_rules import KnownRules


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
        names = [self.spread.names(bucket) for bucket in buckets]
        there = [name for pair in names for name in pair if name in self.entries]
        stored = dict(zip(there, self.entries.loaded(there, load), strict=True))
        bases = [stored.get(base, no_keys()) for base, _ in names]
        changes = [stored.get(beside, no_keys()) for _, beside in names]
        anew = np.array([bucket in self.spread.split for bucket in buckets], bool)
        stale: dict[bytes, list[int]] = {}
        for place, (base, beside) in enumerate(names):
            meaning = self.entries.stale(base) or self.entries.stale(beside)
            if meaning is not None:
                stale.setdefault(meaning, []).append(place)
        for meaning, places in stale.items():
            renewed = self._renewed(
                meaning, [bases[place] for place in places], [changes[place] for place in places]
            )
            for place, block in zip(places, renewed, strict=True):
                bases[place], changes[place], anew[place] = block, no_keys(), True
        rules = self._rules
        return BucketKeys(
            np.array(buckets), StoredKeys(bases, rules), StoredKeys(changes, rules), anew
        )

    @property
    def _rules(self) -> dict[int, int]:
        return {name: number for number, name in enumerate(self._numbers)}

    @property
    def _numbers(self) -> list[int]:
        return self.rules.numbers(self.fingerprints)

    def _renewed(
        self, meaning: bytes, bases: Sequence[bytes], changes: Sequence[bytes]
    ) -> list[bytes]:
        """Buckets of another meaning, in the terms of this rule set."""
        rules = self._rules
        state, homes = whole(StoredKeys(bases, rules), StoredKeys(changes, rules))
        self.rules.translation(meaning, self.spread.prefix).state(state)
        return encode(state, self._numbers, homes, len(bases))

    def write(self, buckets: Sequence[int], written: Written, store: Store) -> None:
        """Write what has changed of these buckets."""
        beside = encode(written.changes, self._numbers, written.homes_of_changes, len(buckets))
        used = np.bincount(written.homes_of_changes, minlength=len(buckets)).tolist()
        anew = [
            bucket for bucket, all_of_it in zip(buckets, written.anew, strict=True) if all_of_it
        ]
        targets = [target for bucket in anew for target in self.spread.targets(bucket)]
        bases = dict(zip(targets, self._bases(buckets, targets, written), strict=True))
        for place, bucket in enumerate(buckets):
            base, changes = self.spread.names(bucket)
            if written.anew[place]:
                self.entries.remove(changes, store)
                for target in self.spread.targets(bucket):
                    self._keep(self.spread.names(target)[0], *bases[target], store)
                continue
            self.entries.next_due(base, int(written.base_due[place]))
            due = int(written.changes_due[place])
            if written.changed[place]:
                self._keep(changes, beside[place], used[place], due, store)
            else:
                self.entries.next_due(changes, due)

    def _bases(
        self, buckets: Sequence[int], targets: Sequence[int], written: Written
    ) -> Iterator[tuple[bytes, int, int]]:
        """For each of the buckets ``targets``, which are written whole: block, keys, and when
        something is due."""
        state = written.bases
        homes = np.array(buckets, np.int64)[written.homes_of_bases]
        if self.spread.split:
            homes = buckets_of(hashes_of(state.keys), self.spread.after)
        order = np.argsort(targets)
        places = order[np.searchsorted(targets, homes, sorter=order)]
        count = len(targets)
        return zip(
            encode(state, self._numbers, places, count),
            np.bincount(places, minlength=count).tolist(),
            due_by_bucket(state, places, count).tolist(),
            strict=True,
        )

    def _keep(self, name: str, block: bytes, keys: int, due: int, store: Store) -> None:
        if keys:
            self.entries.keep(name, block, due, store)
        else:
            self.entries.remove(name, store)
