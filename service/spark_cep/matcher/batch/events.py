"""Events as columns.

Coordinates and times are numbers in arrays. What rules read or emit of the events themselves is in
column vectors, and original bytes only where some rule emits them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from spark_cep.columns.compilation import I32, I64
from spark_cep.columns.representation import Representation, representation
from spark_cep.columns.vectors import (
    Bytes,
    Numbers,
    Objects,
    Rows,
    Vector,
    concatenated,
    no_numbers,
    nulls_like,
    nulls_of,
    reader,
    vector,
)
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Slot
from spark_cep.errors import damaged_state
from spark_cep.model import Coordinates, Event
from spark_cep.pattern.types import SqlType, column_type


@dataclass(slots=True)
class Names:
    """The topics and record types that numbers in event tables stand for. Both lists grow as new
    ones are met."""

    topics: list[str] = field(default_factory=list)
    types: list[str | None] = field(default_factory=list)

    def topic(self, name: str) -> int:
        """The topic's number."""
        return _number(name, self.topics)

    def type(self, name: str | None) -> int:
        """The record type's number."""
        return _number(name, self.types)


_NO_I32 = np.zeros(0, np.int32)


def _number(name: Any, names: list[Any]) -> int:
    # There are few of them.
    if name not in names:
        names.append(name)
    return names.index(name)


class ColumnsOfEvent(NamedTuple):
    """The columns of an event, for conditions."""

    columns: Sequence[Any]


class SlotType(NamedTuple):
    """A column that travels with events: its name, and its type as far as schemas tell."""

    name: str
    kind: SqlType | None

    @property
    def meaning(self) -> str:
        """Identity of what a stored value means."""
        return f"{self.name}|{'' if self.kind is None else self.kind}"


def slot_types(slots: Iterable[Slot], types: RecordTypes) -> list[SlotType]:
    """The columns of events, in their order."""
    found = []
    for slot in slots:
        record = types.of(slot.events, slot.of_type)
        found.append(SlotType(slot.name, record and column_type(record, slot.path)))
    return found


@dataclass(slots=True)
class EventTable:
    """Events, one row each. ``topic`` and ``type`` are numbers of ``Names``.

    ``columns`` is a vector for each slot, or ``None`` where all are NULL; ``payload`` is ``None``
    where nothing needs it. ``micros``: microseconds behind the millisecond, of events that are not
    applied yet; ``None`` where all are 0.
    """

    time: I64
    topic: I32
    partition: I32
    offset: I64
    type: I32
    columns: list[Vector] | None = None
    payload: Bytes | None = None
    micros: I64 | None = None

    @classmethod
    def of(cls, events: Sequence[Event], names: Names, slots: Sequence[SlotType]) -> EventTable:
        """These events, in this order; names that are new get numbers. ValueError when a value is
        not of its column's type."""
        columns = None
        if slots and any(event.columns for event in events):
            rows = [event.columns or (None,) * len(slots) for event in events]
            columns = [
                vector([row[number] for row in rows], slot.kind, slot.name.rpartition("|")[2])
                for number, slot in enumerate(slots)
            ]
        payload = None
        if any(event.payload is not None for event in events):
            payload = Bytes.of([event.payload for event in events])
        return cls(
            np.array([event.time for event in events], np.int64),
            np.array([names.topic(event.at.topic) for event in events], np.int32),
            np.array([event.at.partition for event in events], np.int32),
            np.array([event.at.offset for event in events], np.int64),
            np.array([names.type(event.type) for event in events], np.int32),
            columns,
            payload,
            micros_or_none(np.array([event.micros for event in events], np.int64)),
        )

    @classmethod
    def empty(cls) -> EventTable:
        """No events."""
        return cls(no_numbers(), _NO_I32, _NO_I32, no_numbers(), _NO_I32)

    def __len__(self) -> int:
        return len(self.time)

    def take(self, rows: Rows) -> EventTable:
        """The events of these rows, in this order."""
        return EventTable(
            self.time[rows],
            self.topic[rows],
            self.partition[rows],
            self.offset[rows],
            self.type[rows],
            None if self.columns is None else [column.take(rows) for column in self.columns],
            None if self.payload is None else self.payload.take(rows),
            None if self.micros is None else self.micros[rows],
        )

    @property
    def all_micros(self) -> I64:
        """``micros``, a number for each event."""
        return np.zeros(len(self), np.int64) if self.micros is None else self.micros

    def vectors(self, slots: Sequence[SlotType]) -> list[Vector]:
        """A vector for each slot."""
        if self.columns is None:
            return [nulls_of(slot.kind, len(self)) for slot in slots]
        return self.columns

    def objects(self, names: Names, slots: Sequence[SlotType]) -> Callable[[int], Event]:
        """The function that gives one event; its bits, which are asked for only when it is applied,
        are 0."""
        readers, payload = self._readers(slots), self.payload

        def event(row: int) -> Event:
            at = Coordinates(
                names.topics[self.topic[row]], int(self.partition[row]), int(self.offset[row])
            )
            values = Row(readers, row)
            original = None if payload is None else payload.value(row)
            time, kind = int(self.time[row]), names.types[self.type[row]]
            micros = 0 if self.micros is None else int(self.micros[row])
            return Event(time, at, 0, values, original, kind, micros)

        return event

    def row_columns(self, slots: Sequence[SlotType]) -> Callable[[int], ColumnsOfEvent]:
        """The function that gives the columns of one event."""
        readers = self._readers(slots)
        return lambda row: ColumnsOfEvent(Row(readers, row))

    def _readers(self, slots: Sequence[SlotType]) -> list[Callable[[int], Any]]:
        if self.columns is None:
            return [_null] * len(slots)
        # Those of other rules stand behind.
        return [reader(each, slot.kind) for each, slot in zip(self.columns, slots, strict=False)]


