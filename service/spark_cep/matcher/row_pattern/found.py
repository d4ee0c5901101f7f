"""Findings of a run: results and output rows as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spark_cep.columns.compilation import I32, I64, NONE, Table
from spark_cep.columns.vectors import (
    Bytes,
    Numbers,
    Objects,
    Vector,
    nulls_like,
    texts_of,
    values_at,
    with_nulls,
)
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.matcher.batch.events import EventTable, Names, SlotType
from spark_cep.matcher.findings.aggregates import aggregate_column
from spark_cep.matcher.findings.chains import Chains
from spark_cep.matcher.findings.named_values import Measured
from spark_cep.matcher.row_pattern.failures import MeasureFailure, SkipFault
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.matcher.row_pattern.loops.found_loops import (
    count_rows,
    find_rows,
    output_rows,
    places_of,
)
from spark_cep.matcher.row_pattern.python_calls.calls import ConditionFailure
from spark_cep.matcher.row_pattern.python_calls.evaluation import MeasureResults, Value
from spark_cep.matcher.row_pattern.python_calls.key_rows import KeyRows, places
from spark_cep.matcher.row_pattern.python_calls.thread_views import MatchView
from spark_cep.matcher.row_pattern.selected import computed_column
from spark_cep.model import Event
from spark_cep.pattern.expressions.functions.aggregation import ROW_AGGREGATES
from spark_cep.pattern.expressions.nodes import (
    ClassifierAt,
    Column,
    ColumnAt,
    ColumnPath,
    Expression,
    MatchNumber,
    RowAggregate,
    RowPosition,
    RowReference,
    RowValue,
)
from spark_cep.pattern.sql.query import Computed, OutputColumn
from spark_cep.pattern.types import SqlType

if TYPE_CHECKING:
    from spark_cep.matcher.row_pattern.lowering import Lowered


_LIMITS = {
    tables.ROWS_LIMIT: "rows",
    tables.THREADS_LIMIT: "threads",
    tables.WORK_LIMIT: "steps of work",
}
_FAULTS = {
    tables.TARGET_ABSENT: SkipFault.TARGET_ABSENT,
    tables.TO_MATCH_START: SkipFault.TO_MATCH_START,
}


class OutputColumns(NamedTuple):
    """Rows of the result: for each the number of its result, its place in the match, the place of
    the event, and the measures; and what could not be computed, of those and of what SELECT
    computes of them."""

    result: I64
    current: I64
    event: I64
    measures: tuple[Measured, ...]
    failures: list[MeasureFailure]


@dataclass(frozen=True)
class Compiled:
    """The compiled parts of a plan, shared by all its runs."""

    plan: RowPatternPlan
    lowered: Lowered
    slots: Sequence[SlotType]
    measures: Sequence[Value]
    limits: tuple[int, int, int]


@dataclass(frozen=True)
class RunFindings:
    """A piece of what a run found, in the order of keys, and of each key in the order in which it
    became final. ``results`` is a table of ``tables.RESULT``, ``labels`` are the variables of their
    rows; ``events`` are all rows of the run, ``rows`` those of each key, of which the first has the
    number ``bases``."""

    compiled: Compiled
    results: Table
    labels: I32
    events: EventTable
    names: Names
    rows: tables.Rows
    bases: I64
    closed: bool
    failures: Sequence[ConditionFailure]

    @cached_property
    def output(self) -> OutputColumns:
        """The rows of the result."""
        result_of, current = self._output_rows
        first = self.results["row"][result_of]
        own = np.empty(len(result_of), np.int64)
        places_of(
            self.results, result_of, self.rows.at, self.rows.ends, self.bases, current, 0, own
        )
        # A one-row match stands for its first row.
        if self.one_row:
            own = first
        failures: list[MeasureFailure] = []
        measures = tuple(
            self._measure(number, failures) for number in range(len(self.compiled.measures))
        )
        return OutputColumns(result_of, current, own, measures, failures)

    def chains(self, chosen: I64) -> Chains:
        """The rows of some results, of timeouts those that they list, as variables and places among
        all rows. A result that takes no row has the one that it stands before, as a variable behind
        the last."""
        results = self.results[chosen]
        length = results["length"].astype(np.int64)
        counts = np.maximum(length, 1)
        ends = np.cumsum(counts)
        owner = np.repeat(np.arange(len(results)), counts)
        within = np.arange(len(owner)) - (ends - counts)[owner]
        labels = np.full(len(owner), len(self.compiled.plan.steps), np.int32)
        rows = results["row"][owner].astype(np.int32)
        taken = (length > 0)[owner]
        owner, within = owner[taken], within[taken]
        at = results["labels"][owner] + within
        labels[taken] = self.labels[at] & (tables.EXCLUDED - 1)
        listed = results["kind"][owner] == tables.TIMED_OUT
        within[listed] = self.labels[(at + length[owner])[listed]]
        keys = results["key"][owner]
        begins = (self.rows.ends - np.diff(self.rows.ends, prepend=0) - self.bases)[keys]
        rows[taken] = self.rows.at[begins + results["first"][owner] + within]
        return Chains(ends, labels, rows)

    @cached_property
    def columns(self) -> list[Measured]:
        """The columns of the result."""
        return [
            self._computed(each, each.source)
            if isinstance(each.source, Computed)
            else Measured(each.name, *self._source(each.source))
            for each in self.compiled.plan.query.outputs
        ]

    def _source(self, source: ColumnPath | int) -> tuple[Vector, SqlType | None]:
        """The values, and their type, of a measure or a column, for all output rows."""
        if isinstance(source, int):
            _, values, kind = self.output.measures[source]
            return values, kind
        place = self._place(source)
        column = self.events.vectors(self.compiled.slots)[place].take(self.output.event)
        return column, self.compiled.slots[place].kind

    def _computed(self, column: OutputColumn, computed: Computed) -> Measured:
        """A column that SELECT computes of others."""
        sources = [self._source(source) for _, source in computed.sources]
        found, failures = computed_column(column, computed, sources, self.output.result)
        self.output.failures.extend(MeasureFailure(column.name, *each) for each in failures)
        return found

    def row(self, result: int) -> Event:
        """The first row of a result."""
        return self.event(int(self.results["row"][result]))

    @property
    def variables(self) -> I32:
        """The variable of each row of the result, by number; ``NONE`` where the match takes none,
        or there is no match."""
        result_of, current = self._output_rows
        found = np.full(len(result_of), NONE, np.int32)
        taken = self.results["length"][result_of] > 0
        labels = self.results["labels"][result_of[taken]] + current[taken]
        found[taken] = self.labels[labels] & (tables.EXCLUDED - 1)
        return found

    def limit(self, result: int) -> str:
        """The limit beyond which the attempt of a result went, in words."""
        return limit_text(int(self.results["detail"][result]), self.compiled.limits)

    def fault(self, result: int) -> SkipFault:
        """The reason why the skip behind a match failed."""
        return _FAULTS[int(self.results["detail"][result])]

    @property
    def one_row(self) -> bool:
        """Return whether a match is one row of the result."""
        return self._mode == tables.ONE_ROW

    @property
    def _mode(self) -> int:
        return int(self.compiled.lowered.program.clause[0]["rows"])

    @cached_property
    def _output_rows(self) -> tuple[I64, I64]:
        count = len(self.results)
        while True:
            result_of, current = np.empty(count, np.int64), np.empty(count, np.int64)
            need = output_rows(self.results, self.labels, self._mode, result_of, current)
            if need <= count:
                return result_of[:need], current[:need]
            count = need

    @cached_property
    def event(self) -> Callable[[int], Event]:
        """The function that gives the row at a place."""
        known: dict[int, Event] = {}
        read = self.events.objects(self.names, self.compiled.slots)

        def event(row: int) -> Event:
            if row not in known:
                known[row] = plain(read(row))
            return known[row]

        return event

    def _place(self, path: ColumnPath) -> int:
        return self.compiled.plan.columns.index(path)

    # Measures

    def _view(self, number: int) -> MatchView | None:
        """The match of a result, seen from its first row; ``None`` for an unmatched row."""
        result = self.results[number]
        if result["kind"] != tables.MATCH:
            return None
        key, first = int(result["key"]), int(result["first"])
        begin = int(result["labels"])
        labels = self.labels[begin : begin + int(result["length"])] & (tables.EXCLUDED - 1)
        rows, match = self._key_rows(key), int(result["number"])
        return MatchView(
            rows, first, labels.tolist(), first, match, rows.end, self.closed, MeasureResults()
        )

    def _key_rows(self, key: int) -> KeyRows:
        if key not in self._rows_by_key:
            at = places(self.rows, key)
            self._rows_by_key.clear()
            slots = self.compiled.slots
            self._rows_by_key[key] = KeyRows(at, int(self.bases[key]), self.events, slots)
        return self._rows_by_key[key]

    @cached_property
    def _rows_by_key(self) -> dict[int, KeyRows]:
        return {}

    def _measure(self, number: int, failures: list[MeasureFailure]) -> Measured:
        """One measure of all output rows."""
        measure = self.compiled.plan.query.measures[number]
        node = measure.expression.node
        if isinstance(node, RowReference):
            found = self._vector(node.value, measure.type)
            if found is not None:
                values_of_matches, kind = found
                return Measured(measure.name, self._of_matches(values_of_matches), kind)
        compute = self.compiled.measures[number]
        result_of, current = self._output_rows
        values: list[Any] = []
        view, seen = None, NONE
        for result, place in zip(result_of.tolist(), current.tolist(), strict=True):
            if result != seen:
                view, seen = self._view(result), result
            value = None
            if view is not None:
                view.current = view.start + place
                try:
                    value = compute(view)
                except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
                    failures.append(MeasureFailure(measure.name, result, repr(error)))
            values.append(value)
        return Measured(measure.name, Objects(values), measure.type)

    def _of_matches(self, column: Vector) -> Vector:
        """Return the column with NULL for unmatched rows."""
        result_of, _ = self._output_rows
        return with_nulls(column, self.results["kind"][result_of] != tables.MATCH)

    def _vector(
        self, value: RowValue, kind: SqlType | None
    ) -> tuple[Vector, SqlType | None] | None:
        """A value of all output rows, which is of type ``kind``, and the type that the vector has;
        ``None`` where that takes Python."""
        result_of, current = self._output_rows
        count = len(result_of)
        match value:
            case MatchNumber():
                return Numbers(self.results["number"][result_of], np.zeros(count, bool)), kind
            case RowAggregate(function="COUNT", arguments=(), variables=variables, final=final):
                counts = np.zeros(count, np.int64)
                inside = self._inside(variables)
                count_rows(self.results, self.labels, result_of, current, inside, final, counts)
                return Numbers(counts, np.zeros(count, bool)), kind
            case RowAggregate(arguments=(Expression(node=Column(path=path)),)) if self.one_row:
                return self._aggregates(value, self._place(path), kind)
            case ClassifierAt(position=RowPosition() as position):
                return self._classifier(position), kind
            case ColumnAt(position=position, path=path):
                place = self._place(path)
                return self._column(position, place), self.compiled.slots[place].kind
        return None

    def _aggregates(
        self, value: RowAggregate, slot: int, kind: SqlType | None
    ) -> tuple[Vector, SqlType | None] | None:
        """An aggregate of a column over each match's rows; a match is one row, its last. ``None``
        where one of them cannot be computed, which is told of match by match."""
        chains = self.chains(self._output_rows[0])
        # What stands for an empty match is of no variable.
        mine = np.append(self._inside(value.variables), 0)[chains.steps] > 0
        events, first, end = taken = chains.some(mine)
        slots = self.compiled.slots
        column, kind_of_column = self.events.vectors(slots)[slot], slots[slot].kind
        compiled = aggregate_column(value.function, column, kind_of_column, taken)
        if compiled is not None:
            return compiled
        values = values_at(column, kind_of_column, events)
        function, found = ROW_AGGREGATES[value.function], list[Any]()
        try:
            for begin, behind in zip(first.tolist(), end.tolist(), strict=True):
                accumulator, given = function.start(), values[begin:behind]
                if not function.takes_nulls:
                    given = [each for each in given if each is not None]
                accumulator.extend(given)
                found.append(accumulator.result())
        except Exception:  # noqa: BLE001  a rule's fault must not stop the job
            return None
        return Objects(found), kind

    def _inside(self, variables: tuple[str, ...]) -> tables.Flags:
        names = self.compiled.plan.query.variables
        return np.array([not variables or name in variables for name in names], np.uint8)

    def _find(self, position: RowPosition) -> I64:
        """The place in the match of the row that a position counts from."""
        result_of, current = self._output_rows
        found = np.empty(len(result_of), np.int64)
        find_rows(
            self.results, self.labels, result_of, current, self._inside(position.variables),
            position.pick == "FIRST", position.offset, position.final, found,
        )  # fmt: skip
        return found

    def _classifier(self, position: RowPosition) -> Vector:
        result_of, _ = self._output_rows
        found = self._find(position)
        at = found + position.shift
        result = self.results[result_of]
        nulls = (found == NONE) | (at < 0) | (at >= result["length"])
        names = texts_of(self.compiled.plan.query.variables)
        if not len(names) or nulls.all():
            return nulls_like(names, len(at))
        labels = self.labels[np.where(nulls, 0, result["labels"] + at)] & (tables.EXCLUDED - 1)
        return Bytes(names.places[labels], nulls, names.data)

    def _column(self, position: RowPosition, column: int) -> Vector:
        result_of, _ = self._output_rows
        at = np.empty(len(result_of), np.int64)
        places_of(
            self.results, result_of, self.rows.at, self.rows.ends, self.bases,
            self._find(position), position.shift, at,
        )  # fmt: skip
        found = self.events.vectors(self.compiled.slots)[column].take(np.maximum(at, 0))
        return with_nulls(found, at == NONE)


def limit_text(limit: int, limits: tuple[int, int, int]) -> str:
    """A limit in words. ``limits``: of rows, threads and work."""
    return f"more than {limits[limit - 1]} {_LIMITS[limit]}"


def plain(event: Event) -> Event:
    """The event with its columns as a tuple."""
    return event._replace(columns=tuple(event.columns))
