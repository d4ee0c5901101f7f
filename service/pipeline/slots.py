"""Where the keys of a partitioning are within a key group: in slots, as many as the state needs.

A slot is a class of keys by hash. It has one entry of the state, its *base*, and, once that is
large, a second one with its *changes*: the keys that batches have touched since the base was
written, as they are now. So a batch writes what it has touched, and not what lies beside it. The
base is written anew, and the changes go, when they have become a good part of it.

Slots become more while the state grows, so that none becomes large: linear hashing (Litwin, 1980),
which splits some slots and leaves the others where they are.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from service.matcher.columnar.kernel import I64
from service.matcher.columnar.keys import KeysState
from service.matcher.columnar.snapshot import chosen, joined
from service.matcher.partial import FOREVER

#: An interpreter's key in an entry: when it is next due, and its snapshot; ``None`` in changes says
#: that nothing is remembered of the key any more.
KeyEntry = tuple[int, bytes] | None
KeyEntries = dict[str | None, KeyEntry]

#: A base is written anew when its changes concern such a share of its keys: one slot sooner, the
#: other later, for otherwise a steady load would have all of them due in the same batch.
_LEAST_SHARE, _MOST_SHARE = 0.125, 0.375
#: Its multiples, without their whole part, are evenly spread.
_GOLDEN_RATIO = (5**0.5 - 1) / 2


def hashes_of(keys: Iterable[str | None]) -> I64:
    """A number for each key, the same in every process."""
    hashes = [0 if key is None else zlib.crc32(key.encode()) for key in keys]
    return np.array(hashes, np.int64)


def slots_of(hashes: I64, count: int) -> I64:
    """Which of ``count`` slots each hash belongs to (linear hashing)."""
    level = count.bit_length() - 1
    fine = hashes & ((2 << level) - 1)
    return np.where(fine < count, fine, hashes & ((1 << level) - 1))


@dataclass(slots=True)
class Part:
    """One entry of a slot, as read. ``gone``: keys of the base of which the kernel has nothing any
    more."""

    entries: KeyEntries = field(default_factory=dict)
    together: KeysState = field(default_factory=KeysState)
    gone: Collection[str | None] = ()

    @property
    def size(self) -> int:
        """How many keys it speaks of, about."""
        return max(len(self.entries), len(self.together.keys) + len(self.gone))

    @property
    def due(self) -> int:
        """The watermark at which something of it is due; ``FOREVER`` for never."""
        entries = (entry[0] for entry in self.entries.values() if entry is not None)
        return min([self.together.deadline, *entries])


def merged(base: Part, changes: Part) -> Part:
    """All that a slot holds."""
    entries = {**base.entries, **changes.entries}
    replaced = {*changes.together.keys, *changes.gone}
    left = chosen(base.together, ~_found(base.together.keys, replaced))
    return Part(
        {key: entry for key, entry in entries.items() if entry is not None},
        joined([left, changes.together]),
    )


class Slot:
    """One slot while a batch is at work on it.

    ``base`` stays as it is stored; ``entries`` and ``together`` stand beside it and replace it, key
    by key. Where the slot is to be written ``anew``, all of it stands beside.
    """

    def __init__(self, number: int, base: Part, changes: Part, *, anew: bool) -> None:
        if anew:
            base, changes = Part(), merged(base, changes)
        self.number = number
        #: Whether it has to be written.
        self.changed = anew
        self.base = base
        self.entries = changes.entries
        self.together = changes.together
        #: Keys of the kernel's that the base does not speak for any more.
        self._replaced = {*changes.together.keys, *changes.gone}

    # The interpreter's keys.

    def entry(self, key: str | None) -> KeyEntry:
        """What is remembered of a key."""
        return self.entries[key] if key in self.entries else self.base.entries.get(key)

    def due_entries(self, watermark: int) -> list[str | None]:
        """Keys of which something is due."""
        standing = chain(self.entries.items(), self._left_of_base())
        return [key for key, entry in standing if entry is not None and entry[0] <= watermark]

    def _left_of_base(self) -> Iterator[tuple[str | None, KeyEntry]]:
        return (item for item in self.base.entries.items() if item[0] not in self.entries)

    def put(self, key: str | None, entry: KeyEntry) -> None:
        """Remember this of a key."""
        if entry is None and self.entry(key) is None:
            return
        self.changed = True
        if entry is not None or key in self.base.entries:
            self.entries[key] = entry
        else:
            del self.entries[key]

    # The kernel's keys.

    def take(self, keys: Collection[str | None], watermark: int) -> KeysState:
        """What is remembered of ``keys`` and of those of which something is due. The caller gives
        back what became of it (:meth:`give`)."""
        wanted = {
            *keys,
            *_due_keys(self.together, watermark),
            *_due_keys(self.base.together, watermark).difference(self._replaced),
        }
        mine = _found(self.together.keys, wanted)
        taken, self.together = chosen(self.together, mine), chosen(self.together, ~mine)
        theirs = _found(self.base.together.keys, wanted - self._replaced)
        from_base = chosen(self.base.together, theirs)
        self._replaced.update(from_base.keys)
        self.changed |= bool(taken.keys or from_base.keys)
        return joined([taken, from_base])

    def give(self, state: KeysState) -> None:
        """What became of what was taken, and of keys that are new."""
        self.changed |= bool(state.keys)
        self.together = joined([self.together, state])

    # What is to be written.

    def written(self) -> tuple[Part, bool]:
        """All of it and True, where it is time to write it anew; else what stands beside the base
        and False."""
        gone = self._replaced.difference(self.together.keys)
        beside = Part(self.entries, self.together, sorted(gone, key=lambda key: key or ""))
        spread = self.number * _GOLDEN_RATIO % 1
        share = _LEAST_SHARE + (_MOST_SHARE - _LEAST_SHARE) * spread
        if beside.size < self.base.size * share:
            return beside, False
        return merged(self.base, beside), True

    @property
    def base_due(self) -> int:
        """The watermark at which something is due of what is left of the base."""
        state = self.base.together
        left = ~_found(state.keys, self._replaced)
        deadlines = state.held.due[left[state.held.units["key"]]]
        entries = (entry[0] for _, entry in self._left_of_base() if entry is not None)
        return min([int(deadlines.min(initial=FOREVER)), *entries])


def _found(keys: Sequence[str | None], among: Collection[str | None]) -> Any:
    """For each key whether it is among the others."""
    return np.array([key in among for key in keys], bool)


def _due_keys(state: KeysState, watermark: int) -> set[str | None]:
    numbers = np.unique(state.held.units["key"][state.held.due <= watermark])
    return {state.keys[number] for number in numbers.tolist()}
