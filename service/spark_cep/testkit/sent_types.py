"""Events without a schema, held against the rules by the types of their values.

Text where a rule computes with a number or a time makes its conditions fail, or be false, where the
job would refuse the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from spark_cep.errors import Problem
from spark_cep.pattern.checks.findings import place_steps
from spark_cep.pattern.checks.references import expressions_of
from spark_cep.pattern.expressions import ColumnPath, Expression, ExpressionError, check_types
from spark_cep.pattern.expressions.nodes import ColumnAt, RowAggregate
from spark_cep.pattern.tree import Rule
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    RecordType,
    SqlType,
)

_Shape = tuple[str, str | None, frozenset[tuple[ColumnPath, SqlType]]]
_Place = tuple[str, Expression, str | None]
"""The step or measure of an expression, and the record type that its events must have."""
_BY_TYPE: tuple[tuple[type, SqlType], ...] = (
    (bool, BOOLEAN),
    (float, DOUBLE),
    (str, STRING),
    (datetime, TIMESTAMP),
    (date, DATE),
)
_TWO_31 = 1 << 31
_HELP = (
    "send a number as int, float or Decimal, a time as datetime, a text as str; or CAST the column"
)


class SentTypes:
    """The expressions of ``rules``, by which events without a schema are checked."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = [
            (rule, place, expression, of_type, _paths(expression))
            for rule in rules
            for place, expression, of_type in _places(rule)
        ]
        self._checked: dict[_Shape, dict[tuple[str, str], Problem]] = {}

    @property
    def warnings(self) -> list[Problem]:
        """The expressions that could not compute with what was sent, each once."""
        found = (problem for checked in self._checked.values() for problem in checked.values())
        return list({(each.rule, each.step): each for each in found}.values())

    def check(
        self, source: str, of_type: str | None, values: Mapping[str, Any]
    ) -> Mapping[tuple[str, str], Problem]:
        """The problem of each rule and step, or measure, that cannot compute with these values."""
        known = {
            path: kind
            for *_, paths in self._rules
            for path in paths
            if (kind := _type_of(values, path)) != UNKNOWN
        }
        shape = (source, of_type, frozenset(known.items()))
        if shape not in self._checked:
            self._checked[shape] = {
                (rule.id, place): problem
                for rule, place, expression, wanted, paths in self._rules
                if wanted in (None, of_type) and (not rule.events or source in rule.events)
                for problem in _problems(rule, place, expression, paths, known, values)
            }
        return self._checked[shape]


def columns_of(rule: Rule) -> list[str]:
    """The columns that a rule reads of any event: those of its key, then in the order in which they
    stand in the rule."""
    found: dict[str, None] = {}
    for expression in (*rule.key, *(expression for _, expression, _ in _places(rule))):
        names = {path[0] for path in _paths(expression)}
        found |= dict.fromkeys(sorted(names, key=expression.canonical.find))
    return list(found)


def _problems(
    rule: Rule,
    place: str,
    expression: Expression,
    paths: Iterable[ColumnPath],
    known: Mapping[ColumnPath, SqlType],
    values: Mapping[str, Any],
) -> Iterator[Problem]:
    record = _record({path: known.get(path, UNKNOWN) for path in paths})
    steps = dict.fromkeys((each.step for each in expression.look_backs), record)
    try:
        check_types(expression, record, steps)
    except ExpressionError as error:
        sent = (
            f"{'.'.join(path)}={_value(values, path)!r} is {known[path]}"
            for path in sorted(known.keys() & set(paths))
        )
        message = f"{expression.text}: {error}; {', '.join(sent)}"
        yield Problem(message, rule.source, rule=rule.id, step=place, allowed=_HELP)


def _places(rule: Rule) -> Iterator[_Place]:
    types = {placed.path: placed.step.of_type for placed in place_steps(rule.pattern)}
    for expression, path, step in expressions_of(rule):
        yield str(step or path[-1]), expression, types.get(path[:-1])
    if rule.query is not None:
        for variable, expression in rule.query.defines.items():
            yield variable, expression, None
        for measure in rule.query.measures:
            yield measure.name, measure.expression, None


def _paths(expression: Expression) -> frozenset[ColumnPath]:
    """The columns that the expression reads, of any event."""
    paths = set(expression.columns)
    for look_back in expression.look_backs:
        if look_back.argument is not None:
            paths |= look_back.argument.columns
    for value in expression.row_values:
        match value:
            case ColumnAt(path=path):
                paths.add(path)
            case RowAggregate(arguments=arguments):
                paths |= {path for each in arguments for path in _paths(each)}
    return frozenset(paths)


def _type_of(values: Mapping[str, Any], path: ColumnPath) -> SqlType:
    value = _value(values, path)
    if isinstance(value, Decimal):
        return DOUBLE
    if type(value) is int:
        return INT if abs(value) < _TWO_31 else BIGINT
    return next((kind for known, kind in _BY_TYPE if isinstance(value, known)), UNKNOWN)


def _value(values: Mapping[str, Any], path: ColumnPath) -> Any:
    found: Any = values
    for part in path:
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _record(columns: Mapping[ColumnPath, SqlType]) -> RecordType:
    """A record that has these columns; one that is also read as a whole is not known."""
    fields: dict[str, SqlType] = {}
    for name in dict.fromkeys(path[0] for path in columns):
        inner = {path[1:]: kind for path, kind in columns.items() if path[0] == name}
        whole = inner.pop((), None)
        fields[name] = _record(inner) if inner else (whole or UNKNOWN)
    return RecordType(fields)
