"""Many keys' events and what is remembered of them, for the rules that the kernel runs.

The counterpart of :mod:`service.matcher.keyed` for many keys at once: order, late events and
deadlines are the same, and so are the answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np

from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning
from service.matcher.columnar import kernel
from service.matcher.columnar.events import EventTable, Names, together
from service.matcher.columnar.kernel import I64
from service.matcher.columnar.matcher import Chains, ColumnarMatcher, Findings, Held
from service.matcher.look_back import LookBacks
from service.matcher.machine import Expired, Failure, Found, limit_failure, skip_failure
from service.matcher.outputs import Outputs, Reporter
from service.matcher.partial import FOREVER, Finished, Partial, RuleState, Taken
from service.model import Event

#: Outputs are handed out when their matches and timeouts hold so many events.
_MOST_TAKEN_EVENTS = 50_000


def _no_numbers() -> I64:
    return np.zeros(0, np.int64)


@dataclass(slots=True)
class Arrivals:
    """Events with their keys and what is true of them: ``keys`` and ``masks`` (sets of true
    conditions) hold each once, ``key`` and ``mask`` are places in them."""

    keys: list[str | None] = field(default_factory=list)
    masks: list[int] = field(default_factory=list)
    key: I64 = field(default_factory=_no_numbers)
    mask: I64 = field(default_factory=_no_numbers)
    events: EventTable = field(default_factory=EventTable.empty)

    def take(self, rows: I64) -> Arrivals:
        """The events of these rows, with the keys and masks that they use."""
        keys, key = np.unique(self.key[rows], return_inverse=True)
        masks, mask = np.unique(self.mask[rows], return_inverse=True)
        return Arrivals(
            [self.keys[number] for number in keys.tolist()],
            [self.masks[number] for number in masks.tolist()],
            key,
            mask,
            self.events.take(rows),
        )

    def by_key(self, names: Names) -> dict[str | None, list[Event]]:
        """The events by key, each with its bits, as the interpreter wants them."""
        by_key: dict[str | None, list[Event]] = {}
        for row, (key, mask) in enumerate(zip(self.key.tolist(), self.mask.tolist(), strict=True)):
            event = self.events.event(row, names)._replace(bits=self.masks[mask])
            by_key.setdefault(self.keys[key], []).append(event)
        return by_key


def arrivals_together(parts: Sequence[Arrivals]) -> Arrivals:
    """Several as one, in this order."""
    keys: dict[str | None, int] = {}
    masks: dict[int, int] = {}
    key, mask = [], []
    for part in parts:
        key_numbers = [keys.setdefault(each, len(keys)) for each in part.keys]
        mask_numbers = [masks.setdefault(each, len(masks)) for each in part.masks]
        key.append(np.array(key_numbers, np.int64)[part.key])
        mask.append(np.array(mask_numbers, np.int64)[part.mask])
    return Arrivals(
        list(keys),
        list(masks),
        np.concatenate(key),
        np.concatenate(mask),
        together([part.events for part in parts]),
    )


@dataclass(slots=True)
class KeysState:
    """What is remembered of many keys, which are numbered by their place in ``keys``.

    ``waiting_*`` are events ahead of the watermark, with places in ``masks``; ``events`` are those
    that partial matches hold.
    """

    keys: list[str | None] = field(default_factory=list)
    masks: list[int] = field(default_factory=list)
    waiting: EventTable = field(default_factory=EventTable.empty)
    waiting_key: I64 = field(default_factory=_no_numbers)
    waiting_mask: I64 = field(default_factory=_no_numbers)
    events: EventTable = field(default_factory=EventTable.empty)
    event_key: I64 = field(default_factory=_no_numbers)
    held: Held = field(default_factory=Held.nothing)

    @property
    def deadline(self) -> int:
        """The watermark at which something is due; ``FOREVER`` for never."""
        due = int(self.waiting.time.min()) if len(self.waiting) else FOREVER
        return min(due, int(self.held.due.min())) if len(self.held.units) else due

    @property
    def idle(self) -> bool:
        """Whether there is nothing to remember."""
        return not len(self.waiting) and not len(self.held.units)


class KeysMatcher:
    """The rules of a partitioning that the kernel can run, applied to many keys at once."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes) -> None:
        self.partitioning = partitioning
        self._matcher = ColumnarMatcher(partitioning, types)
        self._reporters = [
            Reporter(rule.plan, LookBacks(rule.plan, partitioning.slots, types))
            for rule in partitioning.rules
        ]

    def advance(
        self, state: KeysState, arrivals: Arrivals, watermark: int, names: Names
    ) -> Iterator[Outputs]:
        """Add events (in any order, none of them late) and move all keys to ``watermark``.

        What is found comes in pieces of bounded size; ``state`` has moved when they have been
        taken.
        """
        numbers = {key: number for number, key in enumerate(state.keys)}
        key_numbers = [numbers.setdefault(key, len(numbers)) for key in arrivals.keys]
        mask_numbers = {mask: number for number, mask in enumerate(state.masks)}
        masks = [mask_numbers.setdefault(mask, len(mask_numbers)) for mask in arrivals.masks]
        came = together([state.waiting, arrivals.events])
        key = np.concatenate([state.waiting_key, np.array(key_numbers, np.int64)[arrivals.key]])
        mask = np.concatenate([state.waiting_mask, np.array(masks, np.int64)[arrivals.mask]])
        ready = np.flatnonzero(came.time <= watermark)
        ready = ready[_in_order(came, key, ready, names)]
        waiting = np.flatnonzero(came.time > watermark)
        known = together([state.events, came.take(ready)])
        run = self._matcher.run(
            state.held,
            known.time,
            key[ready],
            list(mask_numbers),
            mask[ready],
            watermark,
            known.columns,
        )
        keys = list(numbers)
        for findings in run:
            yield from self._outputs(findings, keys, known, names)
        # Keys and masks of which nothing is remembered lose their number.
        units = len(run.held.units)
        used, moved = np.unique(
            np.concatenate([run.held.units["key"], key[waiting]]), return_inverse=True
        )
        used_masks, waiting_mask = np.unique(mask[waiting], return_inverse=True)
        all_masks = list(mask_numbers)
        event_key = np.concatenate([state.event_key, key[ready]])[run.kept_events]
        state.keys = [keys[number] for number in used.tolist()]
        state.masks = [all_masks[number] for number in used_masks.tolist()]
        state.held = run.held
        state.held.units["key"] = moved[:units]
        state.events = known.take(run.kept_events)
        state.event_key = np.searchsorted(used, event_key)
        state.waiting = came.take(waiting)
        state.waiting_key = moved[units:]
        state.waiting_mask = waiting_mask

    @staticmethod
    def rule_states(state: KeysState, names: Names) -> Iterator[tuple[str | None, int, RuleState]]:
        """What is remembered, in the interpreter's terms: key, rule number, state."""
        held = state.held
        events = [state.events.event(row, names) for row in range(len(state.events))]
        nodes: list[Taken] = []
        for previous, step, event in held.nodes.tolist():
            nodes.append(Taken(nodes[previous] if previous >= 0 else None, step, events[event]))
        partials = (
            Partial(state, events[first], nodes[last], deadline, matched)
            for deadline, state, first, last, _, matched in held.partials.tolist()
        )
        finished = (
            Finished(events[first], nodes[last], time)
            for time, first, last in held.finished.tolist()
        )
        for unit in held.units:
            quiet = int(unit["quiet"])
            rule_state = RuleState(
                partials=list(islice(partials, unit["partials"])),
                finished=list(islice(finished, unit["finished"])),
                deadline=int(unit["deadline"]),
                quiet_until=None if quiet == kernel.NEVER else quiet,
                paused=bool(unit["paused"]),
                limited=bool(unit["limited"]),
                events_at_most=int(unit["events_bound"]),
            )
            yield state.keys[unit["key"]], int(unit["rule"]), rule_state

    def _outputs(
        self, findings: Findings, keys: Sequence[str | None], events: EventTable, names: Names
    ) -> Iterator[Outputs]:
        outputs, size = Outputs(), 0
        for key, rule, length, found in chain(
            _matches(findings, events, names), _timeouts(findings, events, names)
        ):
            self._reporters[rule].report(keys[key], found, outputs)
            size += length
            if size >= _MOST_TAKEN_EVENTS:
                yield outputs
                outputs, size = Outputs(), 0
        for key, rule, kind, row, detail in zip(
            findings.failure_key.tolist(),
            findings.failure_rule.tolist(),
            findings.failure_kind.tolist(),
            findings.failure_event.tolist(),
            findings.failure_detail.tolist(),
            strict=True,
        ):
            failure = self._failure(rule, kind, events.event(row, names), detail)
            self._reporters[rule].report(keys[key], Found(failures=[failure]), outputs)
        tallies = findings.tallies
        for number in np.flatnonzero(tallies["tested"] | tallies["pruned"] | tallies["dropped"]):
            tally = tallies[number]
            counted = {name: int(tally[name]) for name in tally.dtype.names}
            self._reporters[number].count(counted, outputs)
        yield outputs

    def _failure(self, rule: int, kind: int, event: Event, detail: int) -> Failure:
        plan = self.partitioning.rules[rule].plan
        if kind == kernel.LIMIT_REACHED:
            return limit_failure(plan, event, detail)
        return skip_failure(plan, event)


