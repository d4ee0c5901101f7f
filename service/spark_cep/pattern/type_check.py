"""Checks a loaded rule's expressions against the record types that its events may have.

A step with ``of_type`` sees the columns of that type; any other step sees the columns of all the
types together, each of which must be in at least one of them, and is NULL in the events that do not
have it. A column of several types is refused (:mod:`spark_cep.pattern.several_types`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from spark_cep.documents.nearest import instead
from spark_cep.documents.places import Path, Places
from spark_cep.errors import MOST_PROBLEMS, Problem
from spark_cep.pattern.checks.findings import Placed, place_steps
from spark_cep.pattern.checks.references import expressions_of
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.expressions import ALL_STEPS, Expression, ExpressionError, check_types, parse
from spark_cep.pattern.expressions.checking.symbols import unknown_symbols
from spark_cep.pattern.expressions.nodes import Column
from spark_cep.pattern.expressions.problems import TextProblem, TextWarning
from spark_cep.pattern.key_types import key_problem, with_article
from spark_cep.pattern.several_types import AnyRecord, InputRecord
from spark_cep.pattern.sql_types import check_statement, statement_warnings, with_columns
from spark_cep.pattern.tree import Rule
from spark_cep.pattern.types import (
    BOOLEAN,
    NULL,
    UNKNOWN,
    RecordType,
    SqlType,
    column_type,
)


def type_check(loaded: LoadedRule, records: Sequence[InputRecord]) -> list[Problem]:
    """Every problem of the rule's expressions with these record types, those that the rule may
    see. Where each is from (an input, a file) is for messages; empty: it is not named."""
    if loaded.rule.query is not None:
        return check_statement(loaded, AnyRecord.of(list(dict.fromkeys(records))))
    check = _Check(loaded.rule, loaded.places, records)
    return list(dict.fromkeys(islice(check.problems(), MOST_PROBLEMS)))


def type_warnings(loaded: LoadedRule, records: Sequence[InputRecord]) -> list[Problem]:
    """Return warnings about conditions that are valid for these record types but are probably
    mistakes, but for those that the rule's comments allow."""
    return loaded.divided(_type_warnings(loaded, records))[0]


def silenced_type_warnings(loaded: LoadedRule, records: Sequence[InputRecord]) -> list[Problem]:
    """Return those of :func:`type_warnings` that the rule's comments allow."""
    return loaded.divided(_type_warnings(loaded, records))[1]


def _type_warnings(loaded: LoadedRule, records: Sequence[InputRecord]) -> list[Problem]:
    if loaded.rule.query is not None:
        return statement_warnings(loaded, AnyRecord.of(list(dict.fromkeys(records))))
    check = _Check(loaded.rule, loaded.places, records)
    return list(dict.fromkeys(islice(check.warnings(), MOST_PROBLEMS)))


def with_columns_of(
    loaded: LoadedRule, records: Sequence[InputRecord], running: Rule | None = None
) -> LoadedRule:
    """The rule with all its columns written out; as it is, unless the events are of one
    record type. ``running``: the rule of this id that runs, if one does."""
    types = list(dict.fromkeys(records))
    if loaded.rule.query is None or len(types) != 1:
        return loaded
    same = running is not None and running.version == loaded.rule.version
    return with_columns(loaded, types[0][2], running.query if running and same else None)


