"""Names and calls over the rows of a row pattern match: navigation, CLASSIFIER, MATCH_NUMBER,
aggregates.

The rules are those of the SQL standard: FIRST and LAST may stand in PREV and NEXT, directly, and
nothing else in one another; each stays with one variable, and reads a column or CLASSIFIER of it;
RUNNING and FINAL belong to FIRST, LAST and aggregates, and FINAL to measures alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from spark_cep.documents.nearest import listed
from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.expressions.functions.aggregation import (
    COUNT_DISTINCT,
    PICKS,
    ROW_AGGREGATE_ALIASES,
    ROW_AGGREGATES,
)
from spark_cep.pattern.expressions.nodes import (
    ColumnPath,
    Literal,
    MatchNumber,
    Node,
    Pick,
    RowAggregate,
    RowPosition,
    RowReference,
    Span,
)
from spark_cep.pattern.expressions.problems import refused
from spark_cep.pattern.expressions.reading.reader import MAX_OFFSET, Called, ExpressionReader
from spark_cep.pattern.expressions.reading.row_scope import Frame, RowPatternScope
from spark_cep.pattern.expressions.reading.syntax import Syntax, names, place
from spark_cep.pattern.types import NULL

_MODES = ("RUNNING", "FINAL")
_SHIFTS = {"PREV": -1, "NEXT": 1}
_OF_MATCH = ("CLASSIFIER", "MATCH_NUMBER")
_PLAIN = frozenset({*PICKS, *_SHIFTS, *_OF_MATCH, *ROW_AGGREGATES}) - {COUNT_DISTINCT}
_NESTING = "only FIRST and LAST may stand, directly, in PREV and NEXT"
_NO_FINAL = "FINAL is for measures; a condition is computed before the match has ended"


class MatchRows:
    """The rows of a match, as a scope resolves their names."""

    functions: ClassVar[frozenset[str]] = _PLAIN | {
        f"{mode} {function}" for mode in _MODES for function in _PLAIN
    }
    aliases: ClassVar[Mapping[str, str]] = ROW_AGGREGATE_ALIASES
    counted: ClassVar[str] = "A.*"

    def __init__(self, scope: RowPatternScope) -> None:
        self._scope = scope

    def column(self, path: ColumnPath, span: Span) -> Node:
        """The column that a dotted name stands for."""
        return self._scope.column(path, span)

    def call(self, reader: ExpressionReader, called: Called) -> Node:
        """The value that a call stands for."""
        arguments, span = called.arguments, called.span
        mode, _, function = called.name.rpartition(" ")
        if mode and (function in _SHIFTS or function in _OF_MATCH):
            allowed = f"{mode} stands before FIRST, LAST and aggregates"
            raise refused(f"{mode} cannot stand before {function}", span, allowed)
        if mode == "FINAL" and self._scope.defined is not None:
            raise refused(_NO_FINAL, span)
        if called.distinct and function != "COUNT":
            message = f"DISTINCT is not allowed in {function}"
            raise refused(message, span, "COUNT(DISTINCT A.column)")
        if function == "MATCH_NUMBER":
            if arguments:
                raise refused("MATCH_NUMBER takes no argument", span)
            return RowReference(MatchNumber(), span)
        if function == "CLASSIFIER":
            return self._classifier(arguments, span)
        if self._scope.frame is not None:
            around = "an aggregate" if self._scope.frame.position is None else "a navigation"
            raise refused(f"{function} cannot stand inside {around}", span, _NESTING)
        if function in _SHIFTS or function in PICKS:
            return self._navigation(reader, function, mode, called)
        return self._aggregate(reader, function, mode, called)

    def _classifier(self, arguments: list[Syntax], span: Span) -> Node:
        if not arguments:
            return self._scope.classifier(None, span)
        if len(arguments) > 1 or arguments[0].data != "path" or len(arguments[0].children) > 1:
            message = "CLASSIFIER takes a pattern variable, or nothing"
            raise refused(message, span, "CLASSIFIER(A)")
        return self._scope.classifier(self._variable(arguments[0], place(arguments[0])), span)

    def _variable(self, tree: Syntax, span: Span) -> str:
        """The pattern variable that a name, or what is before ``.*``, stands for."""
        written = ".".join(names(tree))
        variable = self._scope.variable(written, place(tree))
        if variable is None:
            known = f"the pattern variables are {listed(list(self._scope.unions))}"
            raise refused(f"there is no pattern variable {written}", span, known)
        return variable

    def _navigation(
        self, reader: ExpressionReader, function: str, mode: str, called: Called
    ) -> Node:
        shift, shown, span, inner = 0, function, called.span, called
        if function in _SHIFTS:
            shift = _SHIFTS[function] * _offset(reader, function, called, 1)
            mode, function, inner = self._nested(reader, called)
        offset = _offset(reader, function, inner, 0)
        pick: Pick = "FIRST" if function == "FIRST" else "LAST"
        frame = Frame(RowPosition(pick, (), offset, mode == "FINAL", shift))
        found = len(reader.problems)
        subject = self._within(reader, frame, inner.arguments[0])
        if len(reader.problems) > found:
            return subject
        if not frame.named:
            raise refused(f"{shown} needs a column, or CLASSIFIER, to read in that row", span)
        _check_one_variable(shown, frame, span)
        return subject

    def _nested(self, reader: ExpressionReader, called: Called) -> tuple[str, str, Called]:
        """FIRST or LAST directly in PREV or NEXT, with its mode; LAST where there is neither."""
        if called.arguments[0].data == "call":
            inner = reader.called(called.arguments[0])
            mode, _, function = inner.name.rpartition(" ")
            if function in PICKS:
                if mode == "FINAL" and self._scope.defined is not None:
                    raise refused(_NO_FINAL, inner.span)
                return mode, function, inner
        return "", "LAST", called._replace(arguments=called.arguments[:1])

    def _within(self, reader: ExpressionReader, frame: Frame, tree: Syntax) -> Node:
        around, self._scope.frame = self._scope.frame, frame
        try:
            return reader.read_apart(tree)
        finally:
            self._scope.frame = around

    def _aggregate(
        self, reader: ExpressionReader, function: str, mode: str, called: Called
    ) -> Node:
        arguments, span, final = called.arguments, called.span, mode == "FINAL"
        if function == "COUNT" and called.is_of_all:
            named = len(arguments[0].children) > 1
            of = self._scope.unions[self._variable(arguments[0], span)] if named else ()
            return RowReference(RowAggregate("COUNT", of, final), span)
        counted = COUNT_DISTINCT if called.distinct else function
        count = ROW_AGGREGATES[counted].arguments
        if len(arguments) != count:
            wanted = f"{count} argument{'s' * (count > 1)}"
            of_rows = "COUNT(*) counts all rows, COUNT(A.*) those of A"
            message = f"{function} takes {wanted}, not {len(arguments)}"
            raise refused(message, span, of_rows if counted == "COUNT" else None)
        frame, found = Frame(None), len(reader.problems)
        nodes = [self._within(reader, frame, argument) for argument in arguments]
        if len(reader.problems) > found:
            return Literal(None, NULL, span)
        _check_one_variable(function, frame, span)
        of = self._scope.unions[frame.named[0]] if frame.named and frame.named[0] else ()
        values = tuple(map(expression, nodes))
        return RowReference(RowAggregate(counted, of, final, values), span)


def _offset(reader: ExpressionReader, function: str, called: Called, default: int) -> int:
    """The number that follows what is read."""
    count = len(called.arguments)
    if not 1 <= count <= 2:  # noqa: PLR2004
        raise refused(f"{function} takes 1 or 2 arguments, not {count}", called.span)
    if count == 1:
        return default
    what = f"the offset of {function}"
    return reader.read_number(called.arguments[1], what, 0, MAX_OFFSET)


def _check_one_variable(function: str, frame: Frame, span: Span) -> None:
    named = list(dict.fromkeys(frame.named))
    if len(named) > 1:
        names = ", ".join(variable or "all rows (a name without a variable)" for variable in named)
        raise refused(f"{function} must stay with one variable; this one uses {names}", span)
