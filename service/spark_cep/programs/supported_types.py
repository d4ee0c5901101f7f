"""The types that programs compute with."""

from __future__ import annotations

from collections.abc import Mapping

from spark_cep.columns.representation import is_whole_decimal
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    DecimalType,
    SqlType,
)

#: The most digits of a whole number.
DIGITS: Mapping[SqlType, int] = {INT: 10, BIGINT: 19}
WHOLE = (INT, BIGINT)
#: The types whose values are whole numbers in programs.
AS_WHOLE = (*WHOLE, BOOLEAN, DATE, TIMESTAMP, STRING)
#: Up to so many digits, a whole number is a DOUBLE exactly.
EXACT_DIGITS = 15


class Unsupported(Exception):  # noqa: N818  never leaves the writers
    """A node that has no operation."""


def scale_of(kind: SqlType) -> int:
    """Digits behind the point that an exact number has."""
    if isinstance(kind, DecimalType):
        return kind.scale
    if kind in WHOLE or kind == NULL:
        return 0
    raise Unsupported


def supported(kind: SqlType) -> SqlType:
    """The type that programs compute with. Raises Unsupported where there is none."""
    if kind == FLOAT:
        return DOUBLE
    if kind not in (*AS_WHOLE, DOUBLE) and not is_whole_decimal(kind):
        raise Unsupported
    return kind
