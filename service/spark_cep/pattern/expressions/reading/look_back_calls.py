"""Look-backs as they are called: FIRST, LAST and the aggregates over a step's events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from spark_cep.documents.nearest import listed, nearest
from spark_cep.pattern.expressions.canonical import expression, name
from spark_cep.pattern.expressions.functions.aggregation import (
    COUNT_DISTINCT,
    LOOK_BACK_ALIASES,
    LOOK_BACK_FUNCTIONS,
    MAX_COLLECTED,
    PICKS,
)
from spark_cep.pattern.expressions.nodes import (
    ALL_STEPS,
    Column,
    Literal,
    LookBack,
    Node,
    Reference,
    Span,
    walk,
)

if TYPE_CHECKING:
    from spark_cep.pattern.expressions.reading.calls import TreeReader
    from spark_cep.pattern.expressions.reading.scope import Scope

MAX_OFFSET = 10_000
_NUMBERED = {
    "FIRST": ("offset", 0, MAX_OFFSET),
    "LAST": ("offset", 0, MAX_OFFSET),
    "COLLECT": ("bound", 1, MAX_COLLECTED),
}
"""Functions with a second argument: what it is, its least and its greatest value."""


class LookBackReader:
    """Reads the calls that run over a step's events."""

    FUNCTIONS: ClassVar[frozenset[str]] = LOOK_BACK_FUNCTIONS
    ALIASES: ClassVar[Mapping[str, str]] = LOOK_BACK_ALIASES

    def __init__(self, reader: TreeReader, scope: Scope) -> None:
        self._reader = reader
        self._scope = scope

    def read(self, function: str, trees: list[exp.Expr], span: Span) -> Node:
        """The reference that ``function(trees)`` stands for."""
        reader, scope = self._reader, self._scope
        if scope.inside is not None:
            return reader.refuse("a look-back cannot stand inside another", span)
        if function == "COUNT" and len(trees) == 1:
            step = self._counted(trees[0])
            if step is not None:
                return self._count_all(step, span)
        shown, subject, numbers = function, trees[:1], trees[1:]
        if subject and isinstance(subject[0], exp.Distinct):
            if function != "COUNT":
                return reader.refuse(
                    f"DISTINCT is not allowed in {function}", span, "COUNT(DISTINCT step.column)"
                )
            reader.only(subject[0], "expressions")
            function, subject = COUNT_DISTINCT, subject[0].expressions
            trees = [*subject, *numbers]
        if len(subject) != 1 or len(numbers) > int(function in _NUMBERED):
            wanted = "1 or 2 arguments" if function in _NUMBERED else "1 argument"
            return reader.refuse(f"{shown} takes {wanted}, not {len(trees)}", span)
        if bare := self._bare_step(subject[0]):
            form = f"{bare}.*" if shown == "COUNT" else f"{bare}.column"
            return reader.refuse(
                f"{bare} is a step; {shown} needs what to take of it", span, f"{shown}({form})"
            )
        found = len(reader.problems)
        argument, steps = self._argument(subject[0])
        number = self._number(function, numbers[0]) if numbers else None
        if len(reader.problems) > found:
            return argument
        if len(steps) > 1:
            names = ", ".join("the event" if step == ALL_STEPS else step for step in steps)
            return reader.refuse(f"{shown} must stay within one step; this one uses {names}", span)
        step = steps[0] if steps else ALL_STEPS
        if step == ALL_STEPS and not scope.measure:
            return self._without_step(shown, argument, span)
        limit = (number or MAX_COLLECTED) if function == "COLLECT" else None
        offset = (number or 0) if function in PICKS else 0
        return Reference(LookBack(function, step, expression(argument), offset, limit), span)

    def _argument(self, tree: exp.Expr) -> tuple[Node, list[str]]:
        """What is computed on each event, and the steps that it names."""
        scope = self._scope
        around, scope.variables, scope.inside = scope.variables, (), []
        try:
            argument = self._reader.read(tree)
            return argument, list(dict.fromkeys(scope.inside))
        finally:
            scope.inside, scope.variables = None, around

    def _without_step(self, function: str, argument: Node, span: Span) -> Node:
        steps = self._scope.steps
        dotted = [p.path for p in walk(argument) if isinstance(p, Column) and len(p.path) > 1]
        if dotted and steps:
            return self._no_step(dotted[0][0], span, f"{function}(step.{name(dotted[0][1:])})")
        return self._reader.refuse(
            f"{function} needs a step in a condition", span, f"{function}(step.column)"
        )

    def _no_step(self, step: str, span: Span, form: str) -> Node:
        steps = sorted(self._scope.steps)
        near = nearest(step, steps)
        known = f"the steps are {listed(steps)}" if steps else f"{form} of a step of the rule"
        hint = f"did you mean {near}?" if near else known
        return self._reader.refuse(f"there is no step {step!r}", span, hint)

    def _bare_step(self, tree: exp.Expr) -> str | None:
        """The step, where its bare name stands for it and no column is named."""
        plain = isinstance(tree, exp.Column) and self._scope.inside is None
        if plain and not tree.args.get("table") and tree.name in self._scope.steps:
            return None if self._scope.measure else tree.name
        return None

    def _counted(self, tree: exp.Expr) -> str | None:
        """The step of ``step.*``; ``ALL_STEPS`` for ``*``; ``None`` for anything else."""
        if isinstance(tree, exp.Star) and self._reader.only(tree):
            return ALL_STEPS
        if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
            plain = self._reader.only(tree, "this", "table") and self._reader.only(tree.this)
            return str(tree.table) if plain else None
        return None

    def _count_all(self, step: str, span: Span) -> Node:
        scope = self._scope
        if step == ALL_STEPS and not scope.measure:
            return self._reader.refuse(
                "COUNT(*) is for measures; a condition counts a step", span, "COUNT(step.*)"
            )
        if step != ALL_STEPS and step not in scope.steps:
            return self._no_step(step, span, "COUNT(step.*)")
        return Reference(LookBack("COUNT", step, None), span)

    def _number(self, function: str, tree: exp.Expr) -> int | None:
        what, least, most = _NUMBERED[function]
        node = self._reader.read(tree)
        if isinstance(node, Literal) and type(node.value) is int and least <= node.value <= most:
            return node.value
        self._reader.refuse(
            f"the {what} of {function} must be a whole number from {least} to {most}",
            self._reader.span(tree),
        )
        return None
