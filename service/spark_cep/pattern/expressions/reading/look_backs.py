"""Names and calls over the events that a pattern's steps have taken.

``price`` is a column of the event under test, ``a.price`` the one of the last event of step ``a``.
FIRST, LAST and the aggregates, the look-backs, run over a step's events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

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
    ColumnPath,
    LookBack,
    Node,
    Reference,
    Span,
    walk,
)
from spark_cep.pattern.expressions.problems import ExpressionError, refused
from spark_cep.pattern.expressions.reading.reader import MAX_OFFSET, Called, ExpressionReader
from spark_cep.pattern.expressions.reading.syntax import Syntax, names

_NUMBERED = {
    "FIRST": ("offset", 0, MAX_OFFSET),
    "LAST": ("offset", 0, MAX_OFFSET),
    "COLLECT": ("bound", 1, MAX_COLLECTED),
}
"""Functions with a second argument: what it is, its least and its greatest value."""


@dataclass(slots=True)
class StepEvents:
    """The events of steps, in a condition or in a ``measure``. ``_inside`` gathers the steps named
    within a look-back while its argument is read."""

    functions: ClassVar[frozenset[str]] = LOOK_BACK_FUNCTIONS
    aliases: ClassVar[Mapping[str, str]] = LOOK_BACK_ALIASES
    counted: ClassVar[str] = "step.*"

    steps: frozenset[str]
    measure: bool
    _inside: list[str] | None = field(default=None, init=False)

    def column(self, path: ColumnPath, span: Span) -> Node:
        """The column or look-back that a dotted name stands for."""
        step = path[0] if len(path) > 1 and path[0] in self.steps else None
        column = Column(path[1:] if step else path, span)
        if self._inside is not None:
            self._inside.append(step or ALL_STEPS)
            return column
        if step is None and not self.measure:
            return column
        return Reference(LookBack("LAST", step or ALL_STEPS, expression(column)), span)

    def call(self, reader: ExpressionReader, called: Called) -> Node:
        """The reference that a look-back stands for."""
        shown, _, distinct, arguments, span = called
        if self._inside is not None:
            raise refused("a look-back cannot stand inside another", span)
        if (
            shown == "COUNT"
            and len(arguments) == 1
            and arguments[0].data == "star"
            and not distinct
        ):
            return self._count_all(arguments[0], span)
        if distinct and shown != "COUNT":
            message = f"DISTINCT is not allowed in {shown}"
            raise refused(message, span, "COUNT(DISTINCT step.column)")
        function = COUNT_DISTINCT if distinct else shown
        most = 1 + (function in _NUMBERED)
        if not 1 <= len(arguments) <= most:
            wanted = "1 or 2 arguments" if most > 1 else "1 argument"
            raise refused(f"{shown} takes {wanted}, not {len(arguments)}", span)
        self._refuse_bare_step(shown, arguments[0], span)
        found = len(reader.problems)
        argument, steps = self._argument(reader, arguments[0])
        number = self._number(reader, function, arguments[1]) if len(arguments) > 1 else None
        if len(reader.problems) > found:
            return argument
        if len(steps) > 1:
            names = ", ".join("the event" if step == ALL_STEPS else step for step in steps)
            raise refused(f"{shown} must stay within one step; this one uses {names}", span)
        step = steps[0] if steps else ALL_STEPS
        if step == ALL_STEPS and not self.measure:
            raise self._without_step(shown, argument, span)
        limit = (number or MAX_COLLECTED) if function == "COLLECT" else None
        offset = (number or 0) if function in PICKS else 0
        return Reference(LookBack(function, step, expression(argument), offset, limit), span)

    def _argument(self, reader: ExpressionReader, tree: Syntax) -> tuple[Node, list[str]]:
        """Return the node that is computed on each event, and the steps that it names."""
        self._inside = []
        try:
            argument = reader.read_apart(tree)
            return argument, list(dict.fromkeys(self._inside))
        finally:
            self._inside = None

    def _without_step(self, function: str, argument: Node, span: Span) -> ExpressionError:
        nested = [p.path for p in walk(argument) if isinstance(p, Column) and len(p.path) > 1]
        if nested and self.steps:
            return self._no_step(nested[0][0], span, f"{function}(step.{name(nested[0][1:])})")
        message = f"{function} needs a step in a condition"
        return refused(message, span, f"{function}(step.column)")

    def _no_step(self, step: str, span: Span, form: str) -> ExpressionError:
        steps = sorted(self.steps)
        near = nearest(step, steps)
        known = f"the steps are {listed(steps)}" if steps else f"{form} of a step of the rule"
        hint = f"did you mean {near}?" if near else known
        return refused(f"there is no step {step!r}", span, hint)

    def _refuse_bare_step(self, function: str, tree: Syntax, span: Span) -> None:
        """A step's name stands for the step, in a condition, if no column is named."""
        bare = str(tree.children[0])
        if tree.data != "path" or len(tree.children) > 1 or bare not in self.steps or self.measure:
            return
        message = f"{bare} is a step; {function} needs what to take of it"
        form = f"{bare}.*" if function == "COUNT" else f"{bare}.column"
        raise refused(message, span, f"{function}({form})")

    def _count_all(self, star: Syntax, span: Span) -> Node:
        if len(star.children) == 1:
            if not self.measure:
                message = "COUNT(*) is for measures; a condition counts a step"
                raise refused(message, span, "COUNT(step.*)")
            return Reference(LookBack("COUNT", ALL_STEPS, None), span)
        step = ".".join(names(star))
        if step not in self.steps:
            raise self._no_step(step, span, "COUNT(step.*)")
        return Reference(LookBack("COUNT", step, None), span)

    @staticmethod
    def _number(reader: ExpressionReader, function: str, tree: Syntax) -> int:
        what, least, most = _NUMBERED[function]
        return reader.read_number(tree, f"the {what} of {function}", least, most)
