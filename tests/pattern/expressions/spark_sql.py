"""Event-only expressions as Spark SQL text.

The text is written from the vetted tree, so it holds nothing but known functions and constants. It
does not depend on ANSI mode (every operation that could raise is a ``try_`` one) nor on the
parser's settings for strings: whatever is not plainly harmless in a string is written in
hexadecimal, which also keeps ``${…}`` from Spark's variable substitution.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal

from spark_cep.pattern.expressions.canonical import timestamp_text
from spark_cep.pattern.expressions.checking.types import Typing
from spark_cep.pattern.expressions.evaluation.evaluate import STRICT
from spark_cep.pattern.expressions.functions import FUNCTIONS
from spark_cep.pattern.expressions.nodes import (
    ARITHMETIC,
    COMPARISONS,
    Call,
    Cast,
    Column,
    ColumnPath,
    Expression,
    Lambda,
    Literal,
    Member,
    Node,
    Reference,
    RowReference,
    Variable,
    walk,
)
from spark_cep.pattern.expressions.problems import ExpressionError, TextProblem
from spark_cep.pattern.expressions.values.arithmetic import BIGINT_RANGE
from spark_cep.pattern.expressions.values.type_rules import is_open
from spark_cep.pattern.types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    RecordType,
    SqlType,
)

_HARMLESS = re.compile(r"[A-Za-z0-9 _.,:;/@#%+=<>()\[\]-]*\Z")
_TRY: Mapping[str, str] = {
    "+": "try_add",
    "-": "try_subtract",
    "*": "try_multiply",
    "/": "try_divide",
    "%": "try_mod",
}
_FORMS: Mapping[str, str] = {
    **{o: f"({{}} {o} {{}})" for o in (*COMPARISONS, "LIKE")},
    **{o: f"({{}} {o})" for o in ("IS NULL", "IS TRUE", "IS FALSE")},
    "NOT": "(NOT {})",
    "BETWEEN": "({} BETWEEN {} AND {})",
}
_SAME = """
COALESCE GREATEST LEAST NULLIF ARRAY ROUND FLOOR CEIL SQRT SIGN UPPER LOWER TRIM LTRIM RTRIM LENGTH
SUBSTRING LEFT RIGHT CONCAT REPLACE STARTSWITH ENDSWITH CONTAINS ARRAY_CONTAINS MAP_CONTAINS_KEY
MAP_KEYS MAP_VALUES YEAR MONTH DAY DAYOFWEEK HOUR MINUTE SECOND UNIX_MILLIS UNIX_SECONDS DATEDIFF
"""
"""Functions that Spark writes and computes in the same way, without time zones."""
_STRICT = frozenset(STRICT) | ARITHMETIC | {"NEGATE", "ABS", "ROUND", "LIKE"}
_WHOLE_OF_DOUBLE = (
    "(CASE WHEN isnan({1}) THEN 0L WHEN {1} >= 9.223372036854775807E18D THEN 9223372036854775807L"
    " WHEN {1} < -9.223372036854775807E18D THEN -9223372036854775807L - 1L ELSE {0}({1}) END)"
)
"""FLOOR and CEIL outside ANSI mode; in it they fail beyond BIGINT."""
_FATAL_INDEX = "(-2147483648)"
"""Spark's ELEMENT_AT reads beyond the array at this index, which ends the process."""
_CASE_MAPPINGS = ("UPPER", "LOWER")
_FIRST_DAY, _LAST_DAY = "DATE'0001-01-01'", "DATE'9999-12-31'"
_CALENDAR: Mapping[SqlType, tuple[str, str]] = {
    DATE: (_FIRST_DAY, _LAST_DAY),
    TIMESTAMP: (
        "TIMESTAMP_LTZ'0001-01-01 00:00:00Z'",
        "TIMESTAMP_LTZ'9999-12-31 23:59:59.999999Z'",
    ),
}
"""What is beyond is NULL here."""
_NO_TRUTH = "CAST(NULL AS BOOLEAN)"
_NO_LOOK_BACKS = "Spark cannot compute look-backs"