class _Check:
    """One rule against one set of types."""

    def __init__(self, rule: Rule, places: Places, records: Sequence[InputRecord]) -> None:
        self._rule = rule
        self._places = places
        self._types: dict[str, list[InputRecord]] = {}
        for record in dict.fromkeys(records):
            for name in {record[1], record[1].rpartition(".")[2]}:
                self._types.setdefault(name, []).append(record)
        self._any = AnyRecord.of(list(dict.fromkeys(records)))
        placed = list(place_steps(rule.pattern))
        self._events: dict[Path, AnyRecord] = {p.path: self._type_of(p) for p in placed}
        self._placed = [p for p in placed if p.step.group is None]
        self._steps = {p.step.name: self._type_of(p) for p in self._placed if not p.step.negative}
        self._steps[ALL_STEPS] = self._any

    def problems(self) -> Iterator[Problem]:
        """All of them, in the order of the rule's fields."""
        yield from self._key_problems()
        unknown = set()
        for placed in self._placed:
            name = placed.step.of_type
            if name is not None and name not in self._types:
                unknown.add(placed.path)
                allowed = instead(name, sorted(self._types), "record types")
                message, path = f"unknown record type `{name}`", (*placed.path, "of_type")
                yield self._places.problem(message, path, allowed=allowed)
        for expression, path, step in expressions_of(self._rule):
            if path[:-1] in unknown:
                continue
            kind, problems = self._checked(expression, path, self._events.get(path[:-1]))
            yield from problems
            if step is not None and kind not in (None, BOOLEAN, NULL, UNKNOWN):
                message = f"`{path[-1]}` is {with_article(kind)}, not a condition"
                allowed = "an expression that is true or false (BOOLEAN)"
                yield self._places.problem(message, path, allowed=allowed)
        if not isinstance(self._rule.emit.events, str):
            for number, column in enumerate(self._rule.emit.events):
                yield from self._column_problems(column, ("emit", "events", number))

    def warnings(self) -> Iterator[Problem]:
        """Yield the warnings of all expressions in the order of the rule's fields."""
        for number, key in enumerate(self._rule.key):
            symbols = unknown_symbols(key, self._any, self._steps)
            yield from self._warned(symbols, ("key", number))
        for expression, path, _ in expressions_of(self._rule):
            symbols = unknown_symbols(expression, self._events.get(path[:-1]), self._steps)
            yield from self._warned(symbols, path)

    def _type_of(self, placed: Placed) -> AnyRecord:
        name = placed.step.of_type
        known = None if name is None else self._types.get(name)
        return self._any if known is None else AnyRecord.of(known)

    def _key_problems(self) -> Iterator[Problem]:
        # Each event that a step may take must have a column of the key; others are NULL in it.
        seen = dict.fromkeys(self._type_of(placed) for placed in self._placed)
        together = AnyRecord.of(list(dict.fromkeys(r for event in seen for r in event.records)))
        for number, expression in enumerate(self._rule.key):
            path = ("key", number)
            for event in seen:
                some = any(column_type(event, column) is not None for column in expression.columns)
                kind, problems = self._checked(expression, path, together if some else event)
                yield from problems
                wrong = None if kind is None else key_problem(kind)
                if wrong is not None:
                    yield self._places.problem(wrong[0], path, allowed=wrong[1])

    def _column_problems(self, column: str, path: Path) -> Iterator[Problem]:
        try:
            expression = parse(column)
        except ExpressionError as error:
            yield from self._described(error.problems, path)
            return
        if not isinstance(expression.node, Column):
            yield self._places.problem(
                f"`{column}` is not a column", path, allowed="a column such as `ip`"
            )
            return
        _, problems = self._checked(expression, path, self._any)
        yield from problems

    def _checked(
        self, expression: Expression, path: Path, event: RecordType | None
    ) -> tuple[SqlType | None, list[Problem]]:
        try:
            return check_types(expression, event, self._steps), []
        except ExpressionError as error:
            return None, list(self._described(error.problems, path))

    def _described(self, found: Iterable[TextProblem], path: Path) -> Iterator[Problem]:
        for problem in found:
            message, span, allowed, fix = problem
            yield self._places.problem(message, path, allowed=allowed, offsets=span, fix=fix)

    def _warned(self, found: Iterable[TextWarning], path: Path) -> Iterator[Problem]:
        for message, span, allowed, code, fix in found:
            yield self._places.problem(
                message, path, allowed=allowed, offsets=span, code=code, fix=fix
            )
