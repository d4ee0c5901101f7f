"""Events as columns.

Coordinates and times are numbers in arrays; what only outputs need (columns that rules read or
emit, original bytes) is kept in lists, and only where some rule needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from service.matcher.columnar.kernel import I32, I64
from service.model import Coordinates, Event

_NOTHING: Sequence[Any] = ()


@dataclass(slots=True)
class Names:
    """What the numbers in event tables stand for: topics, and record types. Both grow as new ones
    are met."""

    topics: list[str] = field(default_factory=list)
    types: list[str | None] = field(default_factory=list)

    def topic(self, name: str) -> int:
        """The topic's number."""
        return _number(name, self.topics)

    def type(self, name: str | None) -> int:
        """The record type's number."""
        return _number(name, self.types)


def _number(name: Any, names: list[Any]) -> int:
    # There are few of them.
    if name not in names:
        names.append(name)
    return names.index(name)


@dataclass(slots=True)
class EventTable:
    """Events, one row each. ``topic`` and ``type`` are numbers of ``Names``.

    ``columns`` and ``payload`` have one value a row, or are ``None`` where nothing needs them.
    """

    time: I64
    topic: I32
    partition: I32
    offset: I64
    type: I32
    columns: list[Sequence[Any]] | None = None
    payload: list[bytes | None] | None = None

    @classmethod
    def of(cls, events: Sequence[Event], names: Names) -> EventTable:
        """These events, in this order; names that are new get numbers."""
        return cls(
            np.array([event.time for event in events], np.int64),
            np.array([names.topic(event.at.topic) for event in events], np.int32),
            np.array([event.at.partition for event in events], np.int32),
            np.array([event.at.offset for event in events], np.int64),
            np.array([names.type(event.type) for event in events], np.int32),
            [event.columns for event in events] if any(e.columns for e in events) else None,
            [event.payload for event in events] if any(e.payload for e in events) else None,
        )

    @classmethod
    def empty(cls) -> EventTable:
        """No events."""
        i64, i32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
        return cls(i64, i32, i32, i64, i32)

    def __len__(self) -> int:
        return len(self.time)

    def take(self, rows: I64) -> EventTable:
        """The events of these rows, in this order."""
        return self._at(rows, lambda values: [values[row] for row in rows.tolist()])

    def rows(self, span: slice) -> EventTable:
        """The events of a span of rows."""
        return self._at(span, lambda values: values[span])

    def _at(self, rows: I64 | slice, of_list: Callable[[list[Any]], list[Any]]) -> EventTable:
        return EventTable(
            self.time[rows],
            self.topic[rows],
            self.partition[rows],
            self.offset[rows],
            self.type[rows],
            None if self.columns is None else of_list(self.columns),
            None if self.payload is None else of_list(self.payload),
        )

    def event(self, row: int, names: Names) -> Event:
        """One event; its bits, which are asked for only when it is applied, are 0."""
        return Event(
            int(self.time[row]),
            Coordinates(
                names.topics[self.topic[row]], int(self.partition[row]), int(self.offset[row])
            ),
            0,
            _NOTHING if self.columns is None else self.columns[row],
            None if self.payload is None else self.payload[row],
            names.types[self.type[row]],
        )


def together(tables: Sequence[EventTable]) -> EventTable:
    """The events of all tables, in order."""
    if len(tables) == 1:
        return tables[0]
    if not tables:
        return EventTable.empty()
    columns: list[Sequence[Any]] | None = None
    payload: list[bytes | None] | None = None
    if any(table.columns is not None for table in tables):
        columns = [row for t in tables for row in (t.columns or [_NOTHING] * len(t))]
    if any(table.payload is not None for table in tables):
        payload = [row for t in tables for row in (t.payload or [None] * len(t))]
    return EventTable(
        np.concatenate([table.time for table in tables]),
        np.concatenate([table.topic for table in tables]),
        np.concatenate([table.partition for table in tables]),
        np.concatenate([table.offset for table in tables]),
        np.concatenate([table.type for table in tables]),
        columns,
        payload,
    )
