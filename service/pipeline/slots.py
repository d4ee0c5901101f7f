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
from itertools import chain, compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.matcher.columnar.kernel import I64
from service.matcher.columnar.keys import KeysState
from service.matcher.columnar.snapshot import chosen, joined, parted
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
    """One slot while a batch is at work on it, as far as the interpreter's keys go.

    ``base`` stays as it is stored; ``entries`` stand beside it and replace it, key by key. Where
    the slot is to be written ``anew``, all of it stands beside.
    """

    def __init__(self, number: int, base: Part, changes: Part, *, anew: bool) -> None:
        if anew:
            base, changes = Part(), merged(base, changes)
        self.number = number
        #: Whether it has to be written.
        self.changed = anew
        self.base = base
        self.changes = changes
        self.entries = changes.entries

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

    def written(self, beside: Beside) -> tuple[Part, bool]:
        """All of it and True, where it is time to write it anew; else what stands beside the base
        and False."""
        part = Part(self.entries, beside.together, beside.gone)
        spread = self.number * _GOLDEN_RATIO % 1
        share = _LEAST_SHARE + (_MOST_SHARE - _LEAST_SHARE) * spread
        if part.size < self.base.size * share:
            return part, False
        return merged(self.base, part), True

    def base_due(self, beside: Beside) -> int:
        """The watermark at which something is due of what is left of the base."""
        entries = (entry[0] for _, entry in self._left_of_base() if entry is not None)
        return min([beside.base_due, *entries])


class Beside(NamedTuple):
    """What the kernel remembers beside the base of a slot: keys that replace it, keys of the base
    that are ``gone``, and when something is due of those that are left."""

    together: KeysState
    gone: Collection[str | None]
    base_due: int


class KernelKeys:
    """The kernel's keys of some slots while a batch is at work on them. What stands beside the
    bases is one state for all slots: numpy costs by the call."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots
        changes = [slot.changes.together for slot in slots]
        self._beside = joined(changes)
        self._home = np.repeat(np.arange(len(slots)), [len(state.keys) for state in changes])
        gone = chain.from_iterable(slot.changes.gone for slot in slots)
        replaced = {*self._beside.keys, *gone}
        self._bases = [slot.base.together for slot in slots]
        #: Of each key of each base, whether the base still speaks for it.
        self._left = [~_found(base.keys, replaced) for base in self._bases]

    def take(self, keys: Sequence[Collection[str | None]], watermark: int) -> KeysState:
        """What is remembered of each slot's ``keys``, and of those of which something is due. The
        caller gives back what became of it (:meth:`give`)."""
        mine = _due(self._beside, watermark)
        mine |= _found(self._beside.keys, set().union(*keys))
        taken = [chosen(self._beside, mine)]
        self._have_changed(self._home[mine])
        self._beside, self._home = chosen(self._beside, ~mine), self._home[~mine]
        for slot, base, left, wanted in zip(
            self._slots, self._bases, self._left, keys, strict=True
        ):
            theirs = left & (_due(base, watermark) | _found(base.keys, wanted))
            if theirs.any():
                slot.changed = True
                left &= ~theirs  # noqa: PLW2901  in place
                taken.append(chosen(base, theirs))
        return joined(taken)

    def give(self, state: KeysState, homes: I64) -> None:
        """What became of what was taken, and of keys that are new; ``homes`` are the places of
        their slots."""
        self._have_changed(homes)
        self._beside = joined([self._beside, state])
        self._home = np.concatenate([self._home, homes])

    def _have_changed(self, places: I64) -> None:
        for place in np.unique(places).tolist():
            self._slots[place].changed = True

    def beside(self) -> Iterator[Beside]:
        """What stands beside the base of each slot in the end."""
        states = parted(self._beside, self._home, len(self._slots))
        for base, left, state in zip(self._bases, self._left, states, strict=True):
            replaced = compress(base.keys, (~left).tolist())
            due = base.held.due[left[base.held.units["key"]]]
            gone = set(replaced).difference(state.keys)
            yield Beside(
                state, sorted(gone, key=lambda key: key or ""), int(due.min(initial=FOREVER))
            )


def _found(keys: Sequence[str | None], among: Collection[str | None]) -> NDArray[np.bool_]:
    """For each key whether it is among the others."""
    return np.fromiter(map(among.__contains__, keys), bool, len(keys))


def _due(state: KeysState, watermark: int) -> NDArray[np.bool_]:
    """For each key whether something of it is due."""
    found = np.zeros(len(state.keys), bool)
    found[state.held.units["key"][state.held.due <= watermark]] = True
    return found
