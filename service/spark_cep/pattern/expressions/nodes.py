"""The vetted form of an expression: a small tree in which nothing but known operators can stand.

``reading`` builds these nodes from text; type checks, both evaluators and the canonical text start
from them, never from the author's text. Nodes are immutable, hashable and picklable. ``span``, the
place in the author's text, takes no part in equality.

``Call.operator`` is one of ``SYMBOLS`` (written as operators) or a name in ``functions``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Literal as Literal_

from spark_cep.pattern.expressions.intervals import Months
from spark_cep.pattern.types import SqlType

ColumnPath = tuple[str, ...]
Pick = Literal_["FIRST", "LAST"]
Span = tuple[int, int]
LiteralValue = None | bool | int | float | str | Decimal | date | datetime | timedelta | Months

COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})
ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
SYMBOLS = (
    COMPARISONS
    | ARITHMETIC
    | {"AND", "OR", "NOT", "NEGATE", "IN", "BETWEEN", "IS NULL", "IS TRUE", "IS FALSE"}
    | {"LIKE", "ILIKE", "RLIKE", "CASE", "CASE OF", "[]"}
)
"""``CASE``: condition, value, …, default. ``CASE OF``: operand, value, result, …, default."""

ALL_STEPS = "*"
"""The step of a look-back over every event of the match."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. Equality includes the type, so ``1`` and ``1L`` differ, and the sign of zero."""

    value: LiteralValue
    type: SqlType
    span: Span = field(default=(0, 0), compare=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return self.type == other.type and str(self.value) == str(other.value)

    def __hash__(self) -> int:
        return hash((str(self.value), self.type))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the event, or a field inside it."""

    path: ColumnPath
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """The value of a look-back."""

    look_back: LookBack
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class RowReference:
    """A value of a row pattern match: of one of its rows, or of all of them."""

    value: RowValue
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a record that is itself computed, such as ``list[0].name``."""

    operand: Node
    name: str
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """``CAST(operand AS target)``; NULL when the value does not fit."""

    operand: Node
    target: SqlType
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or function over its arguments."""

    operator: str
    arguments: tuple[Node, ...]
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """The element that a lambda is computed for."""

    name: str
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Lambda:
    """``parameter -> body``; stands only as an argument of a function that takes one.

    Lambdas inside one another have parameters of different names.
    """

    parameter: str
    body: Node
    span: Span = field(default=(0, 0), compare=False)


Node = Literal | Column | Reference | RowReference | Member | Cast | Call | Variable | Lambda


@dataclass(frozen=True, slots=True)
class LookBack:
    """A value taken from the events that a step has already taken.

    ``argument`` is evaluated on each of them; ``None`` only for ``COUNT(step.*)``. ``offset``
    counts from the end for LAST and from the start for FIRST; ``limit`` is the most values that
    COLLECT keeps. ``step`` is ``ALL_STEPS`` for every event of the match.
    """

    function: str
    step: str
    argument: Expression | None
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class RowPosition:
    """A row near one of a row pattern match.

    ``variables`` are the primary variables whose rows count, none for all rows of the match;
    ``pick`` says from which end of them ``offset`` counts. RUNNING, the rows end with the current
    one, and ``final`` with the last of the match. ``shift`` then goes that many rows through the
    partition, back if below zero. Where there is no such row, the value is NULL.
    """

    pick: Pick = "LAST"
    variables: tuple[str, ...] = ()
    offset: int = 0
    final: bool = False
    shift: int = 0


@dataclass(frozen=True, slots=True)
class ColumnAt:
    """A column of a row of the partition."""

    position: RowPosition
    path: ColumnPath


@dataclass(frozen=True, slots=True)
class ClassifierAt:
    """CLASSIFIER: the variable that a row was matched as, NULL outside the match.

    Without ``position``, in the argument of an aggregate, it is that of the row at hand.
    """

    position: RowPosition | None


@dataclass(frozen=True, slots=True)
class MatchNumber:
    """MATCH_NUMBER: 1 for a partition's first match."""


@dataclass(frozen=True, slots=True)
class RowAggregate:
    """An aggregate over the match's rows of ``variables``, none for all; ``COUNT(*)`` and
    ``COUNT(A.*)`` have no argument. RUNNING, the rows end with the current one."""

    function: str
    variables: tuple[str, ...] = ()
    final: bool = False
    arguments: tuple[Expression, ...] = ()


RowValue = ColumnAt | ClassifierAt | MatchNumber | RowAggregate


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """One parsed expression; equal to another when the canonical text and the look-backs are.

    ``columns`` are the event's columns read outside look-backs, ``look_backs`` the distinct ones
    in the order of the text, ``row_values`` those of a row pattern match, likewise.
    """

    text: str
    canonical: str
    node: Node = field(repr=False)
    columns: frozenset[ColumnPath]
    look_backs: tuple[LookBack, ...]
    row_values: tuple[RowValue, ...]

    @property
    def is_event_only(self) -> bool:
        """Return whether the expression needs nothing but the event."""
        return not self.look_backs and not self.row_values

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expression):
            return NotImplemented
        return self.canonical == other.canonical and self.look_backs == other.look_backs

    def __hash__(self) -> int:
        return hash((self.canonical, self.look_backs))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly beneath; a look-back's argument is not one of them."""
    if isinstance(node, Call):
        return node.arguments
    if isinstance(node, (Cast, Member)):
        return (node.operand,)
    return (node.body,) if isinstance(node, Lambda) else ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all beneath it, in the order of the text, without look-backs' arguments."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(children(current)))
