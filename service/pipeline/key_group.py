"""One key group during one batch: its clock, its slots of keys, and the rules applied to them.

Events ahead of the watermark wait in entries of their own, in order of time and of bounded size, so
that a batch reads only those that hold something to apply, however many wait.

Keys are spread over slots by hash; a slot is one entry of the state. A batch reads and writes the
slots that its events and deadlines touch. A slot holds ``[fingerprint, epoch, entries, together]``:
what bits and columns mean, the rule set it was last written under, one snapshot per key for the
rules that the interpreter runs, and one of all keys for those that the kernel runs.

An *epoch* is a rule set. A rule knows the epoch in which it came: what a slot of an earlier epoch
holds for it was left by a rule of the same meaning that went in between, and is not taken up. It
also knows since when its engine runs it: from a slot of before, its state moves to that engine.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import chain
from itertools import count as numbers_from
from time import perf_counter_ns
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.codecs.dead_letters import Reason
from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning, RuleSetPlan
from service.errors import RESTORE, StateError
from service.matcher.columnar.conversion import key_states, keys_state
from service.matcher.columnar.events import EventTable, Names
from service.matcher.columnar.keys import Arrivals, KeysState, arrivals_together
from service.matcher.columnar.snapshot import decode, encode, joined, parted
from service.matcher.engines import PartitioningMatcher, fingerprints_of
from service.matcher.keyed import KeyedMatcher, KeyState
from service.matcher.outputs import Outputs
from service.matcher.partial import RuleState
from service.matcher.snapshot import SnapshotCodec, pack, unpack
from service.model import Coordinates, DeadLetter, Event, LateEvent
from service.pipeline.columns import TYPE_COLUMN, WORD_BITS, word
from service.pipeline.pack import PackedPartitioning, Unkeyed
from service.pipeline.watermark import Clock, Policy

#: Of the state of a key group; that of snapshots is theirs.
FORMAT = 3

#: Events of one entry of those that wait.
_MOST_WAITING = 4_096
#: Late events that are objects at a time.
_LATE_AT_ONCE = 1_000

#: Counts of what an engine does: it tests events against partial matches, and reports.
_WORK = frozenset({"tested", "matched", "timed_out"})

#: Names of such entries go on with this, those of slots with a number.
_WAITING = "w"
_OF_LATE = ["topic", "partition", "offset", "time", "record_key", "value", "headers"]

Load = Callable[[str], bytes | None]
Store = Callable[[str, bytes | None], None]
_Columns = Sequence[Any]


@dataclass(frozen=True)
class MatchOptions:
    """What the operator needs besides the plan. ``type_names``: record name by type number."""

    key_groups: int
    slots: int
    policy: Policy
    allowed_disorder_ms: int
    emit_late: bool
    type_names: tuple[str, ...]
    types: RecordTypes


@dataclass(slots=True)
class _Meaning:
    """What the bits and columns of stored events mean, by name."""

    conditions: list[str]
    slots: list[str]


@dataclass(slots=True)
class _Rule:
    """A rule that the state knows: identity, the epoch in which it came, live partial matches,
    whether the kernel runs it, and since which epoch its engine does."""

    id: str
    version: int
    since: int
    live: int
    compiled: bool
    engine_since: int


@dataclass(slots=True)
class _Slot:
    """A slot as read. ``fresh``: written under this rule set, with these bits and columns."""

    stored: bool = False
    fresh: bool = True
    epoch: int = 0
    entries: dict[str | None, tuple[int, bytes]] = field(default_factory=dict)
    together: KeysState = field(default_factory=KeysState)
    translate: _Translation | None = None


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
        #: Id, version and partial matches of rules that went, or changed, since the last batch.
        self.gone: list[tuple[str, int, int]] = []
        #: Nanoseconds of the engines in this batch, shared out to rules.
        self.processing: Counter[str] = Counter()
        self._options = options
        self._paused = paused
        self._layout = {"key_groups": options.key_groups, "slots_per_key_group": options.slots}
        self._partitionings = plan.partitionings
        self._matchers = matchers
        self._names = Names()
        self._due: dict[str, int] = {}
        #: Entries that were written under another rule set: what their bits and columns meant.
        self._stale: dict[str, bytes] = {}
        self._fingerprints = {_prefix(part): part.fingerprint for part in plan.partitionings}
        self._epoch = 0
        compiled = {
            text
            for matcher in matchers
            if matcher.kernel is not None
            for text in fingerprints_of(matcher.kernel.partitioning)
        }
        self._rules = {
            p.fingerprint: _Rule(p.rule.id, p.rule.version, 0, 0, p.fingerprint in compiled, 0)
            for p in plan.plans
        }
        self._meanings: dict[bytes, _Meaning] = {
            part.fingerprint: _Meaning(
                [c.name for c in part.conditions], [s.name for s in part.slots]
            )
            for part in plan.partitionings
        }

    def restore(self, stored: dict[str, Any]) -> None:
        """Take over the group's state as stored."""
        check_format(stored)
        for setting, value in self._layout.items():
            if stored[setting] != value:
                raise StateError(
                    f"the checkpoint was made with state.{setting} {stored[setting]}, not {value}:"
                    " the keys would not be found; set it back, or start from a new checkpoint"
                )
        self.clock.restore(stored["clock"])
        self._names = Names(stored["topics"], stored["types"])
        self._due = stored["due"]
        self._note_stale(stored["stale"], stored["fingerprints"])
        for fingerprint, (conditions, slots) in stored["meanings"].items():
            self._meanings.setdefault(fingerprint, _Meaning(conditions, slots))
        known = {text: _Rule(*values) for text, values in stored["rules"].items()}
        engines = {text: rule.compiled for text, rule in self._rules.items()}
        self._epoch = stored["epoch"]
        if engines != {text: rule.compiled for text, rule in known.items()}:
            self._epoch += 1
        for text, rule in self._rules.items():
            rule.since = rule.engine_since = self._epoch
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

    def _note_stale(self, stale: dict[str, bytes], fingerprints: Mapping[str, bytes]) -> None:
        """Find the entries that were written under another rule set. ``fingerprints``: those of the
        last one, by prefix."""
        self._stale = stale
        for name in self._due.keys() - stale.keys():
            prefix = name.partition("/")[0]
            was = fingerprints[prefix]
            if was != self._fingerprints.get(prefix):
                stale[name] = was

    def _meanings_needed(self) -> dict[bytes, list[list[str]]]:
        """Of this rule set, and of those that entries were written under."""
        needed = {*self._stale.values(), *self._fingerprints.values()}
        return {
            fingerprint: [meaning.conditions, meaning.slots]
            for fingerprint, meaning in self._meanings.items()
            if fingerprint in needed
        }

    def _keep(self, name: str, data: bytes, due: int, store: Store) -> None:
        store(name, data)
        self._due[name] = due
        self._stale.pop(name, None)

    def _remove(self, name: str, store: Store) -> None:
        store(name, None)
        self._due.pop(name, None)
        self._stale.pop(name, None)

    def packed(self) -> dict[str, Any]:
        """The group's state to store."""
        return {
            "format": FORMAT,
            **self._layout,
            "clock": self.clock.packed(),
            "topics": self._names.topics,
            "types": self._names.types,
            "due": self._due,
            "paused": list(self._paused),
            "epoch": self._epoch,
            "rules": {text: list(astuple(rule)) for text, rule in self._rules.items()},
            "meanings": self._meanings_needed(),
            "fingerprints": self._fingerprints,
            "stale": self._stale,
        }

    def live(self) -> dict[str, int]:
        """How many partial matches live, by rule id."""
        return {rule.id: rule.live for rule in self._rules.values()}

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
        prefixes = {_prefix(part) for part in self._partitionings}
        for name in [name for name in self._due if name.partition("/")[0] not in prefixes]:
            # No rule has this key any more: its partial matches are gone with the rules.
            self._remove(name, store)
        for number, matcher in enumerate(self._matchers):
            rows = self._timely(by_partitioning.get(number, []), before)
            yield from self._advance(number, matcher, rows, watermark, load, store)

    def _timely(self, batches: list[pa.RecordBatch], watermark: int) -> pa.RecordBatch | None:
        """The events that are not late, as one table of rows; ``None`` when there are none."""
        kept = []
        for rows in batches:
            late = rows.column("time").to_numpy() <= watermark
            if late.any():
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

        def home(key: str | None) -> str:
            slot = 0 if key is None else zlib.crc32(key.encode()) % self._options.slots
            return f"{prefix}/{slot}"

        arrivals = Arrivals() if rows is None else self._arrivals(number, rows)
        due = {
            name
            for name, due in self._due.items()
            if due <= watermark and name.partition("/")[0] == prefix
        }
        waited = {name for name in due if _holds_waiting(name)}
        arrivals = self._ready(arrivals, waited, watermark, partitioning, load, store)
        touched = {home(key) for key in arrivals.keys} | (due - waited)
        names = sorted(touched)
        slots = [self._read(matcher, partitioning, self._loaded(name, load)) for name in names]
        if matcher.interpreter is not None:
            events: dict[str, dict[str | None, list[Event]]] = {name: {} for name in names}
            for key, mine in arrivals.by_key(self._names).items():
                events[home(key)][key] = mine
            outputs = Outputs()
            began = perf_counter_ns()
            for name, slot in zip(names, slots, strict=True):
                self._interpret(matcher.interpreter, slot, events[name], watermark, outputs)
            self._share_out(perf_counter_ns() - began, [outputs.counts])
            yield outputs
        parts = [KeysState() for _ in slots]
        if matcher.kernel is not None:
            fingerprints = fingerprints_of(matcher.kernel.partitioning)
            state = joined([slot.together for slot in slots])
            self._count_together(fingerprints, state, -1)
            counts, spent, began = [], 0, perf_counter_ns()
            for outputs in matcher.kernel.advance(state, arrivals, watermark, self._names):
                counts.append(outputs.counts)
                spent += perf_counter_ns() - began
                yield outputs
                began = perf_counter_ns()
            self._share_out(spent + perf_counter_ns() - began, counts)
            self._count_together(fingerprints, state, 1)
            place = {name: at for at, name in enumerate(names)}
            homes = [place[home(key)] for key in state.keys]
            if slots:
                parts = parted(state, np.array(homes, np.int64), len(slots))
        for name, slot, part in zip(names, slots, parts, strict=True):
            self._write(name, slot, part, matcher, partitioning, store)

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
        waited: Iterable[str],
        watermark: int,
        partitioning: Partitioning,
        load: Load,
        store: Store,
    ) -> Arrivals:
        """What the watermark has reached of the events that came and of the entries ``waited``;
        the others wait, in entries of bounded size by time."""
        names = sorted(waited)
        loaded = [self._read_waiting(partitioning, self._loaded(name, load)) for name in names]
        if loaded:
            arrivals = arrivals_together([*loaded, arrivals])
        ahead = np.flatnonzero(arrivals.events.time > watermark)
        for name in names:
            self._remove(name, store)
        if not len(ahead):
            return arrivals
        ahead = ahead[np.argsort(arrivals.events.time[ahead], kind="stable")]
        free = (
            name
            for number in numbers_from(0)
            if (name := f"{_prefix(partitioning)}/{_WAITING}{number}") not in self._due
        )
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
            self._keep(name, data, state.deadline, store)
        return arrivals.take(np.flatnonzero(arrivals.events.time <= watermark))

    def _read_waiting(self, partitioning: Partitioning, stored: bytes | None) -> Arrivals:
        assert stored is not None  # it is known to be there
        fingerprint, data = unpack(stored)
        state = decode(data, ())
        if fingerprint != partitioning.fingerprint:
            self._translation(fingerprint, partitioning).keys_state(state)
        return Arrivals(
            state.keys, state.masks, state.waiting_key, state.waiting_mask, state.waiting
        )

    # Events of a batch.

    def _arrivals(self, number: int, rows: pa.RecordBatch) -> Arrivals:
        partitioning = self._partitionings[number]
        shape = packed_shape(number, partitioning)
        keys, key = _encoded(rows.column(f"key_{number}"))
        masks, mask = _masks([rows.column(word(number, w)) for w in range(shape.words)])
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

    # Slots.

    def _loaded(self, name: str, load: Load) -> bytes | None:
        stored = load(name)
        if stored is None and name in self._due:
            raise StateError(
                f"the state lacks slot {name} of key group {self.number}, which it knows of: it is"
                f" damaged; {RESTORE}"
            )
        return stored

    def _read(
        self, matcher: PartitioningMatcher, partitioning: Partitioning, stored: bytes | None
    ) -> _Slot:
        if stored is None:
            return _Slot(epoch=self._epoch)
        fingerprint, epoch, entries, together = unpack(stored)
        slot = _Slot(True, epoch == self._epoch, epoch, entries)
        if fingerprint != partitioning.fingerprint:
            slot.fresh = False
            slot.translate = self._translation(fingerprint, partitioning)
        if any(
            self._rules[text].since <= epoch < self._rules[text].engine_since
            for text in fingerprints_of(partitioning)
        ):
            self._move(slot, together, matcher, partitioning)
        elif together and matcher.kernel is not None:
            rules = self._known_in(epoch, fingerprints_of(matcher.kernel.partitioning))
            slot.together = decode(together, rules)
            if slot.translate is not None:
                slot.translate.keys_state(slot.together)
        return slot

    def _move(
        self, slot: _Slot, together: bytes, matcher: PartitioningMatcher, partitioning: Partitioning
    ) -> None:
        """Give each rule's state to the engine that runs it now."""
        every = fingerprints_of(partitioning)
        known = self._known_in(slot.epoch, every)
        codec = SnapshotCodec(known, self._names.topics)
        states = {key: codec.decode(data) for key, (_, data) in slot.entries.items()}
        if together:
            for key, state in key_states(decode(together, known), self._names).items():
                # Events that wait are with both engines, where both had rules.
                mine = states.setdefault(key, KeyState(state.waiting))
                mine.rules |= state.rules
        slot.entries = {}
        if matcher.interpreter is not None:
            numbers = _places(every, fingerprints_of(matcher.interpreter.partitioning))
            writer = SnapshotCodec([every[n] for n in numbers], self._names.topics)
            for key, state in states.items():
                part = KeyState(state.waiting, _renumbered(state.rules, numbers))
                if not part.idle:
                    slot.entries[key] = (part.deadline, writer.encode(part))
        if matcher.kernel is not None:
            numbers = _places(every, fingerprints_of(matcher.kernel.partitioning))
            slot.together = keys_state(
                {
                    key: KeyState(state.waiting, _renumbered(state.rules, numbers))
                    for key, state in states.items()
                },
                self._names,
            )
            if slot.translate is not None:
                slot.translate.keys_state(slot.together)
        # What has moved is of this rule set now; what is left of an earlier one stays away.
        slot.epoch = self._epoch

    def _known_in(self, epoch: int, fingerprints: Sequence[str]) -> list[str]:
        """The fingerprints, but for rules that came later: they find nothing stored."""
        return [text if self._rules[text].since <= epoch else "" for text in fingerprints]

    def _interpret(
        self,
        matcher: KeyedMatcher,
        slot: _Slot,
        events: dict[str | None, list[Event]],
        watermark: int,
        outputs: Outputs,
    ) -> None:
        entries = slot.entries
        fingerprints = fingerprints_of(matcher.partitioning)
        codec = SnapshotCodec(fingerprints, self._names.topics)
        reader = SnapshotCodec(self._known_in(slot.epoch, fingerprints), self._names.topics)
        touched = set(events)
        if slot.fresh:
            touched |= {key for key, (due, _) in entries.items() if due <= watermark}
        else:
            touched |= set(entries)
        translate = None if slot.translate is None else slot.translate.event
        for key in sorted(touched, key=lambda k: k or ""):
            entry = entries.pop(key, None)
            state = KeyState() if entry is None else reader.decode(entry[1], translate)
            self._count(fingerprints, state, -1)
            matcher.advance(key, state, events.get(key, ()), watermark, outputs)
            self._count(fingerprints, state, 1)
            if not state.idle:
                entries[key] = (state.deadline, codec.encode(state))

    def _write(
        self,
        name: str,
        slot: _Slot,
        together: KeysState,
        matcher: PartitioningMatcher,
        partitioning: Partitioning,
        store: Store,
    ) -> None:
        entries = slot.entries if matcher.interpreter is not None else {}
        if not entries and together.idle:
            if slot.stored:
                self._remove(name, store)
            return
        data = b""
        if not together.idle and matcher.kernel is not None:
            data = encode(together, fingerprints_of(matcher.kernel.partitioning))
        due = min([together.deadline, *(due for due, _ in entries.values())])
        slot_data = pack((partitioning.fingerprint, self._epoch, entries, data))
        self._keep(name, slot_data, due, store)

    def _count(self, fingerprints: Sequence[str], state: KeyState, sign: int) -> None:
        for number, rule_state in state.rules.items():
            self._rules[fingerprints[number]].live += sign * len(rule_state.partials)

    def _count_together(self, fingerprints: Sequence[str], state: KeysState, sign: int) -> None:
        units = state.held.units
        live = np.bincount(units["rule"], units["partials"], len(fingerprints))
        for fingerprint, count in zip(fingerprints, live.tolist(), strict=True):
            self._rules[fingerprint].live += sign * int(count)

    def _translation(self, fingerprint: bytes, partitioning: Partitioning) -> _Translation:
        old = self._meanings.get(fingerprint)
        if old is None:
            raise StateError(
                "the state holds events of a rule set that the checkpoint does not describe:"
                f" it is damaged; {RESTORE}"
            )
        return _Translation(old, partitioning)


