"""Conditions that look back, and some that do not, as programs for the kernel.

A program is a row of operations on a small stack. Whole numbers, truth, dates, moments and text
stand there as whole numbers (text by its place among all texts of a run, in order), everything
else that is supported as DOUBLE. A condition that needs more (decimals, functions, records) is
left to the interpreter, and its rule with it: :func:`program` gives ``None``.

The answers are those of :mod:`service.pattern.expressions.evaluation` with the schemas known.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from service.compiler.plan import LookBackAtom, Plan
from service.compiler.record_types import RecordTypes
from service.matcher.columnar import kernel
from service.matcher.columnar.lanes import TextPart
from service.matcher.columnar.text_parts import compared_part, compared_texts
from service.pattern.expressions import ALL_STEPS, ColumnPath, Expression, LookBack
from service.pattern.expressions.checking import Typing
from service.pattern.expressions.nodes import Call, Column, Literal, Node, Reference
from service.pattern.expressions.type_rules import common_type
from service.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    RecordType,
    SqlType,
)

_WHOLE = (INT, BIGINT)
_AS_WHOLE = (*_WHOLE, BOOLEAN, DATE, TIMESTAMP, STRING)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = _EPOCH.date().toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)

_COMPARE = {
    "=": kernel.EQUAL,
    "<>": kernel.NOT_EQUAL,
    "<": kernel.LESS,
    "<=": kernel.LESS_OR_EQUAL,
    ">": kernel.GREATER,
    ">=": kernel.GREATER_OR_EQUAL,
}
_ARITHMETIC = {
    "+": kernel.ADD,
    "-": kernel.SUBTRACT,
    "*": kernel.MULTIPLY,
}
_LOGIC = {
    "NOT": kernel.NOT,
    "IS NULL": kernel.IS_NULL,
    "IS TRUE": kernel.IS_TRUE,
    "IS FALSE": kernel.IS_FALSE,
}
_FUNCTIONS = {
    "FIRST": kernel.FIRST,
    "LAST": kernel.LAST,
    "SUM": kernel.SUM,
    "AVG": kernel.AVG,
    "MIN": kernel.MIN,
    "MAX": kernel.MAX,
    "COUNT": kernel.COUNT,
}


class _Unsupported(Exception):  # noqa: N818  never leaves the module
    pass


@dataclass(frozen=True, slots=True)
class Look:
    """One look-back: a function over the ``column`` (``kernel.NONE``: the events themselves) of
    the events of ``step`` (``kernel.NONE``: of all steps)."""

    function: int
    step: int
    column: int
    offset: int
    double: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. ``operand``: a column, a look-back, or a text's place in the program's
    ``texts``; ``value``: a constant."""

    code: int
    operand: int = 0
    value: int | float = 0

    @property
    def row(self) -> tuple[int, float, int, int]:
        """As :data:`service.matcher.columnar.kernel.OPERATION`."""
        double = bool(self.code & kernel.DOUBLE)
        whole = 0 if double else int(self.value)
        return whole, float(self.value) if double else 0.0, self.code, self.operand


@dataclass(frozen=True, slots=True)
class Program:
    """A condition's operations, in order, the look-backs and texts that they name, and the columns
    read with their types."""

    operations: tuple[Operation, ...]
    looks: tuple[Look, ...]
    texts: tuple[str, ...]
    columns: Mapping[int, SqlType]


def program(
    atom: LookBackAtom, plan: Plan, slots: Mapping[Any, int], types: RecordTypes
) -> Program | None:
    """The condition as a program, ``None`` where it is not supported. ``slots``: numbers of
    columns by inputs, record type and path."""
    writer = _LookBackWriter(atom, plan, slots, types)
    return writer.program(atom.expression)


def event_program(
    expression: Expression,
    event: RecordType,
    lanes: Callable[[ColumnPath], int],
    numbers: Callable[[ColumnPath, TextPart], int],
) -> Program | None:
    """The same of a condition on the event alone. ``lanes`` numbers its columns, ``numbers`` those
    with numbers of texts, which have no order: texts are compared with constants, for being equal
    or for a part being equal, or it is not supported."""
    typing = Typing(event)
    if compared_texts(expression.node, typing) is None:
        return None
    return _EventWriter(typing, lanes, numbers).program(expression)


def lane(kind: SqlType) -> type[np.int64 | np.float64] | None:
    """How a column's values stand in the kernel; ``None`` for those that do not."""
    if kind in _AS_WHOLE:
        return np.int64
    return np.float64 if kind in (DOUBLE, FLOAT) else None


