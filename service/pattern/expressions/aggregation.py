"""The value of a look-back from the events that a step has taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from service.pattern.expressions import values
from service.pattern.expressions.nodes import LookBack
from service.pattern.types import MAX_DECIMAL_DIGITS, DecimalType

_MORE_SCALE = 4


def aggregate(look_back: LookBack, values: Sequence[Any]) -> Any:
    """The look-back's value; ``values`` are the argument's on each taken event, in order.

    SUM, AVG, MIN, MAX and COUNT(x) skip NULLs; ``COUNT(step.*)`` counts ``values``. Without any
    value COUNT is 0 and the others are NULL. FIRST and LAST do not skip NULLs; beyond the events
    they are NULL. A sum of whole numbers beyond BIGINT is NULL.
    """
    function, offset = look_back.function, look_back.offset
    if function in ("FIRST", "LAST"):
        if offset >= len(values):
            return None
        return values[offset] if function == "FIRST" else values[-1 - offset]
    if function == "COUNT" and look_back.argument is None:
        return len(values)
    return _REDUCE[function]([value for value in values if value is not None])


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


_REDUCE: dict[str, Callable[[list[Any]], Any]] = {
    "SUM": _sum,
    "AVG": _average,
    "MIN": _extreme(values.less),
    "MAX": _extreme(values.greater),
    "COUNT": len,
}
