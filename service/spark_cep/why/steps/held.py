"""The state of a rule of steps and a key, by the events that partial matches have taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spark_cep.matcher.batch.events import Names, SlotType
from spark_cep.matcher.findings.partial import Finished, Partial, RuleState, Taken
from spark_cep.matcher.keys import KeysState, rule_states
from spark_cep.why.probes import Chain


@dataclass
class HeldByKey:
    """The state of the rule; partial matches and complete ones by chain."""

    state: RuleState
    partials: dict[Chain, list[Partial]] = field(default_factory=dict)
    finished: dict[Chain, Finished] = field(default_factory=dict)

    @classmethod
    def of(cls, state: KeysState, names: Names, slots: Sequence[SlotType]) -> HeldByKey:
        """The state of a key that has one rule."""
        found = next((rule for _, _, rule in rule_states(state, names, slots)), RuleState())
        held = cls(found)
        for partial in found.partials:
            held.partials.setdefault(_chain(partial.last), []).append(partial)
        for match in found.finished:
            held.finished[_chain(match.last)] = match
        return held

    @property
    def alive(self) -> set[Chain]:
        """The chains of partial matches, and of complete ones that are held back."""
        return {*self.partials, *self.finished}


def _chain(last: Taken) -> Chain:
    return frozenset((taken.step, taken.event.at) for taken in last.chain())
