"""The matcher as a stateful Spark operator: key groups, slots, and the clock.

The thin adapter between ``transformWithState`` and :class:`service.matcher.keyed.KeyedMatcher`.
The grouping key is the key group. Its state is

* ``group`` (one value): clock, numbers of topics, meanings of bits and slots, which slots there are
  and when each is next due, and how many partial matches live per rule;
* ``slots`` (a map): keys spread over slots by hash, each slot one entry that holds the snapshots
  of its keys with the time at which each is due.

A batch reads and writes the slots that its events and deadlines touch, and decodes only the keys
that they touch. All deadlines up to the batch's watermark are decided in the batch: they need no
later event of their key.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from time import perf_counter_ns
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from service.codecs.outputs import OutputEncoder
from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning, RuleSetPlan
from service.errors import StateError
from service.matcher.keyed import KeyedMatcher, KeyState
from service.matcher.outputs import Outputs
from service.matcher.snapshot import FORMAT, SnapshotCodec, pack, unpack
from service.model import Coordinates, Event, LateEvent
from service.pipeline.columns import TYPE_COLUMN, WORD_BITS, word
from service.pipeline.pack import Kind, PackedPartitioning, rows_of
from service.pipeline.watermark import Clock, ClockStatement, Policy

OUTPUT_SQL_SCHEMA = "kind INT, packet BINARY"

_VALUE = StructType([StructField("value", BinaryType())])
_NAME = StructType([StructField("name", StringType())])
_RECORDS_PER_PACKET = 1_000


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


class MatchProcessor(StatefulProcessor):
    """Applies all partitionings of a rule set to the packets of one key group at a time."""

    def __init__(self, plan: RuleSetPlan, encoder: OutputEncoder, options: MatchOptions) -> None:
        self._plan = plan
        self._encoder = encoder
        self._options = options
        self._matchers: tuple[KeyedMatcher, ...] = ()
        self._state_ns = 0

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state; build the matchers once per task."""
        self._group_state = handle.getValueState("group", _VALUE)
        self._slot_state = handle.getMapState("slots", _NAME, _VALUE)
        if not self._matchers:
            self._matchers = tuple(
                KeyedMatcher(part, self._options.types) for part in self._plan.partitionings
            )

    def handleInputRows(  # noqa: N802  Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803, ARG002  Spark's interface
    ) -> Iterator[Row]:
        """One key group's packets of one batch in, output packets out."""
        group = _Group(key[0], self._plan, self._options, self._matchers)
        stored = self._group_state.get()
        if stored is not None:
            group.restore(unpack(bytes(stored[0])))
        records: list[Any] = []
        counts: Counter[tuple[str, ...]] = Counter()
        events: list[tuple[int, pa.RecordBatch]] = []
        for row in rows:
            kind = row[1]
            if kind >= Kind.EVENTS:
                events.append((kind - Kind.EVENTS, rows_of(bytes(row[2]))))
            elif kind == Kind.MAXIMA:
                group.clock.read(unpack(bytes(row[2])))
            elif kind == Kind.CLOCK:
                group.clock.state(ClockStatement.from_json(unpack(bytes(row[2]))))
            elif kind == Kind.RECORDS:
                records.extend(unpack(bytes(row[2])))
            else:
                for *what, count in unpack(bytes(row[2])):
                    counts[tuple(what)] += count
        began = perf_counter_ns()
        self._state_ns = 0
        outputs, late = group.run(events, self._load, self._store)
        matched = perf_counter_ns()
        self._group_state.update((pack(group.packed()),))
        counts.update(outputs.counts)
        encoder = self._encoder
        records.extend(encoder.match(match) for match in outputs.matches)
        records.extend(encoder.timeout(timeout) for timeout in outputs.timeouts)
        for letter in outputs.dead_letters:
            counts["dead_letters", letter.reason] += 1
            records.append(encoder.dead_letter(letter))
        for event in late:
            counts["late", event.at.topic] += 1
            if self._options.emit_late and event.record_value is not None:
                records.append(encoder.late(event))
        counts["busy_us", "state"] = self._state_ns // 1000
        counts["busy_us", "match"] = (matched - began - self._state_ns) // 1000
        counts["busy_us", "encode"] = (perf_counter_ns() - matched) // 1000
        for start in range(0, len(records), _RECORDS_PER_PACKET):
            cut = [list(record) for record in records[start : start + _RECORDS_PER_PACKET]]
            yield Row(kind=int(Kind.RECORDS), packet=pack(cut))
        report = {
            "group": group.number,
            "counts": [[*what, count] for what, count in counts.items()],
            "live": group.live(),
            "clock": group.clock.packed() if group.number == 0 else None,
        }
        yield Row(kind=int(Kind.COUNTS), packet=pack(report))

    def close(self) -> None:
        """Nothing to close: Spark owns the state."""

    def _load(self, name: str) -> bytes | None:
        began = perf_counter_ns()
        found = self._slot_state.getValue((name,))
        self._state_ns += perf_counter_ns() - began
        return None if found is None else bytes(found[0])

    def _store(self, name: str, value: bytes | None) -> None:
        began = perf_counter_ns()
        if value is None:
            self._slot_state.removeKey((name,))
        else:
            self._slot_state.updateValue((name,), (value,))
        self._state_ns += perf_counter_ns() - began


