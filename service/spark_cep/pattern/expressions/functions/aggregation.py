"""The functions over the events that a step has taken, or over a match's rows, and their types.

``AGGREGATES`` is the table, one row a function; FIRST and LAST, which pick one event, are here too.
All but ``COUNT(step.*)``, FIRST and LAST skip NULLs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from spark_cep.pattern.expressions.functions.accumulators import (
    MORE_SCALE,
    Accumulator,
    Average,
    Best,
    BestBy,
    Collection,
    DistinctCount,
    Fold,
    Sum,
    TrueCount,
    ValueCount,
    Variance,
)
from spark_cep.pattern.expressions.nodes import LookBack
from spark_cep.pattern.expressions.values import arithmetic as values
from spark_cep.pattern.expressions.values import type_rules as rules
from spark_cep.pattern.types import (
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


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One function over events, or over a match's rows. What ``start`` makes is given what its
    arguments are on each of them, in order, a tuple of values for several arguments; NULL only
    where ``takes_nulls``. ``different``: a value that it was given before changes nothing;
    ``most``: values behind so many change nothing."""

    result: Callable[..., SqlType | str]
    start: Callable[[], Accumulator]
    arguments: int = 1
    takes_nulls: bool = False
    different: bool = False
    most: int | None = None


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
    found = AGGREGATES[function].start()
    found.extend([value for value in values if value is not None])
    return found.result()[: look_back.limit] if function == "COLLECT" else found.result()


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


_double = _number(lambda _: DOUBLE)


def _sum_type(kind: SqlType) -> SqlType:
    if isinstance(kind, DecimalType):
        return rules.bounded(min(kind.precision + 10, MAX_DECIMAL_DIGITS), kind.scale)
    return BIGINT if kind in rules.INTEGRAL else DOUBLE


def _average_type(kind: SqlType) -> SqlType:
    if isinstance(kind, DecimalType):
        precision = min(kind.precision + MORE_SCALE, MAX_DECIMAL_DIGITS)
        return rules.bounded(precision, min(kind.scale + MORE_SCALE, MAX_DECIMAL_DIGITS))
    return DOUBLE


PICKS = ("FIRST", "LAST")
AGGREGATES: dict[str, Aggregate] = {
    "SUM": Aggregate(_number(_sum_type), Sum),
    "AVG": Aggregate(_number(_average_type), Average),
    "MIN": Aggregate(_ordered, partial(Best, values.less, min), different=True),
    "MAX": Aggregate(_ordered, partial(Best, values.greater, max), different=True),
    "COUNT": Aggregate(_count, ValueCount),
    COUNT_DISTINCT: Aggregate(_comparable, DistinctCount, different=True),
    "COLLECT": Aggregate(ArrayType, partial(Collection, MAX_COLLECTED)),
    "STDDEV_SAMP": Aggregate(_double, partial(Variance, 1, root=True)),
    "STDDEV_POP": Aggregate(_double, partial(Variance, 0, root=True)),
    "VAR_SAMP": Aggregate(_double, partial(Variance, 1, root=False)),
    "VAR_POP": Aggregate(_double, partial(Variance, 0, root=False)),
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


def _by_type(value: SqlType, order: SqlType) -> SqlType | str:
    return value if rules.is_ordered(order) else f"needs values with an order, not {order}"


def _truth(kind: SqlType) -> SqlType | str:
    return BOOLEAN if kind == BOOLEAN or rules.is_open(kind) else f"needs a condition, not {kind}"


def _counted_truth(kind: SqlType) -> SqlType | str:
    wrong = _truth(kind)
    return wrong if isinstance(wrong, str) else BIGINT


ROW_AGGREGATES: dict[str, Aggregate] = {
    **{name: row for name, row in AGGREGATES.items() if name != "COLLECT"},
    # As in standard SQL, and unlike COLLECT_LIST: NULLs are kept, and of no rows it is NULL.
    "ARRAY_AGG": Aggregate(
        ArrayType,
        partial(Collection, MAX_COLLECTED, empty=False),
        takes_nulls=True,
        most=MAX_COLLECTED,
    ),
    "ANY_VALUE": Aggregate(
        lambda kind: kind, partial(Fold, lambda first, _: first), different=True
    ),
    "BOOL_AND": Aggregate(_truth, partial(Fold, lambda one, other: one and other), different=True),
    "BOOL_OR": Aggregate(_truth, partial(Fold, lambda one, other: one or other), different=True),
    "COUNT_IF": Aggregate(_counted_truth, TrueCount),
    "MAX_BY": Aggregate(_by_type, partial(BestBy, values.greater), 2),
    "MIN_BY": Aggregate(_by_type, partial(BestBy, values.less), 2),
}
"""What may stand in MATCH_RECOGNIZE."""
ROW_AGGREGATE_ALIASES = {
    **{alias: name for alias, name in LOOK_BACK_ALIASES.items() if name != "COLLECT"},
    "EVERY": "BOOL_AND",
    "ARBITRARY": "ANY_VALUE",
}
