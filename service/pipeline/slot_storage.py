"""Slots of a partitioning read from the entries of the state, and written to them.

An entry of a slot is ``[fingerprint, epoch, entries, together, gone]``: what bits and columns mean,
the rule set that it was written under, one snapshot per key for the rules that the interpreter
runs, one of all keys for those that the kernel runs, and keys of which the kernel has nothing any
more though the slot's base has. What was written under another rule set is read in the terms of
this one, and the slot is then written anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.compiler.rule_set import Partitioning
from service.matcher.columnar.conversion import key_states, keys_state
from service.matcher.columnar.events import Names
from service.matcher.columnar.keys import KeysMatcher, KeysState
from service.matcher.columnar.snapshot import decode, encode
from service.matcher.engines import PartitioningMatcher, fingerprints_of
from service.matcher.keyed import KeyedMatcher, KeyState
from service.matcher.partial import RuleState
from service.matcher.snapshot import SnapshotCodec
from service.packing import pack, unpack
from service.pipeline.entries import Entries, Load, Spread, Store
from service.pipeline.rule_epochs import RuleEpochs
from service.pipeline.slots import Beside, KeyEntries, Part, Slot, merged


@dataclass(frozen=True)
class SlotStorage:
    """The slots of one partitioning in one key group, during one batch."""

    entries: Entries
    spread: Spread
    partitioning: Partitioning
    matcher: PartitioningMatcher
    rules: RuleEpochs
    names: Names

    def read(self, slots: Sequence[int], load: Load) -> list[Slot]:
        """These slots, as they are stored."""
        names = {
            slot: [name for name in self.spread.names(slot) if name in self.entries]
            for slot in slots
        }
        every = [name for of_slot in names.values() for name in of_slot]
        stored = dict(zip(every, self.entries.loaded(every, load), strict=True))
        return [
            self._slot(slot, [unpack(stored[name]) for name in of_slot])
            for slot, of_slot in names.items()
        ]

    def _slot(self, number: int, stored: Sequence[Any]) -> Slot:
        now = (self.partitioning.fingerprint, self.rules.epoch)
        if any((fingerprint, epoch) != now for fingerprint, epoch, *_ in stored):
            return Slot(number, self._renewed(stored), Part(), anew=True)
        base, changes = parts_of(stored, _of_engine(self.matcher.kernel))
        return Slot(number, base, changes, anew=number in self.spread.split)

    def _renewed(self, stored: Sequence[Any]) -> Part:
        """All of a slot that was written under another rule set."""
        fingerprint, epoch, *_ = stored[0]  # changes are always of the same
        matcher, rules = self.matcher, self.rules
        every = fingerprints_of(self.partitioning)
        moved = rules.moved(epoch, every)
        known = rules.known_in(epoch, every if moved else _of_engine(matcher.kernel))
        whole = merged(*parts_of(stored, known))
        translate = None
        if fingerprint != self.partitioning.fingerprint:
            translate = rules.translation(fingerprint, self.partitioning)
            translate.keys_state(whole.together)
        numbered = every if moved else _of_engine(matcher.interpreter)
        reader = SnapshotCodec(rules.known_in(epoch, numbered), self.names.topics)
        event = None if translate is None else translate.event
        states = {
            key: reader.decode(entry[1], event)
            for key, entry in whole.entries.items()
            if entry is not None
        }
        if moved:
            return self._moved(whole.together, states, every)
        writer = SnapshotCodec(numbered, self.names.topics)
        return Part(_key_entries(states, writer), whole.together)

    def _moved(
        self, together: KeysState, states: dict[str | None, KeyState], every: Sequence[str]
    ) -> Part:
        """Each rule's state, with the engine that runs it now."""
        for key, state in key_states(together, self.names).items():
            states.setdefault(key, KeyState()).rules |= state.rules

        def of(engine: KeyedMatcher | KeysMatcher | None) -> dict[str | None, KeyState]:
            numbers = _places(every, _of_engine(engine))
            mine = {key: _renumbered(state.rules, numbers) for key, state in states.items()}
            return {key: KeyState(rules=rules) for key, rules in mine.items() if rules}

        writer = SnapshotCodec(_of_engine(self.matcher.interpreter), self.names.topics)
        return Part(
            _key_entries(of(self.matcher.interpreter), writer),
            keys_state(of(self.matcher.kernel), self.names),
        )

    def write(self, slot: Slot, beside: Beside, store: Store) -> None:
        """Write what has changed of a slot."""
        if not slot.changed:
            return
        base, changes = self.spread.names(slot.number)
        written, anew = slot.written(beside)
        if not anew:
            self._keep(changes, written, store)
            self.entries.next_due(base, slot.base_due(beside))
            return
        self.entries.remove(changes, store)
        for target, part in self.spread.divided(slot.number, written):
            base, _ = self.spread.names(target)
            if part.size:
                self._keep(base, part, store)
            else:
                self.entries.remove(base, store)

    def _keep(self, name: str, part: Part, store: Store) -> None:
        data = b""
        if part.together.keys:
            data = encode(part.together, _of_engine(self.matcher.kernel))
        value = (self.partitioning.fingerprint, self.rules.epoch, part.entries, data, part.gone)
        self.entries.keep(name, pack(value), part.due, store)


def _of_engine(engine: KeyedMatcher | KeysMatcher | None) -> list[str]:
    """Fingerprints of the rules that it runs."""
    return [] if engine is None else fingerprints_of(engine.partitioning)


def parts_of(stored: Sequence[Any], fingerprints: Sequence[str]) -> tuple[Part, Part]:
    """Base and changes of a slot, of the entries that it has; ``fingerprints`` are of the kernel's
    rules, by number."""
    parts = [
        Part(entries, decode(together, fingerprints) if together else KeysState(), gone)
        for _, _, entries, together, gone in stored
    ]
    base, changes, *_ = [*parts, Part(), Part()]
    return base, changes


def _key_entries(states: Mapping[str | None, KeyState], writer: SnapshotCodec) -> KeyEntries:
    return {
        key: (state.deadline, writer.encode(state))
        for key, state in states.items()
        if not state.idle
    }


def _places(every: Sequence[str], some: Sequence[str]) -> dict[int, int]:
    """For the number of each of ``some`` among ``every``, its number among them."""
    return {every.index(text): number for number, text in enumerate(some)}


def _renumbered(rules: Mapping[int, RuleState], numbers: Mapping[int, int]) -> dict[int, RuleState]:
    return {numbers[number]: state for number, state in rules.items() if number in numbers}
