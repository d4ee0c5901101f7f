"""One query over records in this process: keys, event-time order, late records, as in a job.

The watermark is the caller's. For tests, test kits and short back-tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from service.compiler.row_pattern import RowPatternPlan
from service.matcher.local import BEFORE_TIME, Record, timely
from service.matcher.row_pattern.matcher import Limits, RowPatternMatcher
from service.matcher.row_pattern.results import Result
from service.matcher.row_pattern.snapshot import decode, encode
from service.matcher.row_pattern.state import KeyState
from service.model import Event, LateEvent
from service.pattern.expressions import ColumnPath

#: The values of PARTITION BY; none of them, where it is left out.
Key = tuple[Any, ...]


@dataclass
class LocalRowPattern:
    """A plan with its state. Records are given in the order of their arrival.

    ``results`` are by key, in the order in which they became final.
    """

    plan: RowPatternPlan
    limits: Limits | None = None
    watermark: int = BEFORE_TIME
    results: dict[Key, list[Result]] = field(default_factory=dict)
    late: list[LateEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._matcher = RowPatternMatcher(self.plan, self.limits)
        self._states: dict[Key, KeyState] = {}
        self._ahead: list[Record] = []

    def advance(self, records: Iterable[Record], watermark: int) -> None:
        """Take in ``records``; those at or before the watermark so far are late. Then move on."""
        self._ahead += timely(records, self.watermark, self.late)
        self.watermark = max(self.watermark, watermark)
        self._ahead.sort(key=lambda record: (record.time, record.micros, record.at))
        ready = sum(record.time <= self.watermark for record in self._ahead)
        by_key: dict[Key, list[Event]] = {}
        for record in self._ahead[:ready]:
            by_key.setdefault(self._key(record), []).append(self._event(record))
        del self._ahead[:ready]
        for key, events in by_key.items():
            self._add(key, self._matcher.advance(self._state(key), events))
        for key, state in self._states.items():
            self._add(key, self._matcher.move_time(state, self.watermark))

    def close(self) -> None:
        """The end of every partition, as a table has one, and a stream none."""
        self.advance([], max([self.watermark, *(record.time for record in self._ahead)]))
        for key, state in self._states.items():
            self._add(key, self._matcher.close(state))

    def reload(self) -> None:
        """Write the state to bytes and read it back, as a restart does."""
        for key, state in self._states.items():
            self._states[key] = decode(encode(state, self.plan), self.plan)

    def _state(self, key: Key) -> KeyState:
        return self._states.setdefault(key, KeyState())

    def _add(self, key: Key, found: list[Result]) -> None:
        if found:
            self.results.setdefault(key, []).extend(found)

    def _key(self, record: Record) -> Key:
        return tuple(_column(record.values, path) for path in self.plan.query.partition)

    def _event(self, record: Record) -> Event:
        columns = tuple(_column(record.values, path) for path in self.plan.columns)
        return Event(record.time, record.at, 0, columns, micros=record.micros)


def _column(values: Mapping[str, Any], path: ColumnPath) -> Any:
    found: Any = values
    for part in path:
        found = None if found is None else found.get(part)
    return found