class _Translation:
    """Rewrites events that were stored under another rule set: by name, what is new is NULL or not
    true."""

    def __init__(self, old: _Meaning, partitioning: Partitioning) -> None:
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


def _places(every: Sequence[str], some: Sequence[str]) -> dict[int, int]:
    """For the number of each of ``some`` among ``every``, its number among them."""
    return {every.index(text): number for number, text in enumerate(some)}


def _renumbered(rules: Mapping[int, RuleState], numbers: Mapping[int, int]) -> dict[int, RuleState]:
    return {numbers[number]: state for number, state in rules.items() if number in numbers}


def packed_shape(number: int, partitioning: Partitioning) -> PackedPartitioning:
    """How the partitioning's columns travel."""
    words = -(-len(partitioning.conditions) // WORD_BITS)
    return PackedPartitioning(number, words, len(partitioning.slots))


def _holds_waiting(name: str) -> bool:
    return name.partition("/")[2].startswith(_WAITING)


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


def _masks(words: Sequence[pa.Array]) -> tuple[list[int], Any]:
    """The distinct masks whose words these are, and for each row the place of its mask."""
    if len(words) == 1:
        distinct, places = np.unique(words[0].to_numpy(), return_inverse=True)
        return distinct.tolist(), places
    table = np.stack([each.to_numpy() for each in words], axis=1)
    distinct, places = np.unique(table, axis=0, return_inverse=True)
    masks = [
        sum(part << WORD_BITS * position for position, part in enumerate(row))
        for row in distinct.tolist()
    ]
    return masks, places.reshape(-1)


def _headers(text: str | None) -> tuple[tuple[str, bytes | None], ...]:
    """A record's headers out of Spark's JSON, which has binary as base64 and leaves out NULL."""
    return tuple(
        (header["key"], b64decode(header["value"]) if "value" in header else None)
        for header in json.loads(text or "[]")
    )
