"""One key group during one batch: its clock, its slots of keys, and the rules applied to them.

Events ahead of the watermark wait in entries of their own, in order of time and of bounded size, so
that a batch reads only those that hold something to apply, however many wait.

Keys are spread over slots by hash (:mod:`service.pipeline.slots`). A batch reads the slots that its
events and deadlines touch, a bounded number of bytes at a time, and writes what it has touched of
them.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from time import perf_counter_ns
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.codecs.dead_letters import Reason
from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning, RuleSetPlan
from service.errors import StateError
from service.matcher.columnar.events import EventTable, Names
from service.matcher.columnar.keys import Arrivals, KeysState, arrivals_together
from service.matcher.columnar.snapshot import decode, encode
from service.matcher.engines import PartitioningMatcher, fingerprints_of
from service.matcher.keyed import KeyedMatcher, KeyState
from service.matcher.outputs import Outputs
from service.matcher.snapshot import SnapshotCodec
from service.model import Coordinates, DeadLetter, Event, LateEvent
from service.packing import pack, unpack
from service.pipeline.columns import TYPE_COLUMN, WORD_BITS, word
from service.pipeline.entries import Entries, Load, Spread, Store, slot_of
from service.pipeline.masks import distinct_masks
from service.pipeline.pack import PackedPartitioning, Unkeyed, late_until
from service.pipeline.rule_epochs import RuleEpochs
from service.pipeline.slot_storage import SlotStorage
from service.pipeline.slots import KernelKeys, Slot, hashes_of, slots_of
from service.pipeline.watermark import Clock, Policy

#: Of the state of a key group; that of snapshots is theirs.
FORMAT = 4

#: Bytes of slots that are read together.
_PORTION = 4 << 20
#: Events of one entry of those that wait.
_MOST_WAITING = 4_096
#: Late events that are objects at a time.
_LATE_AT_ONCE = 1_000

#: Counts of what an engine does: it tests events against partial matches, and reports.
_WORK = frozenset({"tested", "matched", "timed_out"})

_OF_LATE = ["topic", "partition", "offset", "time", "record_key", "value", "headers"]


@dataclass(frozen=True)
class MatchOptions:
    """What the operator needs besides the plan. ``slot_size``: bytes of a slot before there are
    more of them; ``type_names``: record name by type number."""

    key_groups: int
    slot_size: int
    policy: Policy
    allowed_disorder_ms: int
    emit_late: bool
    type_names: tuple[str, ...]
    types: RecordTypes


def check_format(stored: Mapping[str, Any]) -> None:
    """Refuse a key group's state of another format: StateError."""
    if stored["format"] != FORMAT:
        raise StateError(
            f"the checkpoint's state has format {stored['format']}, this version reads"
            f" {FORMAT}: start from a new checkpoint, or run the version that wrote it"
        )


