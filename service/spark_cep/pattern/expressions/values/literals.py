"""Constants in the text: numbers, patterns, dates, and the types that CAST may name."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from spark_cep.pattern.expressions.nodes import Literal, Node, Span
from spark_cep.pattern.expressions.values.arithmetic import BIGINT_RANGE, EXACT, INT_RANGE
from spark_cep.pattern.expressions.values.casting import caster
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    MAX_DECIMAL_DIGITS,
    STRING,
    TIMESTAMP,
    DecimalType,
    SqlType,
)

TIME_FORMATS = "'yyyy-MM-dd' or 'yyyy-MM-dd HH:mm:ss.ffffff+00:00'"

_NUMBER = re.compile(
    r"(?P<digits>-?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?P<power>[eE][+-]?[0-9]+)?(?P<suffix>BD|L|D)?\Z",
    re.IGNORECASE,
)
_SIZE = re.compile(r"[0-9]{1,2}\Z")
_TARGETS: dict[str, SqlType] = {
    "VARCHAR": STRING,
    "TEXT": STRING,
    "INT": INT,
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
    "TIMESTAMPTZ": TIMESTAMP,
    "DATE": DATE,
}


def number(text: str, span: Span) -> Literal | str:
    """A number as Spark types it; a sentence when it is none."""
    match = _NUMBER.match(text)
    if match is None:
        return f"{text!r} is not a number"
    digits, power, suffix = match["digits"], match["power"], (match["suffix"] or "").upper()
    if suffix == "D" or (power and not suffix):
        value = float(digits + (power or ""))
        return Literal(value, DOUBLE, span) if math.isfinite(value) else f"{text} is beyond DOUBLE"
    whole = digits.lstrip("-").isdigit()
    if whole and suffix != "BD" and len(digits) <= MAX_DECIMAL_DIGITS:
        integer = int(digits)
        if INT_RANGE[0] <= integer <= INT_RANGE[1] and not suffix:
            return Literal(integer, INT, span)
        if BIGINT_RANGE[0] <= integer <= BIGINT_RANGE[1]:
            return Literal(integer, BIGINT, span)
    if suffix == "L":
        return f"{text} is beyond BIGINT"
    if len(digits) > MAX_DECIMAL_DIGITS + 2:
        return f"a number has at most {MAX_DECIMAL_DIGITS} digits"
    exact = Decimal(digits)
    scale = max(0, -int(exact.as_tuple().exponent))
    precision = max(len(exact.as_tuple().digits), scale)
    if precision > MAX_DECIMAL_DIGITS or power:
        return f"a DECIMAL has at most {MAX_DECIMAL_DIGITS} digits and no exponent"
    return Literal(exact, DecimalType(precision, scale), span)


def negated(literal: Literal, span: Span) -> Literal | None:
    """``-literal`` for a number whose negative is of the same type."""
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    if value in (INT_RANGE[0], BIGINT_RANGE[0]):
        return None
    opposite = EXACT.minus(value) if isinstance(value, Decimal) else -value
    return Literal(opposite, literal.type, span)


def like_problem(pattern: str) -> str | None:
    """Return the problem with a LIKE pattern, or ``None``."""
    if re.search(r"(?<!\\)(?:\\\\)*\\(?:[^%_\\]|\Z)", pattern, re.DOTALL):
        return "in a LIKE pattern \\ must stand before %, _ or another \\"
    return None


def like_parts(pattern: str) -> list[str | int | None]:
    """A pattern's characters in order: ``None`` for a run of ``%``, ``0`` for ``_``."""
    parts: list[str | int | None] = []
    for match in re.finditer(r"\\(.)|(%)|(_)|([^\\])", pattern, re.DOTALL):
        escaped, any_text, any_one, plain = match.groups()
        if any_text:
            if not parts or parts[-1] is not None:
                parts.append(None)
        else:
            parts.append(0 if any_one else escaped or plain)
    return parts


def cast_target(tree: exp.Expr) -> SqlType | str:
    """The type that CAST names, or a sentence."""
    if not isinstance(tree, exp.DataType):
        return "CAST needs a type"
    kind = str(getattr(tree.this, "value", tree.this))
    if set(tree.args) - {"this", "expressions", "nested"} and any(
        value for key, value in tree.args.items() if key not in ("this", "expressions", "nested")
    ):
        return f"this form of {kind} is not allowed in CAST"
    parameters = [str(part.name) for part in tree.expressions]
    if kind == "DECIMAL":
        sizes = (*parameters, "0")[:2] if parameters else ("10", "0")
        if len(parameters) > len(sizes) or not all(map(_SIZE.match, sizes)):
            return "DECIMAL takes precision and scale"
        precision, scale = map(int, sizes)
        if not 1 <= precision <= MAX_DECIMAL_DIGITS or scale > precision:
            return f"DECIMAL({precision}, {scale}): precision is 1 to {MAX_DECIMAL_DIGITS}"
        return DecimalType(precision, scale)
    if kind in _TARGETS and not parameters:
        return _TARGETS[kind]
    return "CAST to this type is not allowed"


def cast_of_literal(operand: Node, target: SqlType, span: Span) -> Literal | None:
    """A date or timestamp written as text, read once and for all; ``None`` for anything else."""
    if target not in (DATE, TIMESTAMP) or not isinstance(operand, Literal):
        return None
    if not isinstance(operand.value, str):
        return None
    value = caster(target)(operand.value.strip())
    return Literal(value, target, span) if isinstance(value, (date, datetime)) else None
