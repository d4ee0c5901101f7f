"""The rules that a key group's state knows, and what its bits and columns meant under which rules.

An *epoch* is a rule set. A rule knows the epoch in which it came: what an entry of an earlier epoch
holds for it was left by a rule of the same meaning that went in between, and is not taken up. It
also knows since when its engine runs it: from an entry of before, its state moves to that engine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from service.compiler.rule_set import Partitioning, RuleSetPlan
from service.errors import RESTORE, StateError
from service.matcher.columnar.keys import KeysState
from service.matcher.engines import PartitioningMatcher, fingerprints_of
from service.matcher.keyed import KeyState
from service.model import Event

_Columns = Sequence[Any]


@dataclass(slots=True)
class Meaning:
    """What the bits and columns of stored events mean, by name."""

    conditions: list[str]
    slots: list[str]


@dataclass(slots=True)
class KnownRule:
    """A rule that the state knows: identity, the epoch in which it came, live partial matches,
    whether the kernel runs it, and since which epoch its engine does."""

    id: str
    version: int
    since: int
    live: int
    compiled: bool
    engine_since: int


class RuleEpochs:
    """The rules of a plan, as the state of one key group knows them."""

    def __init__(self, plan: RuleSetPlan, matchers: Sequence[PartitioningMatcher]) -> None:
        #: The rule set, by number.
        self.epoch = 0
        #: Id, version and partial matches of rules that went, or changed, since the last batch.
        self.gone: list[tuple[str, int, int]] = []
        compiled = {
            text
            for matcher in matchers
            if matcher.kernel is not None
            for text in fingerprints_of(matcher.kernel.partitioning)
        }
        self._rules = {
            p.fingerprint: KnownRule(p.rule.id, p.rule.version, 0, 0, p.fingerprint in compiled, 0)
            for p in plan.plans
        }
        self._meanings: dict[bytes, Meaning] = {
            part.fingerprint: Meaning(
                [c.name for c in part.conditions], [s.name for s in part.slots]
            )
            for part in plan.partitionings
        }

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take over what :meth:`packed` gave under the rule set before."""
        for fingerprint, (conditions, slots) in stored["meanings"].items():
            self._meanings.setdefault(fingerprint, Meaning(conditions, slots))
        known = {text: KnownRule(*values) for text, values in stored["rules"].items()}
        engines = {text: rule.compiled for text, rule in self._rules.items()}
        self.epoch = stored["epoch"]
        if engines != {text: rule.compiled for text, rule in known.items()}:
            self.epoch += 1
        for text, rule in self._rules.items():
            rule.since = rule.engine_since = self.epoch
            if text in known:
                before = known[text]
                rule.since, rule.live = before.since, before.live
                if rule.compiled == before.compiled:
                    rule.engine_since = before.engine_since
        self.gone = [
            (rule.id, rule.version, rule.live)
            for text, rule in known.items()
            if text not in self._rules
        ]

    def packed(self, meanings: Collection[bytes]) -> dict[str, Any]:
        """Plain values. ``meanings``: fingerprints of those that are still needed."""
        return {
            "epoch": self.epoch,
            "rules": {text: list(astuple(rule)) for text, rule in self._rules.items()},
            "meanings": {
                fingerprint: [meaning.conditions, meaning.slots]
                for fingerprint, meaning in self._meanings.items()
                if fingerprint in meanings
            },
        }

    def live(self) -> dict[str, int]:
        """How many partial matches live, by rule id."""
        return {rule.id: rule.live for rule in self._rules.values()}

    def count(self, fingerprints: Sequence[str], state: KeyState, sign: int) -> None:
        """Partial matches of a key come (``sign`` 1) or go (-1)."""
        for number, rule_state in state.rules.items():
            self._rules[fingerprints[number]].live += sign * len(rule_state.partials)

    def count_together(self, fingerprints: Sequence[str], state: KeysState, sign: int) -> None:
        """The same of many keys."""
        units = state.held.units
        live = np.bincount(units["rule"], units["partials"], len(fingerprints))
        for fingerprint, count in zip(fingerprints, live.tolist(), strict=True):
            self._rules[fingerprint].live += sign * int(count)

    def known_in(self, epoch: int, fingerprints: Sequence[str]) -> list[str]:
        """The fingerprints, but for rules that came later: they find nothing stored."""
        return [text if self._rules[text].since <= epoch else "" for text in fingerprints]

    def moved(self, epoch: int, fingerprints: Iterable[str]) -> bool:
        """Whether another engine runs one of these rules than did in ``epoch``."""
        rules = (self._rules[text] for text in fingerprints)
        return any(rule.since <= epoch < rule.engine_since for rule in rules)

    def translation(self, fingerprint: bytes, partitioning: Partitioning) -> Translation:
        """From what bits and columns meant under another rule set. StateError when the state does
        not say it."""
        old = self._meanings.get(fingerprint)
        if old is None:
            raise StateError(
                "the state holds events of a rule set that the checkpoint does not describe:"
                f" it is damaged; {RESTORE}"
            )
        return Translation(old, partitioning)


class Translation:
    """Rewrites events that were stored under another rule set: by name, what is new is NULL or not
    true."""

    def __init__(self, old: Meaning, partitioning: Partitioning) -> None:
        self._bits = {
            old.conditions.index(condition.name): number
            for number, condition in enumerate(partitioning.conditions)
            if condition.name in old.conditions
        }
        self._columns = [
            old.slots.index(slot.name) if slot.name in old.slots else None
            for slot in partitioning.slots
        ]

    def event(self, event: Event) -> Event:
        """The event with its bits and columns as they are now."""
        return event._replace(bits=self._mask(event.bits), columns=self._row(event.columns))

    def keys_state(self, state: KeysState) -> None:
        """All events of the state, in place."""
        state.masks = [self._mask(mask) for mask in state.masks]
        for events in (state.waiting, state.events):
            rows: Iterable[_Columns] = events.columns or [()] * len(events)
            events.columns = [self._row(row) for row in rows] if self._columns else None

    def _mask(self, mask: int) -> int:
        return sum(1 << new for was, new in self._bits.items() if mask >> was & 1)

    def _row(self, row: _Columns) -> _Columns:
        return [None if was is None or not row else row[was] for was in self._columns]
