"""The entries of a key group's map: their names, and what is known of each without reading it.

A name begins with the partitioning's prefix: ``p/3`` is the base of slot 3, ``p/3+`` its changes,
``p/w5`` holds events ahead of the watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count as numbers_from
from typing import Any

import numpy as np

from service.errors import RESTORE, StateError
from service.matcher.columnar.snapshot import parted
from service.pipeline.slots import KeyEntries, Part, hashes_of, slots_of

#: The values of many entries at once.
Load = Callable[[Sequence[str]], Sequence[bytes | None]]
Store = Callable[[str, bytes | None], None]

#: What the names of changes end with.
CHANGES = "+"
_WAITING = "w"


def base_name(prefix: str, slot: int) -> str:
    """The entry of a slot's base."""
    return f"{prefix}/{slot}"


def slot_of(name: str) -> int | None:
    """The slot that an entry is of; ``None`` for events that wait."""
    rest = name.partition("/")[2]
    return None if rest.startswith(_WAITING) else int(rest.removesuffix(CHANGES))


class Entries:
    """Which entries there are: when something of each is next due, and its bytes; how many slots
    each partitioning has; which entries were written under another rule set, and under which.

    ``fingerprints``: what bits and columns mean under this rule set, by prefix.
    """

    def __init__(self, group: int, fingerprints: Mapping[str, bytes]) -> None:
        self._group = group
        self._fingerprints = fingerprints
        self._due: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._slots: dict[str, int] = {}
        #: By name, the fingerprint of the rule set.
        self._stale: dict[str, bytes] = {}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take over what :meth:`packed` gave under the rule set before."""
        self._slots = stored["slots"]
        self._stale = stored["stale"]
        for name, (due, size) in stored["entries"].items():
            self._due[name], self._sizes[name] = due, size
            prefix = name.partition("/")[0]
            was = stored["fingerprints"][prefix]
            if name not in self._stale and was != self._fingerprints.get(prefix):
                self._stale[name] = was

    def packed(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "entries": {name: [due, self._sizes[name]] for name, due in self._due.items()},
            "slots": self._slots,
            "fingerprints": dict(self._fingerprints),
            "stale": self._stale,
        }

    def meanings_needed(self) -> set[bytes]:
        """Fingerprints of this rule set, and of those that entries were written under."""
        return {*self._stale.values(), *self._fingerprints.values()}

    def __contains__(self, name: str) -> bool:
        return name in self._due

    def due(self, prefix: str, watermark: int) -> list[str]:
        """The entries of a partitioning of which something is due."""
        return [
            name
            for name, due in self._due.items()
            if due <= watermark and name.partition("/")[0] == prefix
        ]

    def loaded(self, names: Sequence[str], load: Load) -> Sequence[bytes]:
        """The values of entries that there are. StateError when one is lost."""
        found = []
        for name, data in zip(names, load(names), strict=True):
            if data is None:
                raise StateError(
                    f"the state lacks entry {name} of key group {self._group}, which it knows of:"
                    f" it is damaged; {RESTORE}"
                )
            found.append(data)
        return found

    def keep(self, name: str, data: bytes, due: int, store: Store) -> None:
        """Write an entry."""
        store(name, data)
        self._due[name], self._sizes[name] = due, len(data)
        self._stale.pop(name, None)

    def next_due(self, name: str, due: int) -> None:
        """Of an entry that stays as it is, something is next due then."""
        self._due[name] = due

    def remove(self, name: str, store: Store) -> None:
        """Remove an entry, if there is one."""
        if name in self._due:
            store(name, None)
            del self._due[name], self._sizes[name]
            self._stale.pop(name, None)

    def remove_others(self, store: Store) -> None:
        """Remove what partitionings have left that this rule set does not have."""
        for name in [n for n in self._due if n.partition("/")[0] not in self._fingerprints]:
            self.remove(name, store)
        for prefix in self._slots.keys() - self._fingerprints.keys():
            del self._slots[prefix]

    def free_for_waiting(self, prefix: str) -> Iterator[str]:
        """Names of entries to come, for events that wait."""
        names = (f"{prefix}/{_WAITING}{number}" for number in numbers_from(0))
        return (name for name in names if name not in self._due)

    # Slots.

    def spread(self, prefix: str, slot_size: int) -> Spread:
        """How keys are spread over slots, and over how many from now on, so that a slot has
        ``slot_size`` bytes."""
        before = self._slots.get(prefix, 1)
        size = sum(
            size
            for name, size in self._sizes.items()
            if name.partition("/")[0] == prefix and slot_of(name) is not None
        )
        after = self._slots[prefix] = max(before, size // slot_size)
        return Spread(prefix, before, after)

    def portions(self, spread: Spread, slots: Iterable[int], most: int) -> Iterator[list[int]]:
        """Slots in portions of about ``most`` bytes."""
        portion: list[int] = []
        total = 0
        for slot in slots:
            total += sum(self._sizes.get(name, 0) for name in spread.names(slot))
            portion.append(slot)
            if total >= most:
                yield portion
                portion, total = [], 0
        if portion:
            yield portion


class Spread:
    """The slots of a partitioning: ``before`` of them until now, ``after`` from now on."""

    def __init__(self, prefix: str, before: int, after: int) -> None:
        self.prefix = prefix
        self.before = before
        self.after = after
        #: Of slots that are split: where their keys go.
        self.split: dict[int, list[int]] = {}
        if after > before:
            parents = slots_of(np.arange(before, after), before)
            for slot, parent in enumerate(parents.tolist(), before):
                self.split.setdefault(parent, [parent]).append(slot)

    def names(self, slot: int) -> tuple[str, str]:
        """The entries of a slot: its base, and what has changed since that was written."""
        base = base_name(self.prefix, slot)
        return base, base + CHANGES

    def divided(self, slot: int, part: Part) -> list[tuple[int, Part]]:
        """All that a slot holds, by the slots that hold it from now on."""
        if slot not in self.split:
            return [(slot, part)]
        targets = self.split[slot]
        place = {target: number for number, target in enumerate(targets)}

        def places(keys: Iterable[str | None]) -> list[int]:
            return [place[home] for home in slots_of(hashes_of(keys), self.after).tolist()]

        entries: list[KeyEntries] = [{} for _ in targets]
        for home, (key, entry) in zip(places(part.entries), part.entries.items(), strict=True):
            entries[home][key] = entry
        homes = np.array(places(part.together.keys), np.int64)
        states = parted(part.together, homes, len(targets))
        return list(zip(targets, map(Part, entries, states), strict=True))