_Load = Callable[[str], bytes | None]
_Store = Callable[[str, bytes | None], None]


class _Group:
    """One key group during one batch."""

    def __init__(
        self,
        number: int,
        plan: RuleSetPlan,
        options: MatchOptions,
        matchers: tuple[KeyedMatcher, ...],
    ) -> None:
        self.number = number
        self.clock = Clock(options.policy, options.allowed_disorder_ms)
        self._live: dict[str, int] = {}
        self._rule_ids = {p.fingerprint: p.rule.id for p in plan.plans}
        self._options = options
        self._layout = {"key_groups": options.key_groups, "slots_per_key_group": options.slots}
        self._matchers = matchers
        self._topics: list[str] = []
        self._due: dict[str, int] = {}
        self._meanings: dict[bytes, _Meaning] = {
            part.fingerprint: _Meaning(
                [c.name for c in part.conditions], [s.name for s in part.slots]
            )
            for part in plan.partitionings
        }
        self._prefixes = {_prefix(m.partitioning): m for m in matchers}

    def restore(self, stored: dict[str, Any]) -> None:
        """Take over the group's state as stored."""
        if stored["format"] != FORMAT:
            raise StateError(
                f"the checkpoint's state has format {stored['format']}, this version reads"
                f" {FORMAT}: start from a new checkpoint, or run the version that wrote it"
            )
        for setting, value in self._layout.items():
            if stored[setting] != value:
                raise StateError(
                    f"the checkpoint was made with state.{setting} {stored[setting]}, not {value}:"
                    " the keys would not be found; set it back, or start from a new checkpoint"
                )
        self.clock.restore(stored["clock"])
        self._topics = stored["topics"]
        self._due = stored["due"]
        # A rule that changed or went took its partial matches along.
        self._live = {f: n for f, n in stored["live"].items() if f in self._rule_ids}
        for fingerprint, (conditions, slots) in stored["meanings"].items():
            self._meanings.setdefault(fingerprint, _Meaning(conditions, slots))

    def packed(self) -> dict[str, Any]:
        """The group's state to store."""
        return {
            "format": FORMAT,
            **self._layout,
            "clock": self.clock.packed(),
            "topics": self._topics,
            "due": self._due,
            "live": self._live,
            "meanings": {f: [m.conditions, m.slots] for f, m in self._meanings.items()},
        }

    def run(
        self, packets: Iterable[tuple[int, pa.RecordBatch]], load: _Load, store: _Store
    ) -> tuple[Outputs, list[LateEvent]]:
        """Apply a batch's events and decide every deadline that the watermark has reached."""
        before = self.clock.watermark
        watermark = self.clock.advance()
        late: list[LateEvent] = []
        by_slot: dict[str, dict[str | None, list[Event]]] = defaultdict(dict)
        for number, rows in packets:
            self._sort_in(number, rows, before, by_slot, late)
        for name, due in self._due.items():
            gone = name.partition("/")[0] not in self._prefixes
            if (due <= watermark or gone) and name not in by_slot:
                by_slot[name] = {}
        outputs = Outputs()
        for name in sorted(by_slot):
            self._advance_slot(name, by_slot[name], watermark, load, store, outputs)
        return outputs, late

    def _sort_in(
        self,
        number: int,
        rows: pa.RecordBatch,
        watermark: int,
        by_slot: dict[str, dict[str | None, list[Event]]],
        late: list[LateEvent],
    ) -> None:
        columns = {
            name: column.to_pylist(maps_as_pydicts="strict")
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        }
        partitioning = self._matchers[number].partitioning
        prefix = _prefix(partitioning)
        shape = packed_shape(number, partitioning)
        words = [columns[word(number, w)] for w in range(shape.words)]
        slots = [columns[f"slot_{number}_{s}"] for s in range(shape.slots)]
        type_names = self._options.type_names
        keeps_payload = partitioning.keeps_payload
        slot_count = self._options.slots
        firsts, headers = columns["first"], columns["headers"]
        record_keys, payloads = columns["record_key"], columns["value"]
        for row, (key, time, topic, partition, offset, kind, bits, cells) in enumerate(
            zip(
                columns[f"key_{number}"],
                columns["time"],
                columns["topic"],
                columns["partition"],
                columns["offset"],
                columns[TYPE_COLUMN],
                words[0] if len(words) == 1 else map(_joined, *words),
                zip(*slots, strict=True) if slots else repeat(()),
                strict=False,
            )
        ):
            at = Coordinates(topic, partition, offset)
            if time <= watermark:
                if firsts[row]:
                    original = _headers(headers[row])
                    late.append(
                        LateEvent(at, time, watermark, record_keys[row], payloads[row], original)
                    )
                continue
            payload = payloads[row] if keeps_payload else None
            event = Event(time, at, bits, cells, payload, type_names[kind])
            slot = 0 if key is None else zlib.crc32(key.encode()) % slot_count
            by_slot[f"{prefix}/{slot}"].setdefault(key, []).append(event)

    def _advance_slot(
        self,
        name: str,
        events: dict[str | None, list[Event]],
        watermark: int,
        load: _Load,
        store: _Store,
        outputs: Outputs,
    ) -> None:
        matcher = self._prefixes.get(name.partition("/")[0])
        if matcher is None:
            # No rule has this key any more: its partial matches are gone with the rules.
            store(name, None)
            self._due.pop(name, None)
            return
        partitioning = matcher.partitioning
        codec = SnapshotCodec([r.plan.fingerprint for r in partitioning.rules], self._topics)
        stored = load(name)
        fingerprint, entries = (partitioning.fingerprint, {}) if stored is None else unpack(stored)
        translate = None
        if fingerprint != partitioning.fingerprint:
            translate = self._translation(fingerprint, partitioning)
            touched = {*entries, *events}
        else:
            touched = {key for key, (due, _) in entries.items() if due <= watermark} | set(events)
        for key in sorted(touched, key=lambda k: k or ""):
            entry = entries.pop(key, None)
            state = KeyState() if entry is None else codec.decode(entry[1], translate)
            self._count_live(partitioning, state, -1)
            matcher.advance(key, state, events.get(key, ()), watermark, outputs)
            self._count_live(partitioning, state, 1)
            if not state.idle:
                entries[key] = (state.deadline, codec.encode(state))
        if entries:
            store(name, pack((partitioning.fingerprint, entries)))
            self._due[name] = min(due for due, _ in entries.values())
        else:
            if stored is not None:
                store(name, None)
            self._due.pop(name, None)

    def live(self) -> dict[str, int]:
        """How many partial matches live, by rule id."""
        return {self._rule_ids[fingerprint]: count for fingerprint, count in self._live.items()}

    def _count_live(self, partitioning: Partitioning, state: KeyState, sign: int) -> None:
        for number, rule_state in state.rules.items():
            fingerprint = partitioning.rules[number].plan.fingerprint
            count = self._live.get(fingerprint, 0) + sign * len(rule_state.partials)
            self._live[fingerprint] = count

    def _translation(
        self, fingerprint: bytes, partitioning: Partitioning
    ) -> Callable[[Event], Event]:
        """Rewrites events that were stored under another rule set: by name, what is new is NULL
        or not true."""
        old = self._meanings.get(fingerprint)
        if old is None:
            raise StateError(
                "the state holds events of a rule set that the checkpoint does not describe:"
                " it is damaged; restore a copy of the checkpoint"
            )
        bits = {
            old.conditions.index(c.name): n
            for n, c in enumerate(partitioning.conditions)
            if c.name in old.conditions
        }
        slots = [
            old.slots.index(s.name) if s.name in old.slots else None for s in partitioning.slots
        ]

        def translate(event: Event) -> Event:
            moved = sum(1 << new for was, new in bits.items() if event.bits >> was & 1)
            columns = [None if was is None else event.columns[was] for was in slots]
            return event._replace(bits=moved, columns=columns)

        return translate


def _prefix(partitioning: Partitioning) -> str:
    """What the names of a partitioning's slots begin with; the same under any rule set."""
    return f"{zlib.crc32(partitioning.key_name.encode()):08x}"


def packed_shape(number: int, partitioning: Partitioning) -> PackedPartitioning:
    """How the partitioning's columns travel."""
    words = -(-len(partitioning.conditions) // WORD_BITS)
    return PackedPartitioning(number, words, len(partitioning.slots))


def _headers(text: str | None) -> tuple[tuple[str, bytes | None], ...]:
    """A record's headers out of Spark's JSON, which has binary as base64 and leaves out NULL."""
    return tuple(
        (header["key"], b64decode(header["value"]) if "value" in header else None)
        for header in json.loads(text or "[]")
    )


def _joined(*words: int) -> int:
    return sum(part << WORD_BITS * position for position, part in enumerate(words))
