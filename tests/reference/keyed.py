"""One key's events, for all rules of a partitioning: order, late events, deadlines.

``advance(state, events, watermark)`` is the whole machine: it puts the events into event-time
order, applies what the watermark has passed, decides deadlines up to the watermark, and keeps the
rest waiting. It calls nothing outside the core, and results do not depend on how events are cut
into calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import FOREVER, RuleState
from spark_cep.model import Event
from tests.reference.found import Found, idle, order
from tests.reference.machine import Machine
from tests.reference.reporting import StepReporter

_MOST_ENTRIES = 65_536


@dataclass(slots=True)
class KeyState:
    """What is remembered of one key: events ahead of the watermark, in order, and rule states by
    rule number."""

    waiting: list[Event] = field(default_factory=list)
    rules: dict[int, RuleState] = field(default_factory=dict)

    @property
    def deadline(self) -> int:
        """The watermark at which something is due for this key; ``FOREVER`` for never."""
        due = self.waiting[0].time if self.waiting else FOREVER
        for state in self.rules.values():
            due = min(due, state.deadline)
            if state.quiet_until is not None and not state.finished:
                due = min(due, state.quiet_until)
        return due

    @property
    def idle(self) -> bool:
        """Whether there is nothing to remember."""
        return not self.waiting and not self.rules


class KeyedMatcher:
    """The rules of steps of one partitioning, applied key by key. Holds tables, no state."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes | None = None) -> None:
        self.partitioning = partitioning
        self.machines = tuple(
            Machine(plan, partitioning.slots, types) for plan in partitioning.step_plans
        )
        self._reporters = tuple(StepReporter(m.plan, m.look_backs) for m in self.machines)
        self._touched: dict[int, tuple[tuple[int, int], ...]] = {}
        self._cooling = any(r.plan.rule.cooldown_ms is not None for r in partitioning.rules)

    def advance(
        self,
        key: str | None,
        state: KeyState,
        events: Sequence[Event],
        watermark: int,
        outputs: Outputs,
    ) -> None:
        """Add ``events`` (in any order, none of them late) and move the key to ``watermark``."""
        ready = self._ready(state, events, watermark)
        found = Found()
        applied: Counter[int] = Counter()
        tests: Counter[int] = Counter()
        for event in ready:
            for number, bits in self._rules_touched(event.bits):
                rule_state = state.rules.get(number)
                if rule_state is None:
                    rule_state = RuleState()
                    tested = self.machines[number].apply(rule_state, event, bits, found)
                    if not idle(rule_state):
                        state.rules[number] = rule_state
                else:
                    tested = self.machines[number].apply(rule_state, event, bits, found)
                if tested:
                    applied[number] += 1
                    tests[number] += tested
                if found.something:
                    found.report(self._reporters[number], key, outputs)
                    found = Found()
        for number, count in applied.items():
            counted = {"events": count, "tested": tests[number]}
            self._reporters[number].count(counted, outputs)
        for number in list(state.rules):
            rule_state = state.rules[number]
            if rule_state.deadline <= watermark or self._cooling:
                self.machines[number].advance(rule_state, watermark, found)
                found.report(self._reporters[number], key, outputs)
                found = Found()
            if idle(rule_state):
                del state.rules[number]

    @staticmethod
    def _ready(state: KeyState, events: Iterable[Event], watermark: int) -> list[Event]:
        waiting = state.waiting
        before = len(waiting)
        waiting.extend(events)
        if len(waiting) > 1 and len(waiting) > before:
            waiting.sort(key=order)
        cut = bisect_right(waiting, watermark, key=_time)
        state.waiting = waiting[cut:]
        return waiting[:cut]

    def _rules_touched(self, bits: int) -> tuple[tuple[int, int], ...]:
        """Rules that this event can concern, each with the bits of its own event atoms."""
        found = self._touched.get(bits)
        if found is None:
            if len(self._touched) >= _MOST_ENTRIES:
                self._touched.clear()
            found = self._touched[bits] = tuple(self.partitioning.touched(bits))
        return found


def _time(event: Event) -> int:
    return event.time