_VECTORS = {
    Representation.WHOLE: (Numbers, np.int64),
    Representation.DOUBLE: (Numbers, np.float64),
    Representation.TEXT: (Bytes, None),
    Representation.OBJECT: (Objects, None),
}


def check(events: EventTable, names: Names, slots: Sequence[SlotType]) -> None:
    """Raise StateError for events of topics or record types without a name, or whose columns are
    not those of ``slots``."""
    for numbers, known in ((events.topic, names.topics), (events.type, names.types)):
        if len(events) and not 0 <= numbers.min() <= numbers.max() < len(known):
            raise damaged_state(f"an event has the topic or type {numbers.max()} of {len(known)}")
    if events.columns is None or not len(events):
        return
    found = [
        (type(column), column.values.dtype if isinstance(column, Numbers) else None)
        for column in events.columns
    ]
    if found != [_VECTORS[representation(slot.kind)] for slot in slots]:
        raise damaged_state("the columns of events are of other kinds than those of the rules")


class Row(Sequence[Any]):
    """The columns of one event, each read when it is asked for."""

    __slots__ = ("_readers", "_row")

    def __init__(self, readers: Sequence[Callable[[int], Any]], row: int) -> None:
        self._readers, self._row = readers, row

    def __getitem__(self, number: Any) -> Any:
        return self._readers[number](self._row)

    def __len__(self) -> int:
        return len(self._readers)


def _null(_: int) -> None:
    return None


def micros_or_none(micros: I64) -> I64 | None:
    """Microseconds of events, as a table of them has them."""
    return micros if micros.any() else None


def together(tables: Sequence[EventTable]) -> EventTable:
    """The events of all tables, in order."""
    tables = [table for table in tables if len(table)] or list(tables[:1])
    if len(tables) == 1:
        return tables[0]
    if not tables:
        return EventTable.empty()
    return EventTable(
        np.concatenate([table.time for table in tables]),
        np.concatenate([table.topic for table in tables]),
        np.concatenate([table.partition for table in tables]),
        np.concatenate([table.offset for table in tables]),
        np.concatenate([table.type for table in tables]),
        _columns_together(tables),
        _payloads_together(tables),
        _micros_together(tables),
    )


def _micros_together(tables: Sequence[EventTable]) -> I64 | None:
    if all(table.micros is None for table in tables):
        return None
    return np.concatenate([table.all_micros for table in tables])


def _columns_together(tables: Sequence[EventTable]) -> list[Vector] | None:
    given = next((table.columns for table in tables if table.columns is not None), None)
    if given is None:
        return None
    rows = [table.columns or [nulls_like(each, len(table)) for each in given] for table in tables]
    if len({tuple(map(type, columns)) for columns in rows}) > 1:
        raise damaged_state("events have columns of several kinds")
    return [concatenated(parts) for parts in zip(*rows, strict=True)]


def _payloads_together(tables: Sequence[EventTable]) -> Bytes | None:
    given = next((table.payload for table in tables if table.payload is not None), None)
    if given is None:
        return None
    found = concatenated([table.payload or nulls_like(given, len(table)) for table in tables])
    assert isinstance(found, Bytes)
    return found
