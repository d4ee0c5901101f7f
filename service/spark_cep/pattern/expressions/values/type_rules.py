"""Result types of operators: Spark's rules where ANSI mode does not matter.

A FLOAT is read as DOUBLE before anything is computed with it. ``UNKNOWN`` (no schema) and ``NULL``
go with every type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spark_cep.pattern.expressions.nodes import Literal, Node
from spark_cep.pattern.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME,
    DOUBLE,
    FLOAT,
    INT,
    MAX_DECIMAL_DIGITS,
    NULL,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    YEAR_MONTH,
    ArrayType,
    DecimalType,
    SqlType,
)

INTEGRAL = frozenset({INT, BIGINT})
_DIGITS: Mapping[SqlType, int] = {INT: 10, BIGINT: 20}
_MINIMUM_SCALE = 6
_ORDERED = frozenset({STRING, BINARY, BOOLEAN, DATE, TIMESTAMP, DAY_TIME})
_MOMENTS = (DATE, TIMESTAMP)
_INTERVALS = (DAY_TIME, YEAR_MONTH)


def is_open(kind: SqlType) -> bool:
    """Return whether a type goes with every other: NULL or unknown."""
    return kind in (NULL, UNKNOWN)


def is_number(kind: SqlType) -> bool:
    """Return whether a type is a number."""
    return kind in INTEGRAL or kind == DOUBLE or isinstance(kind, DecimalType)


def is_ordered(kind: SqlType) -> bool:
    """Return whether values of a type can be compared."""
    return kind in _ORDERED or is_number(kind) or is_open(kind)


def as_read(kind: SqlType) -> SqlType:
    """The type of a value once read: FLOAT becomes DOUBLE."""
    return DOUBLE if kind == FLOAT else kind


def comparable(left: SqlType, right: SqlType) -> bool:
    """Return whether values of the two types can be compared."""
    if is_open(left) or is_open(right):
        return is_ordered(left) and is_ordered(right)
    if is_number(left) or left in (DATE, TIMESTAMP):
        return is_number(left) == is_number(right) and (
            is_number(right) or right in (DATE, TIMESTAMP)
        )
    return left == right and left in _ORDERED


def as_decimal(kind: SqlType, node: Node | None = None) -> DecimalType:
    """The decimal that holds every value of an exact number; a literal takes its own digits."""
    if isinstance(kind, DecimalType):
        return kind
    if isinstance(node, Literal) and isinstance(node.value, int):
        return DecimalType(max(1, len(str(abs(node.value)))), 0)
    return DecimalType(_DIGITS[kind], 0)


def common_type(kinds: Iterable[SqlType]) -> SqlType | None:
    """The type that CASE, COALESCE, IN and the like give; ``None`` when there is none."""
    common: SqlType = NULL
    for kind in kinds:
        merged = _merge(common, kind)
        if merged is None:
            return None
        common = merged
    return common


def _merge(left: SqlType, right: SqlType) -> SqlType | None:
    if right in (left, NULL):
        return left
    if left == NULL:
        return right
    if UNKNOWN in (left, right):
        return UNKNOWN
    if {left, right} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        element = _merge(left.element, right.element)
        return None if element is None else ArrayType(element)
    if not (is_number(left) and is_number(right)):
        return None
    if DOUBLE in (left, right):
        return DOUBLE
    if left in INTEGRAL and right in INTEGRAL:
        return BIGINT
    one, other = as_decimal(left), as_decimal(right)
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return DecimalType(precision, scale) if precision <= MAX_DECIMAL_DIGITS else None


def arithmetic_type(
    operator: str, left: SqlType, right: SqlType, operands: tuple[Node, ...] = ()
) -> SqlType | None:
    """The type of ``left operator right``; ``None`` when it cannot be computed."""
    if {left, right} & {*_MOMENTS, *_INTERVALS}:
        return _time_type(operator, left, right)
    for kind in (left, right):
        if not is_number(kind) and not is_open(kind):
            return None
    if is_open(left) or is_open(right):
        known = right if is_open(left) else left
        if NULL not in (left, right):
            return UNKNOWN
        if is_open(known) or isinstance(known, DecimalType):
            return NULL
        return DOUBLE if operator == "/" else known
    if DOUBLE in (left, right):
        return DOUBLE
    if left in INTEGRAL and right in INTEGRAL:
        if operator == "/":
            return DOUBLE
        return BIGINT if BIGINT in (left, right) else INT
    nodes = operands or (None, None)
    return decimal_result(operator, as_decimal(left, nodes[0]), as_decimal(right, nodes[1]))


def _time_type(operator: str, left: SqlType, right: SqlType) -> SqlType | None:
    """Return the result type of an arithmetic operator where one operand is a date, a timestamp or
    an interval."""
    if NULL in (left, right):
        return NULL
    if UNKNOWN in (left, right):
        return UNKNOWN if operator in "+-*" else None
    if operator == "-" and left in _MOMENTS and right in _MOMENTS:
        return DAY_TIME
    if operator == "+" and right in _MOMENTS:
        left, right = right, left
    if operator in "+-" and left in _MOMENTS and right in _INTERVALS:
        return left if right == YEAR_MONTH else TIMESTAMP
    if operator in "+-" and left == right == DAY_TIME:
        return DAY_TIME
    for interval, other in ((left, right), (right, left)):
        if operator == "*" and interval in _INTERVALS and other in INTEGRAL:
            return interval
    return None


def decimal_result(operator: str, left: DecimalType, right: DecimalType) -> DecimalType:
    """Precision and scale of decimal arithmetic."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if operator in "+-":
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif operator == "*":
        precision, scale = p1 + p2 + 1, s1 + s2
    elif operator == "/":
        scale = max(_MINIMUM_SCALE, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    else:
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    return bounded(precision, scale)


def bounded(precision: int, scale: int) -> DecimalType:
    """A decimal within 38 digits; digits behind the point are given up first, down to six."""
    if precision <= MAX_DECIMAL_DIGITS:
        return DecimalType(precision, scale)
    whole = precision - scale
    kept = min(scale, _MINIMUM_SCALE)
    return DecimalType(MAX_DECIMAL_DIGITS, max(MAX_DECIMAL_DIGITS - whole, kept))


_FROM_STRING = frozenset({INT, BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP, STRING})


def cast_refusal(source: SqlType, target: SqlType) -> str | None:
    """Why ``CAST(source AS target)`` is refused, or ``None`` when it is not."""
    if is_open(source) or source == target:
        return None
    if is_number(source) or source == BOOLEAN:
        if target in (INT, BIGINT, DOUBLE, BOOLEAN) or isinstance(target, DecimalType):
            return None
        if target == STRING:
            return None
        if is_number(source) and target == TIMESTAMP:
            return "a number is not a TIMESTAMP; use TIMESTAMP_SECONDS(…) or TIMESTAMP_MILLIS(…)"
    if source == STRING and (target in _FROM_STRING or isinstance(target, DecimalType)):
        return None
    if source in _MOMENTS:
        if target in (DATE, TIMESTAMP, STRING):
            return None
        return f"{source} does not become {target}; use UNIX_MILLIS, UNIX_SECONDS or DATEDIFF"
    return f"{source} cannot become {target}"
