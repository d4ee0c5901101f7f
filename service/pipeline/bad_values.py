"""Conditions in Spark SQL on records that decode, but with values that must not go on.

Spark's Avro decoder takes text for UTF-8 without a look, holds more years than Python, and cuts
decimals of few digits to 64 bits. Python would fail on the first two, and the third is another
number. Only columns that rules read are looked at; the rest is never decoded.
"""

from __future__ import annotations

from collections.abc import Callable

from service.codecs.avro_schema import AvroSchema
from service.pattern.types import (
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DecimalType,
    MapType,
    RecordType,
    SqlType,
)
from service.pipeline.columns import quoted

#: Java's decoder calls itself for each level of a recursive type; its stack is bounded, and a
#: level takes a byte or more.
LONGEST_RECURSIVE = 16_384

#: Decimals of at most so many digits are 64-bit numbers in Spark.
_LONG_DIGITS = 18

_FIRST, _LAST = "0001-01-01", "9999-12-31"
_RANGES = {
    DATE: f"DATE'{_FIRST}' AND DATE'{_LAST}'",
    TIMESTAMP: f"TIMESTAMP'{_FIRST} 00:00:00Z' AND TIMESTAMP'{_LAST} 23:59:59.999999Z'",
    TIMESTAMP_NTZ: (f"TIMESTAMP_NTZ'{_FIRST} 00:00:00' AND TIMESTAMP_NTZ'{_LAST} 23:59:59.999999'"),
}
#: Hexadecimal digits of a number whose first bytes say nothing beyond its sign.
_FITS_LONG = "^(?:(?:00)*[0-7]|(?:FF)*[89A-F])[0-9A-F]{15}$"


def most_bytes(writer: AvroSchema) -> int | None:
    """The longest value of ``writer`` that is decoded: bounded where the schema is recursive."""
    return LONGEST_RECURSIVE // len(writer.named) if writer.recursive else None


def bad_value(sql: str, kind: SqlType) -> str | None:
    """When a column of this type holds text that is not UTF-8, or a time that Python cannot hold;
    ``None``: never."""

    def leaf(value: str, of: SqlType) -> str | None:
        if of == STRING:
            return f"NOT is_valid_utf8({value})"
        return f"{value} NOT BETWEEN {_RANGES[of]}" if of in _RANGES else None

    return _any(sql, kind, leaf)


def too_wide(sql: str, kind: SqlType) -> str | None:
    """When decimals of this type, read as bytes, are cut to 64 bits by Spark; ``None``: never."""

    def leaf(value: str, of: SqlType) -> str | None:
        if not isinstance(of, DecimalType) or of.precision > _LONG_DIGITS:
            return None
        return f"(length({value}) > 8 AND NOT hex({value}) RLIKE '{_FITS_LONG}')"

    return _any(sql, kind, leaf)


def _any(
    sql: str, kind: SqlType, leaf: Callable[[str, SqlType], str | None], depth: int = 0
) -> str | None:
    """Whether ``leaf`` holds somewhere in a value; NULL stands for no."""
    if isinstance(kind, RecordType):
        parts = [
            _any(f"{sql}.{quoted((name,))}", inner, leaf, depth)
            for name, inner in kind.fields.items()
        ]
    elif isinstance(kind, ArrayType):
        parts = [_exists(sql, kind.element, leaf, depth)]
    elif isinstance(kind, MapType):
        parts = [
            _exists(f"map_keys({sql})", STRING, leaf, depth),
            _exists(f"map_values({sql})", kind.value, leaf, depth),
        ]
    else:
        return leaf(sql, kind)
    return " OR ".join(part for part in parts if part) or None


def _exists(
    sql: str, item: SqlType, leaf: Callable[[str, SqlType], str | None], depth: int
) -> str | None:
    name = f"item_{depth}"
    inner = _any(name, item, leaf, depth + 1)
    return f"exists({sql}, {name} -> {inner})" if inner else None
