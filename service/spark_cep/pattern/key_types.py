"""Types that a key may have."""

from __future__ import annotations

from spark_cep.pattern.types import (
    DAY_TIME,
    DOUBLE,
    FLOAT,
    ArrayType,
    MapType,
    RecordType,
    SqlType,
)


def key_problem(kind: SqlType) -> tuple[str, str] | None:
    """Why a key cannot be of that type, and what it can be; ``None`` where it can."""
    if kind in (FLOAT, DOUBLE):
        # Its text, by which keys are compared, is not the same in every Java version.
        allowed = "a key that is text, a whole number, a decimal, a date or a time"
        return f"the key is {with_article(kind)}", allowed
    if isinstance(kind, ArrayType | MapType | RecordType) or kind == DAY_TIME:
        return f"the key is {with_article(kind)}", "a single value as key"
    return None


def with_article(kind: SqlType) -> str:
    """A type as sentences name it: ``an ARRAY``."""
    name = str(kind).partition("<")[0]
    return f"{'an' if name[0] in 'AEIO' else 'a'} {name}"
