"""Constants in the text: numbers, patterns, dates, and the types that CAST may name."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

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
_SURROGATES = range(0xD800, 0xE000)
_SIMPLE_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_SIZE = re.compile(r"[0-9]{1,2}\Z")
_TARGETS: dict[str, SqlType | None] = {
    "STRING": STRING,
    "VARCHAR": STRING,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "LONG": BIGINT,
    "DOUBLE": DOUBLE,
    "DECIMAL": None,
    "NUMERIC": None,
    "BOOLEAN": BOOLEAN,
    "TIMESTAMP": TIMESTAMP,
    "DATE": DATE,
}
"""The types by the names that the grammar has; that of DECIMAL depends on its size."""


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


def text(written: str) -> str:
    r"""A string in its quotes, as Spark reads it; ``\%`` and ``\_`` keep their backslash."""

    def replace(match: re.Match[str]) -> str:
        short, long, octal, other = match.groups()
        if short or long:
            code = int(short or long, 16)
            return chr(code) if code <= sys.maxunicode and code not in _SURROGATES else "\ufffd"
        if octal:
            return chr(int(octal, 8))
        if other in "%_":
            return f"\\{other}"
        return _SIMPLE_ESCAPES.get(other, other)

    quote = written[0]
    return _ESCAPE.sub(replace, written[1:-1].replace(quote * 2, quote))


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


def cast_target(name: str, sizes: Sequence[str]) -> SqlType | str:
    """The type that CAST names, with the numbers behind it, or a sentence."""
    kind = _TARGETS[name]
    if kind is None:
        if len(sizes) > 2 or not all(map(_SIZE.match, sizes)):  # noqa: PLR2004  # (p, s)
            return "DECIMAL takes precision and scale"
        precision, scale = (*map(int, sizes), 0)[:2] if sizes else (10, 0)
        if not 1 <= precision <= MAX_DECIMAL_DIGITS or scale > precision:
            return f"DECIMAL({precision}, {scale}): precision is 1 to {MAX_DECIMAL_DIGITS}"
        return DecimalType(precision, scale)
    return f"{name} takes no size" if sizes else kind


def cast_of_literal(operand: Node, target: SqlType, span: Span) -> Literal | None:
    """A date or timestamp written as text, read once and for all; ``None`` for anything else."""
    if target not in (DATE, TIMESTAMP) or not isinstance(operand, Literal):
        return None
    if not isinstance(operand.value, str):
        return None
    value = caster(target)(operand.value.strip())
    return Literal(value, target, span) if isinstance(value, (date, datetime)) else None
