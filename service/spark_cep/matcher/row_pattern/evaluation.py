"""Conditions and measures as functions of a view on a match.

The expressions are those of all rules; what they read of the match's rows is found here, and given
to them as they are given look-backs elsewhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.model import Event
from spark_cep.pattern.expressions import Expression, bind
from spark_cep.pattern.expressions.functions.aggregation import ROW_AGGREGATES, Accumulator
from spark_cep.pattern.expressions.nodes import (
    ClassifierAt,
    ColumnAt,
    MatchNumber,
    RowAggregate,
    RowPosition,
    RowValue,
)


class NotYetKnownError(Exception):
    """A row is read that may still come."""


class PartitionRows(Protocol):
    """The rows of a partition that are kept, by number."""

    def row(self, number: int) -> Event:
        """One of them."""
        ...


@dataclass(slots=True)
class Running:
    """An aggregate of a match's rows before place ``end``."""

    accumulator: Accumulator
    end: int = 0


@dataclass(slots=True)
class MeasureResults:
    """Results of measures of one match, so that each row does not look through all rows before it
    again: aggregates by number, and the places of rows by variables."""

    aggregates: dict[int, Running] = field(default_factory=dict)
    places: dict[frozenset[int], list[int]] = field(default_factory=dict)

    def places_of(self, of: frozenset[int], labels: Sequence[int]) -> list[int]:
        """The places of the match's rows of some variables."""
        if of not in self.places:
            self.places[of] = [at for at, label in enumerate(labels) if label in of]
        return self.places[of]


@dataclass(slots=True)
class View:
    """A match, or what a thread has taken, seen from one of its rows (``current``).

    Rows before number ``end`` are known; ``ended``: there are no others. ``remembered`` is of the
    match; its rows are best looked from in their order. A thread has none: its next view is
    another.
    """

    state: PartitionRows
    start: int
    labels: Sequence[int]
    current: int
    number: int
    end: int
    ended: bool
    remembered: MeasureResults | None = None

    def row(self, number: int) -> Event | None:
        """A row of the partition, ``None`` outside; ``NotYetKnownError`` if it may still come."""
        if number < 0:
            return None
        if number < self.end:
            return self.state.row(number)
        if self.ended:
            return None
        raise NotYetKnownError


Value = Callable[[View], Any]


class Binder:
    """Makes functions of one plan's expressions."""

    def __init__(self, plan: RowPatternPlan) -> None:
        query = plan.query
        self._event = query.event
        self._names = query.variables
        self._numbers = {variable: number for number, variable in enumerate(query.variables)}
        self._columns = {path: place for place, path in enumerate(plan.columns)}
        self._aggregates: dict[RowAggregate, int] = {}

    def expression(self, expression: Expression) -> Value:
        """The value of a condition or a measure."""
        values = expression.row_values
        places = {value: place for place, value in enumerate(values)}
        compute = bind(expression, self._columns, {}, self._event, row_values=places)
        found = [self._value(value) for value in values]
        if not expression.columns:
            return lambda view: compute((), [value(view) for value in found])

        def run(view: View) -> Any:
            row = view.state.row(view.current)
            return compute(row.columns, [value(view) for value in found])

        return run

    def _value(self, value: RowValue) -> Value:
        match value:
            case MatchNumber():
                return lambda view: view.number
            case ColumnAt(position=position, path=path):
                return self._column(self._position(position), self._columns[path])
            case ClassifierAt(position=RowPosition() as position):
                return self._classifier(self._position(position))
            case ClassifierAt():
                return lambda view: self._names[view.labels[view.current - view.start]]
            case RowAggregate():
                return self._aggregate(value)

    def _of(self, variables: tuple[str, ...]) -> frozenset[int]:
        return frozenset(self._numbers[variable] for variable in variables or self._names)

    def _position(self, position: RowPosition) -> Callable[[View], int | None]:
        """The number of a row; ``None`` where there is none of the match to count from."""
        of, offset, shift = self._of(position.variables), position.offset, position.shift
        everywhere = not position.variables
        forward, final = position.pick == "FIRST", position.final

        def find(view: View) -> int | None:
            end = len(view.labels) - 1 if final else view.current - view.start
            if not view.labels or offset > end:
                return None
            if everywhere:
                return view.start + (offset if forward else end - offset) + shift
            if view.remembered is not None:
                places = view.remembered.places_of(of, view.labels)
                known = bisect_right(places, end)
                if offset >= known:
                    return None
                return view.start + places[offset if forward else known - 1 - offset] + shift
            left = offset
            for at in range(end + 1) if forward else range(end, -1, -1):
                if view.labels[at] in of:
                    if not left:
                        return view.start + at + shift
                    left -= 1
            return None

        return find

    @staticmethod
    def _column(find: Callable[[View], int | None], place: int) -> Value:
        def run(view: View) -> Any:
            number = find(view)
            row = None if number is None else view.row(number)
            return None if row is None else row.columns[place]

        return run

    def _classifier(self, find: Callable[[View], int | None]) -> Value:
        def run(view: View) -> str | None:
            number = find(view)
            at = -1 if number is None else number - view.start
            return self._names[view.labels[at]] if 0 <= at < len(view.labels) else None

        return run

    def _aggregate(self, value: RowAggregate) -> Value:
        of, final = self._of(value.variables), value.final
        arguments = [self.expression(argument) for argument in value.arguments]
        function = ROW_AGGREGATES[value.function]
        takes_nulls = function.takes_nulls or not arguments
        number = self._aggregates.setdefault(value, len(self._aggregates))

        def argument(view: View) -> Any:
            if len(arguments) == 1:
                return arguments[0](view)
            return tuple(each(view) for each in arguments)

        def run(view: View) -> Any:
            end = len(view.labels)
            if not final:
                # An empty match is shown at a row that is not its own.
                end = min(end, view.current - view.start + 1)
            known = {} if view.remembered is None else view.remembered.aggregates
            running = known.get(number)
            if running is None or running.end > end:
                running = known[number] = Running(function.start())
            at_row = replace(view)
            for at in range(running.end, end):
                if view.labels[at] in of:
                    at_row.current = view.start + at
                    given = argument(at_row)
                    if takes_nulls or given is not None:
                        running.accumulator.add(given)
                running.end = at + 1
            return running.accumulator.result()

        return run