def whole_value(kind: SqlType) -> Callable[[Any], int]:
    """A value of one of the types that stand as whole numbers, as that; text excepted."""
    if kind == TIMESTAMP:
        return lambda value: (value - _EPOCH) // _MICROSECOND
    if kind == DATE:
        return lambda value: value.toordinal() - _EPOCH_DAY
    return int


class _Writer:
    """Writes the operations of one condition, operands first."""

    def __init__(self, typing: Typing, lanes: Callable[[ColumnPath], int]) -> None:
        self.operations: list[Operation] = []
        self.looks: list[Look] = []
        self.texts: list[str] = []
        self.columns: dict[int, SqlType] = {}
        self._typing, self._lanes = typing, lanes

    def program(self, expression: Expression) -> Program | None:
        """The whole condition; ``None`` where it is not supported."""
        try:
            if self.write(expression.node) != BOOLEAN:
                return None
        except _Unsupported:
            return None
        if len(self.operations) > kernel.STACK:
            return None
        return Program(tuple(self.operations), tuple(self.looks), tuple(self.texts), self.columns)

    def write(self, node: Node) -> SqlType:
        """Write what leaves the node's value on the stack; its type."""
        match node:
            case Literal(value=value, type=kind):
                return self._literal(value, kind)
            case Column(path=path):
                kind = _supported(self._typing.type_of(node))
                column = self._read(self._lanes(path), kind)
                self._add(kernel.COLUMN, column, double=kind == DOUBLE)
                return kind
            case Reference(look_back=look_back):
                return self._look_back(node, look_back)
            case Call(operator=operator, arguments=arguments):
                return self._call(operator, arguments, self._typing.type_of(node))
        raise _Unsupported

    def _add(self, code: int, operand: int = 0, value: float = 0, *, double: bool = False) -> None:
        self.operations.append(Operation(code + (kernel.DOUBLE if double else 0), operand, value))

    def _literal(self, value: Any, kind: SqlType) -> SqlType:
        if value is None:
            self._add(kernel.NULL)
            return kind
        if kind == STRING:
            if value not in self.texts:
                self.texts.append(value)
            self._add(kernel.TEXT, self.texts.index(value))
        elif kind == DOUBLE:
            self._add(kernel.CONSTANT, value=float(value), double=True)
        elif kind in _AS_WHOLE:
            whole = whole_value(kind)(value)
            if not -(1 << 63) <= whole < 1 << 63:
                raise _Unsupported
            self._add(kernel.CONSTANT, value=whole)
        else:
            raise _Unsupported
        return kind

    def _read(self, column: int, kind: SqlType) -> int:
        """The column, of which it is noted that it is read."""
        if self.columns.setdefault(column, kind) != kind:
            raise _Unsupported
        return column

    def _look_back(self, node: Node, look_back: LookBack) -> SqlType:  # noqa: ARG002
        raise _Unsupported

    def _call(self, operator: str, arguments: Sequence[Node], kind: SqlType) -> SqlType:
        if operator in ("AND", "OR"):
            self._logical(arguments[0])
            for argument in arguments[1:]:
                self._logical(argument)
                self._add(kernel.AND if operator == "AND" else kernel.OR)
            return BOOLEAN
        if operator == "IS NULL":
            self.write(arguments[0])
            self._add(kernel.IS_NULL)
            return BOOLEAN
        if operator in _LOGIC:
            self._logical(arguments[0])
            self._add(_LOGIC[operator])
            return BOOLEAN
        if operator in _COMPARE:
            self._compare(_COMPARE[operator], *arguments)
            return BOOLEAN
        if operator == "BETWEEN":
            operand, low, high = arguments
            self._compare(kernel.GREATER_OR_EQUAL, operand, low)
            self._compare(kernel.LESS_OR_EQUAL, operand, high)
            self._add(kernel.AND)
            return BOOLEAN
        if operator == "IN":
            operand, *items = arguments
            # As in SQL, all of the list is brought to one type, not each pair.
            double = common_type(map(self._typing.type_of, arguments)) == DOUBLE
            for number, item in enumerate(items):
                self._compare(kernel.EQUAL, operand, item, double=double)
                if number:
                    self._add(kernel.OR)
            return BOOLEAN
        return self._arithmetic(operator, arguments, kind)

    def _logical(self, node: Node) -> None:
        if self.write(node) not in (BOOLEAN, NULL):
            raise _Unsupported

    def _compare(self, code: int, left: Node, right: Node, *, double: bool = False) -> None:
        kinds = [self._typing.type_of(left), self._typing.type_of(right)]
        double = double or DOUBLE in kinds
        for node, kind in zip((left, right), kinds, strict=True):
            if double:
                self._double(node)
                continue
            written = self.write(node)
            if written == DATE and TIMESTAMP in kinds:
                self._add(kernel.TO_MOMENT)
            elif written != kind:
                raise _Unsupported
        alike = {kind for kind in kinds if kind != NULL}
        if not (double or len(alike) <= 1 or alike <= {INT, BIGINT} or alike == {DATE, TIMESTAMP}):
            raise _Unsupported
        self._add(code, double=double)

    def _arithmetic(self, operator: str, arguments: Sequence[Node], kind: SqlType) -> SqlType:
        if operator == "NEGATE" and kind == DOUBLE:
            self._double(arguments[0])
            self._add(kernel.NEGATE, double=True)
            return kind
        if kind == DOUBLE and operator in ("+", "-", "*", "/"):
            for argument in arguments:
                self._double(argument)
            self._add(_ARITHMETIC.get(operator, kernel.DIVIDE), double=True)
            return kind
        if kind == INT and operator in _ARITHMETIC:
            for argument in arguments:
                if self.write(argument) not in _WHOLE:
                    raise _Unsupported
            # Two INTs never leave the range of 64 bits; leaving that of 32 makes NULL.
            self._add(_ARITHMETIC[operator])
            return kind
        raise _Unsupported

    def _double(self, node: Node) -> None:
        """Write a number as DOUBLE."""
        if isinstance(node, Literal) and isinstance(node.value, Decimal):
            self._add(kernel.CONSTANT, value=float(node.value), double=True)
            return
        written = self.write(node)
        if written in _WHOLE:
            self._add(kernel.TO_DOUBLE)
        elif written not in (DOUBLE, NULL):
            raise _Unsupported


