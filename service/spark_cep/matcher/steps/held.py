"""The state of many keys for rules of steps, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from spark_cep.columns.compilation import FOREVER, I64, NEVER, Table
from spark_cep.columns.vectors import Flags
from spark_cep.matcher.batch.events import EventTable, Names, SlotType
from spark_cep.matcher.engine import Stored, StoredTable
from spark_cep.matcher.findings.partial import Finished, Partial, RuleState, Taken
from spark_cep.matcher.steps.loops import kernel_tables

#: An instance that something is remembered of: rule and key, and as in ``kernel_tables.INSTANCE``.
INSTANCE = np.dtype(
    [
        ("key", "i8"), ("deadline", "i8"), ("quiet", "i8"), ("events_bound", "i8"),
        ("rule", "i4"), ("partials", "i4"), ("finished", "i4"), ("paused", "u1"),
        ("limited", "u1"),
    ],
    align=True,
)  # fmt: skip
NODE = np.dtype([("previous", "i4"), ("step", "i4"), ("event", "i4"), ("matched", "i4")])


class Held(NamedTuple):
    """The state between two runs, as records. ``instances`` are sorted by key and rule;
    ``partials`` and ``finished`` are in their order, as many as they say. Nodes stand before those
    behind them."""

    instances: Table
    partials: Table
    finished: Table
    nodes: Table

    @classmethod
    def nothing(cls) -> Held:
        """The state at the start: nothing."""
        return _NOTHING

    @property
    def due(self) -> I64:
        """Per instance, the watermark at which something is due."""
        return _due(self.instances.__getitem__)

    @property
    def deadlines(self) -> I64:
        """Per instance, the earliest deadline of a partial match."""
        deadlines: I64 = self.instances["deadline"]
        return deadlines

    def oldest(self, times: I64) -> I64:
        """Per instance, the time of the oldest event that opened a partial match."""
        oldest = np.full(len(self.instances), FOREVER, np.int64)
        owner = np.repeat(np.arange(len(oldest)), self.instances["partials"])
        np.minimum.at(oldest, owner, times[self.partials["first"]])
        return oldest

    @property
    def live(self) -> I64:
        """Per instance, how many partial matches there are."""
        return self.instances["partials"].astype(np.int64)

    @property
    def events(self) -> I64:
        """The events that nodes hold; those of partial and complete matches are among them."""
        return self.nodes["event"].astype(np.int64)

    def renumber(self, keys: I64, events: I64) -> None:
        """Give keys and events other numbers, in place: those that stand at the old ones."""
        self.instances["key"] = keys[self.instances["key"]]
        for table in (self.partials, self.finished):
            table["first"] = events[table["first"]]
        self.nodes["event"] = events[self.nodes["event"]]

    def of_instances(self, chosen: Flags) -> Held:
        """With these of the instances alone, and all nodes."""
        return Held(
            self.instances[chosen],
            self.partials[np.repeat(chosen, self.instances["partials"])],
            self.finished[np.repeat(chosen, self.instances["finished"])],
            self.nodes,
        )

    def of_keys(self, wanted: Flags, of_events: Flags) -> Held:
        """The part of the ``wanted`` keys, which hold the events ``of_events``, with the same
        numbers."""
        held = self.of_instances(wanted[self.instances["key"]])
        of_nodes = of_events[self.nodes["event"]]
        nodes = np.cumsum(of_nodes) - 1
        for table in (held.partials, held.finished):
            table["last"] = nodes[table["last"]]
        kept = self.nodes[of_nodes]
        previous = kept["previous"]
        inner = previous >= 0
        previous[inner] = nodes[previous[inner]]
        return held._replace(nodes=kept)

    @classmethod
    def together(cls, parts: Sequence[Held], keys: I64, events: I64) -> Held:
        """Join several, in this order; ``keys`` and ``events``: where the numbers of each part
        begin."""
        held = cls(*map(np.concatenate, zip(*parts, strict=True)))
        nodes = np.cumsum([0, *(len(part.nodes) for part in parts[:-1])]).astype(np.int32)
        starts = events.astype(np.int32)
        held.instances["key"] += np.repeat(keys, [len(part.instances) for part in parts])
        for table, rows in ((held.partials, 1), (held.finished, 2)):
            counts = [len(part[rows]) for part in parts]
            table["first"] += np.repeat(starts, counts)
            table["last"] += np.repeat(nodes, counts)
        counts = [len(part.nodes) for part in parts]
        held.nodes["event"] += np.repeat(starts, counts)
        previous = held.nodes["previous"]
        previous += np.where(previous < 0, 0, np.repeat(nodes, counts))
        return held


def _due(column: Callable[[str], I64]) -> I64:
    deadline, quiet = column("deadline"), column("quiet")
    waits = (quiet != NEVER) & (column("finished") == 0)
    return np.where(waits, np.minimum(deadline, quiet), deadline)


_OF_PARTIALS = {"last": "nodes"}
STORED = Stored(
    Held,
    (
        StoredTable(
            "instances", INSTANCE,
            ("rule", "deadline", "quiet", "paused", "limited", "events_bound", "partials",
             "finished"),
            of_keys=True,
        ),
        StoredTable(
            "partials", kernel_tables.PARTIAL, ("state", "first", "last", "deadline"),
            events=("first",), rows=_OF_PARTIALS,
        ),
        StoredTable(
            "finished", kernel_tables.FINISHED, ("first", "last", "time"),
            events=("first",), rows=_OF_PARTIALS,
        ),
        StoredTable(
            "nodes", NODE, ("previous", "step", "event", "matched"), of_keys=True,
            events=("event",), rows={"previous": "nodes"},
        ),
    ),
    _due,
)  # fmt: skip


_NOTHING = Held(*(np.zeros(0, table.kind) for table in STORED.tables))


def rule_states(
    held: Held, events: EventTable, names: Names, slots: Sequence[SlotType]
) -> Iterator[tuple[int, int, RuleState]]:
    """Yield the state as objects: key and rule by number, and the rule's state. Without ``slots``
    the events have no columns."""
    event = events.objects(names, slots)
    known = [event(row) for row in range(len(events))]
    nodes: list[Taken] = []
    for previous, step, row, matched in held.nodes.tolist():
        nodes.append(Taken(nodes[previous] if previous >= 0 else None, step, known[row], matched))
    partials = (
        Partial(state, known[first], nodes[last], deadline)
        for deadline, state, first, last, *_ in held.partials.tolist()
    )
    finished = (
        Finished(known[first], nodes[last], time) for time, first, last in held.finished.tolist()
    )
    for instance in held.instances:
        quiet = int(instance["quiet"])
        state = RuleState(
            partials=list(islice(partials, instance["partials"])),
            finished=list(islice(finished, instance["finished"])),
            deadline=int(instance["deadline"]),
            quiet_until=None if quiet == NEVER else quiet,
            paused=bool(instance["paused"]),
            limited=bool(instance["limited"]),
            events_at_most=int(instance["events_bound"]),
        )
        yield int(instance["key"]), int(instance["rule"]), state
