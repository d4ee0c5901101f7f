"""Syntax tree to nodes: a method for each rule of the grammar.

``Events`` resolves names of columns and calls over several events; every other function is looked
up in ``functions``. Where a reader could be in doubt of what belongs together, parentheses
are required.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple, Protocol

from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.expressions.functions import ALIASES, FUNCTIONS, LAMBDAS, SPECIAL_CALLS
from spark_cep.pattern.expressions.intervals import FORM, Months, interval
from spark_cep.pattern.expressions.nodes import (
    Call,
    Cast,
    Column,
    ColumnPath,
    Lambda,
    Literal,
    Member,
    Node,
    Span,
    Variable,
)
from spark_cep.pattern.expressions.problems import ExpressionError, TextProblem, refused
from spark_cep.pattern.expressions.reading.calls import call, check_count, unknown_function
from spark_cep.pattern.expressions.reading.mistakes import CAST_TARGETS, PARENTHESES, UNCLEAR
from spark_cep.pattern.expressions.reading.syntax import Syntax, names, parts, place, words
from spark_cep.pattern.expressions.values import literals
from spark_cep.pattern.types import BOOLEAN, DATE, DAY_TIME, NULL, STRING, TIMESTAMP, YEAR_MONTH

MAX_DEPTH = 32
"""Most brackets, CASEs or signs inside one another."""
MAX_TREE = 64
"""Most operators or calls inside one another; chains of AND and OR count once."""

MAX_OFFSET = 10_000
"""Most events or rows that FIRST, LAST, PREV and NEXT may count."""

_FAILED = Literal(None, NULL)
_BRACKETS = frozenset({"group", "subscript"})
_NESTED = _BRACKETS | {"call", "cast", "case", "negated", "signed"}
_PREDICATES = frozenset({"comparison", "membership", "between", "like", "truth", "distinct"})
_COMPARISONS = {"==": "=", "!=": "<>"}
_LIKES = {"REGEXP": "RLIKE"}
_ANY = ("ANY", "SOME")


class Called(NamedTuple):
    """A call; ``name`` is the function's, behind RUNNING or FINAL if there is one."""

    name: str
    written: str
    distinct: bool
    arguments: list[Syntax]
    span: Span

    @property
    def is_of_all(self) -> bool:
        """Return whether the only argument is ``*`` or a name before ``.*``."""
        return not self.distinct and [argument.data for argument in self.arguments] == ["star"]


class Events(Protocol):
    """The events, or rows, that names and calls are about."""

    functions: ClassVar[frozenset[str]]
    aliases: ClassVar[Mapping[str, str]]
    counted: ClassVar[str]

    def column(self, path: ColumnPath, span: Span) -> Node:
        """The value of a dotted name; ``ExpressionError`` if there is none."""
        ...

    def call(self, reader: ExpressionReader, called: Called) -> Node:
        """The value of a call of one of ``functions``."""
        ...


