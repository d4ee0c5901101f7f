"""The matchers that are measured, behind one small protocol.

An engine gets columns and counts what it found. Whatever it needs to make of the columns first is
its own time: the job has to do it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple, Protocol

import numpy as np

from bench.matcher.stream import Batch
from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning
from service.matcher.columnar.matcher import ColumnarMatcher, Held
from service.matcher.keyed import KeyedMatcher, KeyState
from service.matcher.outputs import Outputs
from service.model import Coordinates, Event
from service.pattern.types import DOUBLE, STRING, RecordType

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


class Reference:
    """The matcher in plain Python."""

    name = "interpreter"

    def prepare(self, rule: Partitioning) -> Runner:
        """A runner without state."""
        return _ReferenceRunner(KeyedMatcher(rule, TYPES))


class _ReferenceRunner:
    """Does what the job does for a key group, but keeps the states of keys as they are instead of
    as bytes."""

    def __init__(self, matcher: KeyedMatcher) -> None:
        self._matcher = matcher
        self._states: dict[str, KeyState] = {}
        self._due: dict[str, int] = {}

    def advance(self, batch: Batch, watermark: int) -> Counts:
        """Make events, sort them by key, and advance the keys that they or deadlines touch."""
        arrived: dict[str, list[Event]] = {}
        columns = [column.tolist() for column in batch.columns]
        for key, time, offset, bits, cells in zip(
            batch.key.tolist(),
            batch.time.tolist(),
            batch.offset.tolist(),
            batch.bits.tolist(),
            zip(*columns, strict=True) if columns else repeat(()),
            strict=False,
        ):
            event = Event(time, Coordinates("events", 0, offset), bits, cells)
            arrived.setdefault(batch.keys[key], []).append(event)
        idle_but_due = [
            key for key, due in self._due.items() if due <= watermark and key not in arrived
        ]
        outputs = Outputs()
        for touched in chain(arrived, idle_but_due):
            state = self._states.pop(touched, None) or KeyState()
            self._matcher.advance(touched, state, arrived.get(touched, ()), watermark, outputs)
            if state.idle:
                self._due.pop(touched, None)
            else:
                self._states[touched] = state
                self._due[touched] = state.deadline
        if outputs.dead_letters:
            raise RuntimeError(f"the rule failed: {outputs.dead_letters[0]}")
        return Counts(len(outputs.matches), len(outputs.timeouts))


class Kernel:
    """The matcher over arrays, compiled: what the job runs."""

    name = "kernel"

    def prepare(self, rule: Partitioning) -> Runner:
        """A runner without state."""
        return _KernelRunner(ColumnarMatcher(rule, TYPES))


class _KernelRunner:
    """Does what the job does for a key group, from columns to what was found as columns: for each
    match and timeout its steps and events. State stays as arrays."""

    def __init__(self, matcher: ColumnarMatcher) -> None:
        self._matcher = matcher
        self._held = Held.nothing()
        self._times = np.zeros(0, np.int64)
        self._cells: list[tuple[Any, ...]] = []
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
        times = np.concatenate([self._times, time[rows]])
        cells = None
        if columns:
            came = zip(*(column[rows].tolist() for column in columns), strict=True)
            cells = self._cells + list(came)
        run = self._matcher.run(
            self._held, times, key[rows], masks.tolist(), mask, watermark, cells
        )
        matches = timeouts = 0
        for findings in run:
            matches += len(findings.match_key)
            timeouts += len(findings.timeout_key)
        self._held = run.held
        self._times = times[run.kept_events]
        if cells is not None:
            self._cells = [cells[row] for row in run.kept_events.tolist()]
        return Counts(matches, timeouts)


def _columns(batch: Batch | None, like: Batch) -> list[Any]:
    columns = [like.key, like.time, like.offset, like.bits, *like.columns]
    if batch is None:
        return [column[:0] for column in columns]
    return [batch.key, batch.time, batch.offset, batch.bits, *batch.columns]


ENGINES: Sequence[Engine] = (Reference(), Kernel())
