"""Function calls and look-backs: the part of the tree walk that looks names up."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from service.pattern.expressions.canonical import expression
from service.pattern.expressions.functions import ALIASES, FUNCTIONS, SPECIAL_CALLS, WITHHELD
from service.pattern.expressions.nodes import (
    ALL_STEPS,
    LOOK_BACK_FUNCTIONS,
    Call,
    Cast,
    Literal,
    LookBack,
    Node,
    Reference,
    Span,
)
from service.pattern.types import DATE, INT, NULL

if TYPE_CHECKING:
    from service.pattern.expressions.problems import ExpressionProblem
    from service.pattern.expressions.scope import Scope

MAX_ROUND_DIGITS = 18
MAX_OFFSET = 10_000
_OFFSET_FUNCTIONS = ("FIRST", "LAST")


class TreeReader(Protocol):
    """What the tree walk offers."""

    scope: Scope
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
        """Whether a tree says nothing beyond the arguments named."""
        ...


class CallReader:
    """Reads calls by name; what is in no list is refused."""

    def __init__(self, reader: TreeReader) -> None:
        self._reader = reader

    def read(self, tree: exp.Expr, span: Span) -> Node:
        """The node for ``name(arguments)``."""
        reader = self._reader
        if not isinstance(tree.this, str) or not reader.only(tree, "this", "expressions"):
            return reader.refuse("a function is called by its plain name", span)
        name = tree.this.upper()
        if name in LOOK_BACK_FUNCTIONS:
            return self._look_back(name, tree.expressions, span)
        name = ALIASES.get(name, name)
        if name not in FUNCTIONS and name not in SPECIAL_CALLS:
            return self._unknown(tree.this, span)
        arguments = tuple(map(reader.read, tree.expressions))
        if name in SPECIAL_CALLS:
            return self._special(name, arguments, span)
        function = FUNCTIONS[name]
        count = len(arguments)
        if count < function.minimum or (function.maximum is not None and count > function.maximum):
            wanted = str(function.minimum)
            if function.maximum is None:
                wanted = f"at least {wanted}"
            elif function.maximum != function.minimum:
                wanted += f" to {function.maximum}"
            return reader.refuse(f"{name} takes {wanted} arguments, not {count}", span)
        if name == "ROUND":
            return self._round(arguments, span)
        if name == "REPLACE":
            return self._replace(arguments, span)
        return Call(name, arguments, span)

    def _unknown(self, written: str, span: Span) -> Node:
        name = written.upper()
        if name in WITHHELD:
            return self._reader.refuse(
                f"the function {written} is not allowed: {WITHHELD[name]}", span
            )
        near = get_close_matches(name, [*FUNCTIONS, *ALIASES, *SPECIAL_CALLS], 1)
        hint = f"did you mean {near[0]}?" if near else None
        return self._reader.refuse(f"the function {written} is not allowed", span, hint)

    def _special(self, name: str, arguments: tuple[Node, ...], span: Span) -> Node:
        wanted = {"IF": (2, 3), "MOD": (2, 2), "TO_DATE": (1, 1)}[name]
        if not wanted[0] <= len(arguments) <= wanted[1]:
            count = wanted[1]
            return self._reader.refuse(
                f"{name} takes {count} arguments, not {len(arguments)}", span
            )
        if name == "MOD":
            return Call("%", arguments, span)
        if name == "TO_DATE":
            return Cast(arguments[0], DATE, span)
        condition, then, otherwise = (*arguments, Literal(None, NULL, span))[:3]
        return Call("CASE", (condition, then, otherwise), span)

    def _round(self, arguments: tuple[Node, ...], span: Span) -> Node:
        value, digits = (*arguments, Literal(0, INT, span))[:2]
        if isinstance(digits, Literal) and digits.type == INT:
            count = digits.value
            if isinstance(count, int) and 0 <= count <= MAX_ROUND_DIGITS:
                return Call("ROUND", (value, digits), span)
        message = f"ROUND takes a number of digits from 0 to {MAX_ROUND_DIGITS}"
        return self._reader.refuse(message, digits.span)

    def _replace(self, arguments: tuple[Node, ...], span: Span) -> Node:
        for constant in arguments[1:]:
            if not isinstance(constant, Literal) or not isinstance(constant.value, str):
                message = "what REPLACE looks for and puts in must be strings in the text"
                return self._reader.refuse(message, constant.span)
        return Call("REPLACE", arguments, span)

    def _look_back(self, function: str, trees: list[exp.Expr], span: Span) -> Node:
        reader, scope = self._reader, self._reader.scope
        if scope.inside is not None:
            return reader.refuse("a look-back cannot stand inside another", span)
        if function == "COUNT" and len(trees) == 1:
            step = self._star(trees[0])
            if step is not None:
                return self._count_all(step, span)
        wanted = "1 or 2 arguments" if function in _OFFSET_FUNCTIONS else "1 argument"
        subject, offsets = trees[:1], trees[1:]
        if not subject or len(offsets) > int(function in _OFFSET_FUNCTIONS):
            return reader.refuse(f"{function} takes {wanted}, not {len(trees)}", span)
        found = len(reader.problems)
        scope.inside = []
        try:
            argument = reader.read(subject[0])
            steps = list(dict.fromkeys(scope.inside))
        finally:
            scope.inside = None
        offset = self._offset(function, offsets[0]) if offsets else 0
        if len(reader.problems) > found:
            return argument
        if len(steps) > 1:
            names = ", ".join("the event" if step == ALL_STEPS else step for step in steps)
            return reader.refuse(
                f"{function} must stay within one step; this one uses {names}", span
            )
        step = steps[0] if steps else ALL_STEPS
        if step == ALL_STEPS and not scope.measure:
            return reader.refuse(
                f"{function} needs a step in a condition", span, f"{function}(step.column)"
            )
        return Reference(LookBack(function, step, expression(argument), offset), span)

    def _star(self, tree: exp.Expr) -> str | None:
        """The step of ``step.*``; ``ALL_STEPS`` for ``*``; ``None`` for anything else."""
        if isinstance(tree, exp.Star) and self._reader.only(tree):
            return ALL_STEPS
        if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
            plain = self._reader.only(tree, "this", "table") and self._reader.only(tree.this)
            return str(tree.table) if plain else None
        return None

    def _count_all(self, step: str, span: Span) -> Node:
        scope = self._reader.scope
        if step == ALL_STEPS and not scope.measure:
            return self._reader.refuse(
                "COUNT(*) is for measures; a condition counts a step", span, "COUNT(step.*)"
            )
        if step != ALL_STEPS and step not in scope.steps:
            near = get_close_matches(step, sorted(scope.steps), 1)
            hint = f"did you mean {near[0]}?" if near else None
            return self._reader.refuse(f"there is no step {step!r}", span, hint)
        return Reference(LookBack("COUNT", step, None), span)

    def _offset(self, function: str, tree: exp.Expr) -> int:
        node = self._reader.read(tree)
        if (
            isinstance(node, Literal)
            and isinstance(node.value, int)
            and not isinstance(node.value, bool)
            and 0 <= node.value <= MAX_OFFSET
        ):
            return node.value
        self._reader.refuse(
            f"the offset of {function} must be a whole number from 0 to {MAX_OFFSET}",
            self._reader.span(tree),
        )
        return 0
