"""The functions an expression may call: the allow-list, one row a function.

A row says how many arguments there are, which types they take and give, how Python computes it on
values that are not NULL, and how Spark writes it. What is not in the list cannot be called.
``WITHHELD`` names functions that people will look for, with the reason why they are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from service.pattern.expressions import values
from service.pattern.expressions.casting import caster
from service.pattern.expressions.type_rules import (
    as_read,
    comparable,
    is_number,
    is_open,
)
from service.pattern.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
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

Kinds = Sequence[SqlType]
Result = Callable[[Kinds], SqlType | str]


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    ``result`` gives the type, or a sentence saying what is wrong with the arguments. ``evaluate``
    is ``None`` where NULLs or types matter (see ``evaluation``), ``spark`` where types do.
    """

    minimum: int
    maximum: int | None
    result: Result
    evaluate: Callable[..., Any] | None
    spark: str | None


def _takes(*expected: SqlType | tuple[SqlType, ...], gives: SqlType) -> Result:
    def result(kinds: Kinds) -> SqlType | str:
        for position, kind in enumerate(kinds):
            allowed = expected[min(position, len(expected) - 1)]
            choices = allowed if isinstance(allowed, tuple) else (allowed,)
            if kind not in choices and not is_open(kind):
                wanted = " or ".join(map(str, choices))
                return f"argument {position + 1} is {kind}; it must be {wanted}"
        return gives

    return result


def _number(gives: Callable[[SqlType], SqlType]) -> Result:
    def result(kinds: Kinds) -> SqlType | str:
        kind = kinds[0]
        if is_open(kind):
            return kind
        return gives(kind) if is_number(kind) else f"argument 1 is {kind}; it must be a number"

    return result


def _any(_: Kinds) -> SqlType | str:
    return UNKNOWN


def _whole(kind: SqlType) -> SqlType:
    if isinstance(kind, DecimalType):
        if kind.scale == 0:
            return kind
        return DecimalType(min(38, kind.precision - kind.scale + 1), 0)
    return BIGINT


def _round(kinds: Kinds) -> SqlType | str:
    return _number(lambda kind: kind)(kinds[:1])


def _always(kind: SqlType) -> Callable[[SqlType], SqlType]:
    return lambda _: kind


def _of_map(gives: Callable[[MapType], SqlType]) -> Result:
    def result(kinds: Kinds) -> SqlType | str:
        kind = kinds[0]
        if is_open(kind):
            return kind
        if not isinstance(kind, MapType):
            return f"argument 1 is {kind}; it must be a MAP"
        if len(kinds) > 1 and kinds[1] != kind.key and not is_open(kinds[1]):
            return f"the key is {kinds[1]}; it must be {kind.key}"
        return gives(kind)

    return result


def _size(kinds: Kinds) -> SqlType | str:
    kind = kinds[0]
    if isinstance(kind, (ArrayType, MapType)) or is_open(kind):
        return INT
    return f"argument 1 is {kind}; it must be an ARRAY or a MAP"


def _array_contains(kinds: Kinds) -> SqlType | str:
    kind = kinds[0]
    if is_open(kind):
        return BOOLEAN
    if not isinstance(kind, ArrayType):
        return f"argument 1 is {kind}; it must be an ARRAY"
    if not comparable(as_read(kind.element), kinds[1]):
        return f"the elements are {kind.element}, the value is {kinds[1]}"
    return BOOLEAN


def element(kinds: Kinds) -> SqlType | str:
    """The type of ``arr[i]``, ``map['k']`` and ELEMENT_AT."""
    kind, key = kinds
    if isinstance(kind, ArrayType):
        if key == INT or is_open(key):
            return as_read(kind.element)
        return f"the index of an ARRAY is {key}; it must be INT"
    if isinstance(kind, MapType):
        if key == kind.key or is_open(key):
            return as_read(kind.value)
        return f"the key is {key}; it must be {kind.key}"
    return kind if is_open(kind) else f"{kind} has no elements; it must be an ARRAY or a MAP"


_LONGEST = 2**31 - 1


def substring(text: str, position: int, length: int = _LONGEST) -> str:
    """SQL's SUBSTRING: positions from 1, negative ones from the end."""
    size = len(text)
    start = position - 1 if position > 0 else size + position if position < 0 else 0
    end = start + length
    return text[max(start, 0) : max(end, 0)] if end > start else ""


def _left(text: str, count: int) -> str:
    return text[:count] if count > 0 else ""


def _right(text: str, count: int) -> str:
    return text[-count:] if count > 0 else ""


