"""Where the keys of a partitioning are within a key group: in buckets, as many as the state needs.

A bucket is a class of keys by hash. It has one entry of the state, its *base*, and a second one
with its *changes*: the keys that batches have touched since the base was written, as they are now.
So a batch writes what it has touched, and not what lies beside it. The base is written again, and
the changes go, when they have become a good part of it.

Buckets become more while the state grows, so that none becomes large: linear hashing (Litwin,
1980), which splits some buckets and leaves the others where they are.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from service.matcher.columnar.compilation import FOREVER, I64
from service.matcher.columnar.keys import KeysState
from service.matcher.columnar.keys_state import chosen, joined
from service.matcher.columnar.snapshot import StoredKeys
from service.matcher.columnar.texts import TextSet
from service.matcher.columnar.vectors import Flags

#: A base is written again when its changes concern such a share of its keys: one bucket sooner, the
#: other later, for otherwise a steady load would have all of them due in the same batch.
_LEAST_SHARE, _MOST_SHARE = 0.125, 0.375
#: Its multiples, without their whole part, are evenly spread.
_GOLDEN_RATIO = (5**0.5 - 1) / 2


def hashes_of(keys: Iterable[str | None]) -> I64:
    """A number for each key, the same in every process."""
    hashes = [0 if key is None else zlib.crc32(key.encode()) for key in keys]
    return np.array(hashes, np.int64)


def buckets_of(hashes: I64, count: int) -> I64:
    """Which of ``count`` buckets each hash belongs to (linear hashing)."""
    level = count.bit_length() - 1
    fine = hashes & ((2 << level) - 1)
    return np.where(fine < count, fine, hashes & ((1 << level) - 1))


@dataclass(frozen=True)
class Written:
    """What becomes of some buckets. By bucket: whether it has ``changed``, whether its base is
    written ``anew``, and when something is due of what stays in the base and in the changes. Of the
    others that have changed: their changes, keys without units being gone. Of those written anew:
    all their keys. ``homes`` say for each key the place of its bucket."""

    changed: Flags
    anew: Flags
    base_due: I64
    changes_due: I64
    changes: KeysState
    homes_of_changes: I64
    bases: KeysState
    homes_of_bases: I64


class BucketKeys:
    """The keys of some buckets while a batch is at work on them. The bases stay as they are stored,
    and changes stand beside them; of a bucket that is written ``anew`` all keys are in its base.

    ``homes`` are places in ``buckets``, the numbers of the buckets.
    """

    def __init__(self, buckets: I64, base: StoredKeys, changes: StoredKeys, anew: Flags) -> None:
        self._base, self._changes = base, changes
        #: Of each key, whether what is stored is still so.
        self._of_base = _not_replaced(base, changes)
        self._of_changes = changes.known.copy()
        self._given = KeysState()
        self._homes_of_given = np.zeros(0, np.int64)
        #: Of each bucket, whether it has to be written, and whether all of it.
        self._anew = anew | base.forgotten | changes.forgotten
        self._changed = self._anew.copy()
        share = _LEAST_SHARE + (_MOST_SHARE - _LEAST_SHARE) * (buckets * _GOLDEN_RATIO % 1)
        self._most = base.sizes * share

    def take(self, keys: TextSet, watermark: int) -> KeysState:
        """What is remembered of ``keys``, and of those of which something is due. The caller gives
        back what became of it (:meth:`give`)."""
        taken = []
        for stored, left in ((self._base, self._of_base), (self._changes, self._of_changes)):
            mine = left & ((stored.due <= watermark) | stored.among(keys))
            left &= ~mine  # noqa: PLW2901  in place
            self._changed[stored.home[mine]] = True
            taken.append(stored.chosen(mine))
        return joined(taken)

    def give(self, state: KeysState, homes: I64) -> None:
        """What became of what was taken, and of keys that are new."""
        self._changed[homes] = True
        self._given, self._homes_of_given = state, homes

    def written(self) -> Written:
        """What to write of each bucket."""
        base, changes, changed = self._base, self._changes, self._changed
        rows = self._of_changes & changed[changes.home]
        state = joined([changes.chosen(rows), self._given])
        homes = np.concatenate([changes.home[rows], self._homes_of_given])
        gone = base.known & ~self._of_base & changed[base.home]
        gone &= ~base.among(TextSet.of(state.keys))
        count = len(changed)
        sizes = np.bincount(homes, minlength=count)
        sizes += np.bincount(base.home[gone], minlength=count)
        anew = self._anew | (changed & (sizes >= self._most))
        rows = self._of_base & anew[base.home]
        beside = ~anew[homes]
        gone &= ~anew[base.home]
        part = chosen(state, beside)
        part = KeysState([*part.keys, *base.keys(gone)], part.events, part.event_key, part.held)
        left = self._of_base
        kept = self._of_changes
        changes_due = np.minimum(
            due_by_bucket(self._given, self._homes_of_given, count),
            _least(changes.home[kept], changes.due[kept], count),
        )
        return Written(
            changed=changed,
            anew=anew,
            base_due=_least(base.home[left], base.due[left], count),
            changes_due=changes_due,
            changes=part,
            homes_of_changes=np.concatenate([homes[beside], base.home[gone]]),
            bases=joined([base.chosen(rows), chosen(state, ~beside)]),
            homes_of_bases=np.concatenate([base.home[rows], homes[~beside]]),
        )


def whole(base: StoredKeys, changes: StoredKeys) -> tuple[KeysState, I64]:
    """All that some buckets hold, and for each key the place of its bucket."""
    left = _not_replaced(base, changes)
    state = joined([base.chosen(left), changes.chosen(changes.known)])
    return state, np.concatenate([base.home[left], changes.home[changes.known]])


def _not_replaced(base: StoredKeys, changes: StoredKeys) -> Flags:
    """Of each key of the bases, whether it is still as stored there."""
    return base.known & ~base.among(changes.texts)


def due_by_bucket(state: KeysState, homes: I64, count: int) -> I64:
    """When something is due of the keys of each bucket; ``FOREVER`` for never."""
    return _least(homes[state.held.units["key"]], state.held.due, count)


def _least(homes: I64, due: I64, count: int) -> I64:
    found = np.full(count, FOREVER, np.int64)
    np.minimum.at(found, homes, due)
    return found
