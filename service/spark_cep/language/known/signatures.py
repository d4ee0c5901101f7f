"""The signatures of functions, from their rows in the table."""

from __future__ import annotations

from functools import cache
from typing import Final

from spark_cep.language.known.pages import ROW_FUNCTIONS, function_texts
from spark_cep.pattern.expressions.functions import ALIASES, FUNCTIONS, LAMBDAS, SPECIAL_CALLS
from spark_cep.pattern.expressions.functions.aggregation import AGGREGATES, LOOK_BACK_ALIASES
from spark_cep.pattern.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
)

_TRIED: Final[tuple[tuple[SqlType, str], ...]] = (
    (STRING, "STRING"),
    (INT, "INT"),
    (BIGINT, "BIGINT"),
    (DOUBLE, "DOUBLE"),
    (DecimalType(10, 2), "DECIMAL"),
    (BOOLEAN, "BOOLEAN"),
    (TIMESTAMP, "TIMESTAMP"),
    (DATE, "DATE"),
    (DAY_TIME, "INTERVAL"),
    (BINARY, "BINARY"),
    (ArrayType(STRING), "ARRAY"),
    (MapType(STRING, STRING), "MAP"),
)
_CONSTANTS: Final[dict[type | None, str]] = {str: "STRING", int: "INT"}
_NUMBERS: Final = {"INT", "BIGINT", "DOUBLE", "DECIMAL"}
_MANY: Final = 4
#: Most arguments that are shown of a function that takes any number.
_SHOWN: Final = 2


def is_function(name: str) -> bool:
    """Return whether there is a function of that name, in whatever case."""
    upper = name.upper()
    return upper in function_texts() or upper in SPECIAL_CALLS or upper in ROW_FUNCTIONS


@cache
def signature(name: str) -> str:
    """The signature of a function and its type: ``SUBSTRING(STRING, INT[, INT])``."""
    upper = name.upper()
    if upper in ROW_FUNCTIONS:
        return ROW_FUNCTIONS[upper].name
    if LOOK_BACK_ALIASES.get(upper, upper) in AGGREGATES:
        return f"{upper}(step.column)"
    if upper in SPECIAL_CALLS:
        return {"IF": "IF(condition, value[, other])", "MOD": "MOD(number, number)"}[upper]
    canonical = ALIASES.get(upper, upper)
    if canonical not in FUNCTIONS:
        return upper
    if canonical in LAMBDAS:
        return f"{upper}(array, element -> condition)"
    least, most = FUNCTIONS[canonical].arguments
    shown = max(least, _SHOWN if least else 1) if most is None else most
    kinds = [_kinds(canonical, place, max(shown, least)) for place in range(shown)]
    needed, optional = kinds[:least], kinds[least:]
    listed = ", ".join(needed) + "".join(f"[, {each}]" for each in optional)
    listed = listed.removeprefix("[, ").removesuffix("]") if not needed and optional else listed
    return f"{upper}({listed}{', …' if most is None else ''}){_result(canonical, shown)}"


def _kinds(name: str, place: int, count: int) -> str:
    """The types that an argument may have."""
    constant = FUNCTIONS[name].constants.get(place)
    if constant in _CONSTANTS:
        return _CONSTANTS[constant]
    result = FUNCTIONS[name].result
    fits = [shown for kind, shown in _TRIED if _fits(result, kind, place, count)]
    if set(fits) >= _NUMBERS:
        fits = ["number", *(each for each in fits if each not in _NUMBERS)]
    return "value" if not fits or len(fits) > _MANY else " or ".join(fits)


def _fits(result: object, kind: SqlType, place: int, count: int) -> bool:
    given: list[SqlType] = [UNKNOWN] * count
    given[place] = kind
    try:
        return not isinstance(result(given), str)  # type: ignore[operator]  # a row's `result`
    except (IndexError, AttributeError, TypeError):
        return False


def _result(name: str, count: int) -> str:
    try:
        given = FUNCTIONS[name].result([UNKNOWN] * count)
    except (IndexError, AttributeError, TypeError):
        return ""
    return "" if isinstance(given, str) or given == UNKNOWN else f" → {given}"