class ExpressionReader:
    """Reads one expression; gathers every problem on the way (``problems``)."""

    def __init__(self, events: Events) -> None:
        self.problems: list[TextProblem] = []
        self._events = events
        self._variables: tuple[str, ...] = ()
        self._depth = 0
        self._nested = 0

    def read(self, tree: Syntax) -> Node:
        """The node of any tree; stands in for one where there is a problem."""
        nested = tree.data in _NESTED
        deeper = tree.data not in _BRACKETS
        self._depth += deeper
        self._nested += nested
        try:
            if self._nested > MAX_DEPTH:
                message = f"the expression is nested too deeply; the limit is {MAX_DEPTH}"
                raise refused(message, place(tree))
            if self._depth > MAX_TREE:
                message = f"more than {MAX_TREE} operators stand inside one another"
                raise refused(f"{message}; the limit is {MAX_TREE}", place(tree))
            return self._node(tree)
        except ExpressionError as error:
            self.problems += error.problems
            return _FAILED
        finally:
            self._depth -= deeper
            self._nested -= nested

    def read_apart(self, tree: Syntax) -> Node:
        """The node of a tree that does not see the lambdas around it."""
        around, self._variables = self._variables, ()
        try:
            return self.read(tree)
        finally:
            self._variables = around

    def read_number(self, tree: Syntax, what: str, least: int, most: int) -> int:
        """A whole number in the text."""
        node = self.read(tree)
        if isinstance(node, Literal) and type(node.value) is int and least <= node.value <= most:
            return node.value
        raise refused(f"{what} must be a whole number from {least} to {most}", place(tree))

    def _node(self, tree: Syntax) -> Node:
        node: Node = getattr(self, f"_{tree.data}")(tree)
        return node

    def _disjunction(self, tree: Syntax) -> Node:
        return self._junction("OR", tree)

    def _conjunction(self, tree: Syntax) -> Node:
        return self._junction("AND", tree)

    def _junction(self, operator: str, tree: Syntax) -> Node:
        pending, operands = [tree], []
        while pending:
            current = pending.pop()
            inner = _within_groups(current)
            if inner.data == tree.data:
                pending += reversed(parts(inner))
            else:
                operands.append(self.read(current))
        return Call(operator, tuple(operands), place(tree))

    def _negated(self, tree: Syntax) -> Node:
        return Call("NOT", (self.read(parts(tree)[0]),), place(tree))

    def _comparison(self, tree: Syntax) -> Node:
        left, right = parts(tree)
        sign = str(words(tree)[0])
        operator = _COMPARISONS.get(sign, sign)
        if not _is_any(left) and not _is_any(right):
            return Call(operator, self._operands(tree), place(tree))
        if operator != "=" or _is_any(left) or len(parts(right)) != 1:
            form = "value = ANY(array), or EXISTS(array, x -> x > value)"
            raise refused("ANY stands behind = and takes an array", place(tree), form)
        value, array = self._operands(tree, left, parts(right)[0])
        return Call("ARRAY_CONTAINS", (array, value), place(tree))

    def _membership(self, tree: Syntax) -> Node:
        if len(parts(tree)) == 1:
            raise refused("IN needs a list", place(tree), "x IN (1, 2, 3)")
        return self._predicate("IN", tree)

    def _between(self, tree: Syntax) -> Node:
        return self._predicate("BETWEEN", tree)

    def _distinct(self, tree: Syntax) -> Node:
        same = Call("<=>", self._operands(tree), place(tree))
        return same if _is_negated(tree) else Call("NOT", (same,), place(tree))

    def _truth(self, tree: Syntax) -> Node:
        return self._predicate(f"IS {words(tree)[-1].upper()}", tree)

    def _predicate(self, operator: str, tree: Syntax) -> Node:
        node = Call(operator, self._operands(tree), place(tree))
        return Call("NOT", (node,), place(tree)) if _is_negated(tree) else node

    def _like(self, tree: Syntax) -> Node:
        written = words(tree)[-1].upper()
        node = call(_LIKES.get(written, written), self._operands(tree), place(tree))
        return Call("NOT", (node,), place(tree)) if _is_negated(tree) else node

    def _operands(self, tree: Syntax, *chosen: Syntax) -> tuple[Node, ...]:
        """The operands of a predicate; another one needs parentheses there."""
        operands = chosen or parts(tree)
        if operands[0].data in _PREDICATES:
            raise refused(UNCLEAR, place(tree), PARENTHESES)
        return tuple(map(self.read, operands))

    def _binary(self, tree: Syntax) -> Node:
        left, right = parts(tree)
        sign = str(words(tree)[0])
        for side in (left, right):
            both = {sign, str(words(side)[0])} if side.data == "binary" else set()
            if both & {"||", "%"} and both != {"||"}:
                shown = "||" if "||" in both else "%"
                message = f"{shown} beside another operator is not clear"
                self.problems.append(TextProblem(message, place(tree), PARENTHESES))
        operands = (self.read(left), self.read(right))
        if sign != "||":
            return Call(sign, operands, place(tree))
        first = operands[0]
        joined = first.arguments if isinstance(first, Call) and first.operator == "CONCAT" else None
        return Call("CONCAT", (*(joined or (first,)), operands[1]), place(tree))

    def _signed(self, tree: Syntax) -> Node:
        (operand,) = parts(tree)
        if words(tree)[0] == "+":
            return self.read(operand)
        if operand.data == "number":
            return self._number_of(f"-{words(operand)[0]}", place(tree))
        node = self.read(operand)
        folded = literals.negated(node, place(tree)) if isinstance(node, Literal) else None
        return folded or Call("NEGATE", (node,), place(tree))

    def _group(self, tree: Syntax) -> Node:
        if len(tree.children) > 1:
            raise refused("a list of values is not allowed in an expression", place(tree))
        return self.read(parts(tree)[0])

    def _number(self, tree: Syntax) -> Node:
        return self._number_of(words(tree)[0], place(tree))

    @staticmethod
    def _number_of(text: str, span: Span) -> Node:
        number = literals.number(text, span)
        if isinstance(number, str):
            raise refused(number, span)
        return number

    def _string(self, tree: Syntax) -> Node:
        return Literal(literals.text(words(tree)[0]), STRING, place(tree))

    def _constant(self, tree: Syntax) -> Node:
        word = words(tree)[0].upper()
        if word == "NULL":
            return Literal(None, NULL, place(tree))
        return Literal(word == "TRUE", BOOLEAN, place(tree))

    def _time(self, tree: Syntax) -> Node:
        word, text = words(tree)
        target = DATE if word.upper() == "DATE" else TIMESTAMP
        value = literals.cast_of_literal(Literal(literals.text(text), STRING), target, place(tree))
        if value is None:
            raise refused(f"this is not a {target}", place(tree), literals.TIME_FORMATS)
        return value

    def _interval(self, tree: Syntax) -> Node:
        texts = [
            literals.text(token) if token.type == "STRING" else str(token) for token in words(tree)
        ]
        found = interval("".join(text if text in "+-" else f"{text} " for text in texts))
        if isinstance(found, str):
            raise refused(found, place(tree), FORM)
        kind = YEAR_MONTH if isinstance(found, Months) else DAY_TIME
        return Literal(found, kind, place(tree))

    def _path(self, tree: Syntax) -> Node:
        path = tuple(names(tree))
        if len(path) > MAX_TREE:
            message = f"{name(path[:3])}… has {len(path)} parts; the limit is {MAX_TREE}"
            raise refused(message, place(tree))
        if path[0] not in self._variables:
            return self._events.column(path, place(tree))
        node: Node = Variable(path[0], place(tree))
        for part in path[1:]:
            node = Member(node, part, place(tree))
        return node

    def _star(self, tree: Syntax) -> Node:
        raise refused(f"* is only allowed in COUNT({self._events.counted})", place(tree))

    def _member(self, tree: Syntax) -> Node:
        of, member = self.read(parts(tree)[0]), names(tree)[0]
        if isinstance(of, Column):
            return Column((*of.path, member), place(tree))
        if of is _FAILED:
            return of
        if isinstance(of, (Literal, Cast)):
            raise refused(f"this has no field {member!r}", place(tree))
        return Member(of, member, place(tree))

    def _element(self, tree: Syntax) -> Node:
        container = parts(tree)[0]
        if container.data == "path" and [str(token) for token in words(container)] == ["ARRAY"]:
            allowed = "ARRAY('a', 'b'); or x IN ('a', 'b')"
            raise refused("ARRAY is a function: it takes parentheses", place(tree), allowed)
        return Call("[]", tuple(map(self.read, parts(tree))), place(tree))

    def _subscript(self, tree: Syntax) -> Node:
        if len(tree.children) != 1:
            raise refused("[] takes one index or key", place(tree))
        return self.read(parts(tree)[0])

    def _cast(self, tree: Syntax) -> Node:
        _, kind, *sizes = words(tree)
        operand = self.read(parts(tree)[0])
        target = literals.cast_target(kind.upper(), sizes)
        if isinstance(target, str):
            raise refused(target, place(tree), CAST_TARGETS)
        return literals.cast_of_literal(operand, target, place(tree)) or Cast(
            operand, target, place(tree)
        )

    def _case(self, tree: Syntax) -> Node:
        subject, *branches, default = tree.children
        operands = [] if subject is None else [self.read(subject)]
        operands += [self.read(part) for branch in branches for part in parts(branch)]
        operands.append(self.read(default) if default else Literal(None, NULL, place(tree)))
        return Call("CASE" if subject is None else "CASE OF", tuple(operands), place(tree))

    def called(self, tree: Syntax) -> Called:
        """A call as it is written."""
        tokens = {token.type: str(token) for token in words(tree)}
        written = tokens["NAME"]
        function = written.upper()
        function = ALIASES.get(function) or self._events.aliases.get(function, function)
        if "MODE" in tokens:
            mode = tokens["MODE"]
            written, function = f"{mode} {written}", f"{mode.upper()} {function}"
        return Called(function, written, "DISTINCT" in tokens, parts(tree), place(tree))

    def _call(self, tree: Syntax) -> Node:
        called, events = self.called(tree), self._events
        function, written, distinct, arguments, span = called
        if function in events.functions:
            return events.call(self, called)
        if function not in FUNCTIONS and function not in SPECIAL_CALLS:
            raise unknown_function(written, span, [*events.functions, *events.aliases])
        if distinct:
            raise refused("DISTINCT outside COUNT is not allowed in an expression", span)
        check_count(function, len(arguments), span)
        if function in LAMBDAS:
            return self._over_elements(function, arguments, span)
        first, rest = arguments[:1], arguments[1:]
        is_word = function in FUNCTIONS and FUNCTIONS[function].words
        nodes = map(self._word if is_word else self.read, first)
        return call(function, (*nodes, *map(self.read, rest)), span)

    def _word(self, tree: Syntax) -> Node:
        """A constant that may stand without quotes, such as a unit of time."""
        if tree.data == "path" and [token.type for token in words(tree)] == ["NAME"]:
            return Literal(str(words(tree)[0]), STRING, place(tree))
        return self.read(tree)

    def _over_elements(self, function: str, arguments: list[Syntax], span: Span) -> Node:
        items, at = self.read(arguments[0]), place(arguments[1])
        *parameters, body = parts(arguments[1]) or [arguments[1]]
        named = [p for p in parameters if p.data == "path" and len(p.children) == 1]
        if arguments[1].data != "of_element" or not len(parameters) == len(named) == 1:
            message = f"the second argument of {function} must be a lambda of one variable"
            raise refused(message, at, f"{function}(array, x -> x > 1)")
        (parameter,) = names(named[0])
        if parameter in self._variables:
            raise refused(f"{parameter} is the variable of a lambda around this one", at)
        around = self._variables
        self._variables = (*around, parameter)
        try:
            return Call(function, (items, Lambda(parameter, self.read(body), at)), span)
        finally:
            self._variables = around

    def _of_element(self, tree: Syntax) -> Node:
        message = "a lambda outside EXISTS, FORALL and FILTER is not allowed in an expression"
        raise refused(message, place(tree))


def _within_groups(tree: Syntax) -> Syntax:
    while tree.data == "group" and len(tree.children) == 1:
        (tree,) = parts(tree)
    return tree


def _is_any(tree: Syntax) -> bool:
    return tree.data == "call" and names(tree)[0].upper() in _ANY


def _is_negated(tree: Syntax) -> bool:
    return "NOT" in [token.type for token in words(tree)]
