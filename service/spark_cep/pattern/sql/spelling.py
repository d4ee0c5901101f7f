"""A statement whose meaning does not depend on the type of the input's events.

With the type, names of columns match in any case, and ``*`` of ALL ROWS PER MATCH is all columns.
Both are written out, so that the text alone says what it means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from spark_cep.pattern.expressions import parse
from spark_cep.pattern.expressions.nodes import Column
from spark_cep.pattern.sql.analysis import Analysis
from spark_cep.pattern.sql.outputs import is_star
from spark_cep.pattern.sql.query import Query
from spark_cep.pattern.sql.row_pattern import Span
from spark_cep.pattern.sql.statement import RowsPerMatch, Statement
from spark_cep.pattern.sql.syntax import quoted_name, read_statement
from spark_cep.pattern.types import RecordType

_QUALIFIED = re.compile(r'(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|\w+)\s*\.\s*')


def spelled_out(
    text: str, source: str, event: RecordType, names: Sequence[str] | None = None
) -> str:
    """The statement ``text``, in which nothing is wrong, for events of that type. ``names``: those
    of the result's columns, where ``*`` is to be less than all columns that there are."""
    statement, _ = read_statement(text, source)
    assert statement is not None
    analysis = Analysis(statement, event)
    query = analysis.query()
    chosen = [column.name for column in query.outputs] if names is None else names
    edits = [*_columns(analysis, text), *_selected(statement, query, chosen)]
    for (start, end), new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def leaves_columns_open(query: Query) -> bool:
    """Return whether the query puts out columns that only the type of the events names."""
    if query.event is not None or query.rows is RowsPerMatch.ONE_ROW:
        return False
    statement, _ = read_statement(query.text, query.source)
    return statement is not None and any(is_star(item, statement) for item in statement.select)


def _columns(analysis: Analysis, text: str) -> Iterator[tuple[Span, str]]:
    for (start, end), path in analysis.respelt:
        written = text[start:end]
        parts = len(_QUALIFIED.findall(written)) + 1
        # The variable, if there is one, stays.
        variable = _QUALIFIED.match(written) if parts > len(path) else None
        name = ".".join(map(quoted_name, path))
        yield (start, end), f"{variable[0] if variable else ''}{name}"


def _selected(
    statement: Statement, query: Query, names: Sequence[str]
) -> Iterator[tuple[Span, str]]:
    if statement.rows is RowsPerMatch.ONE_ROW:
        return
    # There is one star at most, since no two columns have one name.
    others = len(statement.select) - 1
    behind = False
    for number, item in enumerate(statement.select):
        if is_star(item, statement):
            of_star = names[number : len(names) - (others - number)]
            yield item.column.span, ", ".join(map(quoted_name, of_star))
            behind = True
            continue
        source = query.outputs[number - len(statement.select) if behind else number].source
        node = parse(item.column.text).node
        if isinstance(source, tuple) and isinstance(node, Column) and node.path[-1] != source[-1]:
            yield item.column.span, quoted_name(source[-1])
