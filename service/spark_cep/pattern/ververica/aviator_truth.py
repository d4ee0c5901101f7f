"""The value of an Aviator expression in SQL, with the same answers.

Aviator and SQL differ where something is missing. To Aviator ``nil`` is a value: equal to itself
and less than any other, so ``a < 5`` is true and ``a != 5`` is true where ``a`` is nil. What cannot
be computed (``a + 1`` of nil, ``a.b`` where ``a`` is nil) is an error, and an error anywhere makes
the whole condition false, also under ``!`` and beside ``||``. SQL has NULL for both.

So a condition is two SQL conditions here (:class:`Truth`): one that is true where Aviator says
true, and one that is true where it says false. Where neither is true there is an error. Values say
whether their NULL is nil or an error (:class:`Value`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from spark_cep.pattern.expressions.nodes import Call, Literal, Node
from spark_cep.pattern.types import BIGINT, BOOLEAN, SqlType

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_SIGNS = {
    "=": {0},
    "<>": {-1, 1},
    "<": {-1},
    "<=": {-1, 0},
    ">": {1},
    ">=": {0, 1},
}
"""For which results of comparing left with right each operator holds."""


class NoCounterpartError(ValueError):
    """An operation has no counterpart in SQL; ``allowed`` names one that has."""

    def __init__(self, message: str, allowed: str | None = None) -> None:
        super().__init__(message)
        self.allowed = allowed


class ValueKind(Enum):
    """The kind of a value, as far as it is known without a schema."""

    ANY = "a column"
    LONG = "a whole number"
    DOUBLE = "a number with a fraction"
    NUMBER = "a number"
    TEXT = "text"
    TRUTH = "true or false"
    NIL = "nil"


@dataclass(frozen=True, slots=True)
class Value:
    """A value that is no condition.

    Args:
        node: The value in SQL.
        kind: What is known of its type.
        nilable: Whether NULL is nil; otherwise it is an error.
        certain: Whether there is no error, whatever the event holds.
        guard: What must hold for NULL to be nil, where both may be.
        wide: Whether arithmetic with it is that of Aviator: 64 bits, not 32.
    """

    node: Node
    kind: ValueKind
    nilable: bool = False
    certain: bool = False
    guard: Node = field(default=TRUE)
    wide: bool = False

    @property
    def is_nil(self) -> Node:
        """The condition that it is nil."""
        if self.kind is ValueKind.NIL:
            return TRUE
        return both(self.guard, Call("IS NULL", (self.node,))) if self.nilable else FALSE

    @property
    def is_there(self) -> Node:
        """The condition that it is neither nil nor an error."""
        if self.kind is ValueKind.NIL:
            return FALSE
        return TRUE if self.certain and not self.nilable else is_not_null(self.node)

    @property
    def is_no_error(self) -> Node:
        """The condition that there is no error."""
        if self.certain:
            return TRUE
        return self.guard if self.nilable else is_not_null(self.node)


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition: where it is true, where it is false, and whether it is always one of both."""

    true: Node
    false: Node
    certain: bool = False


def constant(value: bool) -> Truth:
    """``true`` or ``false``."""
    return Truth(TRUE, FALSE, True) if value else Truth(FALSE, TRUE, True)


def condition(value: Value) -> Truth:
    """A value where Aviator asks for true or false: nil is an error there."""
    return Truth(value.node, negated(value.node))


def inverse(truth: Truth) -> Truth:
    """``!a``."""
    return replace(truth, true=truth.false, false=truth.true)


def conjunction(truths: Iterable[Truth]) -> Truth:
    """``a && b``: what is behind something false is not looked at."""
    first, *rest = truths
    for second in rest:
        false = second.false if first.certain else both(first.true, second.false)
        true = both(first.true, second.true)
        first = Truth(true, either(first.false, false), first.certain and second.certain)
    return first


def disjunction(truths: Iterable[Truth]) -> Truth:
    """``a || b``: what is behind something true is not looked at."""
    return inverse(conjunction(inverse(truth) for truth in truths))


def choice(asked: Truth, then: Truth, otherwise: Truth) -> Truth:
    """``a ? b : c``."""
    return Truth(
        either(both(asked.true, then.true), both(asked.false, otherwise.true)),
        either(both(asked.true, then.false), both(asked.false, otherwise.false)),
        asked.certain and then.certain and otherwise.certain,
    )


def same_truth(left: Truth, right: Truth) -> Truth:
    """``a == b`` of two conditions."""
    return Truth(
        either(both(left.true, right.true), both(left.false, right.false)),
        either(both(left.true, right.false), both(left.false, right.true)),
        left.certain and right.certain,
    )


def compared(operator: str, left: Value, right: Value) -> Truth:
    """``a < b`` and the like, ``operator`` as SQL writes it."""
    return Truth(
        _holds(operator, left, right),
        _holds(_OPPOSITE[operator], left, right),
        left.certain and right.certain,
    )


def _holds(operator: str, left: Value, right: Value) -> Node:
    plain = Call(operator, (left.node, right.node))
    signs = _SIGNS[operator]
    cases: list[Node] = []
    if ValueKind.NIL not in (left.kind, right.kind):
        if operator in ("=", "<>") and all(v.nilable or v.certain for v in (left, right)):
            return _equality(operator, left, right)
        cases.append(plain)
    if -1 in signs:
        cases.append(both(left.is_nil, right.is_no_error if 0 in signs else right.is_there))
    if 1 in signs:
        cases.append(both(right.is_nil, left.is_no_error if 0 in signs else left.is_there))
    if signs == {0}:
        cases.append(both(left.is_nil, right.is_nil))
    return either(*cases)


def _equality(operator: str, left: Value, right: Value) -> Node:
    if operator == "=":
        if not (left.nilable and right.nilable):
            return Call("=", (left.node, right.node))
        return both(left.guard, right.guard, Call("<=>", (left.node, right.node)))
    if not (left.nilable or right.nilable):
        return Call("<>", (left.node, right.node))
    return both(left.guard, right.guard, negated(Call("<=>", (left.node, right.node))))


def is_not_null(node: Node) -> Node:
    """``node IS NOT NULL``."""
    return negated(Call("IS NULL", (node,)))


def negated(node: Node) -> Node:
    """``NOT node``."""
    if isinstance(node, Call) and node.operator == "NOT":
        return node.arguments[0]
    return Call("NOT", (node,))


def both(*nodes: Node) -> Node:
    """All of them, as one AND."""
    return _junction("AND", nodes, neutral=TRUE, decisive=FALSE)


def either(*nodes: Node) -> Node:
    """One of them, as one OR."""
    return _junction("OR", nodes, neutral=FALSE, decisive=TRUE)


def _junction(operator: str, nodes: Iterable[Node], neutral: Node, decisive: Node) -> Node:
    parts: dict[Node, None] = {}
    for node in nodes:
        if node == decisive:
            return decisive
        inside = isinstance(node, Call) and node.operator == operator
        parts |= dict.fromkeys(node.arguments if isinstance(node, Call) and inside else (node,))
    parts.pop(neutral, None)
    if not parts:
        return neutral
    return next(iter(parts)) if len(parts) == 1 else Call(operator, tuple(parts))


def whole(value: int, sql_type: SqlType = BIGINT) -> Literal:
    """A whole number as SQL has it, by default of 64 bits."""
    return Literal(value, sql_type)


def wide(value: Value) -> Node:
    """The value for arithmetic of 64 bits: columns and functions may be of 32."""
    if isinstance(value.node, Literal) and isinstance(value.node.value, int):
        return whole(value.node.value)
    return value.node if value.wide else Call("*", (value.node, whole(1)))
