"""Calls over the rows of a row pattern match: navigation, CLASSIFIER, MATCH_NUMBER, aggregates.

The rules are those of the SQL standard: FIRST and LAST may stand in PREV and NEXT, directly, and
nothing else in one another; each stays with one variable, and reads a column or CLASSIFIER of it;
RUNNING and FINAL belong to FIRST, LAST and aggregates, and FINAL to measures alone.

``FINAL LAST(…)`` arrives here as a call of the function ``FINAL LAST`` (``lexing``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from spark_cep.documents.nearest import listed
from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.expressions.functions.aggregation import (
    COUNT_DISTINCT,
    PICKS,
    ROW_AGGREGATE_ALIASES,
    ROW_AGGREGATES,
)
from spark_cep.pattern.expressions.nodes import (
    Expression,
    Literal,
    MatchNumber,
    Node,
    Pick,
    RowAggregate,
    RowPosition,
    RowReference,
    Span,
)
from spark_cep.pattern.expressions.reading.lexing import RUNNING_OR_FINAL
from spark_cep.pattern.expressions.reading.look_back_calls import MAX_OFFSET
from spark_cep.pattern.expressions.reading.row_scope import Frame
from spark_cep.pattern.types import NULL

if TYPE_CHECKING:
    from spark_cep.pattern.expressions.reading.calls import TreeReader
    from spark_cep.pattern.expressions.reading.row_scope import RowPatternScope

_SHIFTS = {"PREV": -1, "NEXT": 1}
_OF_MATCH = ("CLASSIFIER", "MATCH_NUMBER")
_PLAIN = frozenset({*PICKS, *_SHIFTS, *_OF_MATCH, *ROW_AGGREGATES}) - {COUNT_DISTINCT}
_NESTING = "only FIRST and LAST may stand, directly, in PREV and NEXT"


class RowValueReader:
    """Reads the calls that run over a match's rows."""

    FUNCTIONS: ClassVar[frozenset[str]] = _PLAIN | {
        f"{mode} {function}"
        for mode in RUNNING_OR_FINAL
        for function in {*_PLAIN, *ROW_AGGREGATE_ALIASES}
    }
    ALIASES: ClassVar[Mapping[str, str]] = ROW_AGGREGATE_ALIASES

    def __init__(self, reader: TreeReader, scope: RowPatternScope) -> None:
        self._reader = reader
        self._scope = scope

    def read(self, function: str, trees: list[exp.Expr], span: Span) -> Node:
        """The value that ``function(trees)`` stands for."""
        mode, function = self._mode(function)
        if mode and (function in _SHIFTS or function in _OF_MATCH):
            message = f"{mode} cannot stand before {function}"
            return self._reader.refuse(message, span, _before_what(mode))
        if mode == "FINAL" and self._scope.defined is not None:
            message = "FINAL is for measures; a condition is computed before the match has ended"
            return self._reader.refuse(message, span)
        if function == "MATCH_NUMBER":
            if trees:
                return self._reader.refuse("MATCH_NUMBER takes no argument", span)
            return RowReference(MatchNumber(), span)
        if function == "CLASSIFIER":
            return self._classifier(trees, span)
        if self._scope.frame is not None:
            around = "an aggregate" if self._scope.frame.position is None else "a navigation"
            return self._reader.refuse(f"{function} cannot stand inside {around}", span, _NESTING)
        if function in _SHIFTS or function in PICKS:
            return self._navigation(function, mode, trees, span)
        return self._aggregate(function, trees, span, final=mode == "FINAL")

    @staticmethod
    def _mode(function: str) -> tuple[str, str]:
        mode, _, plain = function.rpartition(" ")
        return mode, ROW_AGGREGATE_ALIASES.get(plain, plain)

    def _classifier(self, trees: list[exp.Expr], span: Span) -> Node:
        if not trees:
            return self._scope.classifier(None, span)
        tree = trees[0]
        plain = len(trees) == 1 and isinstance(tree, exp.Column) and not tree.args.get("table")
        if not plain:
            return self._reader.refuse(
                "CLASSIFIER takes a pattern variable, or nothing", span, "CLASSIFIER(A)"
            )
        variable = self._scope.variable(tree.name)
        if variable is None:
            return self._unknown(tree.name, self._reader.span(tree))
        return self._scope.classifier(variable, span)

    def _unknown(self, written: str, span: Span) -> Node:
        known = f"the pattern variables are {listed(list(self._scope.unions))}"
        return self._reader.refuse(f"there is no pattern variable {written}", span, known)

    def _navigation(self, function: str, mode: str, trees: list[exp.Expr], span: Span) -> Node:
        shift, shown, found = 0, function, len(self._reader.problems)
        if function in _SHIFTS:
            count = self._offset(function, trees, 1, span)
            shift = _SHIFTS[function] * count
            mode, function, trees = self._nested(trees)
        offset = 0 if len(self._reader.problems) > found else self._offset(function, trees, 0, span)
        if len(self._reader.problems) > found:
            return Literal(None, NULL, span)
        pick: Pick = "FIRST" if function == "FIRST" else "LAST"
        position = RowPosition(pick, (), offset, mode == "FINAL", shift)
        subject, named = self._within(Frame(position), trees[0])
        if len(self._reader.problems) > found:
            return subject
        if not named:
            return self._reader.refuse(
                f"{shown} needs a column, or CLASSIFIER, to read in that row", span
            )
        return self._of_one(shown, named, subject, span)

    def _nested(self, trees: list[exp.Expr]) -> tuple[str, str, list[exp.Expr]]:
        """FIRST or LAST directly in PREV or NEXT: its mode, its name and its arguments."""
        inner = trees[0] if trees else None
        if isinstance(inner, exp.Anonymous) and isinstance(inner.this, str):
            mode, function = self._mode(" ".join(inner.this.upper().split()))
            if function in PICKS and (not mode or mode in RUNNING_OR_FINAL):
                if mode == "FINAL" and self._scope.defined is not None:
                    message = (
                        "FINAL is for measures; a condition is computed before the match has ended"
                    )
                    self._reader.refuse(message, self._reader.span(inner))
                return mode, function, list(inner.expressions)
        return "", "LAST", trees[:1]

    def _offset(self, function: str, trees: list[exp.Expr], default: int, span: Span) -> int:
        """The number that follows what is read; a problem where it is none."""
        if not 1 <= len(trees) <= 2:  # noqa: PLR2004
            self._reader.refuse(f"{function} takes 1 or 2 arguments, not {len(trees)}", span)
            return default
        if len(trees) == 1:
            return default
        node = self._reader.read(trees[1])
        if isinstance(node, Literal) and type(node.value) is int and 0 <= node.value <= MAX_OFFSET:
            return node.value
        self._reader.refuse(
            f"the offset of {function} must be a whole number from 0 to {MAX_OFFSET}",
            self._reader.span(trees[1]),
        )
        return default

    def _within(self, frame: Frame, tree: exp.Expr) -> tuple[Node, list[str]]:
        scope = self._scope
        around, scope.frame = scope.frame, frame
        lambdas, scope.variables = scope.variables, ()
        try:
            return self._reader.read(tree), list(dict.fromkeys(frame.named))
        finally:
            scope.frame, scope.variables = around, lambdas

    def _of_one(self, function: str, named: list[str], node: Node, span: Span) -> Node:
        if len(named) <= 1:
            return node
        names = ", ".join(each or "all rows (a name without a variable)" for each in named)
        message = f"{function} must stay with one variable; this one uses {names}"
        return self._reader.refuse(message, span)

    def _aggregate(self, function: str, trees: list[exp.Expr], span: Span, *, final: bool) -> Node:
        reader, found = self._reader, len(self._reader.problems)
        if function == "COUNT" and len(trees) == 1:
            counted = self._counted(trees[0], span)
            if counted is not None:
                of = self._scope.unions[counted] if counted else ()
                return RowReference(RowAggregate("COUNT", of, final), span)
        if len(reader.problems) > found:
            return Literal(None, NULL, span)
        if trees and isinstance(trees[0], exp.Distinct):
            if function != "COUNT" or len(trees) > 1:
                message = f"DISTINCT is not allowed in {function}"
                return reader.refuse(message, span, "COUNT(DISTINCT A.column)")
            reader.only(trees[0], "expressions")
            function, trees = COUNT_DISTINCT, trees[0].expressions
        count = ROW_AGGREGATES[function].arguments
        if len(trees) != count:
            wanted = f"{count} argument{'s' * (count > 1)}"
            return reader.refuse(f"{function} takes {wanted}, not {len(trees)}", span)
        frame = Frame(None)
        arguments: list[Expression] = []
        named: list[str] = []
        for tree in trees:
            node, named = self._within(frame, tree)
            arguments.append(expression(node))
        if len(reader.problems) > found:
            return Literal(None, NULL, span)
        of = self._scope.unions[named[0]] if named and named[0] else ()
        value = RowReference(RowAggregate(function, of, final, tuple(arguments)), span)
        return self._of_one(function, named, value, span)

    def _counted(self, tree: exp.Expr, span: Span) -> str | None:
        """The variable of ``A.*``, ``""`` for ``*``; ``None`` for anything else."""
        if isinstance(tree, exp.Star) and self._reader.only(tree):
            return ""
        if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Star):
            return None
        variable = self._scope.variable(tree.table)
        if variable is None:
            self._unknown(tree.table, span)
        return variable


def _before_what(mode: str) -> str:
    return f"{mode} stands before FIRST, LAST and aggregates"