def _in_order(came: EventTable, key: I64, rows: I64, names: Names) -> I64:
    """The order of application within each key: time, topic, partition, offset."""
    topic = came.topic[rows]
    if len(names.topics) > 1:
        topic = np.argsort(np.argsort(np.array(names.topics)))[topic].astype(np.int32)
    return np.lexsort((came.offset[rows], came.partition[rows], topic, came.time[rows], key[rows]))


def _matches(
    findings: Findings, events: EventTable, names: Names
) -> Iterator[tuple[int, int, int, Found]]:
    """Each match: key, rule, how many events it holds, and itself."""
    for key, rule, time, (first, last, length) in zip(
        findings.match_key.tolist(),
        findings.match_rule.tolist(),
        findings.match_time.tolist(),
        _taken(findings.match_chains, events, names),
        strict=True,
    ):
        yield key, rule, length, Found(matches=[Finished(first, last, time)])


def _timeouts(
    findings: Findings, events: EventTable, names: Names
) -> Iterator[tuple[int, int, int, Found]]:
    """Each timeout, likewise."""
    for key, rule, deadline, matched, (first, last, length) in zip(
        findings.timeout_key.tolist(),
        findings.timeout_rule.tolist(),
        findings.timeout_deadline.tolist(),
        findings.timeout_matched.tolist(),
        _taken(findings.timeout_chains, events, names),
        strict=True,
    ):
        yield key, rule, length, Found(timeouts=[Expired(first, last, deadline, bool(matched))])


def _taken(chains: Chains, events: EventTable, names: Names) -> Iterator[tuple[Event, Taken, int]]:
    """Each chain: its first event, its end, and its length."""
    for number in range(len(chains.ends)):
        taken = [(step, events.event(row, names)) for step, row in chains.chain(number)]
        last = None
        for step, event in taken:
            last = Taken(last, step, event)
        assert last is not None
        yield taken[0][1], last, len(taken)
