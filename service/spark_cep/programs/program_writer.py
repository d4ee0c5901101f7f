"""Writes the operations of a condition, operands first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from spark_cep.columns.representation import MOST_WHOLE_DIGITS, is_whole_decimal, to_whole
from spark_cep.pattern.expressions import ColumnPath, Expression, LookBack
from spark_cep.pattern.expressions.checking.types import Typing
from spark_cep.pattern.expressions.nodes import Call, Cast, Column, Literal, Node, Reference
from spark_cep.pattern.expressions.values.type_rules import common_type
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    DecimalType,
    SqlType,
)
from spark_cep.programs.loops import expression_loop as op
from spark_cep.programs.programs import Look, Operation, Program, PythonCall, depth
from spark_cep.programs.supported_types import (
    AS_WHOLE,
    DIGITS,
    EXACT_DIGITS,
    WHOLE,
    Unsupported,
    scale_of,
    supported,
)

_COMPARE = {
    "=": op.EQUAL,
    "<>": op.NOT_EQUAL,
    "<": op.LESS,
    "<=": op.LESS_OR_EQUAL,
    ">": op.GREATER,
    ">=": op.GREATER_OR_EQUAL,
}
_ARITHMETIC = {
    "+": op.ADD,
    "-": op.SUBTRACT,
    "*": op.MULTIPLY,
    "/": op.DIVIDE,
    "%": op.REMAINDER,
}
_LOGIC = {
    "NOT": op.NOT,
    "IS TRUE": op.IS_TRUE,
    "IS FALSE": op.IS_FALSE,
}
_CHOICES = {"COALESCE": op.COALESCE, "GREATEST": op.GREATEST, "LEAST": op.LEAST}
#: Parts of a moment in UTC: microseconds of one, and how many there are before they begin again.
_MOMENT_PARTS = {
    "HOUR": (3_600_000_000, 24),
    "MINUTE": (60_000_000, 60),
    "SECOND": (1_000_000, 60),
    "UNIX_SECONDS": (1_000_000, 0),
    "UNIX_MILLIS": (1_000, 0),
}
_CHECKS = {INT: op.CHECK_INT, BIGINT: op.CHECK_BIGINT}


#: How much of a program there is: operations, look-backs, texts, calls, columns, order of texts.
_Mark = tuple[int, int, int, int, frozenset[int], bool]


class Writer:
    """Writes one condition. What it has no operation for it does not support."""

    def __init__(self, typing: Typing, vectors: Callable[[ColumnPath], int]) -> None:
        self.operations: list[Operation] = []
        self.looks: list[Look] = []
        self.texts: list[str] = []
        self.calls: list[PythonCall] = []
        self.columns: set[int] = set()
        self.orders_texts = False
        self._typing, self._vectors = typing, vectors

    def program(self, expression: Expression) -> Program | None:
        """The whole condition; ``None`` where it is not supported."""
        try:
            self._logical(expression.node)
        except Unsupported:
            return None
        if depth(self.operations) > op.STACK:
            return None
        return Program(
            tuple(self.operations), tuple(self.looks), tuple(self.texts), tuple(self.calls),
            frozenset(self.columns), self.orders_texts,
        )  # fmt: skip

    def write(self, node: Node) -> SqlType:
        """Write what leaves the node's value on the stack; its type, of which a decimal may be
        narrower than what SQL says."""
        mark = self._mark()
        try:
            return self._compiled(node)
        except Unsupported:
            self._reset(mark)
            return self._python(node)

    def _mark(self) -> _Mark:
        return (
            len(self.operations), len(self.looks), len(self.texts), len(self.calls),
            frozenset(self.columns), self.orders_texts,
        )  # fmt: skip

    def _reset(self, mark: _Mark) -> None:
        operations, looks, texts, calls, columns, self.orders_texts = mark
        self.columns = set(columns)
        del self.operations[operations:], self.looks[looks:], self.texts[texts:]
        del self.calls[calls:]

    def _python(self, node: Node) -> SqlType:  # noqa: ARG002
        """Write a call of Python for the node."""
        raise Unsupported

    def _compiled(self, node: Node) -> SqlType:
        match node:
            case Literal(value=value, type=kind):
                return self._literal(value, kind)
            case Column(path=path):
                kind = supported(self._typing.type_of(node))
                column = self._read(self._vectors(path))
                self._add(op.COLUMN, column, double=kind == DOUBLE)
                return kind
            case Reference(look_back=look_back):
                return self._look_back(node, look_back)
            case Call(operator=operator, arguments=arguments):
                return self._call(operator, arguments, self._typing.type_of(node))
            case Cast(operand=operand, target=target):
                self._as(operand, target)
                return target
        raise Unsupported

    def _add(self, code: int, operand: int = 0, value: float = 0, *, double: bool = False) -> None:
        self.operations.append(Operation(code + (op.DOUBLE if double else 0), operand, value))

    def _literal(self, value: Any, kind: SqlType) -> SqlType:
        if value is None:
            self._add(op.NULL)
            return kind
        if kind == STRING:
            if value not in self.texts:
                self.texts.append(value)
            self._add(op.TEXT, self.texts.index(value))
        elif kind == DOUBLE:
            self._add(op.CONSTANT, value=float(value), double=True)
        elif kind in AS_WHOLE or is_whole_decimal(kind):
            whole = to_whole(kind)(value)
            if not -(1 << 63) <= whole < 1 << 63:
                raise Unsupported
            self._add(op.CONSTANT, value=whole)
        else:
            raise Unsupported
        return kind

    def _read(self, column: int) -> int:
        """The column, of which it is noted that it is read."""
        self.columns.add(column)
        return column

    def _look_back(self, node: Node, look_back: LookBack) -> SqlType:  # noqa: ARG002
        raise Unsupported

    def _call(self, operator: str, arguments: Sequence[Node], kind: SqlType) -> SqlType:
        if operator in ("AND", "OR"):
            self._logical(arguments[0])
            for argument in arguments[1:]:
                self._logical(argument)
                self._add(op.AND if operator == "AND" else op.OR)
            return BOOLEAN
        if operator == "IS NULL":
            self.write(arguments[0])
            self._add(op.IS_NULL)
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
            self._compare(op.GREATER_OR_EQUAL, operand, low)
            self._compare(op.LESS_OR_EQUAL, operand, high)
            self._add(op.AND)
            return BOOLEAN
        if operator == "IN":
            self._in(arguments)
            return BOOLEAN
        if operator == "CASE":
            return self._case(arguments, kind)
        if operator in _CHOICES:
            return self._choice(operator, arguments, kind)
        if operator in _MOMENT_PARTS and len(arguments) == 1:
            return self._moment_part(operator, arguments[0], kind)
        return self._arithmetic(operator, arguments, kind)

    def _logical(self, node: Node) -> None:
        if self.write(node) not in (BOOLEAN, NULL, UNKNOWN):
            raise Unsupported

    def _in(self, arguments: Sequence[Node]) -> None:
        operand, *items = arguments
        # As in SQL, all of the list is brought to one type, not each pair.
        double = common_type(map(self._typing.type_of, arguments)) == DOUBLE
        for number, item in enumerate(items):
            self._compare(op.EQUAL, operand, item, double=double)
            if number:
                self._add(op.OR)

    def _case(self, arguments: Sequence[Node], kind: SqlType) -> SqlType:
        *branches, default = arguments
        for test, value in zip(branches[::2], branches[1::2], strict=True):
            self._logical(test)
            self._as(value, kind)
        self._as(default, kind)
        for _ in branches[::2]:
            self._add(op.SELECT)
        return kind

    def _choice(self, operator: str, arguments: Sequence[Node], kind: SqlType) -> SqlType:
        if operator != "COALESCE" and kind == STRING:
            raise Unsupported
        self._as(arguments[0], kind)
        for argument in arguments[1:]:
            self._as(argument, kind)
            self._add(_CHOICES[operator], double=kind == DOUBLE)
        return kind

    def _moment_part(self, operator: str, argument: Node, kind: SqlType) -> SqlType:
        if self.write(argument) != TIMESTAMP:
            raise Unsupported
        unit, count = _MOMENT_PARTS[operator]
        self._add(op.FLOOR_DIVIDE, value=unit)
        if count:
            self._add(op.MODULO, value=count)
        return kind

    def _compare(self, code: int, left: Node, right: Node, *, double: bool = False) -> None:
        kinds = [self._typing.type_of(left), self._typing.type_of(right)]
        alike = {kind for kind in kinds if kind != NULL}
        if double or DOUBLE in kinds:
            self._double(left)
            self._double(right)
            self._add(code, double=True)
            return
        if any(isinstance(kind, DecimalType) for kind in kinds):
            scale = max(map(scale_of, kinds))
            self._decimal(left, scale)
            self._decimal(right, scale)
            self._add(code)
            return
        if STRING in alike and code not in (op.EQUAL, op.NOT_EQUAL):
            # A text that Python makes has a number, and no place in the order of texts.
            if not all(isinstance(node, (Column, Reference, Literal)) for node in (left, right)):
                raise Unsupported
            self.orders_texts = True
        for node, kind in zip((left, right), kinds, strict=True):
            written = self.write(node)
            if written == DATE and TIMESTAMP in kinds:
                self._add(op.TO_MOMENT)
            elif written != kind:
                raise Unsupported
        if not (len(alike) <= 1 or alike <= {INT, BIGINT} or alike == {DATE, TIMESTAMP}):
            raise Unsupported
        if UNKNOWN in alike:
            raise Unsupported
        self._add(code)

    def _arithmetic(self, operator: str, arguments: Sequence[Node], kind: SqlType) -> SqlType:
        if operator in ("NEGATE", "ABS"):
            return self._signed(operator, arguments[0])
        if operator not in _ARITHMETIC:
            raise Unsupported
        code = _ARITHMETIC[operator]
        if kind == DOUBLE:
            for argument in arguments:
                self._double(argument)
            self._add(code, double=True)
            return kind
        if kind in WHOLE and operator != "/":
            for argument in arguments:
                if self.write(argument) not in WHOLE:
                    raise Unsupported
            self._add(code, _CHECKS[kind])
            return kind
        if isinstance(kind, DecimalType) and operator in ("+", "-", "*"):
            return self._decimal_arithmetic(operator, arguments, kind)
        raise Unsupported

    def _signed(self, operator: str, argument: Node) -> SqlType:
        kind = self.write(argument)
        if kind in WHOLE:
            self._add(op.NEGATE if operator == "NEGATE" else op.ABS, _CHECKS[kind])
        elif kind == DOUBLE or isinstance(kind, DecimalType):
            self._add(op.NEGATE if operator == "NEGATE" else op.ABS, double=kind == DOUBLE)
        else:
            raise Unsupported
        return kind

    def _decimal_arithmetic(
        self, operator: str, arguments: Sequence[Node], kind: DecimalType
    ) -> SqlType:
        """No result has more digits than ``MOST_WHOLE_DIGITS``, or it is not supported."""
        left, right = arguments
        scales = [scale_of(self._typing.type_of(node)) for node in arguments]
        if operator == "*":
            digits = sum(
                self._decimal(n, s).precision for n, s in zip(arguments, scales, strict=True)
            )
            scale = sum(scales)
        else:
            scale = max(scales)
            digits = 1 + max(
                self._decimal(left, scale).precision, self._decimal(right, scale).precision
            )
        # SQL gives up digits behind the point where a result has more than 38.
        if digits > MOST_WHOLE_DIGITS or kind.scale != scale:
            raise Unsupported
        self._add(_ARITHMETIC[operator])
        return DecimalType(digits, scale)

    def _as(self, node: Node, kind: SqlType) -> None:
        """Write a node with its value brought to a type."""
        if kind == DOUBLE:
            self._double(node)
            return
        if isinstance(kind, DecimalType):
            written = self._decimal(node, kind.scale)
            if written.precision - written.scale > kind.precision - kind.scale:
                raise Unsupported
            return
        written_kind = self.write(node)
        if written_kind == DATE and kind == TIMESTAMP:
            self._add(op.TO_MOMENT)
        elif written_kind not in (kind, NULL) and (written_kind, kind) != (INT, BIGINT):
            raise Unsupported

    def _double(self, node: Node) -> None:
        """Write a number as DOUBLE."""
        if isinstance(node, Literal) and isinstance(node.value, Decimal):
            self._add(op.CONSTANT, value=float(node.value), double=True)
            return
        written = self.write(node)
        if written in WHOLE:
            self._add(op.TO_DOUBLE)
        elif isinstance(written, DecimalType) and written.precision <= EXACT_DIGITS:
            self._add(op.DECIMAL_TO_DOUBLE, value=10**written.scale)
        elif written not in (DOUBLE, NULL):
            raise Unsupported

    def _decimal(self, node: Node, scale: int) -> DecimalType:
        """Write an exact number times 10 to ``scale``; the decimal that holds it."""
        if isinstance(node, Literal) and isinstance(node.value, (int, Decimal)):
            digits = len(str(abs(int(node.value)))) + scale
            if digits > MOST_WHOLE_DIGITS or isinstance(node.value, bool):
                raise Unsupported
            kind = DecimalType(digits, scale)
            self._add(op.CONSTANT, value=to_whole(kind)(node.value))
            return kind
        written = self.write(node)
        if written == NULL:
            return DecimalType(max(1, scale), scale)
        if isinstance(written, DecimalType):
            digits, own = written.precision, written.scale
        elif written in WHOLE:
            digits, own = DIGITS[written], 0
        else:
            raise Unsupported
        if own > scale or digits + scale - own > MOST_WHOLE_DIGITS:
            raise Unsupported
        if own < scale:
            self._add(op.RESCALE, value=10 ** (scale - own))
        return DecimalType(digits + scale - own, scale)
