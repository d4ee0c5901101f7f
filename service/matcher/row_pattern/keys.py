"""The rules of a partitioning that are in SQL, applied to many keys at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from service.compiler.row_pattern import RowPatternPlan
from service.compiler.rule_set import Partitioning
from service.matcher.columnar.compilation import FOREVER, I64
from service.matcher.columnar.events import EventTable, Names, SlotType
from service.matcher.columnar.row_pattern_units import RowPatternUnits, units_together
from service.matcher.columnar.vectors import Bytes
from service.matcher.live import PartialMatch
from service.matcher.outputs import Outputs
from service.matcher.partial import END_OF_TIME
from service.matcher.row_pattern.live import live_attempt
from service.matcher.row_pattern.matcher import Limits, RowPatternMatcher
from service.matcher.row_pattern.reporting import ResultReporter
from service.matcher.row_pattern.snapshot import decode, encode
from service.matcher.row_pattern.state import KeyState
from service.model import Event

#: Outputs are handed out when the results in them have so many rows.
_MOST_ROWS = 50_000


class RowPatternRules:
    """The rules in SQL of one partitioning. Holds no state."""

    def __init__(self, partitioning: Partitioning, slots: Sequence[SlotType]) -> None:
        self.rules = [
            _Rule(number, plan, partitioning, slots)
            for number, _, plan in partitioning.row_pattern_rules
        ]

    def live(self, units: RowPatternUnits, keys: Sequence[str | None]) -> Iterator[PartialMatch]:
        """The attempts under way, rule by rule and key by key."""
        for rule in self.rules:
            for row in np.flatnonzero(units.rule == rule.number).tolist():
                yield from rule.live(keys[units.key[row]], units.state.value(row))

    def run(
        self,
        units: RowPatternUnits,
        keys: Sequence[str | None],
        events: EventTable,
        key: I64,
        masks: Sequence[int],
        mask: I64,
        watermark: int,
        names: Names,
    ) -> RowPatternRun:
        """Apply events, in order of application within each key, and move all keys to
        ``watermark``. ``key`` and ``mask`` are places in ``keys`` and ``masks`` (sets of true
        conditions)."""
        return RowPatternRun(self.rules, units, keys, events, key, masks, mask, watermark, names)


class RowPatternRun:
    """One run: an iterator over outputs, then the new state in ``units``."""

    def __init__(
        self,
        rules: Sequence[_Rule],
        units: RowPatternUnits,
        keys: Sequence[str | None],
        events: EventTable,
        key: I64,
        masks: Sequence[int],
        mask: I64,
        watermark: int,
        names: Names,
    ) -> None:
        self.units = units
        self._rules, self._keys, self._names = rules, keys, names
        self._events, self._key, self._mask = events, key, mask
        self._masks = masks
        self._watermark = watermark

    def __iter__(self) -> Iterator[Outputs]:
        parts = []
        for rule in self._rules:
            mine = self.units.take(np.flatnonzero(self.units.rule == rule.number))
            rows, bits = self._rows(rule)
            active = np.union1d(self._key[rows], mine.key[mine.due <= self._watermark])
            parts.append(mine.take(np.flatnonzero(~np.isin(mine.key, active))))
            written = _Written(rule.number)
            yield from self._advance(rule, mine, active, rows, bits, written)
            parts.append(written.units())
        units = units_together(parts)
        self.units = units.take(np.lexsort((units.rule, units.key)))

    def _rows(self, rule: _Rule) -> tuple[I64, list[int]]:
        """The events that a rule reads, and the conditions of its own that are true of each."""
        own = [rule.bits(mask) for mask in self._masks]
        read = np.array([bits is not None for bits in own], bool)
        rows = np.flatnonzero(read[self._mask]) if len(read) else np.zeros(0, np.int64)
        return rows, [own[number] or 0 for number in self._mask[rows].tolist()]

    def _advance(
        self,
        rule: _Rule,
        stored: RowPatternUnits,
        active: I64,
        rows: I64,
        bits: Sequence[int],
        written: _Written,
    ) -> Iterator[Outputs]:
        events = rule.events(self._events, rows, bits, self._names)
        ends = np.searchsorted(self._key[rows], active, "right").tolist()
        places = np.searchsorted(stored.key, active).tolist()
        outputs, size = Outputs(), 0
        for key, place, (start, end) in zip(
            active.tolist(), places, pairwise([0, *ends]), strict=True
        ):
            known = place < len(stored) and int(stored.key[place]) == key
            state = rule.state(stored.state.value(place) if known else None)
            size += rule.advance(
                self._keys[key], state, events[start:end], self._watermark, outputs
            )
            written.add(key, rule, state)
            if size >= _MOST_ROWS:
                yield outputs
                outputs, size = Outputs(), 0
        yield outputs


class _Written:
    """The units of one rule, as they come."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._numbers: list[tuple[int, int, int]] = []
        self._states: list[bytes | None] = []

    def add(self, key: int, rule: _Rule, state: KeyState) -> None:
        if rule.is_idle(state):
            return
        live = 0 if state.attempt is None else len(state.attempt.threads)
        self._numbers.append((key, rule.deadline(state), live))
        self._states.append(encode(state, rule.plan))

    def units(self) -> RowPatternUnits:
        key, due, live = np.array(self._numbers, np.int64).reshape(-1, 3).T
        rule = np.full(len(key), self._number, np.int64)
        return RowPatternUnits(key, rule, due, live, Bytes.of(self._states))


