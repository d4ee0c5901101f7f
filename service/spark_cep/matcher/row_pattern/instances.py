"""The state of keys for rules in SQL, beside that for rules of steps.

An *instance* is a rule for a key. Its rows are events of the key's state, which others may have,
too; its threads and nodes, and where its attempts have failed, are as in
:mod:`spark_cep.matcher.row_pattern.loops.tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from spark_cep.columns.compilation import FOREVER, I64, Table, record
from spark_cep.columns.vectors import Flags, places_of
from spark_cep.matcher.engine import Stored, StoredTable
from spark_cep.matcher.row_pattern.loops.tables import KEY, NODE, THREAD, TRIED

#: Which event a row is, the conditions on the row alone that are true of it, and its microseconds
#: behind the millisecond.
ROW = record(event="i8", bits="i8", micros="i8")
_OF_KEY = [(name, KEY[name]) for name in KEY.names or ()]
#: ``key`` and ``rule`` as in other instances; ``due``: the watermark at which something is due. The
#: rest is as in ``KEY``.
INSTANCE = np.dtype([("key", "i8"), ("rule", "i8"), ("due", "i8"), *_OF_KEY], align=True)


_NOTHING: Sequence[Table] = [np.zeros(0, kind) for kind in (INSTANCE, THREAD, NODE, ROW, TRIED)]


@dataclass(slots=True)
class RowPatternInstances:
    """Instances, sorted by key and rule, and their threads, nodes, rows and instructions tried in
    the same order, as many as they say."""

    instances: Table = field(default_factory=lambda: _NOTHING[0])
    threads: Table = field(default_factory=lambda: _NOTHING[1])
    nodes: Table = field(default_factory=lambda: _NOTHING[2])
    rows: Table = field(default_factory=lambda: _NOTHING[3])
    tried: Table = field(default_factory=lambda: _NOTHING[4])

    def __len__(self) -> int:
        return len(self.instances)

    @property
    def due(self) -> I64:
        """By instance, the watermark at which something is due."""
        due: I64 = self.instances["due"]
        return due

    @property
    def deadlines(self) -> I64:
        """By instance, the deadline of the attempt under way."""
        return self.due

    def oldest(self, _times: I64) -> I64:
        """By instance, ``FOREVER``: the rows do not say which of them opened an attempt."""
        return np.full(len(self), FOREVER, np.int64)

    @property
    def events(self) -> I64:
        """The numbers of the events that are held."""
        events: I64 = self.rows["event"]
        return events

    @property
    def live(self) -> I64:
        """The number of partial matches of each instance: threads, or a match that waits for
        further rows."""
        live: I64 = np.maximum(self.instances["threads"], self.instances["attempt"] != 0).astype(
            np.int64
        )
        return live

    def take(self, chosen: I64) -> RowPatternInstances:
        """Those of some places, in this order."""
        threads, nodes, rows, tried = (
            places_of(self.instances[name].astype(np.int64), chosen)
            for name in ("threads", "nodes", "rows", "tried")
        )
        return RowPatternInstances(
            self.instances.take(chosen), self.threads.take(threads), self.nodes.take(nodes),
            self.rows.take(rows), self.tried.take(tried),
        )  # fmt: skip

    def renumber(self, keys: I64, events: I64) -> None:
        """Give keys and events other numbers, in place: those that stand at the old ones."""
        self.instances["key"] = keys[self.instances["key"]]
        self.rows["event"] = events[self.rows["event"]]

    def of_instances(self, wanted: Flags) -> RowPatternInstances:
        """The part of the ``wanted`` instances, with the same numbers."""
        return self.take(np.flatnonzero(wanted))

    def of_keys(self, wanted: Flags, _of_events: Flags) -> RowPatternInstances:
        """The part of the ``wanted`` keys, with the same numbers."""
        return self.of_instances(wanted[self.instances["key"]])

    @classmethod
    def together(
        cls, parts: Sequence[RowPatternInstances], keys: I64, events: I64
    ) -> RowPatternInstances:
        """Join several, in this order; ``keys`` and ``events``: where the numbers of each part
        begin."""
        found = instances_together(parts)
        if not len(found):
            return found
        found.instances["key"] += np.repeat(keys, [len(part) for part in parts])
        found.rows["event"] += np.repeat(events, [len(part.rows) for part in parts])
        return found


def moved_rows(rows: Table, numbers: I64) -> Table:
    """Rows whose events have other numbers: those that stand at the old ones."""
    moved = rows.copy()
    moved["event"] = numbers[rows["event"]]
    return moved


def instances_together(parts: Sequence[RowPatternInstances]) -> RowPatternInstances:
    """Several as one, in this order."""
    parts = [part for part in parts if len(part)]
    if len(parts) <= 1:
        return parts[0] if parts else RowPatternInstances()
    return RowPatternInstances(
        np.concatenate([part.instances for part in parts]),
        np.concatenate([part.threads for part in parts]),
        np.concatenate([part.nodes for part in parts]),
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.tried for part in parts]),
    )


STORED = Stored(
    RowPatternInstances,
    (
        StoredTable(
            "instances",
            INSTANCE,
            tuple(name for name in INSTANCE.names or () if name != "key"),
            of_keys=True,
        ),
        StoredTable("threads", THREAD, ("at", "node", "length")),
        StoredTable("nodes", NODE, ("previous", "label")),
        StoredTable("rows", ROW, ("event", "bits", "micros"), events=("event",)),
        StoredTable("tried", TRIED, ("at",)),
    ),
    lambda column: column("due"),
)
