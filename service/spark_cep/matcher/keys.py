"""The rules of a partitioning applied to many keys at once: events and deadlines in order, and what
is remembered of each key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.rows import numbers_in, places_among, sorted_rows
from spark_cep.columns.texts import with_more
from spark_cep.columns.vectors import Bytes, no_numbers, no_texts
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning
from spark_cep.matcher.batch.events import EventTable, Names, SlotType, check, together
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.batch.meaning import Meaning
from spark_cep.matcher.engine import NewEvents, Remembered, Stored
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import RuleState
from spark_cep.matcher.row_pattern.instances import STORED as STORED_ROW_PATTERNS
from spark_cep.matcher.row_pattern.instances import RowPatternInstances
from spark_cep.matcher.row_pattern.keys import RowPatternRules
from spark_cep.matcher.steps.held import STORED as STORED_STEPS
from spark_cep.matcher.steps.held import Held
from spark_cep.matcher.steps.held import rule_states as states_of
from spark_cep.matcher.steps.keys import StepRules

#: How the state of each engine is stored.
ENGINES: tuple[Stored, ...] = (STORED_STEPS, STORED_ROW_PATTERNS)


@dataclass(slots=True)
class KeysState:
    """The state of many keys, which are numbered by their place in ``keys``. ``events`` are those
    that partial matches hold, ``event_key`` the key of each."""

    keys: Bytes = field(default_factory=no_texts)
    events: EventTable = field(default_factory=EventTable.empty)
    event_key: I64 = field(default_factory=no_numbers)
    held: Held = field(default_factory=Held.nothing)
    row_patterns: RowPatternInstances = field(default_factory=RowPatternInstances)

    @property
    def remembered(self) -> tuple[Remembered, ...]:
        """The state of each engine, in the order of ``ENGINES``."""
        return self.held, self.row_patterns


class KeysMatcher:
    """All rules of one partitioning, applied to many keys at once. Holds no state."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes) -> None:
        self.partitioning = partitioning
        self._steps = StepRules(partitioning, types)
        self._row_patterns = RowPatternRules(partitioning)
        self._meanings: dict[tuple[int, ...], Meaning] = {}

    @property
    def slots(self) -> Sequence[SlotType]:
        """The columns of events."""
        return self._steps.tables.slots

    @cached_property
    def fingerprints(self) -> list[str]:
        """The fingerprints of the rules, by their number in stored state."""
        return [rule.plan.fingerprint for rule in self.partitioning.rules]

    def meaning(self, rules: tuple[int, ...] = ()) -> Meaning:
        """Return the layout of events in a state that has these numbers for the rules. Most key
        groups have the same."""
        if rules not in self._meanings:
            conditions = tuple(condition.name for condition in self.partitioning.conditions)
            columns = tuple(slot.meaning for slot in self.slots)
            named = zip(rules, self.partitioning.rules, strict=False)
            draining = tuple(number for number, rule in named if rule.drains)
            self._meanings[rules] = Meaning(conditions, columns, rules, draining)
        return self._meanings[rules]

    def advance(
        self, state: KeysState, batch: InputBatch, watermark: int, names: Names
    ) -> Iterator[Outputs]:
        """Apply events that the watermark has reached, in any order and none of them late, and move
        all keys to ``watermark``.

        What is found comes in pieces of bounded size; ``state`` has moved when they have been
        taken.
        """
        for events in (state.events, batch.events):
            check(events, names, self.slots)
        keys, places = with_more(state.keys, batch.keys)
        key = places[batch.key]
        order = in_order(batch.events, key, names)
        key, mask = key[order], batch.mask[order]
        new = batch.events.take(order)
        # Their order is all that microseconds are for, but in SQL.
        known = together([state.events, replace(new, micros=None)])
        fresh = NewEvents(known, keys, batch.masks, key, mask, new.all_micros)
        held = yield from self._steps.run(state.held, fresh, watermark, names)
        in_sql = yield from self._row_patterns.run(state.row_patterns, fresh, watermark, names)
        state.held, state.row_patterns = held, in_sql
        # Keys of which nothing is remembered lose their number.
        kept = numbers_in([each.events for each in state.remembered], len(known))
        used = numbers_in([each.instances["key"] for each in state.remembered], len(keys))
        state.keys = keys.take(used).compacted()
        state.events = known if len(kept) == len(known) else known.take(kept)
        event_key = np.concatenate([state.event_key, key])[kept]
        state.event_key = np.searchsorted(used, event_key)
        key_number, event_number = places_among(used, len(keys)), places_among(kept, len(known))
        for each in state.remembered:
            each.renumber(key_number, event_number)

    def live(self, state: KeysState, names: Names) -> Iterator[PartialMatch]:
        """The partial matches, key by key; behind them those of rules in SQL."""
        yield from self._steps.live(state.held, state.events, state.keys, names)
        yield from self._row_patterns.live(state.row_patterns, state.events, state.keys, names)


def rule_states(
    state: KeysState, names: Names, slots: Sequence[SlotType]
) -> Iterator[tuple[str | None, int, RuleState]]:
    """Yield the state of rules of steps as objects: key, rule number, state. Without ``slots`` the
    events have no columns."""
    for key, rule, rule_state in states_of(state.held, state.events, names, slots):
        yield state.keys.text(key), rule, rule_state


def in_order(events: EventTable, key: I64, names: Names) -> I64:
    """The order of application within each key: time to the microsecond, topic, partition,
    offset."""
    topic = events.topic
    if len(names.topics) > 1:
        topic = np.argsort(np.argsort(np.array(names.topics)))[topic].astype(np.int32)
    by_key = [key, events.time, *([] if events.micros is None else [events.micros])]
    return sorted_rows(by_key, [topic, events.partition, events.offset])
