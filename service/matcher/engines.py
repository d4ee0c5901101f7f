"""The two engines behind one face: the interpreter, which runs every rule, and the kernel.

:mod:`service.matcher.machine` is the reference: it says what a rule means. The kernel in
:mod:`service.matcher.columnar` gives the same answers faster for the rules that it can run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning
from service.matcher.columnar.keys import KeysMatcher, KeysState
from service.matcher.columnar.tables import can_run
from service.matcher.keyed import KeyedMatcher, KeyState
from service.matcher.look_back import LookBacks
from service.matcher.outputs import Outputs
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


class PartitioningMatcher:
    """All rules of one partitioning, each with the engine that suits it."""

    def __init__(
        self, partitioning: Partitioning, types: RecordTypes, engine: Engine = Engine.FASTEST
    ) -> None:
        fast = tuple(
            rule
            for rule in partitioning.rules
            if engine is Engine.FASTEST and can_run(rule.plan)
        )
        slow = tuple(rule for rule in partitioning.rules if rule not in fast)
        self.interpreter = KeyedMatcher(replace(partitioning, rules=slow), types) if slow else None
        self.kernel = None
        if fast:
            look_backs = [LookBacks(rule.plan, partitioning.slots, types) for rule in fast]
            self.kernel = KeysMatcher(replace(partitioning, rules=fast), look_backs)

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
            self.kernel.advance(state.together, events, watermark, outputs)

    def reload(self, state: PartitioningState) -> None:
        """Write the state to bytes and read it back, as a restart does."""
        if self.interpreter is not None:
            rules = self.interpreter.partitioning.rules
            fingerprints = [rule.plan.fingerprint for rule in rules]
            topics: list[str] = []
            for key, mine in list(state.by_key.items()):
                data = SnapshotCodec(fingerprints, topics).encode(mine)
                state.by_key[key] = SnapshotCodec(fingerprints, topics).decode(data)
