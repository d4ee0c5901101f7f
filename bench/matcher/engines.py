"""The matchers that are measured, behind one small protocol.

An engine gets columns and counts what it found. Whatever it needs to make of the columns first is
its own time: the job has to do it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from bench.matcher.stream import Batch
from spark_cep.columns.vectors import Bytes, Numbers, Vector
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning
from spark_cep.matcher.batch.events import EventTable, together
from spark_cep.matcher.steps.held import Held
from spark_cep.matcher.steps.matcher import StepLoopRun
from spark_cep.matcher.steps.tables import PlanTables
from spark_cep.pattern.types import DOUBLE, STRING, RecordType

#: What the events hold.
TYPES = RecordTypes(
    (("events", "Event", RecordType({"user": STRING, "kind": STRING, "amount": DOUBLE})),)
)


class Counts(NamedTuple):
    """What one batch, or a whole stream, led to."""

    matches: int
    timeouts: int


class Runner(Protocol):
    """One rule on its way through one stream; it owns the state of all keys."""

    def advance(self, batch: Batch, watermark: int) -> Counts:
        """Take in ``batch``, move to ``watermark``, and tell what was found."""
        ...


class Engine(Protocol):
    """A way to run rules."""

    @property
    def name(self) -> str:
        """As the table calls it."""
        ...

    def prepare(self, rule: Partitioning) -> Runner:
        """A runner without state."""
        ...


class Kernel:
    """The matcher over arrays, compiled: what the job runs."""

    name = "kernel"

    def prepare(self, rule: Partitioning) -> Runner:
        """A runner without state."""
        return _KernelRunner(PlanTables(rule, TYPES))


class _KernelRunner:
    """Does what the job does for a key group, from columns to what was found as columns: for each
    match and timeout its steps and events. State stays as arrays."""

    def __init__(self, tables: PlanTables) -> None:
        self._tables = tables
        self._held = Held.nothing()
        self._events = EventTable.empty()
        self._waiting: Batch | None = None

    def advance(self, batch: Batch, watermark: int) -> Counts:
        """Put the events in order, run them, and take what was found."""
        key, time, offset, bits, *columns = (
            np.concatenate([before, now])
            for before, now in zip(
                _columns(self._waiting, batch), _columns(batch, batch), strict=True
            )
        )
        ahead = time > watermark
        self._waiting = Batch(
            batch.keys,
            key[ahead],
            time[ahead],
            offset[ahead],
            bits[ahead],
            tuple(column[ahead] for column in columns),
        )
        rows = np.flatnonzero(~ahead)
        rows = rows[np.lexsort((offset[rows], time[rows], key[rows]))]
        masks, mask = np.unique(bits[rows], return_inverse=True)
        nothing = np.zeros(len(rows), np.int32)
        came = EventTable(
            time[rows],
            nothing,
            nothing,
            offset[rows],
            nothing,
            [_vector(column[rows]) for column in columns] or None,
        )
        events = together([self._events, came])
        run = StepLoopRun(
            self._tables, self._held, events, key[rows], masks.tolist(), mask, watermark
        )
        matches = timeouts = 0
        for findings in run:
            matches += len(findings.match_key)
            timeouts += len(findings.timeout_key)
        self._held, kept = run.held, np.unique(run.held.events)
        self._events, numbers = events.take(kept), np.zeros(len(events), np.int64)
        numbers[kept] = np.arange(len(kept))
        self._held.renumber(np.arange(int(self._held.instances["key"].max(initial=0)) + 1), numbers)
        return Counts(matches, timeouts)


def _vector(column: Any) -> Vector:
    if column.dtype == np.float64:
        return Numbers(column, np.zeros(len(column), bool))
    return Bytes.of([text.encode() for text in column.tolist()])


def _columns(batch: Batch | None, like: Batch) -> list[Any]:
    columns = [like.key, like.time, like.offset, like.bits, *like.columns]
    if batch is None:
        return [column[:0] for column in columns]
    return [batch.key, batch.time, batch.offset, batch.bits, *batch.columns]


ENGINES: Sequence[Engine] = (Kernel(),)