def to_spark_sql(
    e: Expression, column: Callable[[ColumnPath], str], event: RecordType | None = None
) -> str:
    """The text for ``F.expr``; each column is written as ``column(path)`` gives it.

    Pass ``event``: FLOAT columns need it, and a few functions cannot be written without knowing
    their argument's type (``ExpressionError`` then). A column that ``event`` does not have counts
    as NULL, and ``column`` should say so. ``column`` must quote its names. An expression with
    look-backs is refused with ``ExpressionError``.
    """
    if not e.is_event_only:
        raise ExpressionError([TextProblem(_NO_LOOK_BACKS, (0, len(e.text)))])
    return _Writer(column, Typing(event, missing=NULL)).write(e.node)


def string_literal(value: str) -> str:
    """A string that reads the same under every setting of Spark's parser."""
    if _HARMLESS.match(value):
        return f"'{value}'"
    return f"CAST(X'{value.encode().hex().upper()}' AS STRING)"


class _Writer:
    """Writes nodes; every operator comes with its own parentheses."""

    def __init__(self, column: Callable[[ColumnPath], str], typing: Typing) -> None:
        self._column = column
        self._typing = typing

    def write(self, node: Node) -> str:
        """The text for one node."""
        match node:
            case Literal():
                return _literal(node)
            case Column(path=path):
                return self._read(node, self._column(path))
            case Member(operand=operand, name=name):
                return self._read(node, f"({self.write(operand)}).`{name}`")
            case Cast():
                return self._cast(node)
            case Call():
                return self._call(node)
            case Reference() | RowReference():
                raise ExpressionError([TextProblem(_NO_LOOK_BACKS, node.span)])
            case Variable() | Lambda():
                raise _not_written(node, "a lambda")

    def _read(self, node: Node, text: str) -> str:
        kind = self._typing.stored_type(node)
        if kind == DATE:
            # Spark fails where a day that is far away is made a moment.
            return f"(CASE WHEN {text} BETWEEN {_FIRST_DAY} AND {_LAST_DAY} THEN {text} END)"
        return f"CAST({text} AS DOUBLE)" if kind == FLOAT else text

    def _cast(self, node: Cast) -> str:
        if self._is_null(node.operand):
            return self._null(node)
        text = self.write(node.operand)
        source = self._typing.type_of(node.operand)
        if node.target in (DATE, TIMESTAMP) and source not in (DATE, TIMESTAMP, STRING):
            raise _needs_type(node.operand, f"CAST AS {node.target}")
        if source == STRING and node.target in _CALENDAR:
            first, last = _CALENDAR[node.target]
            cast = f"try_cast({text} AS {_type_name(node.target)})"
            return f"(CASE WHEN {cast} BETWEEN {first} AND {last} THEN {cast} END)"
        return f"try_cast({text} AS {_type_name(node.target)})"

    def _call(self, node: Call) -> str:
        operator = node.operator
        if operator in FUNCTIONS and not _is_written(node):
            raise _not_written(node, operator)
        if operator in _STRICT and self._is_null(*node.arguments):
            return self._null(node)
        texts = [self.write(argument) for argument in node.arguments]
        if operator == "ILIKE":
            raise _not_written(node, operator)
        if operator in _TRY:
            return f"{_TRY[operator]}({texts[0]}, {texts[1]})"
        if operator in _FORMS:
            return _FORMS[operator].format(*texts)
        if operator in ("CASE", "CASE OF"):
            return self._case(node, texts)
        if operator in ("[]", "ELEMENT_AT"):
            return self._read(node, self._element(node, texts))
        if operator in ("NEGATE", "ABS"):
            return self._signed(node, texts[0])
        if operator == "SIZE":
            return self._size(node, texts[0])
        if operator in ("FLOOR", "CEIL") and self._typing.type_of(node.arguments[0]) == DOUBLE:
            return _WHOLE_OF_DOUBLE.format(operator.lower(), texts[0])
        if operator in _CASE_MAPPINGS and _maps_case(node.arguments[0]):
            # Spark's optimizer takes LOWER(UPPER(x)) for LOWER(x); it does not see through this.
            texts = [f"concat({texts[0]}, '')"]
        return _list(operator, texts)

    def _case(self, node: Call, texts: list[str]) -> str:
        pending = list(zip(node.arguments, texts, strict=True))
        head = "CASE"
        searched = node.operator == "CASE"
        if not searched:
            head += f" {pending.pop(0)[1]}"
        _, default = pending.pop()
        arms = ""
        for (condition, when), (_, then) in zip(pending[::2], pending[1::2], strict=True):
            test = _NO_TRUTH if searched and self._is_null(condition) else when
            arms += f" WHEN {test} THEN {then}"
        return f"({head}{arms} ELSE {default} END)"

    def _is_null(self, *nodes: Node) -> bool:
        return any(self._typing.type_of(node) == NULL for node in nodes)

    def _null(self, node: Node) -> str:
        """A NULL of a node's type: Spark does not take an untyped one everywhere."""
        kind = self._typing.type_of(node)
        return "NULL" if is_open(kind) else f"CAST(NULL AS {_type_name(kind)})"

    def _element(self, node: Call, texts: list[str]) -> str:
        container, key = node.arguments
        kind, index = self._typing.type_of(container), self._typing.type_of(key)
        if index == STRING or isinstance(kind, MapType):
            return f"try_element_at({texts[0]}, {texts[1]})"
        if index != INT:
            raise _needs_type(container, "an element")
        if node.operator == "[]":
            return f"get({texts[0]}, {texts[1]})"
        return f"try_element_at({texts[0]}, nullif(nullif({texts[1]}, 0), {_FATAL_INDEX}))"

    def _signed(self, node: Call, text: str) -> str:
        kind = self._typing.type_of(node.arguments[0])
        if kind == DOUBLE or isinstance(kind, DecimalType):
            return f"(- {text})" if node.operator == "NEGATE" else f"abs({text})"
        if kind not in (INT, BIGINT):
            raise _needs_type(node.arguments[0], "- or ABS")
        if node.operator == "NEGATE":
            return f"try_subtract({'0L' if kind == BIGINT else '0'}, {text})"
        wide = "DECIMAL(20, 0)" if kind == BIGINT else "BIGINT"
        return f"try_cast(abs(CAST({text} AS {wide})) AS {kind})"

    def _size(self, node: Call, text: str) -> str:
        match self._typing.type_of(node.arguments[0]):
            case ArrayType():
                return f"array_size({text})"
            case MapType():
                return f"array_size(map_keys({text}))"
        raise _needs_type(node.arguments[0], "SIZE")


