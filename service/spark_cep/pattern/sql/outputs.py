"""The columns of the result.

ONE ROW PER MATCH gives the columns of PARTITION BY and the measures; ALL ROWS those of ORDER BY
behind the partition's, and behind the measures the rest of the input's columns. SELECT takes of
these, and computes with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spark_cep.pattern.expressions import (
    ColumnPath,
    Expression,
    ExpressionError,
    check_types,
    parse_of_row,
)
from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.expressions.checking.unreadable import unreadable_column
from spark_cep.pattern.expressions.nodes import Column, ColumnAt, RowReference
from spark_cep.pattern.expressions.problems import TextProblem, refused
from spark_cep.pattern.expressions.reading.plain_row import PlainRow
from spark_cep.pattern.sql.query import Computed, Measure, OutputColumn, Sort
from spark_cep.pattern.sql.row_pattern import Span
from spark_cep.pattern.sql.statement import Fragment, RowsPerMatch, Selected, SortItem, Statement
from spark_cep.pattern.types import UNKNOWN, RecordType, column_type

_IN_MEASURES = "in MEASURES, with a name that SELECT takes"
_ORDER = "no ORDER BY behind the clause: matches of a key go out in the order of their first rows"


class StatementColumns:
    """The columns that a statement's SELECT takes, and the ``problems`` of SELECT and of ORDER BY
    behind the clause. ``respelt``: the places of columns that SELECT computes with and that the
    events spell otherwise, and their spelling there."""

    def __init__(
        self,
        statement: Statement,
        event: RecordType | None,
        partition: Sequence[ColumnPath],
        order: Sequence[Sort],
        measures: Sequence[Measure],
    ) -> None:
        self.problems: list[TextProblem] = []
        self.respelt: list[tuple[Span, ColumnPath]] = []
        self._statement, self._event = statement, event
        self._partition, self._order, self._measures = partition, order, measures
        one_row = statement.rows is RowsPerMatch.ONE_ROW
        #: Without the type of the events any name can be a column of them.
        self._open = event is None and not one_row
        rest: list[ColumnPath] = []
        paths = [*partition]
        if not one_row:
            paths += [item.path for item in order]
            rest = [(column,) for column in event.fields] if event is not None else []
        paths = [path for path in dict.fromkeys(paths) if path]
        spans = {measure.name.written: measure.name.span for measure in statement.measures}
        self._given = [
            *map(self._column, paths),
            *(OutputColumn(m.name, m.type, i, spans[m.name]) for i, m in enumerate(measures)),
            *(self._column(path) for path in rest if path not in paths),
        ]
        #: Measures that could not be read: they are reported where they stand.
        self._unread = set(spans) - {measure.name for measure in measures}
        self._selected: list[OutputColumn] = []

    def selected(self) -> tuple[OutputColumn, ...]:
        """The columns that SELECT takes."""
        statement = self._statement
        self.problems += self._twice()
        for item in statement.select:
            chosen = self._given if is_star(item, statement) else self._item(item)
            known = {problem.message.lower() for problem in self.problems}
            again = self._again(item, chosen)
            self.problems += [p for p in again if p.message.lower() not in known]
            self.problems += self._unreadable(item, chosen)
            self._selected += chosen
        if not self._given and not statement.measures and not statement.partition:
            message = "the result has no columns"
            allowed = "MEASURES, PARTITION BY, or ALL ROWS PER MATCH"
            self.problems.append(TextProblem(message, statement.pattern.span, allowed))
        return tuple(self._selected)

    def check_order(self) -> None:
        """ORDER BY behind the clause may say what holds anyway: the order of event time, of each
        key."""
        order = self._statement.result_order
        if order is None:
            return
        start = order.span[0]
        word = self._statement.text[start : start + len("ORDER")]
        time = self._order[0].path if self._order else None
        for place, item in enumerate(order.items):
            source = self._ordered_by(item)
            is_time = source is not None and source == time
            if item.descending or (not is_time and source not in self._partition):
                message = f"`{word}` cannot follow the clause, but for the event time, ascending"
                self.problems.append(TextProblem(message, (start, start + len(word)), _ORDER))
                return
            if is_time and place + 1 < len(order.items):
                return

    def _ordered_by(self, item: SortItem) -> ColumnPath | None:
        """The column of the input whose value an item of ORDER BY is, of some row of the match."""
        row = self._row(item.column, None)
        try:
            node = parse_of_row(item.column.text, row).node
        except ExpressionError as error:
            start = item.column.span[0]
            self.problems += [problem.moved(start) for problem in error.problems]
            return None
        wanted = node.path[0].lower() if isinstance(node, Column) else None
        for column in (*self._selected, *self._given):
            if column.name.lower() != wanted:
                continue
            if isinstance(column.source, tuple):
                return column.source
            if isinstance(column.source, int):
                measure = self._measures[column.source].expression.node
                value = measure.value if isinstance(measure, RowReference) else None
                return value.path if isinstance(value, ColumnAt) else None
        return None

    def _column(self, path: ColumnPath) -> OutputColumn:
        kind = None if self._event is None else column_type(self._event, path)
        return OutputColumn(path[-1], kind or UNKNOWN, path)

    def _twice(self) -> Iterator[TextProblem]:
        """Measures whose name another column of the result has."""
        names = [column.name.lower() for column in self._given]
        for written in self._statement.measures:
            if names.count(written.name.written.lower()) > 1:
                message = f"two columns of the result are named `{written.name.written}`"
                yield TextProblem(message, written.name.span, "another name behind AS")

    def _again(self, item: Selected, chosen: Sequence[OutputColumn]) -> Iterator[TextProblem]:
        """A name of the result that is there already."""
        names = [column.name.lower() for column in self._selected]
        for column in chosen:
            if column.name.lower() in names:
                message = f"two columns of the result are named `{column.name}`"
                yield TextProblem(message, item.column.span, "another name behind AS")
                return
            names.append(column.name.lower())

    @staticmethod
    def _unreadable(item: Selected, chosen: Sequence[OutputColumn]) -> Iterator[TextProblem]:
        """Columns of the input that cannot be read."""
        for column in chosen:
            if isinstance(column.source, tuple):
                problem = unreadable_column(column.source, column.type, item.column.span)
                if problem is not None:
                    yield problem

    def _row(self, text: Fragment, record: RecordType | None) -> PlainRow:
        alias = self._statement.alias
        qualifiers = () if alias is None else (alias.written.lower(),)
        written = self._statement.text[slice(*text.span)]
        return PlainRow(record, qualifiers, _IN_MEASURES, written, result=True)

    def _item(self, item: Selected) -> Sequence[OutputColumn]:
        """The column that an item of the SELECT list takes or computes; none where it is wrong."""
        record = None
        if not self._open:
            record = RecordType(
                {**dict.fromkeys(self._unread, UNKNOWN), **{c.name: c.type for c in self._given}}
            )
        row = self._row(item.column, record)
        try:
            expression = parse_of_row(item.column.text, row)
            if any(path[0] in self._unread for path in expression.columns):
                return ()
            node = expression.node
            if isinstance(node, Column) and len(node.path) == 1:
                return (_renamed(self._named(node.path[0]), item),)
            return (self._computed(item, expression, record, row),)
        except ExpressionError as error:
            self.problems += [problem.moved(item.column.span[0]) for problem in error.problems]
            return ()

    def _named(self, wanted: str) -> OutputColumn:
        found = (column for column in self._given if column.name.lower() == wanted.lower())
        return next(found, None) or self._column((wanted,))

    def _computed(
        self, item: Selected, expression: Expression, record: RecordType | None, row: PlainRow
    ) -> OutputColumn:
        start, end = item.column.span
        if item.name is None:
            allowed = f"{item.column.text} AS name"
            raise refused("a column that SELECT computes needs a name", (0, end - start), allowed)
        kind = check_types(expression, record, {})
        sources: list[tuple[ColumnPath, ColumnPath | int]] = []
        for path in sorted(expression.columns):
            source = self._named(path[0]).source
            if isinstance(source, tuple):
                source = (*source, *path[1:])
            elif len(path) > 1 or isinstance(source, Computed):
                message = f"{name(path)}: {path[0]} is a measure, not a column of the input"
                raise refused(message, (0, end - start), f"the field as a measure, {_IN_MEASURES}")
            sources.append((path, source))
        self.respelt += [((start + a, start + b), found) for (a, b), found in row.respelt]
        types = RecordType({path[0]: self._named(path[0]).type for path, _ in sources})
        computed = Computed(expression, tuple(sources), types)
        return OutputColumn(item.name.written, kind, computed, item.name.span)


def _renamed(column: OutputColumn, item: Selected) -> OutputColumn:
    if item.name is None:
        return column
    return replace(column, name=item.name.written, span=item.name.span)


def is_star(item: Selected, statement: Statement) -> bool:
    """Return whether an item of the SELECT list is all columns."""
    text = "".join(item.column.text.split()).lower()
    return text == "*" or (
        statement.alias is not None and text == f"{statement.alias.written}.*".lower()
    )
