"""A key group's state as it is stored, read without its rules: what is held, and until when.

The state names its rules itself (id, version, fingerprint), so neither plans nor schemas are
needed, and what a rule that is gone has left is told apart from what lives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from service.matcher.columnar.conversion import key_states
from service.matcher.columnar.events import Names
from service.matcher.columnar.keys import KeysState
from service.matcher.columnar.snapshot import decode
from service.matcher.keyed import KeyState
from service.matcher.partial import FOREVER, Partial
from service.matcher.snapshot import SnapshotCodec
from service.packing import unpack, unsealed
from service.pipeline.key_group import check_format
from service.pipeline.slot_storage import parts_of
from service.pipeline.slots import merged


class KnownRule(NamedTuple):
    """A rule that the state knows."""

    id: str
    version: int
    fingerprint: str
    since: int


@dataclass(slots=True)
class RuleHeld:
    """What is held for one rule: how many keys and partial matches, the time of the oldest event
    that opened one, and the earliest deadline (milliseconds; ``None``: there is none)."""

    keys: int = 0
    partial_matches: int = 0
    oldest: int | None = None
    due: int | None = None

    def add(self, other: RuleHeld) -> None:
        """Take in what is held elsewhere, for other keys."""
        self.keys += other.keys
        self.partial_matches += other.partial_matches
        self.oldest = earlier(self.oldest, other.oldest)
        self.due = earlier(self.due, other.due)

    def packed(self) -> list[Any]:
        """Plain values."""
        return [self.keys, self.partial_matches, self.oldest, self.due]


@dataclass(slots=True)
class SlotHeld:
    """What one slot holds: keys, events that wait for the watermark, and by rule fingerprint."""

    keys: int = 0
    waiting: int = 0
    rules: dict[str, RuleHeld] = field(default_factory=dict)


class StoredGroup:
    """The value ``group`` of a key group. StateError when it is damaged or of another format."""

    def __init__(self, stored: bytes) -> None:
        self._values = unpack(unsealed(stored))
        check_format(self._values)
        self._names = Names(self._values["topics"], self._values["types"])
        self.rules = tuple(
            KnownRule(id_, version, fingerprint, since)
            for fingerprint, (id_, version, since, *_) in self._values["rules"].items()
        )

    @property
    def layout(self) -> dict[str, int]:
        """Format and number of key groups."""
        return {name: self._values[name] for name in ("format", "key_groups")}

    @property
    def slots(self) -> int:
        """How many slots the group's keys are spread over, all partitionings together."""
        return sum(self._values["slots"].values())

    @property
    def watermark(self) -> int:
        """The watermark, in milliseconds."""
        return int(self._values["clock"][0])

    @property
    def clock(self) -> list[tuple[str, int, int | None]]:
        """Topic, partition and largest event time of each partition read."""
        return [(topic, partition, time) for topic, partition, time in self._values["clock"][1]]

    @property
    def next_due(self) -> int | None:
        """When something is next due, in milliseconds of event time."""
        due = min((due for due, _ in self._values["entries"].values()), default=FOREVER)
        return None if due == FOREVER else due

    def slot(self, base: bytes, changes: bytes | None = None) -> SlotHeld:
        """What a slot of this group holds; or an entry of events that wait."""
        together, entries, fingerprints = self._slot(base, changes)
        held = SlotHeld(waiting=len(together.waiting))
        _add_units(held, together, fingerprints)
        waiting = 0
        for _, state in entries:
            waiting += len(state.waiting)
            for number, rule in state.rules.items():
                partials = rule.partials
                mine = held.rules.setdefault(fingerprints[number], RuleHeld())
                oldest = min((partial.first.time for partial in partials), default=None)
                mine.add(RuleHeld(1, len(partials), oldest, _known(rule.deadline)))
        # Where both engines have rules, events wait with both.
        held.waiting = max(held.waiting, waiting)
        held.keys = len(set(together.keys).union(key for key, _ in entries))
        return held

    def of_key(
        self, base: bytes, changes: bytes | None, key: str | None
    ) -> Iterator[tuple[KnownRule, Partial]]:
        """The partial matches that a slot holds of one key, with their rules."""
        together, entries, fingerprints = self._slot(base, changes)
        known = {rule.fingerprint: rule for rule in self.rules}
        states = [state for name, state in entries if name == key]
        if key in together.keys:
            states.append(key_states(together, self._names)[key])
        for state in states:
            for number, rule in state.rules.items():
                for partial in rule.partials:
                    yield known[fingerprints[number]], partial

    def _slot(
        self, base: bytes, changes: bytes | None
    ) -> tuple[KeysState, list[tuple[str | None, KeyState]], list[str]]:
        """State of the kernel, states of the interpreter by key, fingerprints by rule number."""
        stored = [unpack(unsealed(data)) for data in (base, changes) if data is not None]
        _, *values = stored[0]
        if len(values) == 1:  # events that wait for the watermark
            return decode(values[0], ()), [], []
        epoch = values[0]
        fingerprints = [rule.fingerprint for rule in self.rules if rule.since <= epoch]
        whole = merged(*parts_of(stored, fingerprints))
        codec = SnapshotCodec(fingerprints, self._names.topics)
        states = [(key, codec.decode(entry[1])) for key, entry in whole.entries.items() if entry]
        return whole.together, states, fingerprints


def _add_units(held: SlotHeld, state: KeysState, fingerprints: list[str]) -> None:
    units, partials = state.held.units, state.held.partials
    rule_of_partial = np.repeat(units["rule"], units["partials"])
    times = state.events.time[partials["first"]]
    for number in np.unique(units["rule"]).tolist():
        mine, of_rule = units["rule"] == number, rule_of_partial == number
        held.rules[fingerprints[number]] = RuleHeld(
            int(mine.sum()),
            int(of_rule.sum()),
            int(times[of_rule].min()) if of_rule.any() else None,
            _known(int(units["deadline"][mine].min())),
        )


def _known(deadline: int) -> int | None:
    return None if deadline == FOREVER else deadline


def earlier(one: int | None, other: int | None) -> int | None:
    """The earlier of two times, of which either may be absent."""
    return min((time for time in (one, other) if time is not None), default=None)