def _maps_case(node: Node) -> bool:
    return any(isinstance(part, Call) and part.operator in _CASE_MAPPINGS for part in walk(node))


def _is_written(node: Call) -> bool:
    zoned = node.operator in ("YEAR", "MONTH", "DAY", "DAYOFWEEK", "HOUR", "MINUTE", "SECOND")
    plain = node.operator in _SAME.split() and not (zoned and len(node.arguments) > 1)
    return plain or node.operator in ("ABS", "SIZE", "ELEMENT_AT")


def _not_written(node: Node, what: str) -> ExpressionError:
    return ExpressionError([TextProblem(f"{what} is not written for Spark", node.span)])


def _needs_type(node: Node, what: str) -> ExpressionError:
    message = f"{what} needs the event's schema to be written for Spark"
    return ExpressionError([TextProblem(message, node.span)])


def _list(operator: str, texts: list[str]) -> str:
    if operator in ("AND", "OR"):
        return f"({f' {operator} '.join(texts)})"
    if operator == "IN":
        return f"({texts[0]} IN ({', '.join(texts[1:])}))"
    return f"{operator.lower()}({', '.join(texts)})"


def _type_name(kind: SqlType) -> str:
    return "TIMESTAMP_LTZ" if kind == TIMESTAMP else str(kind)


def _literal(node: Literal) -> str:
    value = node.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return string_literal(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP_LTZ'{timestamp_text(value)}Z'"
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, Decimal):
        # Outside ANSI mode Spark answers "any whole number < a literal beyond BIGINT" with TRUE,
        # NULL included; a CAST keeps it from seeing the literal.
        far = abs(value) > BIGINT_RANGE[1]
        return f"CAST({value:f}BD AS {node.type})" if far else f"({value:f}BD)"
    suffix = "L" if node.type == BIGINT else "D" if node.type == DOUBLE else ""
    return f"({value!r}{suffix})"
