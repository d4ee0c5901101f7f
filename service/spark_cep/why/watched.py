"""Between the stages of a run: the records of one key, and its events one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_cep.columns.compilation import I64
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, RuleSetPlan
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.engine import NewEvents
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import FOREVER
from spark_cep.matcher.findings.result_rows import ResultRows
from spark_cep.matcher.keys import KeysMatcher, KeysState, in_order
from spark_cep.model import DeadLetter, Event, Match
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions
from spark_cep.pipeline.decode.pack import Packed
from spark_cep.pipeline.match.event_columns import input_batch
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.event_packets import (
    TYPE_COLUMN,
    late_until,
    packet_of,
    rows_of,
    with_late_until,
)
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import EventTimes, UnkeyedEvents
from spark_cep.pipeline.wire.reports import Report
from spark_cep.pipeline.wire.task_properties import TaskProperties
from spark_cep.runner.runner import Inputs, Packs

#: Other keys that are remembered, to name the nearest.
_MOST_KEYS = 10_000
#: Dead letters that are remembered.
_MOST_LETTERS = 100


@dataclass
class SeenRecords:
    """Facts about all records of a run: counts by record type, of those whose key is NULL, other
    keys, dead letters; and the events of the key, in the order in which they came."""

    types: Counter[str] = field(default_factory=Counter)
    without_key: int = 0
    keys: set[str] = field(default_factory=set)
    letters: list[DeadLetter] = field(default_factory=list)
    arrived: list[Event] = field(default_factory=list)

    def copy(self) -> SeenRecords:
        """A copy, which further records do not change."""
        return SeenRecords(
            Counter(self.types), self.without_key, set(self.keys), [*self.letters], [*self.arrived]
        )


@dataclass
class KeyInputs:
    """The inputs of a run whose packets have one key's events alone. The times of all records move
    the clock, as they would."""

    inputs: Inputs
    key: str | None
    seen: SeenRecords = field(default_factory=SeenRecords)
    #: Whether records are entered into ``seen``.
    counts: bool = True

    @property
    def options(self) -> DecodeOptions:
        """See :class:`~spark_cep.runner.runner.Inputs`."""
        return self.inputs.options

    @property
    def types(self) -> RecordTypes:
        """See :class:`~spark_cep.runner.runner.Inputs`."""
        return self.inputs.types

    @property
    def type_names(self) -> tuple[str | None, ...]:
        """See :class:`~spark_cep.runner.runner.Inputs`."""
        return self.inputs.type_names

    def packer(self, plan: RuleSetPlan) -> Packs:
        """See :class:`~spark_cep.runner.runner.Inputs`."""
        packer = self.inputs.packer(plan)
        if not plan.partitionings:
            return packer
        (part,) = plan.partitionings
        return _KeyPacker(packer, self, KeysMatcher(part, self.types))


@dataclass
class _KeyPacker:
    packer: Packs
    inputs: KeyInputs
    matcher: KeysMatcher

    @property
    def times(self) -> EventTimes:
        """The largest event times of all records."""
        return self.packer.times

    def report(self) -> Report:
        """The counts of all records."""
        return self.packer.report()

    def pack(self, read: Iterable[KafkaRecords], properties: TaskProperties) -> Iterator[Packed]:
        """Pack the records of the key."""
        seen = self.inputs.seen
        for packets, letters in self.packer.pack(read, properties):
            kept = []
            for to, kind, packet in packets:
                if kind == PacketKind.UNKEYED and self.inputs.counts:
                    seen.without_key += len(UnkeyedEvents.decode(packet).events)
                rows = self._of_key(rows_of(packet)) if kind >= PacketKind.EVENTS else None
                if rows is None:
                    kept.append((to, kind, packet))
                elif rows.num_rows:
                    kept.append((to, kind, packet_of(rows)))
            if self.inputs.counts:
                seen.letters += letters[: _MOST_LETTERS - len(seen.letters)]
            yield Packed(kept, letters)

    def _of_key(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        key, wanted = rows.column("key_0"), self.inputs.key
        if self.inputs.counts:
            self._count(rows, key)
        mine = pc.is_null(key) if wanted is None else pc.fill_null(pc.equal(key, wanted), False)
        until = late_until(rows)
        rows = rows.filter(mine)
        if rows.num_rows and self.inputs.counts:
            known = Names()
            batch = input_batch(rows, 0, self.matcher, known, self.inputs.type_names)
            event = batch.events.objects(known, self.matcher.slots)
            self.inputs.seen.arrived += [event(row) for row in range(len(batch))]
        return rows if until is None else with_late_until(rows, until)

    def _count(self, rows: pa.RecordBatch, key: pa.Array) -> None:
        seen, names = self.inputs.seen, self.inputs.type_names
        for each in pc.value_counts(rows.column(TYPE_COLUMN)).to_pylist():
            seen.types[names[each["values"]] or ""] += each["counts"]
        if len(seen.keys) < _MOST_KEYS:
            seen.keys.update(text for text in pc.unique(key).to_pylist() if text is not None)


def _whole(outputs: Outputs) -> Outputs:
    """Outputs as objects, with the matches that rows of the result are of."""
    found = outputs.as_objects()
    for results in outputs.results:
        if isinstance(results, ResultRows):
            found.matches += (each for each in results.matches.objects() if isinstance(each, Match))
    return found


class Watcher(Protocol):
    """Is told what happens to a key, step by step. ``state`` must not be changed."""

    def before(self, state: KeysState, one: InputBatch, names: Names) -> None:
        """Before event ``one`` is applied, or, of an empty one, before a deadline is decided."""

    def after(self, state: KeysState, names: Names, time: int, outputs: Outputs) -> None:
        """After that: what was found, as objects; where results are rows, their matches, too."""


class WatchedMatcher(KeysMatcher):
    """A matcher that is handed each event by itself, and each deadline. It has one rule and the
    events of one key."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes, watcher: Watcher) -> None:
        super().__init__(partitioning, types)
        self._watcher = watcher
        #: A row of a row pattern at the deadline's millisecond may still be within.
        self._before = 1 if partitioning.row_pattern_rules else 0

    def advance(
        self, state: KeysState, batch: InputBatch, watermark: int, names: Names
    ) -> Iterator[Outputs]:
        """See :class:`~spark_cep.matcher.keys.KeysMatcher`."""
        for row in self._order(batch, names).tolist():
            one = batch.take(np.array([row]))
            time = int(one.events.time[0])
            yield from self._deadlines(state, time - self._before, names)
            yield from self._apply(state, one, time - self._before, names)
        yield from self._deadlines(state, watermark, names)
        # What is over by then is forgotten.
        yield from super().advance(state, InputBatch(), watermark, names)

    def _deadlines(self, state: KeysState, until: int, names: Names) -> Iterator[Outputs]:
        due = self._due(state)
        while due <= until:
            yield from self._apply(state, InputBatch(), due, names)
            again = self._due(state)
            due = again if again > due else FOREVER

    @staticmethod
    def _due(state: KeysState) -> int:
        return min(int(part.deadlines.min(initial=FOREVER)) for part in state.remembered)

    def _apply(
        self, state: KeysState, one: InputBatch, watermark: int, names: Names
    ) -> Iterator[Outputs]:
        self._watcher.before(state, one, names)
        found = Outputs()
        for outputs in super().advance(state, one, watermark, names):
            found.add(_whole(outputs))
            yield outputs
        time = int(one.events.time[0]) if len(one) else watermark
        self._watcher.after(state, names, time, found)

    def _order(self, batch: InputBatch, names: Names) -> I64:
        """The order of application."""
        order = in_order(batch.events, batch.key, names)
        for rule in self._row_patterns.rules:
            key, mask = batch.key[order], batch.mask[order]
            events = batch.events.take(order)
            fresh = NewEvents(events, batch.keys, batch.masks, key, mask, events.all_micros)
            order = order[rule.row_order.of(np.arange(len(order)), fresh)]
        return order
