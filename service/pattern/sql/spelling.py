"""A statement whose meaning does not depend on the type of the input's events.

With the type, names of columns match in any case, and ``*`` of ALL ROWS PER MATCH is all columns.
Both are written out, so that the text alone says what it means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from service.pattern.expressions import parse
from service.pattern.expressions.nodes import Column
from service.pattern.sql.analysis import Analysis
from service.pattern.sql.outputs import is_star
from service.pattern.sql.query import Query
from service.pattern.sql.row_pattern import Span
from service.pattern.sql.statement import RowsPerMatch, Statement
from service.pattern.sql.syntax import quoted_name, read_statement
from service.pattern.types import RecordType

_QUALIFIED = re.compile(r'(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|\w+)\s*\.\s*')


def spelled_out(text: str, source: str, event: RecordType) -> str:
    """The statement ``text``, in which nothing is wrong, for events of that type."""
    statement, _ = read_statement(text, source)
    assert statement is not None
    analysis = Analysis(statement, event)
    query = analysis.query()
    edits = [*_columns(analysis, text), *_selected(statement, query)]
    for (start, end), new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def leaves_columns_open(query: Query) -> bool:
    """Whether the query puts out columns that only the type of the events names."""
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


def _selected(statement: Statement, query: Query) -> Iterator[tuple[Span, str]]:
    if statement.rows is RowsPerMatch.ONE_ROW:
        return
    chosen = iter(query.outputs)
    for item in statement.select:
        if is_star(item, statement):
            # There is one at most, since no two columns have one name.
            count = len(query.outputs) - len(statement.select) + 1
            names = [quoted_name(each.name) for each in islice(chosen, count)]
            yield item.column.span, ", ".join(names)
            continue
        source = next(chosen).source
        node = parse(item.column.text).node
        if isinstance(source, tuple) and isinstance(node, Column) and node.path[-1] != source[-1]:
            yield item.column.span, quoted_name(source[-1])
