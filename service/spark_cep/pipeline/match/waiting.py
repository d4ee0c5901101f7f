"""Events ahead of the watermark. They wait in entries of their own, in order of time and of bounded
size, so that a batch reads only those that hold something to apply, however many wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spark_cep.columns.compilation import FOREVER, I64
from spark_cep.matcher.batch.events import EventTable
from spark_cep.matcher.batch.input_batch import InputBatch, batches_together, reached
from spark_cep.matcher.snapshot.waiting_events import decode_batch, encode_batch
from spark_cep.pipeline.match.batch_events import Sized
from spark_cep.pipeline.state.entries import Entries, Load, Store, bucket_of
from spark_cep.pipeline.state.known_rules import KnownRules

#: Events of one entry.
_MOST_WAITING = 4_096
#: Bytes of records that such an entry holds, where a rule emits them.
_MOST_WAITING_BYTES = 4 << 20
#: How many times its bytes such an entry takes when it is read: it is decoded, joined with others,
#: and taken apart by key.
_UNPACKED = 4


@dataclass(frozen=True)
class WaitingEvents:
    """The waiting events of a partitioning, whose entries begin with ``prefix``."""

    prefix: str
    entries: Entries
    rules: KnownRules

    def sizes(self, watermark: int) -> list[Sized]:
        """Times and sizes of the entries that ``watermark`` reaches."""
        waiting = self.entries.waiting(self.prefix, watermark)
        times, sizes = np.array(waiting, np.int64).reshape(-1, 2).T
        return [(times, sizes * _UNPACKED)] if waiting else []

    def reached(
        self, batch: InputBatch, waited: Sequence[str], watermark: int, load: Load, store: Store
    ) -> InputBatch:
        """Return the events that the watermark has reached, of those that came and of the entries
        ``waited``; the others wait."""
        names = sorted(waited)
        stored = self.entries.loaded(names, load)
        loaded = [self._decoded(name, data) for name, data in zip(names, stored, strict=True)]
        for name in names:
            self.entries.remove(name, store)
        batch, ahead = reached(batches_together([*loaded, batch]), watermark)
        if not len(ahead):
            return batch
        free = self.entries.free_for_waiting(self.prefix)
        for rows in _by_entry(ahead.events):
            part = ahead.take(rows)
            self.entries.keep_waiting(
                next(free), encode_batch(part), int(part.events.time.min()), len(rows), store
            )
        return batch

    def beyond(self, time: int, load: Load, store: Store) -> Iterator[EventTable]:
        """Let go of the events that are later than ``time``; yields them."""
        for name in self.entries.due(self.prefix, FOREVER):
            if bucket_of(name) is not None:
                continue
            (stored,) = self.entries.loaded([name], load)
            kept, gone = reached(self._decoded(name, stored), time)
            if not len(gone):
                continue
            self.entries.remove(name, store)
            if len(kept):
                due = int(kept.events.time.min())
                self.entries.keep_waiting(name, encode_batch(kept), due, len(kept), store)
            yield gone.events

    def _decoded(self, name: str, data: bytes) -> InputBatch:
        batch = decode_batch(data)
        meaning = self.entries.stale(name)
        if meaning is not None:
            self.rules.translation(meaning, self.prefix).batch(batch)
        return batch


def _by_entry(events: EventTable) -> list[I64]:
    """Events, by the entries that they wait in."""
    share = np.full(len(events), 1 / _MOST_WAITING)
    if events.payload is not None:
        share += events.payload.lengths / _MOST_WAITING_BYTES
    entry = (share.cumsum() - share).astype(np.int64)
    parts = np.split(np.arange(len(events)), np.flatnonzero(entry[1:] != entry[:-1]) + 1)
    return [part for part in parts if len(part)]
