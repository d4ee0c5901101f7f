"""A rule in SQL against the type of its input's events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from spark_cep.errors import Problem
from spark_cep.pattern.checks.sql_rule import PATH, finding, warned
from spark_cep.pattern.checks.validation import place_findings
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.document.rule_of_shape import with_query
from spark_cep.pattern.expressions import ColumnPath
from spark_cep.pattern.expressions.checking.symbols import unknown_symbols
from spark_cep.pattern.expressions.problems import TextProblem
from spark_cep.pattern.key_types import key_problem
from spark_cep.pattern.several_types import AnyRecord
from spark_cep.pattern.sql import Query, endless_parts, examine_query, order_problems, spelled_out
from spark_cep.pattern.sql.spelling import leaves_columns_open
from spark_cep.pattern.types import RecordType, column_type

_MOST_STATEMENTS = 4_096


def check_statement(
    loaded: LoadedRule, event: RecordType, event_time: ColumnPath | None = None
) -> list[Problem]:
    """Return the parts of a valid statement that do not fit events of that type. ``event_time`` is
    the column of their time, an empty path where that is no column, ``None`` where it is
    unknown."""
    text = statement_of(loaded)
    query, problems = examine_query(text, loaded.places.source, event)
    _, known = examine_query(text, loaded.places.source)
    new = [problem for problem in problems if not any(map(problem.overlaps, known))]
    if query is not None:
        if not known:
            without_time = set(order_problems(query))
            of_time = [p for p in order_problems(query, event_time) if p not in without_time]
            new += [problem for problem in of_time if not any(map(problem.overlaps, new))]
        new += _keys(query, event)
    ordered = sorted(dict.fromkeys(new), key=lambda problem: problem.span)
    return place_findings(map(finding, ordered), loaded.places)[0]


def statement_warnings(loaded: LoadedRule, event: AnyRecord) -> list[Problem]:
    """Return warnings about parts that are valid for events of that type but are probably
    mistakes."""
    query, problems = examine_query(statement_of(loaded), loaded.places.source, event)
    if query is None or problems:
        return []
    expressions = [(measure.expression, measure.start) for measure in query.measures]
    expressions += [(e, query.define_starts[variable]) for variable, e in query.defines.items()]
    if query.where is not None:
        expressions.append((query.where, query.where_start))
    warnings = [
        problem.moved(start)
        for expression, start in expressions
        for problem in unknown_symbols(expression, event, {})
    ]
    ordered = sorted(dict.fromkeys(warnings), key=lambda problem: problem.span)
    return place_findings(map(warned, ordered), loaded.places)[1]


def endless(loaded: LoadedRule) -> list[Problem]:
    """Return the parts of the statement that only the end of the input decides."""
    assert loaded.rule.query is not None
    return place_findings(map(finding, endless_parts(loaded.rule.query)), loaded.places)[0]


def statement_of(loaded: LoadedRule) -> str:
    """The text that its places are about."""
    assert loaded.rule.query is not None
    return loaded.places.texts.get(PATH, loaded.rule.query.text)


def at_input(loaded: LoadedRule, message: str, allowed: str) -> Problem:
    """A problem of what FROM names."""
    assert loaded.rule.query is not None
    problem = TextProblem(message, loaded.rule.query.input_span, allowed)
    return place_findings([finding(problem)], loaded.places)[0][0]


def with_columns(loaded: LoadedRule, event: RecordType, running: Query | None = None) -> LoadedRule:
    """Return the rule with a statement that does not depend on the type of the events: ``*`` of ALL
    ROWS PER MATCH is replaced by their columns. A rule that does not fit them is returned as it is.

    ``running``: the query of this version that runs already. Where the events have got more columns
    since, ``*`` is still the columns that it has: what a version means does not change.
    """
    query = loaded.rule.query
    assert query is not None
    spelled = _spelled_out(query.text, event)
    if running is not None and spelled != running and leaves_columns_open(query):
        names = tuple(column.name for column in running.outputs)
        before = _spelled_out(query.text, event, names)
        spelled = before if before == running else spelled
    return loaded if spelled is None else replace(loaded, rule=with_query(loaded.rule, spelled))


@lru_cache(maxsize=_MOST_STATEMENTS)
def _spelled_out(
    text: str, event: RecordType, names: tuple[str, ...] | None = None
) -> Query | None:
    _, problems = examine_query(text, "", event)
    if problems:
        return None
    spelled = spelled_out(text, "", event, names)
    if spelled == text:
        return None
    query, problems = examine_query(spelled, "")
    return None if problems else query


def _keys(query: Query, event: RecordType) -> Iterator[TextProblem]:
    for path, span in zip(query.partition, query.partition_spans, strict=True):
        kind = column_type(event, path) if path else None
        wrong = None if kind is None else key_problem(kind)
        if wrong is not None:
            yield TextProblem(wrong[0], span, wrong[1])
