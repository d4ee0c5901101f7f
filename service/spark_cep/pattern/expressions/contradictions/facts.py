"""Facts about values that follow from the parts of a condition that must all hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.expressions.contradictions.constants import (
    LIKE,
    exclusive,
    is_constant,
    is_null,
    quoted,
    value_of,
)
from spark_cep.pattern.expressions.nodes import COMPARISONS, Call, Node, Span

NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
#: The orders of the left side to the right one that a comparison lets through.
_ORDERS = {
    "=": {0}, "<>": {-1, 1}, "<": {-1}, ">": {1}, "<=": {-1, 0}, ">=": {0, 1},
}  # fmt: skip


class NeverTrue(NamedTuple):
    """Why a condition, or the part of it at ``span``, is never true; ``fix``: what is meant there
    without doubt. ``whole``: the condition as a whole is never true. ``beside``: the part that
    excludes it, and where that stands."""

    message: str
    span: Span
    allowed: str
    code: Code = Code.NEVER_TRUE
    fix: str | None = None
    whole: bool = True
    beside: tuple[str, Span] | None = None


RequiredPart = tuple[Node, bool]
"""A condition that must hold, or (``False``) one that must be false."""


def required(node: Node, holds: bool) -> Node:
    """The part as a condition that must hold."""
    return node if holds else Call("NOT", (node,), node.span)


class Facts:
    """Facts about values that follow from parts that must all hold."""

    def __init__(self) -> None:
        self._held: dict[Node, bool] = {}
        #: Of each value, what it is compared with, and the part that does.
        self._limits: dict[Node, list[tuple[str, Any, RequiredPart]]] = {}
        self._is_null: dict[Node, tuple[bool, RequiredPart]] = {}
        self._orders: dict[tuple[Node, Node], tuple[set[int], RequiredPart]] = {}

    def copy(self) -> Facts:
        """A copy, to which other facts can be added."""
        made = Facts()
        made._held, made._is_null = dict(self._held), dict(self._is_null)
        made._limits = {value: list(limits) for value, limits in self._limits.items()}
        made._orders = dict(self._orders)
        return made

    def imply(self, node: Node, holds: bool) -> bool:
        """Return whether a part holds wherever these do."""
        if self._held.get(node) is holds or (is_constant(node) and value_of(node) is holds):
            return True
        match node:
            case Call(operator="IS NULL", arguments=(value,)):
                return not holds and self._is_null.get(value, (True,))[0] is False
            case Call(operator=operator, arguments=arguments) if operator in {*NEGATED, "IN"}:
                # It is not NULL there, and not false.
                values = [each for each in arguments if not is_constant(each)]
                known = all(self._is_null.get(each, (True,))[0] is False for each in values)
                nulls = any(map(is_null, arguments))
                return known and not nulls and self.copy().add(node, not holds) is not None
        return False

    def add(self, node: Node, holds: bool) -> NeverTrue | None:
        """Add a part; why it contradicts the others, if it does."""
        part = node, holds
        if self._held.setdefault(node, holds) is not holds:
            return contradicting(part, (node, not holds))
        match node:
            case Call(operator="IS NULL", arguments=(value,)):
                return self._null(value, holds, part)
            case Call(operator="IN", arguments=(value, *others)):
                return self._membership(value, others, part)
            case Call(operator=operator, arguments=(value, *_)) if operator in LIKE:
                return self._null(value, False, part)
            case Call(operator=operator, arguments=(left, right)) if operator in COMPARISONS:
                return self._comparison(operator, left, right, part)
            case Call(operator="IS TRUE" | "IS FALSE" | "BETWEEN"):
                return None
        return self._limit(node, "=", holds, part)

    def _membership(
        self, value: Node, others: Sequence[Node], part: RequiredPart
    ) -> NeverTrue | None:
        if not all(map(is_constant, others)):
            return self._null(value, False, part)
        values = [each for each in map(value_of, others) if each is not None]
        if part[1]:
            return self._limit(value, "IN", values, part)
        found = (self._limit(value, "<>", each, part) for each in values)
        return next(filter(None, found), None)

    def _comparison(
        self, operator: str, left: Node, right: Node, part: RequiredPart
    ) -> NeverTrue | None:
        if operator == "<=>":
            if not part[1] or is_constant(left) or not is_constant(right) or is_null(right):
                return None
            operator = "="
        compared = operator if part[1] else NEGATED[operator]
        if is_constant(left):
            left, right, compared = right, left, FLIPPED[compared]
        if is_constant(right):
            return self._limit(left, compared, value_of(right), part)
        reason = self._null(left, False, part) or self._null(right, False, part)
        if reason is not None:
            return reason
        orders = _ORDERS[compared]
        if (right, left) in self._orders:
            left, right, orders = right, left, _ORDERS[FLIPPED[compared]]
        before, rival = self._orders.get((left, right), ({-1, 0, 1}, part))
        self._orders[left, right] = before & orders, part
        return None if before & orders else contradicting(part, rival)

    def _null(self, value: Node, is_null: bool, part: RequiredPart) -> NeverTrue | None:
        known, rival = self._is_null.setdefault(value, (is_null, part))
        return None if known is is_null else contradicting(part, rival)

    def _limit(self, value: Node, operator: str, of: Any, part: RequiredPart) -> NeverTrue | None:
        reason = self._null(value, False, part)
        if reason is not None:
            return reason
        limits = self._limits.setdefault(value, [])
        for other, other_of, rival in limits:
            if exclusive(operator, of, other, other_of):
                return contradicting(part, rival)
        limits.append((operator, of, part))
        for other, members, rival in limits:
            if other == "IN" and all(
                any(exclusive("=", member, *limit[:2]) for limit in limits) for member in members
            ):
                return contradicting(part, rival)
        return None


def contradicting(part: RequiredPart, rival: RequiredPart) -> NeverTrue:
    """The reason why a part never holds where another one does."""
    one, other = quoted(required(*rival)), quoted(required(*part))
    message = f"{other} is never true together with {one}"
    allowed = "parts that one event can meet; or OR between them"
    return NeverTrue(message, part[0].span, allowed, beside=(one, rival[0].span))
