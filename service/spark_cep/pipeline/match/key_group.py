"""One key group during one batch: its clock, its buckets of keys, and the rules applied to them.

Events ahead of the watermark wait in entries of their own, in order of time and of bounded size, so
that a batch reads only those that hold something to apply, however many wait.

Keys are spread over buckets by hash (:mod:`spark_cep.pipeline.state.buckets`). A batch reads the
buckets that its events and deadlines touch, a bounded number of bytes at a time, decodes the keys
that they touch, and writes what has changed of those.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter_ns
from typing import Any

import numpy as np
import pyarrow as pa

from spark_cep.columns.compilation import I64
from spark_cep.columns.texts import TextSet
from spark_cep.columns.vectors import no_texts
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, RuleSetPlan
from spark_cep.errors import StateError
from spark_cep.matcher.batch.events import EventTable, Names, micros_or_none
from spark_cep.matcher.batch.input_batch import InputBatch, batches_together, reached
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import FOREVER
from spark_cep.matcher.keys import KeysMatcher, KeysState
from spark_cep.matcher.snapshot import decode_batch, encode_batch
from spark_cep.model import LateEvent
from spark_cep.pipeline.match.batch_events import BatchEvents, Sized
from spark_cep.pipeline.match.drains import Drains
from spark_cep.pipeline.match.slot_columns import vector_of
from spark_cep.pipeline.match.spool import SLICE, slices
from spark_cep.pipeline.match.watermark import Clock, Policy
from spark_cep.pipeline.state.bucket_storage import BucketStorage
from spark_cep.pipeline.state.buckets import BucketKeys, buckets_of, hashes_of
from spark_cep.pipeline.state.entries import Entries, Load, Store, bucket_of
from spark_cep.pipeline.state.group_format import FORMAT, check_format
from spark_cep.pipeline.state.known_rules import KnownRules
from spark_cep.pipeline.wire.arrow_bytes import bytes_of
from spark_cep.pipeline.wire.event_packets import (
    MICROS_COLUMN,
    TYPE_COLUMN,
    PackedPartitioning,
    word,
)
from spark_cep.pipeline.wire.masks import distinct_masks
from spark_cep.pipeline.wire.packets import Unkeyed

#: Bytes of buckets that are read together.
_PORTION = 4 << 20
#: Events of one entry of those that wait.
_MOST_WAITING = 4_096
#: Bytes of records that such an entry holds, where a rule emits them.
_MOST_WAITING_BYTES = 4 << 20
#: How many times its bytes such an entry takes when it is read: it is decoded, joined with others,
#: and taken apart by key.
_UNPACKED = 4

#: What columns of stored events meant under earlier rule sets is in the group's value, which each
#: batch writes: with more than so many, a batch renews some buckets that nothing touches.
_MOST_MEANINGS, _RENEWED = 4, 2

#: Counts of what the matcher does: it tests events against partial matches, and reports.
_WORK = frozenset({"tested", "matched", "timed_out"})


@dataclass(frozen=True)
class MatchOptions:
    """The options of the operator besides the plan. ``bucket_size``: bytes of a bucket before there
    are more of them; ``type_names``: record name by type number; ``slice_bytes``: bytes of events
    that are processed together."""

    key_groups: int
    bucket_size: int
    policy: Policy
    allowed_disorder_ms: int
    emit_late: bool
    type_names: tuple[str | None, ...]
    types: RecordTypes
    slice_bytes: int = SLICE


class KeyGroup:
    """Clock, topics, rules and buckets of one key group. ``stored``: the group's state, if it has
    one. StateError when it cannot be taken over."""

    def __init__(
        self,
        number: int,
        plan: RuleSetPlan,
        options: MatchOptions,
        matchers: Sequence[KeysMatcher],
        stored: dict[str, Any] | None = None,
    ) -> None:
        if stored is not None:
            _check(stored, options)
        self.number = number
        self.clock = Clock(options.policy, options.allowed_disorder_ms)
        if stored is not None:
            self.clock.restore(stored["clock"])
        self._events = BatchEvents((), (), self.clock.watermark, ())
        #: Nanoseconds of the matcher in this batch, shared out to rules.
        self.processing: Counter[str] = Counter()
        self._options = options
        self._matchers = matchers
        #: Numbers of topics and record types.
        self.names = Names() if stored is None else Names(stored["topics"], stored["types"])
        by_prefix = {_prefix(matcher.partitioning): matcher for matcher in matchers}
        self._rules = KnownRules(plan, by_prefix, stored, self.clock.watermark)
        drains = {} if stored is None else stored.get("drains", {})
        self._drains = Drains(plan.draining, self.clock, self._rules, drains)
        # What bits mean says which rules there are, by their numbers in this state.
        self._entries = Entries(number, self._rules.meanings())
        if stored is not None:
            self._entries.restore(stored, self._rules.same_buckets)
            for prefix, matcher in by_prefix.items():
                for fingerprint in matcher.fingerprints:
                    carry = self._rules.carried.get(fingerprint)
                    if carry is not None:
                        self._entries.sooner(prefix, carry.sooner)

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
            "topics": self.names.topics,
            "types": self.names.types,
            "drains": self._drains.packed(),
            **self._rules.packed(self._entries.meanings_needed()),
            **self._entries.packed(),
        }

    @property
    def late(self) -> Counter[str]:
        """The number of late events of this batch, by topic."""
        return self._events.late

    def late_events(self) -> Iterator[LateEvent]:
        """The late events of the batch; none with ``emit_late`` off."""
        return self._events.late_events() if self._options.emit_late else iter(())

    def live(self) -> dict[tuple[str, int], int]:
        """Return the number of live partial matches by rule id and version."""
        return self._rules.live()

    def drained(self) -> list[str]:
        """Fingerprints of versions that drain and have nothing to do any more in this group."""
        return self._drains.done(self.clock.watermark)

    def states(self, load: Load) -> Iterator[tuple[KeysMatcher, KeysState]]:
        """All that is remembered of keys, by partitioning; the group is of no use afterwards."""
        every = TextSet(no_texts())
        for matcher in self._matchers:
            spread = self._entries.spread(_prefix(matcher.partitioning), self._options.bucket_size)
            storage = BucketStorage(self._entries, spread, matcher.fingerprints, self._rules)
            for portion in self._entries.portions(spread, range(spread.before), _PORTION):
                yield matcher, storage.read(portion, load).take(every, FOREVER)

    def run(
        self,
        packets: Iterable[tuple[int, pa.RecordBatch]],
        unkeyed: Iterable[Unkeyed],
        load: Load,
        store: Store,
    ) -> Iterator[Outputs]:
        """Apply a batch's events and decide every deadline that the watermark has reached.

        ``packets`` and ``unkeyed`` are read more than once, also by :meth:`late_events`.
        """
        before = self.clock.watermark
        keep = tuple(matcher.partitioning.keeps_payload for matcher in self._matchers)
        events = self._events = BatchEvents(packets, unkeyed, before, keep)
        watermark = self.clock.advance()
        for letter in events.dead_letters():
            yield Outputs(dead_letters=[letter])
        # Where no rule has a key any more, its partial matches are gone with the rules.
        self._entries.remove_others(store)
        sized = events.sizes()
        for number, matcher in enumerate(self._matchers):
            after = before
            part = matcher.partitioning
            cuts = self._slices(number, sized[number], watermark)
            for until in sorted({*cuts, *self._drains.limits(part, watermark)}):
                rows = events.timely(number, after, until)
                now = min(until, watermark)
                yield from self._advance(number, matcher, rows, now, load, store)
                self._drains.end(part, now)
                after = max(after, until)

    def _slices(self, number: int, sized: list[Sized], watermark: int) -> list[int]:
        """Up to which times events are taken up together, those that wait included."""
        prefix = _prefix(self._matchers[number].partitioning)
        waiting = [
            (due, size * _UNPACKED) for due, size in self._entries.waiting(prefix, watermark)
        ]
        sized = [*sized, *([] if not waiting else [tuple(np.array(waiting, np.int64).T)])]
        if not sized:
            return [FOREVER]
        times, sizes = (np.concatenate(each) for each in zip(*sized, strict=True))
        return slices(times, sizes, self._options.slice_bytes)

    def _advance(
        self,
        number: int,
        matcher: KeysMatcher,
        rows: pa.RecordBatch | None,
        watermark: int,
        load: Load,
        store: Store,
    ) -> Iterator[Outputs]:
        prefix = _prefix(matcher.partitioning)
        spread = self._entries.spread(prefix, self._options.bucket_size)
        batch = InputBatch() if rows is None else self._input_batch(number, matcher, rows)
        self._drains.mark(matcher.partitioning, batch)
        due = {name: bucket_of(name) for name in self._entries.due(prefix, watermark)}
        waited = [name for name, bucket in due.items() if bucket is None]
        batch = self._ready(batch, waited, watermark, prefix, load, store)
        hidden = self._drains.hidden(matcher.partitioning)
        if hidden:
            batch.masks = [mask | hidden for mask in batch.masks]
        homes = buckets_of(hashes_of(batch.keys), spread.before)
        storage = BucketStorage(self._entries, spread, matcher.fingerprints, self._rules)
        of_due = (bucket for bucket in due.values() if bucket is not None)
        outdated = self._entries.outdated(prefix, _MOST_MEANINGS, _RENEWED)
        touched = sorted({*homes.tolist(), *spread.split, *of_due, *outdated})
        wanted = TextSet(batch.keys)
        for portion in self._entries.portions(spread, touched, _PORTION):
            mine = batch
            if len(portion) < len(touched):
                mine = batch.take(np.flatnonzero(np.isin(homes, portion)[batch.key]))
            keys = storage.read(portion, load)
            yield from self._apply(keys, wanted, mine, matcher, watermark)
            storage.write(portion, keys.written(), store)

    def _apply(
        self,
        keys: BucketKeys,
        wanted: TextSet,
        batch: InputBatch,
        matcher: KeysMatcher,
        watermark: int,
    ) -> Iterator[Outputs]:
        """Let the matcher work on some buckets, given the batch's events for them and its keys."""
        fingerprints = matcher.fingerprints
        # The matcher changes what it is given.
        state = replace(keys.take(wanted, watermark))
        self._rules.count(fingerprints, state, -1)
        counts, spent, began = [], 0, perf_counter_ns()
        for outputs in matcher.advance(state, batch, watermark, self.names):
            counts.append(outputs.counts)
            spent += perf_counter_ns() - began
            yield outputs
            began = perf_counter_ns()
        self._share_out(spent + perf_counter_ns() - began, counts)
        self._rules.count(fingerprints, state, 1)
        keys.give(state)

    def _share_out(self, spent: int, counts: Iterable[Counter[tuple[str, str]]]) -> None:
        """Charge the matcher's time to its rules, by what they made it do. It runs all of them in
        one loop, in which a clock for each would cost more than many a rule."""
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
        batch: InputBatch,
        waited: Sequence[str],
        watermark: int,
        prefix: str,
        load: Load,
        store: Store,
    ) -> InputBatch:
        """Return the events that the watermark has reached, of those that came and of the entries
        ``waited``; the others wait, in entries of bounded size by time."""
        names = sorted(waited)
        stored = self._entries.loaded(names, load)
        loaded = [
            self._waiting(prefix, name, data) for name, data in zip(names, stored, strict=True)
        ]
        for name in names:
            self._entries.remove(name, store)
        batch, ahead = reached(batches_together([*loaded, batch]), watermark)
        free = self._entries.free_for_waiting(prefix)
        for rows in _of_entries(ahead.events):
            part = ahead.take(rows)
            self._entries.keep(next(free), encode_batch(part), int(part.events.time.min()), store)
        return batch

    def _waiting(self, prefix: str, name: str, data: bytes) -> InputBatch:
        batch = decode_batch(data)
        meaning = self._entries.stale(name)
        if meaning is not None:
            self._rules.translation(meaning, prefix).batch(batch)
        return batch

    # Events of a batch.

    def _input_batch(self, number: int, matcher: KeysMatcher, rows: pa.RecordBatch) -> InputBatch:
        partitioning = matcher.partitioning
        shape = PackedPartitioning.of(number, partitioning)
        keys, key = _dictionary(rows.column(f"key_{number}"))
        words = [rows.column(word(number, w)).to_numpy() for w in range(shape.words)]
        masks, mask = distinct_masks(np.stack(words, axis=1))
        unseen = partitioning.unseen_by_steps
        if unseen:
            without_key = np.array([*map(partitioning.has_null, keys.to_pylist())], bool)[key]
            mask = np.where(without_key, mask + len(masks), mask)
            masks += [each | unseen for each in masks]
        topics, topic = _encoded(rows.column("topic"))
        topic_numbers = np.array([self.names.topic(name) for name in topics], np.int32)
        type_names = self._options.type_names
        types, kind = _encoded(rows.column(TYPE_COLUMN))
        type_numbers = np.array([self.names.type(type_names[n]) for n in types], np.int32)
        columns = [
            vector_of(rows.column(f"slot_{number}_{place}"), slot)
            for place, slot in enumerate(matcher.slots)
        ]
        events = EventTable(
            time=rows.column("time").to_numpy(),
            topic=topic_numbers[topic],
            partition=rows.column("partition").to_numpy().astype(np.int32),
            offset=rows.column("offset").to_numpy(),
            type=type_numbers[kind],
            columns=columns or None,
            payload=bytes_of(rows.column("value")) if partitioning.keeps_payload else None,
            micros=_micros(rows),
        )
        return InputBatch(bytes_of(keys), masks, key, mask, events)


