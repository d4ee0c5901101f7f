"""The functions over the events that a step has taken: their types, and their values.

``AGGREGATES`` is the table, one row a function; FIRST and LAST, which pick one event, are here too.
All but ``COUNT(step.*)``, FIRST and LAST skip NULLs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from service.pattern.expressions import type_rules as rules
from service.pattern.expressions import values
from service.pattern.expressions.nodes import LookBack
from service.pattern.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    MAX_DECIMAL_DIGITS,
    ArrayType,
    DecimalType,
    SqlType,
)

COUNT_DISTINCT = "COUNT DISTINCT"
MAX_COLLECTED = 1_000
_MORE_SCALE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One function over events; ``reduce`` is given the values that are not NULL, in order.

    ``example`` runs over a step ``a`` with the prices of ``EXAMPLE_PRICES``.
    """

    result: Callable[[SqlType], SqlType | str]
    reduce: Callable[[list[Any]], Any]
    doc: str
    example: str
    expected: Any


EXAMPLE_PRICES = (2.0, 4.0, None, 4.0)


def aggregate(look_back: LookBack, values: Sequence[Any]) -> Any:
    """The look-back's value; ``values`` are the argument's on each taken event, in order.

    ``COUNT(step.*)`` counts ``values``. Without any value COUNT is 0, COLLECT an empty array, and
    the others are NULL. FIRST and LAST do not skip NULLs; beyond the events they are NULL. A sum of
    whole numbers beyond BIGINT is NULL.
    """
    function, offset = look_back.function, look_back.offset
    if function in PICKS:
        if offset >= len(values):
            return None
        return values[offset] if function == "FIRST" else values[-1 - offset]
    if function == "COUNT" and look_back.argument is None:
        return len(values)
    found = AGGREGATES[function].reduce([value for value in values if value is not None])
    return found[: look_back.limit] if function == "COLLECT" else found


def _count(_: SqlType) -> SqlType:
    return BIGINT


def _ordered(kind: SqlType) -> SqlType | str:
    return kind if rules.is_ordered(kind) else f"needs values with an order, not {kind}"


def _comparable(kind: SqlType) -> SqlType | str:
    return BIGINT if rules.is_ordered(kind) else f"needs values that can be compared, not {kind}"


def _number(gives: Callable[[SqlType], SqlType]) -> Callable[[SqlType], SqlType | str]:
    def result(kind: SqlType) -> SqlType | str:
        if rules.is_open(kind):
            return kind
        return gives(kind) if rules.is_number(kind) else f"needs numbers, not {kind}"

    return result


def _sum_type(kind: SqlType) -> SqlType:
    if isinstance(kind, DecimalType):
        return rules.bounded(min(kind.precision + 10, MAX_DECIMAL_DIGITS), kind.scale)
    return BIGINT if kind in rules.INTEGRAL else DOUBLE


def _average_type(kind: SqlType) -> SqlType:
    if isinstance(kind, DecimalType):
        precision = min(kind.precision + _MORE_SCALE, MAX_DECIMAL_DIGITS)
        return rules.bounded(precision, min(kind.scale + _MORE_SCALE, MAX_DECIMAL_DIGITS))
    return DOUBLE


def _sum(given: list[Any]) -> Any:
    if not given:
        return None
    if isinstance(given[0], Decimal):
        return _sum_decimals(given)
    total = 0.0 if isinstance(given[0], float) else 0
    for value in given:
        total += value
    if isinstance(total, int) and not (values.BIGINT_RANGE[0] <= total <= values.BIGINT_RANGE[1]):
        return None
    return total


def _sum_decimals(given: list[Decimal]) -> Decimal | None:
    total = Decimal(0)
    for value in given:
        total = values.EXACT.add(total, value)
    return values.fit_decimal(total, DecimalType(MAX_DECIMAL_DIGITS, _scale(given)))


def _average(given: list[Any]) -> Any:
    if not given:
        return None
    if isinstance(given[0], Decimal):
        exact = _sum_decimals(given)
        if exact is None:
            return None
        scale = min(MAX_DECIMAL_DIGITS, _scale(given) + _MORE_SCALE)
        mean = values.EXACT.divide(exact, Decimal(len(given)))
        return values.fit_decimal(mean, DecimalType(MAX_DECIMAL_DIGITS, scale))
    total = 0.0
    for value in given:
        total += float(value)
    return total / len(given)


def _scale(given: list[Decimal]) -> int:
    return max(values.decimal_type_of(value).scale for value in given)


def _extreme(before: Callable[[Any, Any], bool]) -> Callable[[list[Any]], Any]:
    def reduce(given: list[Any]) -> Any:
        best = None
        for value in given:
            if best is None or before(value, best):
                best = value
        return best

    return reduce


def _variance(given: list[Any], fewer: int) -> float | None:
    """The mean square of the distances from the mean, by Welford's method."""
    if len(given) <= fewer:
        return None
    mean = squares = 0.0
    for count, value in enumerate(given, 1):
        distance = float(value) - mean
        mean += distance / count
        squares += distance * (float(value) - mean)
    return squares / (len(given) - fewer)


def _spread(fewer: int, *, root: bool) -> Callable[[list[Any]], float | None]:
    def reduce(given: list[Any]) -> float | None:
        variance = _variance(given, fewer)
        return math.sqrt(variance) if root and variance is not None else variance

    return reduce


