"""sqlglot's tree to vetted tree.

This module walks what sqlglot parsed with an allow-list. Every node class is either handled
below or refused by name, every argument of a handled node is either read or must be empty, and
every function is looked up in ``functions``. The author's text itself goes no further.

Spark and sqlglot disagree on how tightly some operators bind; where they do, or where a reader
could be in doubt, parentheses are required.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.expressions.functions import FUNCTIONS
from spark_cep.pattern.expressions.nodes import (
    Call,
    Cast,
    Column,
    Literal,
    Member,
    Node,
    Reference,
    RowReference,
    Span,
    Variable,
)
from spark_cep.pattern.expressions.problems import ExpressionProblem
from spark_cep.pattern.expressions.reading.calls import CallReader
from spark_cep.pattern.expressions.reading.dialect import is_written
from spark_cep.pattern.expressions.reading.lexing import CAST_TARGETS
from spark_cep.pattern.expressions.reading.row_scope import RowPatternScope
from spark_cep.pattern.expressions.reading.scope import Scope
from spark_cep.pattern.expressions.values import literals
from spark_cep.pattern.types import BOOLEAN, NULL, STRING

MAX_TREE = 64
"""Most operators or calls inside one another; chains of AND and OR count once."""

_FAILED = Literal(None, NULL)
_BINARY: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "CONCAT",
}
_PREDICATES = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Is,
    exp.In,
    exp.Between,
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
    exp.Not,
    exp.And,
    exp.Or,
)
_DECORATION = frozenset({"typed", "safe", "big_int", "is_string", "offset"})
_FORBIDDEN: dict[type[exp.Expr], str] = {
    exp.Select: "a sub-query",
    exp.Subquery: "a sub-query",
    exp.Exists: "a sub-query",
    exp.Window: "a window",
    exp.Lambda: "a lambda outside EXISTS, FORALL and FILTER",
    exp.Kwarg: "a named argument",
    exp.Alias: "an alias (or two values side by side)",
    exp.Tuple: "a list of values",
    exp.Star: "* outside COUNT",
    exp.Escape: "LIKE … ESCAPE",
    exp.Distinct: "DISTINCT outside COUNT",
    exp.IgnoreNulls: "IGNORE NULLS",
    exp.Filter: "FILTER",
}


_SIGNS = frozenset({exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe})


def _is_group(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Paren) and is_written(tree)


def _clear(outer: type[exp.Expr], inner: type[exp.Expr]) -> bool:
    """Return whether sqlglot (in every version) and Spark agree on an operator beneath another."""
    if outer not in _SIGNS or inner not in _SIGNS or outer is inner is exp.DPipe:
        return True
    return exp.DPipe not in (outer, inner) and exp.Mod not in (outer, inner)


class ExpressionTreeReader:
    """Turns one sqlglot tree into nodes; collects every problem on the way."""

    def __init__(self, text: str, ends: dict[int, int], scope: Scope | RowPatternScope) -> None:
        self.problems: list[ExpressionProblem] = []
        self.scope = scope
        self._text = text
        self._ends = ends
        self._depth = 0
        self._calls = CallReader(self)
        self._readers: dict[type[exp.Expr], Callable[[exp.Expr, Span], Node]] = {
            **dict.fromkeys(_BINARY, self._binary),
            exp.Paren: self._parentheses,
            exp.And: self._junction,
            exp.Or: self._junction,
            exp.Not: lambda tree, span: Call("NOT", (self.read(tree.this),), span),
            exp.NullSafeNEQ: self._distinct,
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: lambda tree, span: self._like("LIKE", tree, span),
            exp.ILike: lambda tree, span: self._like("ILIKE", tree, span),
            exp.RegexpLike: self._regexp_like,
            exp.Identifier: lambda tree, span: self._resolve((tree.name,), span),
            exp.Neg: self._negate,
            exp.Column: self._column,
            exp.Dot: self._dot,
            exp.Bracket: self._bracket,
            exp.Literal: self._literal,
            exp.Boolean: lambda tree, span: Literal(bool(tree.this), BOOLEAN, span),
            exp.Null: lambda _, span: Literal(None, NULL, span),
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Case: self._case,
            exp.Anonymous: self._calls.read,
        }

    def refuse(self, message: str, span: Span, allowed: str | None = None) -> Node:
        """Notes a problem; the node stands in for what could not be read."""
        self.problems.append(ExpressionProblem(message, span[0], span[1], allowed))
        return _FAILED

    def read(self, tree: exp.Expr) -> Node:
        """The node for any tree."""
        span = self.span(tree)
        reader = self._readers.get(type(tree))
        if reader is None:
            what = _FORBIDDEN.get(type(tree), f"{type(tree).__name__.upper()} as used here")
            return self.refuse(f"{what} is not allowed in an expression", span)
        self._depth += 1
        try:
            if self._depth > MAX_TREE:
                return self.refuse(
                    f"more than {MAX_TREE} operators stand inside one another; "
                    f"the limit is {MAX_TREE}",
                    span,
                )
            return reader(tree, span)
        finally:
            self._depth -= 1

    def span(self, tree: exp.Expr) -> Span:
        """The place of a tree in the text: from its first to its last known token."""
        start, end = len(self._text), 0
        for part in tree.walk():
            at = part.meta.get("start")
            if isinstance(at, int):
                start = min(start, at)
                end = max(end, part.meta["end"] + 1)
                if isinstance(part, exp.Anonymous):
                    end = max(end, self._ends.get(at, 0))
        return (start, end) if start < end else (0, len(self._text))

    def only(self, tree: exp.Expr, *read: str) -> bool:
        """Return whether a tree says nothing beyond the arguments named; notes the rest as a
        problem."""
        extra = [
            key for key, value in tree.args.items() if value and key not in (*read, *_DECORATION)
        ]
        if extra:
            self.refuse(f"{extra[0].upper()} is not allowed here", self.span(tree))
        return not extra

    def _parentheses(self, tree: exp.Expr, span: Span) -> Node:
        return self.read(tree.this) if _is_group(tree) else self._unclear(span)

    def _unclear(self, span: Span) -> Node:
        message = "it is not clear what belongs together"
        return self.refuse(message, span, "put parentheses around it")

    def _operand(self, tree: exp.Expr) -> Node:
        """An operand of an operator; conditions need parentheses there."""
        if isinstance(tree, _PREDICATES):
            return self._unclear(self.span(tree))
        return self.read(tree)

    def _binary(self, tree: exp.Expr, span: Span) -> Node:
        self.only(tree, "this", "expression")
        pair = (tree.this, tree.expression)
        for side in pair:
            if not _clear(type(tree), type(side)):
                sign = "||" if exp.DPipe in (type(tree), type(side)) else "%"
                self.refuse(
                    f"{sign} beside another operator is not clear",
                    span,
                    "put parentheses around it",
                )
        operator = _BINARY[type(tree)]
        if any(map(self._is_any, pair)):
            return self._equals_any(operator, *pair, span)
        left, right = map(self._operand, pair)
        if operator == "CONCAT" and isinstance(left, Call) and left.operator == "CONCAT":
            return Call("CONCAT", (*left.arguments, right), span)
        return Call(operator, (left, right), span)

    @staticmethod
    def _is_any(tree: exp.Expr) -> bool:
        return isinstance(tree, exp.Anonymous) and str(tree.this).upper() in ("ANY", "SOME")

    def _equals_any(self, operator: str, left: exp.Expr, right: exp.Expr, span: Span) -> Node:
        """``value = ANY(array)``."""
        if operator != "=" or self._is_any(left) or len(right.expressions) != 1:
            form = "value = ANY(array), or EXISTS(array, x -> x > value)"
            return self.refuse("ANY stands behind = and takes an array", span, form)
        operands = (self.read(right.expressions[0]), self._operand(left))
        return Call("ARRAY_CONTAINS", operands, span)

    def _junction(self, tree: exp.Expr, span: Span) -> Node:
        operator = "AND" if isinstance(tree, exp.And) else "OR"
        pending, parts = [tree], []
        while pending:
            current = pending.pop()
            if type(current) is type(tree):
                self.only(current, "this", "expression")
                pending += [current.expression, current.this]
            elif _is_group(current) and type(current.this) is type(tree):
                pending.append(current.this)
            else:
                parts.append(self.read(current))
        return Call(operator, tuple(parts), span)

    def _distinct(self, tree: exp.Expr, span: Span) -> Node:
        self.only(tree, "this", "expression")
        same = Call("<=>", (self._operand(tree.this), self._operand(tree.expression)), span)
        return Call("NOT", (same,), span)

    def _is(self, tree: exp.Expr, span: Span) -> Node:
        self.only(tree, "this", "expression")
        operand = self._operand(tree.this)
        match tree.expression:
            case exp.Null():
                return Call("IS NULL", (operand,), span)
            case exp.Boolean() as truth:
                return Call("IS TRUE" if truth.this else "IS FALSE", (operand,), span)
        return self.refuse("IS takes NULL, TRUE, FALSE or DISTINCT FROM", span)

    def _in(self, tree: exp.Expr, span: Span) -> Node:
        if tree.args.get("query") is not None:
            return self.refuse("a sub-query is not allowed in an expression", span)
        if not tree.expressions or not self.only(tree, "this", "expressions"):
            return self.refuse("IN needs a list", span, "x IN (1, 2, 3)")
        operands = (self._operand(tree.this), *map(self.read, tree.expressions))
        return Call("IN", operands, span)

    def _between(self, tree: exp.Expr, span: Span) -> Node:
        self.only(tree, "this", "low", "high")
        operands = tuple(self._operand(tree.args[key]) for key in ("this", "low", "high"))
        return Call("BETWEEN", operands, span)

    def _like(self, operator: str, tree: exp.Expr, span: Span) -> Node:
        self.only(tree, "this", "expression", "negate")
        operand, pattern = self._operand(tree.this), self._operand(tree.expression)
        like = self._calls.like(operator, operand, pattern, span)
        return Call("NOT", (like,), span) if tree.args.get("negate") else like

    def _regexp_like(self, tree: exp.Expr, span: Span) -> Node:
        self.only(tree, "this", "expression")
        operands = (self._operand(tree.this), self._operand(tree.expression))
        return self._calls.with_constants("RLIKE", FUNCTIONS["RLIKE"], operands, span)

    def _negate(self, tree: exp.Expr, span: Span) -> Node:
        self.only(tree, "this")
        if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return self._number(f"-{tree.this.this}", span)
        operand = self._operand(tree.this)
        if isinstance(operand, Literal):
            folded = literals.negated(operand, span)
            if folded is not None:
                return folded
        return Call("NEGATE", (operand,), span)

    def _literal(self, tree: exp.Expr, span: Span) -> Node:
        if tree.args.get("is_string"):
            return Literal(tree.this, STRING, span)
        return self._number(tree.this, span)

    def _number(self, text: str, span: Span) -> Node:
        number = literals.number(text, span)
        return self.refuse(number, span) if isinstance(number, str) else number

    def _column(self, tree: exp.Expr, span: Span) -> Node:
        if not self.only(tree, "this", "table", "db", "catalog"):
            return _FAILED
        parts = [tree.args.get(key) for key in ("catalog", "db", "table", "this")]
        named = [part for part in parts if part is not None]
        if any(isinstance(part, exp.Star) for part in named):
            return self.refuse(f"* is only allowed in COUNT({self.scope.COUNTED})", span)
        if not all(isinstance(part, exp.Identifier) for part in named):
            return self.refuse("this is not a name", span)
        return self._resolve(tuple(part.name for part in named), span)

    def _resolve(self, path: tuple[str, ...], span: Span) -> Node:
        node = self.scope.column(path, span)
        return self.refuse(node, span) if isinstance(node, str) else node

    def _dot(self, tree: exp.Expr, span: Span) -> Node:
        names: list[str] = []
        current = tree
        while isinstance(current, exp.Dot) and isinstance(current.expression, exp.Identifier):
            self.only(current, "this", "expression")
            names.insert(0, current.expression.name)
            current = current.this
        if isinstance(current, exp.Dot):
            return self.refuse(
                "a function has no qualified name, and is not called on a value", span
            )
        if isinstance(current, (exp.Column, exp.Identifier)):
            parts = current.parts if isinstance(current, exp.Column) else [current]
            if all(isinstance(part, exp.Identifier) for part in parts):
                return self._resolve((*(part.name for part in parts), *names), span)
        node = self.read(current)
        for index, member in enumerate(names):
            if index >= MAX_TREE:
                return self.refuse(f"{name(tuple(names[:3]))}… is too deep", span)
            node = self._member(node, member, span)
        return node

    def _member(self, node: Node, member: str, span: Span) -> Node:
        if isinstance(node, (Column, Call, Member, Reference, RowReference, Variable)):
            return Member(node, member, span)
        return self.refuse(f"this has no field {member!r}", span)

    def _bracket(self, tree: exp.Expr, span: Span) -> Node:
        self.only(tree, "this", "expressions")
        if len(tree.expressions) != 1:
            return self.refuse("[] takes one index or key", span)
        return Call("[]", (self._operand(tree.this), self.read(tree.expressions[0])), span)

    def _cast(self, tree: exp.Expr, span: Span) -> Node:
        self.only(tree, "this", "to")
        operand = self.read(tree.this)
        target = literals.cast_target(tree.args["to"])
        if isinstance(target, str):
            return self.refuse(target, span, CAST_TARGETS)
        typed_literal = type(tree) is exp.Cast
        if typed_literal or isinstance(operand, Literal):
            folded = literals.cast_of_literal(operand, target, span)
            if folded is not None:
                return folded
            if typed_literal:
                return self.refuse(f"this is not a {target}", span, literals.TIME_FORMATS)
        return Cast(operand, target, span)

    def _case(self, tree: exp.Expr, span: Span) -> Node:
        self.only(tree, "this", "ifs", "default")
        operands: list[Node] = []
        subject = tree.args.get("this")
        if subject is not None:
            operands.append(self.read(subject))
        for branch in tree.args.get("ifs") or ():
            self.only(branch, "this", "true")
            operands += [self.read(branch.this), self.read(branch.args["true"])]
        default = tree.args.get("default")
        operands.append(Literal(None, NULL, span) if default is None else self.read(default))
        return Call("CASE" if subject is None else "CASE OF", tuple(operands), span)