def _micros(rows: pa.RecordBatch) -> I64 | None:
    """Microseconds behind the milliseconds; ``None`` where there are none."""
    if MICROS_COLUMN not in rows.schema.names:
        return None
    return micros_or_none(rows.column(MICROS_COLUMN).to_numpy().astype(np.int64))


def _of_entries(events: EventTable) -> list[I64]:
    """Events, by the entries that they wait in."""
    share = np.full(len(events), 1 / _MOST_WAITING)
    if events.payload is not None:
        share += events.payload.lengths / _MOST_WAITING_BYTES
    entry = (share.cumsum() - share).astype(np.int64)
    parts = np.split(np.arange(len(events)), np.flatnonzero(entry[1:] != entry[:-1]) + 1)
    return [part for part in parts if len(part)]


def _check(stored: dict[str, Any], options: MatchOptions) -> None:
    check_format(stored)
    if stored["key_groups"] != options.key_groups:
        raise StateError(
            f"the checkpoint was made with state.key_groups {stored['key_groups']}, not"
            f" {options.key_groups}: the keys would not be found; set it back, or start from a new"
            " checkpoint"
        )


def _prefix(partitioning: Partitioning) -> str:
    """Return the prefix of the names of a partitioning's entries; it is the same under any rule
    set."""
    return f"{zlib.crc32(partitioning.key_name.encode()):08x}"


def _encoded(column: pa.Array) -> tuple[list[Any], Any]:
    """A column's values, each once, and for each row the place of its value."""
    values, places = _dictionary(column)
    return values.to_pylist(), places


def _dictionary(column: pa.Array) -> tuple[pa.Array, Any]:
    """Return the dictionary of a column, in Arrow."""
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
