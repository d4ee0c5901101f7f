"""The events that matches and timeouts have taken, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spark_cep.columns.compilation import I32, I64
from spark_cep.columns.vectors import Bytes, Flags, Objects, places_of
from spark_cep.matcher.batch.events import EventTable
from spark_cep.matcher.findings.loops.listed_loop import list_chains

#: So many bits of the number of a text's bytes weigh nothing, and the weight of values whose bytes
#: are not known; coordinates alone weigh 1.
_LIGHT_BITS, _UNKNOWN = 8, 50


class SomeEvents(NamedTuple):
    """Some events of each chain: those of chain ``i`` are ``events[first[i]]`` to
    ``events[end[i]]``."""

    events: I64
    first: I64
    end: I64


class Chains(NamedTuple):
    """Events taken, by chain: those of chain ``i`` are rows ``ends[i - 1]`` to ``ends[i]``."""

    ends: I64
    steps: I32
    events: I32

    def of(self, rows: I64) -> Chains:
        """These chains, in this order."""
        lengths = np.diff(self.ends, prepend=0)
        at = places_of(lengths, rows)
        return Chains(np.cumsum(lengths[rows]), self.steps[at], self.events[at])

    def some(self, mine: Flags) -> SomeEvents:
        """The events at which ``mine`` is true."""
        before = np.concatenate([[0], np.cumsum(mine)])
        starts = self.ends - np.diff(self.ends, prepend=0)
        return SomeEvents(self.events[mine].astype(np.int64), before[starts], before[self.ends])

    def listed(self) -> tuple[Chains, I64]:
        """The chains as timeouts list them, of each step the first and the last
        ``LISTED_AT_EACH_END`` events; and how many events of each chain are left out."""
        lengths = np.diff(self.ends, prepend=0)
        counts = np.zeros(2 * (int(self.steps.max(initial=0)) + 1), np.int64)
        places = np.zeros(int(lengths.max(initial=0)), np.int64)
        ends = np.zeros(len(lengths), np.int64)
        steps, events = np.empty_like(self.steps), np.empty_like(self.events)
        list_chains(self.ends, self.steps, self.events, counts, places, ends, steps, events)
        end = int(ends.max(initial=0))
        return Chains(ends, steps[:end], events[:end]), lengths - np.diff(ends, prepend=0)

    def cut(self, weight: I64, most: int) -> Iterator[tuple[slice, Chains]]:
        """In pieces whose events weigh so much at most, but for a single chain that weighs more:
        the places of each piece's chains, and these. ``weight``: by event."""
        ends, done = np.cumsum(weight[self.events])[self.ends - 1], 0
        while done < len(ends):
            before = int(ends[done - 1]) if done else 0
            end = max(int(np.searchsorted(ends, before + most, "right")), done + 1)
            first, last = int(self.ends[done - 1]) if done else 0, int(self.ends[end - 1])
            chains, events = slice(done, end), slice(first, last)
            yield chains, Chains(self.ends[chains] - first, self.steps[events], self.events[events])
            done = end


def weights(events: EventTable, *, coordinates_alone: bool = False) -> I64:
    """The weight of each event in a result, which has ``coordinates_alone`` or also the event's
    values."""
    found = np.ones(len(events), np.int64)
    if coordinates_alone:
        return found
    columns = events.columns or []
    for column in (*columns, events.payload):
        if isinstance(column, Bytes):
            found += column.lengths >> _LIGHT_BITS
    return found + _UNKNOWN * any(isinstance(column, Objects) for column in columns)
