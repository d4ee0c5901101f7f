"""Function calls: the part of the tree walk that looks names up.

Calls over a step's events are read by ``look_back_calls``, those over a match's rows by
``row_value_calls``.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp

from spark_cep.pattern.expressions.functions import (
    ALIASES,
    FUNCTIONS,
    LAMBDAS,
    SPECIAL_CALLS,
    Function,
)
from spark_cep.pattern.expressions.functions.withheld import INSTEAD, WITHHELD
from spark_cep.pattern.expressions.intervals import FORM, Months, interval
from spark_cep.pattern.expressions.nodes import Call, Cast, Lambda, Literal, Node, Span
from spark_cep.pattern.expressions.reading.look_back_calls import LookBackReader
from spark_cep.pattern.expressions.reading.row_scope import RowPatternScope
from spark_cep.pattern.expressions.reading.row_value_calls import RowValueReader
from spark_cep.pattern.expressions.values.like import ilike_matcher, like_matcher
from spark_cep.pattern.expressions.values.literals import like_problem
from spark_cep.pattern.types import DATE, DAY_TIME, INT, NULL, STRING, YEAR_MONTH

if TYPE_CHECKING:
    from spark_cep.pattern.expressions.problems import ExpressionProblem
    from spark_cep.pattern.expressions.reading.scope import Scope

MAX_ROUND_DIGITS = 18
_KINDS = {str: "a string", int: "a whole number"}
_MATCHERS: dict[str, Callable[[str], Any]] = {"LIKE": like_matcher, "ILIKE": ilike_matcher}


class TreeReader(Protocol):
    """What the tree walk offers."""

    scope: Scope | RowPatternScope
    problems: list[ExpressionProblem]

    def refuse(self, message: str, span: Span, allowed: str | None = None) -> Node:
        """Notes a problem."""
        ...

    def read(self, tree: exp.Expr) -> Node:
        """The node for a tree."""
        ...

    def span(self, tree: exp.Expr) -> Span:
        """The place of a tree."""
        ...

    def only(self, tree: exp.Expr, *read: str) -> bool:
        """Return whether a tree says nothing beyond the arguments named."""
        ...


class CallReader:
    """Reads calls by name; what is in no list is refused."""

    def __init__(self, reader: TreeReader) -> None:
        self._reader = reader
        scope = reader.scope
        self._rows: LookBackReader | RowValueReader = (
            RowValueReader(reader, scope)
            if isinstance(scope, RowPatternScope)
            else LookBackReader(reader, scope)
        )

    def read(self, tree: exp.Expr, span: Span) -> Node:
        """The node for ``name(arguments)``."""
        reader = self._reader
        if not isinstance(tree.this, str) or not reader.only(tree, "this", "expressions"):
            return reader.refuse("a function is called by its plain name", span)
        name = " ".join(tree.this.upper().split())
        name = ALIASES.get(name) or self._rows.ALIASES.get(name, name)
        if name in self._rows.FUNCTIONS:
            return self._rows.read(name, tree.expressions, span)
        if name in SPECIAL_CALLS:
            return self._special(name, tree.expressions, span)
        if name not in FUNCTIONS:
            return self._unknown(tree.this, span)
        row, count = FUNCTIONS[name], len(tree.expressions)
        least, most = row.arguments
        if count < least or (most is not None and count > most):
            return reader.refuse(f"{name} takes {row.count}, not {count}", span)
        if name in LAMBDAS:
            return self._over_elements(name, tree.expressions, span)
        trees = list(tree.expressions)
        arguments = tuple(
            self._word(tree) if row.words and not place else reader.read(tree)
            for place, tree in enumerate(trees)
        )
        if name == "ROUND":
            return self._round(arguments, span)
        if name == "TO_DATE" and count == 1:
            return Cast(arguments[0], DATE, span)
        return self.with_constants(name, row, arguments, span)

    def with_constants(
        self, name: str, row: Function, arguments: tuple[Node, ...], span: Span
    ) -> Node:
        """The call, once the arguments that must be constants are, and make sense."""
        reader = self._reader
        constants = []
        found = len(reader.problems)
        for place, kind in row.constants.items():
            if place >= len(arguments):
                continue
            argument = arguments[place]
            # Not isinstance: True is an int.
            if not isinstance(argument, Literal) or type(argument.value) is not kind:
                wanted = f"{_KINDS[kind]} in the text"
                message = f"argument {place + 1} of {name} must be {wanted}"
                reader.refuse(message, argument.span if argument.span != (0, 0) else span)
            else:
                constants.append(argument)
        if row.prepare is None or len(reader.problems) > found:
            return Call(name, arguments, span)
        try:
            row.prepare(*(constant.value for constant in constants))
        except ValueError as error:
            at = constants[0].span if len(constants) == 1 else span
            return reader.refuse(f"{name}: {error}", at)
        return Call(name, arguments, span)

    def like(self, operator: str, operand: Node, pattern: Node, span: Span) -> Node:
        """The call of LIKE or ILIKE with its pattern checked."""
        reader = self._reader
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            return reader.refuse(f"the pattern of {operator} must be a string in the text", span)
        problem = like_problem(pattern.value)
        if problem is not None:
            return reader.refuse(problem, pattern.span)
        try:
            _MATCHERS[operator](pattern.value)
        except ValueError as error:
            return reader.refuse(f"{operator}: {error}", pattern.span)
        return Call(operator, (operand, pattern), span)

    def _unknown(self, written: str, span: Span) -> Node:
        name = written.upper()
        message = f"the function {written} is not allowed"
        if name in WITHHELD:
            return self._reader.refuse(f"{message}: {WITHHELD[name]}", span)
        if name in INSTEAD:
            return self._reader.refuse(message, span, f"use {INSTEAD[name]}")
        rows = self._rows
        names = [*rows.FUNCTIONS, *rows.ALIASES, *FUNCTIONS, *ALIASES, *SPECIAL_CALLS]
        near = get_close_matches(name, sorted(names), 1)
        return self._reader.refuse(message, span, f"did you mean {near[0]}?" if near else None)

    def _special(self, name: str, trees: list[exp.Expr], span: Span) -> Node:
        least, most = SPECIAL_CALLS[name]
        if not least <= len(trees) <= most:
            takes = f"{most} argument{'s' * (most != 1)}"
            return self._reader.refuse(f"{name} takes {takes}, not {len(trees)}", span)
        arguments = tuple(map(self._reader.read, trees))
        if name == "MOD":
            return Call("%", arguments, span)
        if name == "INTERVAL":
            return self._interval(arguments[0], span)
        condition, then, otherwise = (*arguments, Literal(None, NULL, span))[:3]
        return Call("CASE", (condition, then, otherwise), span)

    def _interval(self, said: Node, span: Span) -> Node:
        if not isinstance(said, Literal) or not isinstance(said.value, str):
            return self._reader.refuse("an interval is a constant", span, FORM)
        found = interval(said.value)
        if isinstance(found, str):
            return self._reader.refuse(found, span, FORM)
        return Literal(found, YEAR_MONTH if isinstance(found, Months) else DAY_TIME, span)

    def _word(self, tree: exp.Expr) -> Node:
        """A constant that may stand without quotes, such as a unit of time."""
        named = isinstance(tree, exp.Column) and isinstance(tree.this, exp.Identifier)
        if named and self._reader.only(tree, "this") and not tree.this.args.get("quoted"):
            return Literal(tree.this.name, STRING, self._reader.span(tree))
        return self._reader.read(tree)

    def _round(self, arguments: tuple[Node, ...], span: Span) -> Node:
        value, digits = (*arguments, Literal(0, INT, span))[:2]
        if isinstance(digits, Literal) and digits.type == INT:
            count = digits.value
            if isinstance(count, int) and 0 <= count <= MAX_ROUND_DIGITS:
                return Call("ROUND", (value, digits), span)
        message = f"ROUND takes a number of digits from 0 to {MAX_ROUND_DIGITS}"
        return self._reader.refuse(message, digits.span)

    def _over_elements(self, name: str, trees: list[exp.Expr], span: Span) -> Node:
        reader, scope = self._reader, self._reader.scope
        array, body = trees
        items = reader.read(array)
        parameters = [part.name for part in body.expressions if isinstance(part, exp.Identifier)]
        if not isinstance(body, exp.Lambda) or len(parameters) != 1 or len(body.expressions) != 1:
            return reader.refuse(
                f"the second argument of {name} must be a lambda of one variable",
                reader.span(body),
                f"{name}(array, x -> x > 1)",
            )
        (parameter,) = parameters
        if parameter in scope.variables:
            return reader.refuse(
                f"{parameter} is the variable of a lambda around this one", reader.span(body)
            )
        around = scope.variables
        scope.variables = (*around, parameter)
        try:
            test = Lambda(parameter, reader.read(body.this), reader.span(body))
        finally:
            scope.variables = around
        return Call(name, (items, test), span)