class _Rule:
    """One rule, bound to the columns of its partitioning."""

    def __init__(
        self,
        number: int,
        plan: RowPatternPlan,
        partitioning: Partitioning,
        slots: Sequence[SlotType],
    ) -> None:
        self.number, self.plan = number, plan
        self._partitioning, self._slots = partitioning, slots
        limits = plan.rule.limits
        self._matcher = RowPatternMatcher(
            plan, Limits(limits.events, limits.partial_matches), with_bits=True
        )
        self._reporter = ResultReporter(plan)
        places = {
            slot.path: place
            for place, slot in enumerate(partitioning.slots)
            if slot.events == plan.rule.events and slot.of_type is None
        }
        self._places = [places[path] for path in plan.columns]

    def bits(self, mask: int) -> int | None:
        """See :meth:`Partitioning.own_bits`."""
        return self._partitioning.own_bits(self.number, mask)

    def events(
        self, table: EventTable, rows: I64, bits: Sequence[int], names: Names
    ) -> list[Event]:
        """Rows as the matcher wants them, with the columns of the plan."""
        read = table.objects(names, self._slots)
        found = (read(row) for row in rows.tolist())
        return [
            event._replace(
                bits=own, payload=None, columns=tuple(event.columns[at] for at in self._places)
            )
            for event, own in zip(found, bits, strict=True)
        ]

    def state(self, stored: bytes | None) -> KeyState:
        """That of a key. StateError when it is damaged."""
        return KeyState() if stored is None else decode(stored, self.plan)

    def live(self, key: str | None, stored: bytes | None) -> Iterator[PartialMatch]:
        """The attempt under way, if there is one."""
        state = self.state(stored)
        return live_attempt(self.plan, key, state, self._matcher.deadline(state))

    def advance(
        self,
        key: str | None,
        state: KeyState,
        rows: Sequence[Event],
        watermark: int,
        outputs: Outputs,
    ) -> int:
        """Move one key on; how many rows what was found has."""
        results = self._matcher.advance(state, rows)
        results += self._matcher.move_time(state, watermark)
        if watermark >= END_OF_TIME:
            results += self._matcher.close(state)
        self._reporter.faults(self._matcher.taken_faults(), outputs)
        return self._reporter.report(key, results, outputs)

    def deadline(self, state: KeyState) -> int:
        """The watermark at which something is due; ``FOREVER`` for never."""
        deadline = self._matcher.deadline(state)
        if deadline is None:
            return FOREVER if state.attempt is None else END_OF_TIME
        return deadline

    def is_idle(self, state: KeyState) -> bool:
        """Whether nothing of the key makes a difference any more."""
        return state.closed or (state.attempt is None and not self.plan.remembers)
