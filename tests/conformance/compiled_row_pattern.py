"""One query over records in this process, by the compiled matcher: as
:class:`service.matcher.row_pattern.local.LocalRowPattern` by the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.compiler.row_pattern import RowPatternPlan
from service.matcher.columnar.events import EventTable, Names
from service.matcher.local import BEFORE_TIME, Record
from service.matcher.row_pattern import Result
from service.matcher.row_pattern.compiled import CompiledRowPattern, RowPatternStates
from service.matcher.row_pattern.local import Key
from service.model import Event


class CompiledLocalRowPattern:
    """A plan with its state. Records of a call are none of them late, and are given to the matcher
    in the order of event time, all keys at once."""

    def __init__(self, plan: RowPatternPlan) -> None:
        self.plan, self._matcher = plan, CompiledRowPattern(plan)
        self._names, self._states = Names(), RowPatternStates()
        self._keys: dict[Key, int] = {}
        self._watermark = BEFORE_TIME
        self.results: dict[Key, list[Result]] = {}

    def advance(self, records: Sequence[Record], watermark: int, *, closed: bool = False) -> None:
        """Take in ``records`` and move on."""
        self._watermark = max(self._watermark, watermark)
        rows = sorted(records, key=lambda record: (record.time, record.at))
        keys = [
            tuple(record.values[path[0]] for path in self.plan.query.partition) for record in rows
        ]
        numbers = [self._keys.setdefault(key, len(self._keys)) for key in keys]
        events = [
            Event(record.time, record.at, 0, tuple(record.values[p[0]] for p in self.plan.columns))
            for record in rows
        ]
        run = self._matcher.run(
            self._states,
            EventTable.of(events, self._names, self._matcher.slots),
            np.array(numbers, np.int64),
            self._watermark,
            self._names,
            closed=closed,
        )
        known = list(self._keys)
        for piece in run:
            for number, result in piece.objects():
                self.results.setdefault(known[number], []).append(result)
        self._states = run.states

    def close(self) -> None:
        """The end of every partition."""
        self.advance([], self._watermark, closed=True)

    def reload(self) -> None:
        """Make objects of the state, and arrays of these."""
        states = self._matcher.key_states(self._states, self._names)
        self._states = self._matcher.states_of(states, self._names)
