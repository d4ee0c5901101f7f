"""From the kernel's state to the interpreter's and back: a rule may change its engine.

That happens when a schema gives a column another type, or a release teaches the kernel more. The
rule's meaning is the same, so its partial matches and the events that wait go along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from service.matcher.columnar import kernel
from service.matcher.columnar.events import EventTable, Names
from service.matcher.columnar.keys import Arrivals, KeysMatcher, KeysState
from service.matcher.columnar.matcher import NODE, UNIT, Held
from service.matcher.keyed import KeyState
from service.matcher.partial import Finished, Partial, RuleState, Taken, order
from service.model import Event


def key_states(state: KeysState, names: Names) -> dict[str | None, KeyState]:
    """What is remembered, key by key, as the interpreter has it."""
    states: dict[str | None, KeyState] = {key: KeyState() for key in state.keys}
    waiting = Arrivals(
        state.keys, state.masks, state.waiting_key, state.waiting_mask, state.waiting
    )
    for key, events in waiting.by_key(names).items():
        states[key].waiting = sorted(events, key=order)
    for name, number, rule_state in KeysMatcher.rule_states(state, names):
        states[name].rules[number] = rule_state
    return states


def keys_state(states: Mapping[str | None, KeyState], names: Names) -> KeysState:
    """What is remembered, as the kernel has it."""
    keys = list(states)
    waiting = [(key, event) for key, each in enumerate(states.values()) for event in each.waiting]
    masks: dict[int, int] = {}
    waiting_mask = [masks.setdefault(event.bits, len(masks)) for _, event in waiting]
    builder = _Builder()
    for key, each in enumerate(states.values()):
        builder.add(key, each)
    return KeysState(
        keys=keys,
        masks=list(masks),
        waiting=EventTable.of([event for _, event in waiting], names),
        waiting_key=np.array([key for key, _ in waiting], np.int64),
        waiting_mask=np.array(waiting_mask, np.int64),
        events=EventTable.of(builder.events, names),
        event_key=np.array(builder.event_keys, np.int64),
        held=builder.held(),
    )


class _Builder:
    """Numbers events and nodes, and writes rows."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.event_keys: list[int] = []
        self._units: list[tuple[int, ...]] = []
        self._partials: list[tuple[int, ...]] = []
        self._finished: list[tuple[int, ...]] = []
        self._nodes: list[tuple[int, int, int]] = []

    def add(self, key: int, state: KeyState) -> None:
        """One key's rules. Its events are numbered in the order of their application."""
        lasts = [one.last for rule in state.rules.values() for one in _standing(rule)]
        taken = {id(each): each for last in lasts for each in last.chain()}
        events = sorted({id(t.event): t.event for t in taken.values()}.values(), key=order)
        numbers = {id(event): len(self.events) + place for place, event in enumerate(events)}
        self.events += events
        self.event_keys += [key] * len(events)
        rows: dict[int, int] = {}

        def row(last: Taken) -> int:
            chain = [each for each in last.chain() if id(each) not in rows]
            for each in reversed(chain):
                previous = kernel.NONE if each.previous is None else rows[id(each.previous)]
                rows[id(each)] = len(self._nodes)
                self._nodes.append((previous, each.step, numbers[id(each.event)]))
            return rows[id(last)]

        for rule, each in sorted(state.rules.items()):
            self._partials += [
                (p.deadline, p.state, numbers[id(p.first)], row(p.last), 0, p.matched)
                for p in each.partials
            ]
            self._finished += [(f.time, numbers[id(f.first)], row(f.last)) for f in each.finished]
            quiet = kernel.NEVER if each.quiet_until is None else each.quiet_until
            self._units.append(
                (key, each.deadline, quiet, each.events_at_most, rule, len(each.partials),
                 len(each.finished), each.paused, each.limited)
            )  # fmt: skip

    def held(self) -> Held:
        """What has been added."""
        return Held(
            np.array(self._units, UNIT),
            np.array(self._partials, kernel.PARTIAL),
            np.array(self._finished, kernel.FINISHED),
            np.array(self._nodes, NODE),
        )


def _standing(rule: RuleState) -> Iterable[Partial | Finished]:
    return (*rule.partials, *rule.finished)
