"""The matchers that are measured, behind one small protocol.

An engine gets columns and counts what it found. Whatever it needs to make of the columns first is
its own time: the job has to do it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import NamedTuple, Protocol

from bench.matcher.stream import Batch
from service.compiler.rule_set import Partitioning
from service.matcher.keyed import KeyedMatcher, KeyState
from service.matcher.outputs import Outputs
from service.model import Coordinates, Event


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

    name = "reference"

    def prepare(self, rule: Partitioning) -> Runner:
        """A runner without state."""
        return _ReferenceRunner(KeyedMatcher(rule))


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


ENGINES: Sequence[Engine] = (Reference(),)