class KeyGroup:
    """Clock, topics, rules and slots of one key group. ``paused``: fingerprints of the plans that
    take no part; ``plan`` and ``matchers`` are without them."""

    def __init__(
        self,
        number: int,
        plan: RuleSetPlan,
        options: MatchOptions,
        matchers: Sequence[PartitioningMatcher],
        paused: tuple[str, ...] = (),
    ) -> None:
        self.number = number
        self.clock = Clock(options.policy, options.allowed_disorder_ms)
        #: How many late events there were in this batch, by topic.
        self.late: Counter[str] = Counter()
        self._late_rows: list[pa.RecordBatch] = []
        self._late_unkeyed: list[Unkeyed] = []
        self._late_watermark = self.clock.watermark
        #: Nanoseconds of the engines in this batch, shared out to rules.
        self.processing: Counter[str] = Counter()
        self._options = options
        self._paused = paused
        self._partitionings = plan.partitionings
        self._matchers = matchers
        self._names = Names()
        self._entries = Entries(
            number, {_prefix(part): part.fingerprint for part in plan.partitionings}
        )
        self._rules = RuleEpochs(plan, matchers)

    def restore(self, stored: dict[str, Any]) -> None:
        """Take over the group's state as stored."""
        check_format(stored)
        groups = self._options.key_groups
        if stored["key_groups"] != groups:
            raise StateError(
                f"the checkpoint was made with state.key_groups {stored['key_groups']}, not"
                f" {groups}: the keys would not be found; set it back, or start from a new"
                " checkpoint"
            )
        self.clock.restore(stored["clock"])
        self._names = Names(stored["topics"], stored["types"])
        self._entries.restore(stored)
        self._rules.restore(stored)

    @property
    def gone(self) -> list[tuple[str, int, int]]:
        """Id, version and partial matches of rules that went, or changed, since the last batch."""
        return self._rules.gone

    def packed(self) -> dict[str, Any]:
        """The group's state to store."""
        return {
            "format": FORMAT,
            "key_groups": self._options.key_groups,
            "clock": self.clock.packed(),
            "topics": self._names.topics,
            "types": self._names.types,
            "paused": list(self._paused),
            **self._rules.packed(self._entries.meanings_needed()),
            **self._entries.packed(),
        }

    def live(self) -> dict[str, int]:
        """How many partial matches live, by rule id."""
        return self._rules.live()

    def run(
        self,
        packets: Iterable[tuple[int, pa.RecordBatch]],
        unkeyed: Iterable[Unkeyed],
        load: Load,
        store: Store,
    ) -> Iterator[Outputs]:
        """Apply a batch's events and decide every deadline that the watermark has reached."""
        before = self._late_watermark = self.clock.watermark
        watermark = self.clock.advance()
        yield Outputs(dead_letters=list(self._not_late(unkeyed, before)))
        by_partitioning: dict[int, list[pa.RecordBatch]] = {}
        for number, rows in packets:
            by_partitioning.setdefault(number, []).append(rows)
        # Where no rule has a key any more, its partial matches are gone with the rules.
        self._entries.remove_others(store)
        for number, matcher in enumerate(self._matchers):
            rows = self._timely(by_partitioning.get(number, []), before)
            yield from self._advance(number, matcher, rows, watermark, load, store)

    def _timely(self, batches: list[pa.RecordBatch], watermark: int) -> pa.RecordBatch | None:
        """The events that are not late, as one table of rows; ``None`` when there are none."""
        kept = []
        for rows in batches:
            late = rows.column("time").to_numpy() <= watermark
            if late.any():
                _need_originals(rows, watermark)
                self._note_late(rows.filter(pa.array(late)))
                rows = rows.filter(pa.array(~late))  # noqa: PLW2901
            if rows.num_rows:
                kept.append(rows)
        if not kept:
            return None
        (together,) = pa.Table.from_batches(kept).combine_chunks().to_batches()
        return together

    def _note_late(self, rows: pa.RecordBatch) -> None:
        # An event that several partitionings wanted is late once. One without value only had to
        # be known to have come.
        rows = rows.filter(pc.and_(rows.column("first"), pc.is_valid(rows.column("value"))))
        for topic in pc.value_counts(rows.column("topic")).to_pylist():
            self.late[topic["values"]] += topic["counts"]
        if self._options.emit_late and rows.num_rows:
            self._late_rows.append(rows.select(_OF_LATE))

    def _not_late(self, unkeyed: Iterable[Unkeyed], watermark: int) -> Iterator[DeadLetter]:
        """Of events without key, the dead letters of those that are not late."""
        for event in unkeyed:
            at = Coordinates(event.topic, event.partition, event.offset)
            if event.time > watermark:
                yield DeadLetter(
                    at, Reason.MISSING_KEY.value, event.detail, event.record_key, event.value
                )
                continue
            self.late[event.topic] += 1
            if self._options.emit_late:
                self._late_unkeyed.append(event)

    def late_events(self) -> Iterator[LateEvent]:
        """The late events of the batch; none with ``emit_late`` off."""
        rows = (
            row
            for rows in self._late_rows
            for start in range(0, rows.num_rows, _LATE_AT_ONCE)
            for row in rows.slice(start, _LATE_AT_ONCE).to_pylist()
        )
        for row in chain((event._asdict() for event in self._late_unkeyed), rows):
            at = Coordinates(row["topic"], row["partition"], row["offset"])
            yield LateEvent(
                at,
                row["time"],
                self._late_watermark,
                row["record_key"],
                row["value"],
                _headers(row["headers"]),
            )

    def _advance(
        self,
        number: int,
        matcher: PartitioningMatcher,
        rows: pa.RecordBatch | None,
        watermark: int,
        load: Load,
        store: Store,
    ) -> Iterator[Outputs]:
        partitioning = self._partitionings[number]
        prefix = _prefix(partitioning)
        spread = self._entries.spread(prefix, self._options.slot_size)
        arrivals = Arrivals() if rows is None else self._arrivals(number, rows)
        due = {name: slot_of(name) for name in self._entries.due(prefix, watermark)}
        waited = [name for name, slot in due.items() if slot is None]
        arrivals = self._ready(arrivals, waited, watermark, partitioning, load, store)
        homes = slots_of(hashes_of(arrivals.keys), spread.before)
        storage = SlotStorage(
            self._entries, spread, partitioning, matcher, self._rules, self._names
        )
        of_due = (slot for slot in due.values() if slot is not None)
        touched = {*homes.tolist(), *spread.split, *of_due}
        keys: dict[int, set[str | None]] = {slot: set() for slot in touched}
        for home, key in zip(homes.tolist(), arrivals.keys, strict=True):
            keys[home].add(key)
        for portion in self._entries.portions(spread, sorted(keys), _PORTION):
            mine = arrivals
            if len(portion) < len(keys):
                mine = arrivals.take(np.flatnonzero(np.isin(homes, portion)[arrivals.key]))
            slots = storage.read(portion, load)
            of_kernel = KernelKeys(slots)
            yield from self._apply(slots, of_kernel, keys, mine, matcher, spread, watermark)
            for slot, beside in zip(slots, of_kernel.beside(), strict=True):
                storage.write(slot, beside, store)

    def _apply(
        self,
        slots: Sequence[Slot],
        of_kernel: KernelKeys,
        keys: Mapping[int, AbstractSet[str | None]],
        arrivals: Arrivals,
        matcher: PartitioningMatcher,
        spread: Spread,
        watermark: int,
    ) -> Iterator[Outputs]:
        """Let both engines work on some slots, given the batch's events for them and their keys."""
        if matcher.interpreter is not None:
            events = arrivals.by_key(self._names)
            outputs = Outputs()
            began = perf_counter_ns()
            for slot in slots:
                mine = {key: events[key] for key in keys[slot.number]}
                self._interpret(matcher.interpreter, slot, mine, watermark, outputs)
            self._share_out(perf_counter_ns() - began, [outputs.counts])
            yield outputs
        if matcher.kernel is not None:
            fingerprints = fingerprints_of(matcher.kernel.partitioning)
            # The engine changes what it is given.
            state = replace(of_kernel.take([keys[slot.number] for slot in slots], watermark))
            self._rules.count_together(fingerprints, state, -1)
            counts, spent, began = [], 0, perf_counter_ns()
            for outputs in matcher.kernel.advance(state, arrivals, watermark, self._names):
                counts.append(outputs.counts)
                spent += perf_counter_ns() - began
                yield outputs
                began = perf_counter_ns()
            self._share_out(spent + perf_counter_ns() - began, counts)
            self._rules.count_together(fingerprints, state, 1)
            place = {slot.number: number for number, slot in enumerate(slots)}
            homes = slots_of(hashes_of(state.keys), spread.before).tolist()
            of_kernel.give(state, np.array([place[home] for home in homes], np.int64))

    def _share_out(self, spent: int, counts: Iterable[Counter[tuple[str, str]]]) -> None:
        """Charge an engine's time to its rules, by what they made it do. An engine runs all of them
        in one loop, in which a clock for each would cost more than many a rule."""
        work: Counter[str] = Counter()
        for each in counts:
            for (rule, what), count in each.items():
                if what in _WORK:
                    work[rule] += count
        total = work.total()
        for rule, done in work.items():
            self.processing[rule] += spent * done // total

    # Events ahead of the watermark.

    def _ready(
        self,
        arrivals: Arrivals,
        waited: Sequence[str],
        watermark: int,
        partitioning: Partitioning,
        load: Load,
        store: Store,
    ) -> Arrivals:
        """What the watermark has reached of the events that came and of the entries ``waited``;
        the others wait, in entries of bounded size by time."""
        names = sorted(waited)
        stored = self._entries.loaded(names, load)
        loaded = [self._read_waiting(partitioning, data) for data in stored]
        if loaded:
            arrivals = arrivals_together([*loaded, arrivals])
        ahead = np.flatnonzero(arrivals.events.time > watermark)
        for name in names:
            self._entries.remove(name, store)
        if not len(ahead):
            return arrivals
        ahead = ahead[np.argsort(arrivals.events.time[ahead], kind="stable")]
        free = self._entries.free_for_waiting(_prefix(partitioning))
        for start in range(0, len(ahead), _MOST_WAITING):
            part = arrivals.take(ahead[start : start + _MOST_WAITING])
            name = next(free)
            state = KeysState(
                keys=part.keys,
                masks=part.masks,
                waiting=part.events,
                waiting_key=part.key,
                waiting_mask=part.mask,
            )
            data = pack((partitioning.fingerprint, encode(state, ())))
            self._entries.keep(name, data, state.deadline, store)
        return arrivals.take(np.flatnonzero(arrivals.events.time <= watermark))

    def _read_waiting(self, partitioning: Partitioning, stored: bytes) -> Arrivals:
        fingerprint, data = unpack(stored)
        state = decode(data, ())
        if fingerprint != partitioning.fingerprint:
            self._rules.translation(fingerprint, partitioning).keys_state(state)
        return Arrivals(
            state.keys, state.masks, state.waiting_key, state.waiting_mask, state.waiting
        )

    # Events of a batch.

    def _arrivals(self, number: int, rows: pa.RecordBatch) -> Arrivals:
        partitioning = self._partitionings[number]
        shape = packed_shape(number, partitioning)
        keys, key = _encoded(rows.column(f"key_{number}"))
        words = [rows.column(word(number, w)).to_numpy() for w in range(shape.words)]
        masks, mask = distinct_masks(np.stack(words, axis=1))
        topics, topic = _encoded(rows.column("topic"))
        topic_numbers = np.array([self._names.topic(name) for name in topics], np.int32)
        type_names = self._options.type_names
        types, kind = _encoded(rows.column(TYPE_COLUMN))
        type_numbers = np.array([self._names.type(type_names[n]) for n in types], np.int32)
        slots = [
            rows.column(f"slot_{number}_{s}").to_pylist(maps_as_pydicts="strict")
            for s in range(shape.slots)
        ]
        events = EventTable(
            time=rows.column("time").to_numpy(),
            topic=topic_numbers[topic],
            partition=rows.column("partition").to_numpy().astype(np.int32),
            offset=rows.column("offset").to_numpy(),
            type=type_numbers[kind],
            columns=list(zip(*slots, strict=True)) if slots else None,
            payload=rows.column("value").to_pylist() if partitioning.keeps_payload else None,
        )
        return Arrivals(keys, masks, key, mask, events)

    def _interpret(
        self,
        matcher: KeyedMatcher,
        slot: Slot,
        events: Mapping[str | None, Sequence[Event]],
        watermark: int,
        outputs: Outputs,
    ) -> None:
        fingerprints = fingerprints_of(matcher.partitioning)
        codec = SnapshotCodec(fingerprints, self._names.topics)
        touched = {*events, *slot.due_entries(watermark)}
        for key in sorted(touched, key=lambda k: k or ""):
            entry = slot.entry(key)
            state = KeyState() if entry is None else codec.decode(entry[1])
            self._rules.count(fingerprints, state, -1)
            matcher.advance(key, state, events.get(key, ()), watermark, outputs)
            self._rules.count(fingerprints, state, 1)
            slot.put(key, None if state.idle else (state.deadline, codec.encode(state)))