def _contains_element(array: Sequence[Any], wanted: Any) -> bool | None:
    unknown = False
    for item in array:
        if item is None:
            unknown = True
        elif values.equal(item, wanted):
            return True
    return None if unknown else False


def at_index(container: Any, index: Any) -> Any:
    """``arr[i]`` from 0, or ``map[key]``; NULL when it is not there."""
    if isinstance(container, Mapping):
        return container.get(index)
    return container[index] if 0 <= index < len(container) else None


def _element_at(container: Any, index: Any) -> Any:
    if isinstance(container, Mapping):
        return container.get(index)
    if index == 0 or abs(index) > len(container):
        return None
    return container[index - 1 if index > 0 else index]


_day = caster(DATE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _micros(value: datetime) -> int:
    gone = value - _EPOCH
    return (gone.days * 86_400 + gone.seconds) * 1_000_000 + gone.microseconds


def _of_time(part: str) -> Callable[[datetime], int]:
    return lambda value: int(getattr(value.astimezone(UTC), part))


def _of_day(part: str) -> Callable[[date], int]:
    return lambda value: int(getattr(_day(value), part))


_TEXT1 = _takes(STRING, gives=STRING)
_TEXT2 = _takes(STRING, gives=BOOLEAN)
_DAYS = _takes((DATE, TIMESTAMP), gives=INT)
_TIMES = _takes(TIMESTAMP, gives=INT)

FUNCTIONS: Mapping[str, Function] = {
    # NULL-aware: computed in ``evaluation``, typed in ``checking``
    "COALESCE": Function(1, None, _any, None, "coalesce({})"),
    "GREATEST": Function(2, None, _any, None, "greatest({})"),
    "LEAST": Function(2, None, _any, None, "least({})"),
    "NULLIF": Function(2, 2, _any, None, "nullif({})"),
    "ARRAY": Function(1, None, _any, None, "array({})"),
    "ROUND": Function(1, 2, _round, None, "round({})"),
    # numbers
    "ABS": Function(1, 1, _number(lambda kind: kind), None, None),
    "FLOOR": Function(1, 1, _number(_whole), values.floor, "floor({})"),
    "CEIL": Function(1, 1, _number(_whole), values.ceil, "ceil({})"),
    "SQRT": Function(1, 1, _number(_always(DOUBLE)), values.square_root, "sqrt({})"),
    "SIGN": Function(1, 1, _number(_always(DOUBLE)), values.sign, "sign({})"),
    # text
    "UPPER": Function(1, 1, _TEXT1, str.upper, "upper({})"),
    "LOWER": Function(1, 1, _TEXT1, str.lower, "lower({})"),
    "TRIM": Function(1, 1, _TEXT1, lambda text: text.strip(" "), "trim({})"),
    "LTRIM": Function(1, 1, _TEXT1, lambda text: text.lstrip(" "), "ltrim({})"),
    "RTRIM": Function(1, 1, _TEXT1, lambda text: text.rstrip(" "), "rtrim({})"),
    "LENGTH": Function(1, 1, _takes((STRING, BINARY), gives=INT), len, "length({})"),
    "SUBSTRING": Function(2, 3, _takes(STRING, INT, gives=STRING), substring, "substring({})"),
    "LEFT": Function(2, 2, _takes(STRING, INT, gives=STRING), _left, "left({})"),
    "RIGHT": Function(2, 2, _takes(STRING, INT, gives=STRING), _right, "right({})"),
    "CONCAT": Function(1, None, _TEXT1, lambda *texts: "".join(texts), "concat({})"),
    "REPLACE": Function(
        3, 3, _TEXT1, lambda text, old, new: text.replace(old, new) if old else text, "replace({})"
    ),
    "STARTSWITH": Function(2, 2, _TEXT2, str.startswith, "startswith({})"),
    "ENDSWITH": Function(2, 2, _TEXT2, str.endswith, "endswith({})"),
    "CONTAINS": Function(2, 2, _TEXT2, lambda text, part: part in text, "contains({})"),
    # arrays and maps
    "SIZE": Function(1, 1, _size, len, None),
    "ARRAY_CONTAINS": Function(2, 2, _array_contains, _contains_element, "array_contains({})"),
    "ELEMENT_AT": Function(2, 2, element, _element_at, None),
    "MAP_CONTAINS_KEY": Function(
        2, 2, _of_map(lambda _: BOOLEAN), lambda m, key: key in m, "map_contains_key({})"
    ),
    "MAP_KEYS": Function(1, 1, _of_map(lambda m: ArrayType(m.key)), list, "map_keys({})"),
    "MAP_VALUES": Function(
        1, 1, _of_map(lambda m: ArrayType(m.value)), lambda m: list(m.values()), "map_values({})"
    ),
    # time, in UTC
    "YEAR": Function(1, 1, _DAYS, _of_day("year"), "year({})"),
    "MONTH": Function(1, 1, _DAYS, _of_day("month"), "month({})"),
    "DAY": Function(1, 1, _DAYS, _of_day("day"), "day({})"),
    "DAYOFWEEK": Function(
        1, 1, _DAYS, lambda value: _day(value).isoweekday() % 7 + 1, "dayofweek({})"
    ),
    "HOUR": Function(1, 1, _TIMES, _of_time("hour"), "hour({})"),
    "MINUTE": Function(1, 1, _TIMES, _of_time("minute"), "minute({})"),
    "SECOND": Function(1, 1, _TIMES, _of_time("second"), "second({})"),
    "UNIX_MILLIS": Function(
        1, 1, _takes(TIMESTAMP, gives=BIGINT), lambda v: _micros(v) // 1000, "unix_millis({})"
    ),
    "UNIX_SECONDS": Function(
        1, 1, _takes(TIMESTAMP, gives=BIGINT), lambda v: _micros(v) // 1_000_000, "unix_seconds({})"
    ),
    "DATEDIFF": Function(
        2, 2, _DAYS, lambda end, start: (_day(end) - _day(start)).days, "datediff({})"
    ),
}

ALIASES: Mapping[str, str] = {
    "NVL": "COALESCE",
    "IFNULL": "COALESCE",
    "CEILING": "CEIL",
    "SIGNUM": "SIGN",
    "SUBSTR": "SUBSTRING",
    "CHAR_LENGTH": "LENGTH",
    "CHARACTER_LENGTH": "LENGTH",
    "LEN": "LENGTH",
    "UCASE": "UPPER",
    "LCASE": "LOWER",
    "CARDINALITY": "SIZE",
    "DAYOFMONTH": "DAY",
    "DATE_DIFF": "DATEDIFF",
}
SPECIAL_CALLS = frozenset({"IF", "MOD", "TO_DATE"})
"""Functions that are another way to write an operator; ``syntax`` rewrites them."""

_LAST_DIGIT = "its last digit differs between Java and C"
_NON_DETERMINISTIC = "it gives another answer each time"
_OUTSIDE = "it reaches outside the event"
_REGEX = "a hostile regular expression can take exponential time; use LIKE"
_HIGHER_ORDER = "functions that take a lambda are not supported"
WITHHELD: Mapping[str, str] = {
    **dict.fromkeys(("EXP", "LN", "LOG", "LOG10", "LOG2", "POWER", "POW"), _LAST_DIGIT),
    **dict.fromkeys(
        (
            "RAND",
            "RANDOM",
            "RANDN",
            "UUID",
            "NOW",
            "CURRENT_TIMESTAMP",
            "CURRENT_DATE",
            "SHUFFLE",
            "CURRENT_TIME",
            "LOCALTIMESTAMP",
            "MONOTONICALLY_INCREASING_ID",
            "RANDSTR",
        ),
        _NON_DETERMINISTIC,
    ),
    **dict.fromkeys(
        (
            "REFLECT",
            "TRY_REFLECT",
            "JAVA_METHOD",
            "INPUT_FILE_NAME",
            "CURRENT_USER",
            "USER",
            "SESSION_USER",
            "CURRENT_DATABASE",
            "CURRENT_CATALOG",
            "VERSION",
            "SPARK_PARTITION_ID",
            "INPUT_FILE_BLOCK_START",
            "INPUT_FILE_BLOCK_LENGTH",
            "AI_QUERY",
            "HTTP_REQUEST",
        ),
        _OUTSIDE,
    ),
    **dict.fromkeys(
        (
            "RLIKE",
            "REGEXP",
            "REGEXP_LIKE",
            "REGEXP_EXTRACT",
            "REGEXP_EXTRACT_ALL",
            "SPLIT",
            "REGEXP_REPLACE",
            "REGEXP_COUNT",
            "REGEXP_INSTR",
            "REGEXP_SUBSTR",
        ),
        _REGEX,
    ),
    **dict.fromkeys(
        (
            "TRANSFORM",
            "FILTER",
            "EXISTS",
            "FORALL",
            "AGGREGATE",
            "REDUCE",
            "MAP_FILTER",
            "TRANSFORM_KEYS",
            "TRANSFORM_VALUES",
            "ZIP_WITH",
            "MAP_ZIP_WITH",
            "ARRAY_SORT",
        ),
        _HIGHER_ORDER,
    ),
}
