"""Statement to query: names are resolved, expressions read, and the standard's rules checked.

Every problem is gathered, each at its place in the text. ``Analysis`` resolves what the clause
names; ``outputs`` decides the columns of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from spark_cep.documents.nearest import instead
from spark_cep.documents.places import Places
from spark_cep.durations import MAX_DURATION_MS, format_duration
from spark_cep.errors import MOST_PROBLEMS, RuleSetError
from spark_cep.pattern.expressions import (
    ColumnPath,
    Expression,
    ExpressionError,
    check_types,
    parse,
    parse_of_row,
    parse_of_rows,
)
from spark_cep.pattern.expressions.checking.unreadable import unreadable_column
from spark_cep.pattern.expressions.nodes import Column, Literal, Node
from spark_cep.pattern.expressions.problems import TextProblem
from spark_cep.pattern.expressions.reading.plain_row import PlainRow
from spark_cep.pattern.expressions.reading.row_scope import RowPatternScope
from spark_cep.pattern.sql.outputs import StatementColumns
from spark_cep.pattern.sql.program_size import MAX_PROGRAM, program_size
from spark_cep.pattern.sql.query import Measure, Query, Sort
from spark_cep.pattern.sql.row_pattern import Exclusion, PatternVariable, Permutation, Span, walk
from spark_cep.pattern.sql.statement import Fragment, Named, RowsPerMatch, Statement
from spark_cep.pattern.sql.syntax import read_statement
from spark_cep.pattern.types import BOOLEAN, UNKNOWN, RecordType, SqlType, column_type

_WITHIN = "WITHIN INTERVAL '10' MINUTE"
_COUNTED = 10**12
_OF_MATCHES = "in DEFINE or MEASURES, which see the rows of a match"
# In place of one that is wrong, so that nothing else is reported for want of a window.
_SOME_WINDOW = 1


def load_query(text: str, source: str, event: RecordType | None = None) -> Query:
    """The query of a text; ``RuleSetError`` with all its problems.

    ``source`` names the text in messages; ``event`` is the type of the input's events.
    """
    query, problems = examine_query(text, source, event)
    if query is None or problems:
        places = Places(source, (), texts={(): text})
        raise RuleSetError(
            [places.problem(p.message, (), allowed=p.allowed, offsets=p.span) for p in problems]
        )
    return query


def examine_query(
    text: str, source: str, event: RecordType | None = None
) -> tuple[Query | None, list[TextProblem]]:
    """The query of a text, as far as it can be read, and all that is wrong with it. If anything is,
    the query cannot be used."""
    statement, problems = read_statement(text, source)
    if statement is None:
        return None, problems
    analysis = Analysis(statement, event)
    query = analysis.query()
    # Text where the grammar is broken is not read as its author meant it.
    others = [other for other in analysis.problems if not any(map(other.overlaps, problems))]
    problems = sorted({*problems, *others}, key=lambda problem: problem.span)
    return query, problems[:MOST_PROBLEMS]


class Analysis:
    """One statement and its problems. ``respelt``: the places of columns, perhaps behind a
    variable, that the events spell otherwise, and their spelling there."""

    def __init__(self, statement: Statement, event: RecordType | None) -> None:
        self.problems: list[TextProblem] = []
        self.respelt: list[tuple[Span, ColumnPath]] = []
        self._statement = statement
        self._event = event
        nodes = list(walk(statement.pattern))
        self._variables = tuple(
            dict.fromkeys(node.name for node in nodes if isinstance(node, PatternVariable))
        )
        self._excludes = [node for node in nodes if isinstance(node, Exclusion)]
        self._unions = self._read_unions()

    def query(self) -> Query:
        """The query, to be used only if nothing is wrong."""
        statement = self._statement
        self._check_clause()
        partition = tuple(self._column(column, "PARTITION BY") for column in statement.partition)
        order = tuple(
            Sort(
                self._column(item.column, "ORDER BY"),
                item.descending,
                bool(item.nulls_first),
                item.column.span,
            )
            for item in statement.order
        )
        measures = tuple(self._measures())
        target = statement.after_match.target
        target_variables: tuple[str, ...] = ()
        if target is not None:
            known = self._known(target, self._unions, "pattern variables")
            target_variables = self._unions[known] if known else ()
        result = StatementColumns(statement, self._event, partition, order, measures)
        outputs = result.selected()
        result.check_order()
        self.problems += result.problems
        self.respelt += result.respelt
        rows_of = statement.rows_of
        return Query(
            text=statement.text,
            source=statement.source,
            input=rows_of.input.written,
            partition=partition,
            order=order,
            measures=measures,
            rows=statement.rows,
            skip=statement.after_match.skip,
            target=target_variables,
            pattern=statement.pattern,
            within_ms=self._within(),
            variables=self._variables,
            unions=self._unions,
            defines=self._defines(),
            outputs=outputs,
            event=self._event,
            where=self._where(),
            input_span=rows_of.input.span,
            partition_spans=tuple(column.span for column in statement.partition),
            define_starts={
                define.variable.name: define.condition.span[0] for define in statement.defines
            },
            where_start=0 if rows_of.where is None else rows_of.where.span[0],
        )

    def _refuse(self, message: str, span: tuple[int, int], allowed: str | None = None) -> None:
        self.problems.append(TextProblem(message, span, allowed))

    def _known(self, name: Named, known: Iterable[str], what: str) -> str | None:
        names = list(known)
        if name.name in names:
            return name.name
        message = f"`{name.written}` is not in the pattern"
        self._refuse(message, name.span, instead(name.written, names, what))
        return None

    def _read_unions(self) -> Mapping[str, tuple[str, ...]]:
        unions: dict[str, tuple[str, ...]] = {v: (v,) for v in self._variables}
        for subset in self._statement.subsets:
            name, members = subset.name, subset.members
            if name.name in self._variables:
                self._refuse(f"`{name.written}` is a variable of the pattern", name.span)
            elif name.name in unions:
                self._refuse(f"SUBSET `{name.written}` is there twice", name.span)
            known = [
                self._known(member, self._variables, "pattern variables") for member in members
            ]
            variables = dict.fromkeys(variable for variable in known if variable is not None)
            unions.setdefault(name.name, tuple(variables))
        return unions

    def _check_clause(self) -> None:
        statement = self._statement
        if statement.mode is not None:
            self._refuse(
                f"{statement.mode.name} is for row patterns in windows",
                statement.mode.span,
                f"MATCH_RECOGNIZE looks for every match; leave {statement.mode.name} out",
            )
        if self._excludes and statement.rows is RowsPerMatch.WITH_UNMATCHED:
            self._refuse(
                "{- … -} cannot be combined with WITH UNMATCHED ROWS",
                self._excludes[0].span,
                "ALL ROWS PER MATCH with SHOW or OMIT EMPTY MATCHES",
            )
        size = program_size(statement.pattern)
        if size > MAX_PROGRAM:
            shown = f"{size:,}" if size < _COUNTED else f"more than {_COUNTED:,}"
            self._refuse(
                f"the pattern makes {shown} instructions; the limit is {MAX_PROGRAM:,}",
                statement.pattern.span,
                self._smaller(),
            )

    def _smaller(self) -> str:
        for node in walk(self._statement.pattern):
            if isinstance(node, Permutation) and program_size(node) > MAX_PROGRAM:
                return (
                    f"fewer than the {len(node.parts):,} parts of PERMUTE, which makes all orders"
                )
        return "lower bounds of quantifiers"

    def _scope(self, text: Fragment, defined: str | None = None) -> RowPatternScope:
        return RowPatternScope(self._unions, defined, self._event, self._written(text))

    def _written(self, text: Fragment) -> str:
        return self._statement.text[slice(*text.span)]

    def _row(self, text: Fragment, *qualifiers: Named | None) -> PlainRow:
        names = tuple(each.written.lower() for each in qualifiers if each is not None)
        return PlainRow(self._event, names, _OF_MATCHES, self._written(text))

    def _where(self) -> Expression | None:
        rows_of = self._statement.rows_of
        if rows_of.where is None:
            return None
        read = self._read(rows_of.where, self._row(rows_of.where, rows_of.input, rows_of.alias))
        if read is None:
            return None
        condition, kind = read
        self._check_condition("WHERE", kind, rows_of.where.span)
        return condition

    def _check_condition(self, what: str, kind: SqlType, span: Span) -> None:
        if kind not in (BOOLEAN, UNKNOWN):
            message = f"the condition of {what} is {kind}"
            self._refuse(message, span, "what is true or false (BOOLEAN)")

    def _measures(self) -> Iterable[Measure]:
        for written in self._statement.measures:
            read = self._read(written.expression, self._scope(written.expression))
            if read is not None:
                yield Measure(written.name.written, *read, written.expression.span[0])

    def _defines(self) -> Mapping[str, Expression]:
        defines: dict[str, Expression] = {}
        seen: set[str] = set()
        for define in self._statement.defines:
            variable = define.variable
            if variable.name in self._unions and variable.name not in self._variables:
                message = f"`{variable.written}` is a SUBSET, which has no condition of its own"
                self._refuse(message, variable.span)
            elif self._known(variable, self._variables, "pattern variables") in seen:
                self._refuse(f"`{variable.written}` is defined twice", variable.span)
            seen.add(variable.name)
            read = self._read(define.condition, self._scope(define.condition, variable.name))
            if read is None:
                continue
            condition, kind = read
            self._check_condition(variable.written, kind, define.condition.span)
            defines[variable.name] = condition
        return defines

    def _read(
        self, text: Fragment, scope: RowPatternScope | PlainRow
    ) -> tuple[Expression, SqlType] | None:
        try:
            if isinstance(scope, PlainRow):
                expression = parse_of_row(text.text, scope)
            else:
                expression = parse_of_rows(text.text, scope)
            start = text.span[0]
            self.respelt += [((start + a, start + b), path) for (a, b), path in scope.respelt]
            return expression, check_types(expression, self._event, {})
        except ExpressionError as error:
            self._place(text, error)
            return None

    def _place(self, text: Fragment, error: ExpressionError) -> None:
        self.problems += [problem.moved(text.span[0]) for problem in error.problems]

    def _column(self, text: Fragment, clause: str) -> ColumnPath:
        row = self._row(text)
        try:
            node = parse_of_row(text.text, row).node
        except ExpressionError as error:
            self._place(text, error)
            return ()
        if not isinstance(node, Column):
            self._refuse(f"{clause} takes columns", text.span)
            return ()
        path = node.path
        self.respelt += [(text.span, found) for _, found in row.respelt]
        kind = None if self._event is None else column_type(self._event, path)
        if self._event is not None and kind is None:
            allowed = instead(".".join(path), self._event.fields, "columns")
            self._refuse(f"there is no column `{text.text}`", text.span, allowed)
        elif kind is not None and (problem := unreadable_column(path, kind, text.span)):
            self.problems.append(problem)
        return path

    def _within(self) -> int | None:
        text = self._statement.within
        if text is None:
            return None
        try:
            node: Node | None = parse(text.text).node
        except ExpressionError as error:
            if text.text.upper().startswith("INTERVAL"):
                self._place(text, error)
                return _SOME_WINDOW
            node = None
        value = node.value if isinstance(node, Literal) else None
        if not isinstance(value, timedelta):
            self._refuse("WITHIN takes an interval of fixed length", text.span, _WITHIN)
            return _SOME_WINDOW
        milliseconds = value // timedelta(milliseconds=1)
        if milliseconds < 1:
            self._refuse("WITHIN takes at least a millisecond", text.span, _WITHIN)
            return _SOME_WINDOW
        if milliseconds > MAX_DURATION_MS:
            most = format_duration(MAX_DURATION_MS)
            self._refuse(f"WITHIN takes at most {most}", text.span, _WITHIN)
            return _SOME_WINDOW
        return milliseconds
