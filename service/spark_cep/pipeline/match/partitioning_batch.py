"""One partitioning of a key group during one batch: the events that its watermark has reached,
applied to the keys that they and deadlines touch.

Keys are spread over buckets by hash (:mod:`spark_cep.pipeline.state.buckets`). A batch reads the
buckets that its events and deadlines touch, a bounded number of bytes at a time, decodes the keys
that they touch, and writes what has changed of those.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from time import perf_counter_ns

import numpy as np

from spark_cep.columns.compilation import NEVER
from spark_cep.columns.vectors import no_texts
from spark_cep.compiler.rule_set import Partitioning
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import FOREVER
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.pipeline.match.batch_events import BatchEvents, Sized
from spark_cep.pipeline.match.draining import DrainingRules
from spark_cep.pipeline.match.event_columns import input_batch
from spark_cep.pipeline.match.options import MatchOptions
from spark_cep.pipeline.match.spool import slices
from spark_cep.pipeline.match.waiting import WaitingEvents
from spark_cep.pipeline.state.bucket_storage import BucketStorage
from spark_cep.pipeline.state.buckets import BucketKeys, buckets_of_keys
from spark_cep.pipeline.state.entries import PREFIX_LENGTH, Entries, Load, Spread, Store, bucket_of
from spark_cep.pipeline.state.known_rules import KnownRules

#: Bytes of buckets that are read together, with the events of their keys.
PORTION = 4 << 20
#: What columns of stored events meant under earlier rule sets is in the group's value, which each
#: batch writes: with more than so many, a batch renews some buckets that nothing touches.
MOST_MEANINGS, _RENEWED = 4, 2
#: Counts of what the matcher does: it tests events against partial matches, and reports.
_WORK = frozenset({"tested", "matched", "timed_out"})


@dataclass(frozen=True)
class PartitioningBatch:
    """The partitioning of a matcher, and what it uses of its key group. ``spent``: nanoseconds of
    the matcher in this batch, shared out to rules."""

    matcher: KeysMatcher
    options: MatchOptions
    names: Names
    entries: Entries
    rules: KnownRules
    draining: DrainingRules
    spent: Counter[str]
    load: Load
    store: Store

    def run(
        self, number: int, events: BatchEvents, sized: list[Sized], before: int, watermark: int
    ) -> Iterator[Outputs]:
        """Apply the events of partitioning ``number`` (``sized``: their times and sizes) and decide
        deadlines, from the watermark ``before`` up to ``watermark``, in slices of time of bounded
        size."""
        part = self.matcher.partitioning
        waiting = WaitingEvents(prefix_of(part), self.entries, self.rules)
        sized = [*sized, *waiting.sizes(watermark)]
        cuts = [FOREVER]
        if sized:
            times, sizes = (np.concatenate(each) for each in zip(*sized, strict=True))
            cuts = slices(times, sizes, self.options.slice_bytes)
        after = before
        for until in sorted({*cuts, *self.draining.limits(part, watermark)}):
            rows = events.timely(number, after, until)
            batch = InputBatch()
            if rows is not None:
                batch = input_batch(rows, number, self.matcher, self.names, self.options.type_names)
            now = min(until, watermark)
            self._mark(batch, before)
            yield from self._advance(batch, waiting, now)
            self.draining.end(part, now)
            after = max(after, until)

    def _mark(self, batch: InputBatch, watermark: int) -> None:
        """Say of events that were just read, by their times, which rules have not begun, and which
        that drain may begin matches."""
        part = self.matcher.partitioning
        early = self.draining.early_before(part)
        unseen = self.rules.unseen_before(part, watermark)
        if not (early or unseen) or not len(batch):
            return
        times = sorted({*early, *unseen})
        passed = np.searchsorted(times, batch.events.time, side="right")
        masks = len(batch.masks)
        pairs, batch.mask = np.unique(passed * masks + batch.mask, return_inverse=True)
        each = [early.get(time, 0) | unseen.get(time, 0) for time in times]
        bits = [reduce(or_, each[n:], 0) for n in range(len(times) + 1)]
        batch.masks = [batch.masks[n % masks] | bits[n // masks] for n in pairs.tolist()]

    def _advance(
        self, batch: InputBatch, waiting: WaitingEvents, watermark: int
    ) -> Iterator[Outputs]:
        prefix, entries, size = waiting.prefix, self.entries, self.options.bucket_size
        due = entries.due(prefix, watermark)
        waited = [name for name in due if bucket_of(name) is None]
        batch = waiting.reached(batch, waited, watermark, self.load, self.store)
        hidden = self.draining.hidden(self.matcher.partitioning)
        if hidden:
            batch.masks = [mask | hidden for mask in batch.masks]
        of_batch = batch.size
        least = of_batch // PORTION
        spread = entries.spread(prefix, size, least)
        if least > spread.before:
            # A large batch, and few buckets: split at once, it can be applied in portions.
            self._split(spread)
            spread = entries.spread(prefix, size)
            due = entries.due(prefix, watermark)
        homes = buckets_of_keys(batch.keys, spread.before)
        storage = self._storage(spread)
        of_due = (bucket for bucket in map(bucket_of, due) if bucket is not None)
        outdated = entries.outdated(prefix, MOST_MEANINGS, _RENEWED)
        touched = sorted({*homes.tolist(), *spread.split, *of_due, *outdated})
        of_events: dict[int, float] = {}
        if least:
            events = np.bincount(homes[batch.key]) * (of_batch / len(batch))
            of_events = dict(enumerate(events.tolist()))
        for portion in entries.portions(spread, touched, PORTION, of_events):
            mine = batch
            if len(portion) < len(touched):
                mine = batch.take(np.flatnonzero(np.isin(homes, portion)[batch.key]))
            keys = storage.read(portion, self.load)
            yield from self._apply(keys, mine, watermark)
            storage.write(portion, keys.written(), self.store)

    def _split(self, spread: Spread) -> None:
        """Split buckets now, as otherwise the batch does that applies events to their keys."""
        storage = self._storage(spread)
        for portion in self.entries.portions(spread, sorted(spread.split), PORTION):
            keys = storage.read(portion, self.load)
            keys.give(keys.take(no_texts(), NEVER))
            storage.write(portion, keys.written(), self.store)

    def _storage(self, spread: Spread) -> BucketStorage:
        return BucketStorage(self.entries, spread, self.matcher.fingerprints, self.rules)

    def _apply(self, keys: BucketKeys, batch: InputBatch, watermark: int) -> Iterator[Outputs]:
        """Let the matcher work on some buckets, given the batch's events for them."""
        fingerprints = self.matcher.fingerprints
        # The matcher changes what it is given.
        state = replace(keys.take(batch.keys, watermark))
        self.rules.count(fingerprints, state, -1)
        counts: Counter[tuple[str, str]] = Counter()
        alone: Counter[str] = Counter()
        spent, began = 0, perf_counter_ns()
        for outputs in self.matcher.advance(state, batch, watermark, self.names):
            counts.update(outputs.counts)
            alone.update(outputs.spent)
            spent += perf_counter_ns() - began
            yield outputs
            began = perf_counter_ns()
        self._share_out(spent + perf_counter_ns() - began, alone, counts)
        self.rules.count(fingerprints, state, 1)
        keys.give(state)

    def _share_out(self, spent: int, alone: Counter[str], counts: Counter[tuple[str, str]]) -> None:
        """Charge the matcher's time to its rules: to those that run ``alone`` their own, the rest
        to the others, by what they made it do. It runs those in one loop, in which a clock for each
        would cost more than many a rule."""
        work: Counter[str] = Counter()
        for (rule, what), count in counts.items():
            if what in _WORK and rule not in alone:
                work[rule] += count
        self.spent.update(alone)
        shares = work or alone
        rest, total = spent - alone.total(), max(1, shares.total())
        for rule, done in shares.items():
            self.spent[rule] += rest * done // total


def prefix_of(partitioning: Partitioning) -> str:
    """Return the prefix of the names of a partitioning's entries; it is the same under any rule
    set."""
    return f"{zlib.crc32(partitioning.key_name.encode()):0{PREFIX_LENGTH}x}"