def _identity(value: Any) -> Hashable:
    """What tells values apart as SQL's equality does: NaN is one value."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN", None
    return tuple(map(_identity, value)) if isinstance(value, list) else value


def _spread_row(fewer: int, doc: str, example: str, expected: float, *, root: bool) -> Aggregate:
    return Aggregate(
        result=_number(lambda _: DOUBLE),
        reduce=_spread(fewer, root=root),
        doc=doc,
        example=example,
        expected=expected,
    )


PICKS = ("FIRST", "LAST")
AGGREGATES: dict[str, Aggregate] = {
    "SUM": Aggregate(
        result=_number(_sum_type),
        reduce=_sum,
        doc="The sum.",
        example="SUM(a.price)",
        expected=10.0,
    ),
    "AVG": Aggregate(
        result=_number(_average_type),
        reduce=_average,
        doc="The mean.",
        example="AVG(a.price)",
        expected=10 / 3,
    ),
    "MIN": Aggregate(
        result=_ordered,
        reduce=_extreme(values.less),
        doc="The least.",
        example="MIN(a.price)",
        expected=2.0,
    ),
    "MAX": Aggregate(
        result=_ordered,
        reduce=_extreme(values.greater),
        doc="The greatest.",
        example="MAX(a.price)",
        expected=4.0,
    ),
    "COUNT": Aggregate(
        result=_count,
        reduce=len,
        doc="How many are not NULL; `COUNT(a.*)`: how many events.",
        example="COUNT(a.price)",
        expected=3,
    ),
    COUNT_DISTINCT: Aggregate(
        result=_comparable,
        reduce=lambda given: len(set(map(_identity, given))),
        doc="How many different values.",
        example="COUNT(DISTINCT a.price)",
        expected=2,
    ),
    "COLLECT": Aggregate(
        result=ArrayType,
        reduce=list,
        doc="An array of the values in their order. `COLLECT(a.price, 10)` keeps the first 10; "
        f"at most, and by default, it is {MAX_COLLECTED:,}.",
        example="COLLECT(a.price, 2)",
        expected=[2.0, 4.0],
    ),
    "STDDEV_SAMP": _spread_row(
        1,
        "The standard deviation of a sample; NULL of fewer than two values.",
        "STDDEV(a.price)",
        math.sqrt(4 / 3),
        root=True,
    ),
    "STDDEV_POP": _spread_row(
        0,
        "The standard deviation of the whole population.",
        "STDDEV_POP(a.price)",
        math.sqrt(8 / 9),
        root=True,
    ),
    "VAR_SAMP": _spread_row(
        1,
        "The variance of a sample; NULL of fewer than two values.",
        "VARIANCE(a.price)",
        4 / 3,
        root=False,
    ),
    "VAR_POP": _spread_row(
        0, "The variance of the whole population.", "VAR_POP(a.price)", 8 / 9, root=False
    ),
}
LOOK_BACK_ALIASES = {
    "STDDEV": "STDDEV_SAMP",
    "STD": "STDDEV_SAMP",
    "VARIANCE": "VAR_SAMP",
    "ARRAY_AGG": "COLLECT",
    "COLLECT_LIST": "COLLECT",
    "MEAN": "AVG",
}
LOOK_BACK_FUNCTIONS = frozenset({*PICKS, *AGGREGATES}) - {COUNT_DISTINCT}


@dataclass(frozen=True, slots=True)
class RowPatternAggregate:
    """One function over a match's rows; ``reduce`` is given what its arguments are on each row of
    its variable, in order, a tuple of values for several arguments."""

    result: Callable[..., SqlType | str]
    reduce: Callable[[Sequence[Any]], Any]
    arguments: int = 1


def _without_nulls(reduce: Callable[[list[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
    return lambda given: reduce([value for value in given if value is not None])


def _by(before: Callable[[Any, Any], bool]) -> Callable[[Sequence[Any]], Any]:
    """The first argument where the second is first in an order; of equal ones the first row's."""

    def reduce(given: Sequence[Any]) -> Any:
        best = None
        for pair in given:
            if pair[1] is not None and (best is None or before(pair[1], best[1])):
                best = pair
        return None if best is None else best[0]

    return reduce


def _by_type(value: SqlType, order: SqlType) -> SqlType | str:
    return value if rules.is_ordered(order) else f"needs values with an order, not {order}"


def _truth(kind: SqlType) -> SqlType | str:
    return BOOLEAN if kind == BOOLEAN or rules.is_open(kind) else f"needs a condition, not {kind}"


def _counted_truth(kind: SqlType) -> SqlType | str:
    wrong = _truth(kind)
    return wrong if isinstance(wrong, str) else BIGINT


ROW_AGGREGATES: dict[str, RowPatternAggregate] = {
    **{
        name: RowPatternAggregate(row.result, _without_nulls(row.reduce))
        for name, row in AGGREGATES.items()
        if name != "COLLECT"
    },
    # As in standard SQL, and unlike COLLECT_LIST: NULLs are kept, and of no rows it is NULL.
    "ARRAY_AGG": RowPatternAggregate(ArrayType, lambda given: list(given) or None),
    "ANY_VALUE": RowPatternAggregate(
        lambda kind: kind, _without_nulls(lambda v: next(iter(v), None))
    ),
    "BOOL_AND": RowPatternAggregate(_truth, _without_nulls(lambda v: all(v) if v else None)),
    "BOOL_OR": RowPatternAggregate(_truth, _without_nulls(lambda v: any(v) if v else None)),
    "COUNT_IF": RowPatternAggregate(_counted_truth, lambda given: list(given).count(True)),
    "MAX_BY": RowPatternAggregate(_by_type, _by(values.greater), 2),
    "MIN_BY": RowPatternAggregate(_by_type, _by(values.less), 2),
}
"""What may stand in MATCH_RECOGNIZE."""
ROW_AGGREGATE_ALIASES = {
    **{alias: name for alias, name in LOOK_BACK_ALIASES.items() if name != "COLLECT"},
    "EVERY": "BOOL_AND",
    "ARBITRARY": "ANY_VALUE",
}