class _EventWriter(_Writer):
    """The same, with the numbers of texts instead of texts."""

    def __init__(
        self,
        typing: Typing,
        lanes: Callable[[ColumnPath], int],
        numbers: Callable[[ColumnPath, TextPart], int],
    ) -> None:
        def lane_of(path: ColumnPath) -> int:
            is_text = typing.type_of(Column(path)) == STRING
            return numbers(path, TextPart()) if is_text else lanes(path)

        super().__init__(typing, lane_of)
        self._numbers = numbers

    def _call(self, operator: str, arguments: Sequence[Node], kind: SqlType) -> SqlType:
        if found := compared_part(Call(operator, tuple(arguments))):
            self._add(kernel.COLUMN, self._read(self._numbers(found.path, found.part), STRING))
            self._literal(found.constant, STRING)
            self._add(kernel.EQUAL)
            return BOOLEAN
        return super()._call(operator, arguments, kind)


class _LookBackWriter(_Writer):
    """The same, with look-backs."""

    def __init__(
        self, atom: LookBackAtom, plan: Plan, slots: Mapping[Any, int], types: RecordTypes
    ) -> None:
        events, of_type = plan.rule.events, atom.of_type
        self._plan, self._slots = plan, slots
        self._steps = types.by_step(plan)
        super().__init__(
            Typing(types.of(events, of_type), self._steps),
            lambda path: slots[events, of_type, path],
        )

    def _look_back(self, node: Node, look_back: LookBack) -> SqlType:
        step = look_back.step
        kind = _supported(self._typing.type_of(node))
        column, double = kernel.NONE, False
        argument = look_back.argument
        if argument is not None:
            # Over all steps a column may have one type here and another there.
            if step == ALL_STEPS or not isinstance(argument.node, Column):
                raise _Unsupported
            of_argument = _supported(Typing(self._steps.get(step), None).type_of(argument.node))
            double = of_argument == DOUBLE
            number = self._slots[
                self._plan.rule.events, self._plan.type_of(step), argument.node.path
            ]
            column = self._read(number, of_argument)
        steps = self._plan.steps
        # A step that takes nothing has a number that no event is taken for.
        number = steps.index(step) if step in steps else len(steps)
        number = kernel.NONE if step == ALL_STEPS else number
        look = Look(_FUNCTIONS[look_back.function], number, column, look_back.offset, double)
        if look not in self.looks:
            self.looks.append(look)
        self._add(kernel.LOOK_BACK, self.looks.index(look), double=kind == DOUBLE)
        return kind


def _supported(kind: SqlType) -> SqlType:
    if kind == FLOAT:
        return DOUBLE
    if kind not in (*_AS_WHOLE, DOUBLE):
        raise _Unsupported
    return kind
