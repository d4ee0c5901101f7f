"""Conditions and measures as functions of a view on a match.

The expressions are those of all rules; what they read of the match's rows is found here, and given
to them as they are given look-backs elsewhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from spark_cep.columns.compilation import I64
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.pattern.expressions import Expression, bind
from spark_cep.pattern.expressions.functions.accumulators import Accumulator
from spark_cep.pattern.expressions.functions.aggregation import ROW_AGGREGATES
from spark_cep.pattern.expressions.nodes import (
    ClassifierAt,
    Column,
    ColumnAt,
    MatchNumber,
    RowAggregate,
    RowPosition,
    RowValue,
)


class NotYetKnownError(Exception):
    """A row is read that may still come."""


class PartitionRow(Protocol):
    """A row: what conditions and measures read of it."""

    @property
    def columns(self) -> Sequence[Any]:
        """Its columns."""
        ...


class PartitionRows(Protocol):
    """The rows of a partition that are kept, by number."""

    def row(self, number: int) -> PartitionRow:
        """One of them."""
        ...


class ColumnValues(Protocol):
    """The values of a column at some rows, in order."""

    def __call__(self, column: int, *, different: bool, most: int | None) -> list[Any]:
        """Those of the column at this place, at the first rows where there are more than ``most``.
        ``different``: of values that are there more than once, only the first may be given."""
        ...


@dataclass(frozen=True, slots=True)
class RowFold:
    """A value made of a match's rows of some variables, row by row. ``add`` gives the result with
    one more row, and may change what it is given; ``copied`` is safe from that. ``ahead``: what a
    row gives depends on what rows behind it are matched as. ``add_all`` does what ``add`` does for
    each of many rows, given their places in the match and the columns; ``None``: it takes more than
    these to tell what a row gives."""

    number: int
    of: frozenset[int]
    start: Callable[[], Any]
    add: Callable[[Any, View], Any]
    copied: Callable[[Any], Any]
    ahead: bool = False
    add_all: Callable[[Any, I64, ColumnValues], Any] | None = None


@dataclass(slots=True)
class Running:
    """A fold over a match's rows before place ``end``."""

    folded: Any
    end: int = 0


@dataclass(slots=True)
class MeasureResults:
    """Results of measures of one match, so that each row does not look through all rows before it
    again: folds by number, and the places of rows by variables."""

    folds: dict[int, Running] = field(default_factory=dict)
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

    def row(self, number: int) -> PartitionRow | None:
        """A row of the partition, ``None`` outside; ``NotYetKnownError`` if it may still come."""
        if number < 0:
            return None
        if number < self.end:
            return self.state.row(number)
        if self.ended:
            return None
        raise NotYetKnownError

    @property
    def length(self) -> int:
        """The number of rows taken."""
        return len(self.labels)

    def label(self, place: int) -> int:
        """The variable of a row taken, by its place."""
        return self.labels[place]

    def folded(self, fold: RowFold, end: int) -> Any:
        """The fold over the rows before place ``end``."""
        running = self.running(fold, end)
        at_row = replace(self)
        for at in range(running.end, end):
            if self.labels[at] in fold.of:
                at_row.current = self.start + at
                running.folded = fold.add(running.folded, at_row)
            running.end = at + 1
        return running.folded

    def running(self, fold: RowFold, end: int) -> Running:
        """The fold as far as it is remembered, up to place ``end`` at most."""
        known = {} if self.remembered is None else self.remembered.folds
        running = known.get(fold.number)
        if running is None or running.end > end:
            running = known[fold.number] = Running(fold.start())
        return running

    def place_of(self, rows: RowFold, offset: int, end: int, *, forward: bool) -> int | None:
        """The place of a row of some variables, counted from the first or the last of those up to
        place ``end``. ``rows`` finds these rows along a thread."""
        if self.remembered is not None:
            places = self.remembered.places_of(rows.of, self.labels)
            known = bisect_right(places, end)
            if offset >= known:
                return None
            return places[offset if forward else known - 1 - offset]
        left = offset
        for at in range(end + 1) if forward else range(end, -1, -1):
            if self.labels[at] in rows.of:
                if not left:
                    return at
                left -= 1
        return None


