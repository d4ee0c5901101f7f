"""The two engines behind one face: the interpreter, which runs every rule, and the kernel.

:mod:`service.matcher.machine` is the reference: it says what a rule means. The kernel in
:mod:`service.matcher.columnar` gives the same answers faster for the rules that it can run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from service.compiler.plan import Plan
from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning, PlannedRule
from service.matcher.columnar.events import EventTable, Names
from service.matcher.columnar.keys import Arrivals, KeysMatcher, KeysState
from service.matcher.columnar.snapshot import decode, encode
from service.matcher.columnar.tables import can_run
from service.matcher.keyed import KeyedMatcher, KeyState
from service.matcher.outputs import Outputs
from service.matcher.partial import RuleState
from service.matcher.snapshot import SnapshotCodec
from service.model import Event


class Engine(Enum):
    """Who runs the rules."""

    REFERENCE = "reference"
    FASTEST = "fastest"


@dataclass(slots=True)
class PartitioningState:
    """What is remembered of all keys: by key for the interpreter's rules, together for the
    kernel's."""

    by_key: dict[str | None, KeyState] = field(default_factory=dict)
    together: KeysState = field(default_factory=KeysState)
    names: Names = field(default_factory=Names)


class PartitioningMatcher:
    """All rules of one partitioning, each with the engine that suits it. Holds no state.

    With ``columns``, matches and timeouts stay columns where they can."""

    def __init__(
        self,
        partitioning: Partitioning,
        types: RecordTypes,
        engine: Engine = Engine.FASTEST,
        *,
        columns: bool = False,
    ) -> None:
        fast: list[PlannedRule] = []
        slow: list[PlannedRule] = []
        for rule in partitioning.rules:
            compiled = engine is Engine.FASTEST and can_run(rule.plan, partitioning.slots, types)
            (fast if compiled else slow).append(rule)
        self.interpreter = self.kernel = None
        if slow:
            self.interpreter = KeyedMatcher(replace(partitioning, rules=tuple(slow)), types)
        if fast:
            self.kernel = KeysMatcher(replace(partitioning, rules=tuple(fast)), types, columns)

    def advance(
        self,
        state: PartitioningState,
        events: Mapping[str | None, Sequence[Event]],
        watermark: int,
        outputs: Outputs,
    ) -> None:
        """Add ``events`` (in any order, none of them late) and move all keys to ``watermark``."""
        if self.interpreter is not None:
            for key in {**dict.fromkeys(state.by_key), **dict.fromkeys(events)}:
                mine = state.by_key.pop(key, None) or KeyState()
                self.interpreter.advance(key, mine, events.get(key, ()), watermark, outputs)
                if not mine.idle:
                    state.by_key[key] = mine
        if self.kernel is not None:
            arrivals = arrivals_of(events, state.names)
            for found in self.kernel.advance(state.together, arrivals, watermark, state.names):
                outputs.add(found)

    def rule_states(self, state: PartitioningState) -> Iterator[tuple[str | None, Plan, RuleState]]:
        """What is remembered: key, rule, and the rule's state for the key."""
        if self.interpreter is not None:
            rules = self.interpreter.partitioning.rules
            for key, mine in state.by_key.items():
                for number, rule_state in mine.rules.items():
                    yield key, rules[number].plan, rule_state
        if self.kernel is not None:
            rules = self.kernel.partitioning.rules
            for key, number, rule_state in self.kernel.rule_states(state.together, state.names):
                yield key, rules[number].plan, rule_state

    def reload(self, state: PartitioningState) -> None:
        """Write the state to bytes and read it back, as a restart does."""
        if self.interpreter is not None:
            fingerprints = fingerprints_of(self.interpreter.partitioning)
            for key, mine in list(state.by_key.items()):
                data = SnapshotCodec(fingerprints, state.names.topics).encode(mine)
                state.by_key[key] = SnapshotCodec(fingerprints, state.names.topics).decode(data)
        if self.kernel is not None:
            fingerprints = fingerprints_of(self.kernel.partitioning)
            state.together = decode(encode(state.together, fingerprints), fingerprints)


def fingerprints_of(partitioning: Partitioning) -> list[str]:
    """What names the rules in stored state, by number."""
    return [rule.plan.fingerprint for rule in partitioning.rules]


def arrivals_of(events: Mapping[str | None, Sequence[Event]], names: Names) -> Arrivals:
    """Events by key as columns."""
    masks: dict[int, int] = {}
    every = [event for mine in events.values() for event in mine]
    mask = [masks.setdefault(event.bits, len(masks)) for event in every]
    counts = [len(mine) for mine in events.values()]
    return Arrivals(
        list(events),
        list(masks),
        np.repeat(np.arange(len(counts)), counts),
        np.array(mask, np.int64),
        EventTable.of(every, names),
    )