def _need_originals(rows: pa.RecordBatch, watermark: int) -> None:
    """Raise StateError when late events may lack what they are written with. The driver knows the
    watermark of the batch before, so it would be a fault of ours; a batch that is run again after a
    start has everything."""
    until = late_until(rows)
    if until is not None and until < watermark:
        raise StateError(
            f"the watermark is {watermark}, and the driver took it for {until} at most: late events"
            " would be lost; start the job again"
        )


def packed_shape(number: int, partitioning: Partitioning) -> PackedPartitioning:
    """How the partitioning's columns travel."""
    words = -(-len(partitioning.conditions) // WORD_BITS)
    return PackedPartitioning(number, words, len(partitioning.slots), partitioning.keeps_payload)


def _prefix(partitioning: Partitioning) -> str:
    """What the names of a partitioning's slots begin with; the same under any rule set."""
    return f"{zlib.crc32(partitioning.key_name.encode()):08x}"


def _encoded(column: pa.Array) -> tuple[list[Any], Any]:
    """A column's values, each once, and for each row the place of its value."""
    if column.null_count == len(column):
        return [None], np.zeros(len(column), np.int64)
    encoded = column.dictionary_encode()
    places = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return encoded.dictionary.to_pylist(), places


def _headers(text: str | None) -> tuple[tuple[str, bytes | None], ...]:
    """A record's headers out of Spark's JSON, which has binary as base64 and leaves out NULL."""
    return tuple(
        (header["key"], b64decode(header["value"]) if "value" in header else None)
        for header in json.loads(text or "[]")
    )