Value = Callable[[View], Any]


class Binder:
    """Makes functions of one plan's expressions."""

    def __init__(self, plan: RowPatternPlan) -> None:
        query = plan.query
        self._event = query.event
        self._names = query.variables
        self._numbers = {variable: number for number, variable in enumerate(query.variables)}
        self._columns = {path: place for place, path in enumerate(plan.columns)}
        self._folds: dict[Hashable, int] = {}

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
                return lambda view: self._names[view.label(view.current - view.start)]
            case RowAggregate():
                return self._aggregate(value)

    def _of(self, variables: tuple[str, ...]) -> frozenset[int]:
        return frozenset(self._numbers[variable] for variable in variables or self._names)

    def _position(self, position: RowPosition) -> Callable[[View], int | None]:
        """The number of a row; ``None`` where there is none of the match to count from."""
        of, offset, shift = self._of(position.variables), position.offset, position.shift
        everywhere = not position.variables
        forward, final = position.pick == "FIRST", position.final

        count = offset + 1
        key = position.variables, position.pick, count
        rows = RowFold(
            self._number(key),
            of,
            tuple,
            lambda found, view: _picked(
                found, (view.current - view.start,), count, forward=forward
            ),
            lambda found: found,
            add_all=lambda found, places, _: _picked(
                found, places.tolist(), count, forward=forward
            ),
        )

        def find(view: View) -> int | None:
            end = view.length - 1 if final else view.current - view.start
            if not view.length or offset > end:
                return None
            if everywhere:
                return view.start + (offset if forward else end - offset) + shift
            place = view.place_of(rows, offset, end, forward=forward)
            return None if place is None else view.start + place + shift

        return find

    def _number(self, key: Hashable) -> int:
        return self._folds.setdefault(key, len(self._folds))

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
            return self._names[view.label(at)] if 0 <= at < view.length else None

        return run

    def _aggregate(self, value: RowAggregate) -> Value:
        of, final = self._of(value.variables), value.final
        arguments = [self.expression(argument) for argument in value.arguments]
        function = ROW_AGGREGATES[value.function]
        takes_nulls = function.takes_nulls or not arguments

        def argument(view: View) -> Any:
            if len(arguments) == 1:
                return arguments[0](view)
            return tuple(each(view) for each in arguments)

        def add(accumulator: Accumulator, view: View) -> Accumulator:
            given = argument(view)
            if takes_nulls or given is not None:
                accumulator.add(given)
            return accumulator

        plain = [
            self._columns[each.node.path]
            for each in value.arguments
            if isinstance(each.node, Column)
        ]

        def add_all(accumulator: Accumulator, places: I64, read: ColumnValues) -> Accumulator:
            different, most = function.different, function.most
            columns = [read(each, different=different, most=most) for each in plain]
            given = columns[0] if len(plain) == 1 else [*zip(*columns, strict=True)]
            if not plain:
                given = [()] * len(places)
            elif not takes_nulls:
                given = [each for each in given if each is not None]
            accumulator.extend(given)
            return accumulator

        fold = RowFold(
            self._number(value),
            of,
            function.start,
            add,
            lambda accumulator: accumulator.copied(),
            ahead=any(_reads_ahead(each) for each in value.arguments),
            add_all=add_all if len(plain) == len(arguments) else None,
        )

        def run(view: View) -> Any:
            end = view.length
            if not final:
                # An empty match is shown at a row that is not its own.
                end = min(end, view.current - view.start + 1)
            return view.folded(fold, end).result()

        return run


def _picked(
    found: tuple[int, ...], places: Sequence[int], count: int, *, forward: bool
) -> tuple[int, ...]:
    """The first or last places with some more behind them."""
    if forward:
        return found if len(found) == count else (*found, *places[: count - len(found)])
    return (*found, *places[-count:])[-count:]


def _reads_ahead(argument: Expression) -> bool:
    return any(
        isinstance(value, ClassifierAt)
        and value.position is not None
        and (value.position.shift > 0 or value.position.final)
        for value in argument.row_values
    )
