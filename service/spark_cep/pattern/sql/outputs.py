"""The columns of the result.

ONE ROW PER MATCH gives the columns of PARTITION BY and the measures; ALL ROWS those of ORDER BY
behind the partition's, and behind the measures the rest of the input's columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spark_cep.documents.nearest import instead
from spark_cep.pattern.expressions import ColumnPath, ExpressionError, parse
from spark_cep.pattern.expressions.nodes import Column
from spark_cep.pattern.expressions.problems import TextProblem
from spark_cep.pattern.sql.query import Measure, OutputColumn, Sort
from spark_cep.pattern.sql.statement import RowsPerMatch, Selected, Statement
from spark_cep.pattern.types import UNKNOWN, RecordType, column_type

_ONLY_COLUMNS = "`*`, or columns that the clause gives; compute in MEASURES"


def outputs_of(
    statement: Statement,
    event: RecordType | None,
    partition: Sequence[ColumnPath],
    order: Sequence[Sort],
    measures: Sequence[Measure],
) -> tuple[tuple[OutputColumn, ...], list[TextProblem]]:
    """The columns that SELECT takes, and what is wrong with them."""
    paths = [*partition]
    rest: list[ColumnPath] = []
    if statement.rows is not RowsPerMatch.ONE_ROW:
        paths += [item.path for item in order]
        rest = [(name,) for name in event.fields] if event is not None else []
    paths = [path for path in dict.fromkeys(paths) if path]
    spans = {measure.name.written: measure.name.span for measure in statement.measures}
    computed = [OutputColumn(m.name, m.type, i, spans[m.name]) for i, m in enumerate(measures)]
    given = [
        *(_column(event, path) for path in paths),
        *computed,
        *(_column(event, path) for path in rest if path not in paths),
    ]
    problems = _twice(statement, given)
    selected: list[OutputColumn] = []
    for item in statement.select:
        chosen = _selected(item, statement, event, given, problems)
        known = {problem.message.lower() for problem in problems}
        again = _again(item, chosen, selected)
        problems += [problem for problem in again if problem.message.lower() not in known]
        selected += chosen
    if not given and not statement.measures and not statement.partition:
        message = "the result has no columns"
        allowed = "MEASURES, PARTITION BY, or ALL ROWS PER MATCH"
        problems.append(TextProblem(message, statement.pattern.span, allowed))
    return tuple(selected), problems


def _column(event: RecordType | None, path: ColumnPath) -> OutputColumn:
    kind = None if event is None else column_type(event, path)
    return OutputColumn(path[-1], kind or UNKNOWN, path)


def _twice(statement: Statement, given: Sequence[OutputColumn]) -> list[TextProblem]:
    """Measures whose name another column of the result has."""
    names = [column.name.lower() for column in given]
    return [
        TextProblem(
            f"two columns of the result are named `{written.name.written}`",
            written.name.span,
            "another name behind AS",
        )
        for written in statement.measures
        if names.count(written.name.written.lower()) > 1
    ]


def _again(
    item: Selected, chosen: Sequence[OutputColumn], before: Sequence[OutputColumn]
) -> Iterator[TextProblem]:
    """A name of the result that is there already."""
    names = [column.name.lower() for column in before]
    for column in chosen:
        if column.name.lower() in names:
            message = f"two columns of the result are named `{column.name}`"
            yield TextProblem(message, item.column.span, "another name behind AS")
            return
        names.append(column.name.lower())


def is_star(item: Selected, statement: Statement) -> bool:
    """Return whether an item of the SELECT list is all columns."""
    text = "".join(item.column.text.split()).lower()
    return text == "*" or (
        statement.alias is not None and text == f"{statement.alias.written}.*".lower()
    )


def _selected(
    item: Selected,
    statement: Statement,
    event: RecordType | None,
    given: Sequence[OutputColumn],
    problems: list[TextProblem],
) -> Sequence[OutputColumn]:
    prefix = "" if statement.alias is None else f"{statement.alias.written}."
    if is_star(item, statement):
        return given
    try:
        node = parse(item.column.text).node
    except ExpressionError:
        node = None
    if not isinstance(node, Column):
        message = "SELECT takes columns here"
        problems.append(TextProblem(message, item.column.span, _ONLY_COLUMNS))
        return ()
    path = node.path
    if prefix and len(path) > 1 and f"{path[0]}.".lower() == prefix.lower():
        path = path[1:]
    if len(path) == 1 and event is None and statement.rows is not RowsPerMatch.ONE_ROW:
        # One of the columns that the type of the events would have.
        given = [*given, _column(None, path)]
    wanted = path[0].lower() if len(path) == 1 else None
    match = [column for column in given if column.name.lower() == wanted]
    if not match:
        names = [column.name for column in given]
        message = f"the result has no column `{item.column.text}`"
        problems.append(TextProblem(message, item.column.span, instead(path[-1], names, "columns")))
        return ()
    if item.name is None:
        return (match[0],)
    return (replace(match[0], name=item.name.written, span=item.name.span),)
