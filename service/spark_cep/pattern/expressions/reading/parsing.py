"""Text to expression: the grammar makes a tree, the tree becomes nodes, and those are checked."""

from __future__ import annotations

from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.expressions.checking.growth import growth_problems
from spark_cep.pattern.expressions.checking.lambdas import lambda_problems
from spark_cep.pattern.expressions.nodes import Expression
from spark_cep.pattern.expressions.problems import ExpressionError
from spark_cep.pattern.expressions.reading.look_backs import StepEvents
from spark_cep.pattern.expressions.reading.plain_row import PlainRow
from spark_cep.pattern.expressions.reading.reader import Events, ExpressionReader
from spark_cep.pattern.expressions.reading.row_scope import RowPatternScope
from spark_cep.pattern.expressions.reading.row_values import MatchRows
from spark_cep.pattern.expressions.reading.syntax import read_syntax


def parse(text: str, *, steps: frozenset[str] = frozenset(), measure: bool = False) -> Expression:
    """The expression in ``text``; ``ExpressionError`` with all its problems.

    ``steps`` are the names that look-backs may use. In a ``measure`` a bare column is that of the
    match's last event, and FIRST, LAST, SUM … may run over all events of the match.
    """
    return _parse(text, StepEvents(steps, measure))


def parse_of_rows(text: str, scope: RowPatternScope) -> Expression:
    """A condition or measure of MATCH_RECOGNIZE; ``ExpressionError`` with all problems."""
    return _parse(text, MatchRows(scope))


def parse_of_row(text: str, row: PlainRow) -> Expression:
    """An expression over one row by itself; ``ExpressionError`` with all problems."""
    return _parse(text, row)


def _parse(text: str, events: Events) -> Expression:
    reader = ExpressionReader(events)
    node = reader.read(read_syntax(text))
    problems = reader.problems or lambda_problems(node) or growth_problems(node)
    if problems:
        raise ExpressionError(list(dict.fromkeys(problems)))
    return expression(node, text)
