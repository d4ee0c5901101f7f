"""The functions over the events that a step has taken: their types, and their values.

``AGGREGATES`` is the table, one row a function; FIRST and LAST, which pick one event, are here too.
All but ``COUNT(step.*)``, FIRST and LAST skip NULLs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Protocol, Self

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
_MORE_SCALE = 4


class Accumulator(Protocol):
    """One aggregate under way, value by value: so a running aggregate over the rows of a match
    takes each row once, and not all rows before it again. A shallow copy (:mod:`copy`) goes on by
    itself."""

    def add(self, value: Any, /) -> None:
        """Take one more value."""
        ...

    def extend(self, values: Sequence[Any], /) -> None:
        """Take some more values, in order."""
        ...

    def result(self) -> Any:
        """The aggregate of the values so far. It may be asked for after each of them."""
        ...

    def copied(self) -> Accumulator:
        """Another one of the same values, which takes values of its own."""
        ...


class _Copied(ABC):
    """An accumulator whose values are replaced, not changed."""

    @abstractmethod
    def add(self, value: Any) -> None:
        """See :class:`Accumulator`."""

    def extend(self, values: Sequence[Any]) -> None:
        for value in values:
            self.add(value)

    def copied(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other


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
        precision = min(kind.precision + _MORE_SCALE, MAX_DECIMAL_DIGITS)
        return rules.bounded(precision, min(kind.scale + _MORE_SCALE, MAX_DECIMAL_DIGITS))
    return DOUBLE


class _Total(_Copied):
    """The number of values and their sum, exact for whole numbers and decimals."""

    def __init__(self) -> None:
        self._count = 0
        self._total: Any = 0
        self._scale = 0

    def add(self, value: Any) -> None:
        if not self._count:
            self._total = Decimal(0) if isinstance(value, Decimal) else self._nothing(value)
        if isinstance(self._total, Decimal):
            self._total = values.EXACT.add(self._total, value)
            self._scale = max(self._scale, values.decimal_type_of(value).scale)
        else:
            self._total += value
        self._count += 1

    def _nothing(self, value: Any) -> float:
        return 0.0 if isinstance(value, float) else 0

    def _decimal(self) -> Decimal | None:
        return values.fit_decimal(self._total, DecimalType(MAX_DECIMAL_DIGITS, self._scale))


class _Sum(_Total):
    """SUM. Of whole numbers beyond BIGINT it is NULL."""

    def result(self) -> Any:
        total = self._total
        if not self._count:
            return None
        if isinstance(total, Decimal):
            return self._decimal()
        low, high = values.BIGINT_RANGE
        return None if isinstance(total, int) and not low <= total <= high else total


class _Average(_Total):
    """AVG."""

    def _nothing(self, _: Any) -> float:
        return 0.0

    def result(self) -> Any:
        if not self._count:
            return None
        if not isinstance(self._total, Decimal):
            return self._total / self._count
        total = self._decimal()
        if total is None:
            return None
        mean = values.EXACT.divide(total, Decimal(self._count))
        scale = min(MAX_DECIMAL_DIGITS, self._scale + _MORE_SCALE)
        return values.fit_decimal(mean, DecimalType(MAX_DECIMAL_DIGITS, scale))


class _Fold(_Copied):
    """The result of a function of two values over all values, from the first on; NULL without
    any."""

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine
        self._found: Any = None

    def add(self, value: Any) -> None:
        self._found = value if self._found is None else self._combine(self._found, value)

    def result(self) -> Any:
        return self._found


class _Best(_Fold):
    """MIN and MAX: the first value in an order; ``pick`` is that of Python, which has the same
    order for values of some types."""

    def __init__(
        self, before: Callable[[Any, Any], bool], pick: Callable[[Sequence[Any]], Any]
    ) -> None:
        super().__init__(lambda best, value: value if before(value, best) else best)
        self._pick = pick

    def extend(self, values: Sequence[Any]) -> None:
        if values and set(map(type, values)) in _ORDERED_ALIKE:
            values = (self._pick(values),)
        super().extend(values)


#: Of these Python picks what SQL does: the first of equal values, and there is no NaN.
_ORDERED_ALIKE = ({str}, {int}, {Decimal})


class _BestBy(_Copied):
    """MIN_BY and MAX_BY, of pairs: the first value where the second is first in an order; of equal
    ones that of the first row."""

    def __init__(self, before: Callable[[Any, Any], bool]) -> None:
        self._before = before
        self._best: tuple[Any, Any] | None = None

    def add(self, value: tuple[Any, Any]) -> None:
        if value[1] is None:
            return
        if self._best is None or self._before(value[1], self._best[1]):
            self._best = value

    def result(self) -> Any:
        return None if self._best is None else self._best[0]


class _Count(_Copied):
    """COUNT."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, _: Any) -> None:
        self._count += 1

    def extend(self, values: Sequence[Any]) -> None:
        self._count += len(values)

    def result(self) -> int:
        return self._count


class _TrueCount(_Count):
    """COUNT_IF."""

    def add(self, value: Any) -> None:
        self._count += value is True

    def extend(self, values: Sequence[Any]) -> None:
        self._count += sum(value is True for value in values)


class _DistinctCount(_Copied):
    """COUNT(DISTINCT …). The values are in sets of falling size, each at most half as large as the
    one before, which copies share: a value more costs little, also where there are many copies."""

    def __init__(self) -> None:
        self._seen: tuple[frozenset[Hashable], ...] = ()

    def add(self, value: Any) -> None:
        one = _identity(value)
        if not any(one in each for each in self._seen):
            self._put(frozenset((one,)))

    def extend(self, values: Sequence[Any]) -> None:
        kinds = set(map(type, values))
        keys = map(_identity, values) if kinds & {float, list} else values
        new = frozenset(keys).difference(*self._seen)
        if new:
            self._put(new)

    def _put(self, new: frozenset[Hashable]) -> None:
        """Take values that are in no set."""
        seen = list(self._seen)
        while seen and len(seen[-1]) < 2 * len(new):
            new |= seen.pop()
        self._seen = (*seen, new)

    def result(self) -> int:
        return sum(map(len, self._seen))


def _identity(value: Any) -> Hashable:
    """Return a key that is equal for values that SQL takes for equal: NaN is one value."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN", None
    return tuple(map(_identity, value)) if isinstance(value, list) else value


class _Collection(_Copied):
    """COLLECT and ARRAY_AGG: the first ``most`` values; ``empty``: whether none are an array or
    NULL."""

    def __init__(self, most: int, *, empty: bool = True) -> None:
        self._most, self._empty = most, empty
        # Shared by copies: of its values the first ``_count`` are this one's.
        self._values: list[Any] = []
        self._count = 0

    def add(self, value: Any) -> None:
        if self._count < self._most:
            if len(self._values) > self._count:
                self._values = self._values[: self._count]
            self._values.append(value)
            self._count += 1

    def extend(self, values: Sequence[Any]) -> None:
        super().extend(values[: self._most - self._count])

    def result(self) -> list[Any] | None:
        """One array for all rows once it is full, so that the rows of a long match share it."""
        if not self._count and not self._empty:
            return None
        return self._values if self._count == self._most else self._values[: self._count]


class _Spread(_Copied):
    """The mean square of the distances from the mean, or its root, by Welford's method; NULL of no
    more than ``fewer`` values."""

    def __init__(self, fewer: int, *, root: bool) -> None:
        self._fewer, self._root = fewer, root
        self._count = 0
        self._mean = self._squares = 0.0

    def add(self, value: Any) -> None:
        self._count += 1
        distance = float(value) - self._mean
        self._mean += distance / self._count
        self._squares += distance * (float(value) - self._mean)

    def result(self) -> float | None:
        if self._count <= self._fewer:
            return None
        variance = self._squares / (self._count - self._fewer)
        return math.sqrt(variance) if self._root else variance


PICKS = ("FIRST", "LAST")
AGGREGATES: dict[str, Aggregate] = {
    "SUM": Aggregate(_number(_sum_type), _Sum),
    "AVG": Aggregate(_number(_average_type), _Average),
    "MIN": Aggregate(_ordered, partial(_Best, values.less, min), different=True),
    "MAX": Aggregate(_ordered, partial(_Best, values.greater, max), different=True),
    "COUNT": Aggregate(_count, _Count),
    COUNT_DISTINCT: Aggregate(_comparable, _DistinctCount, different=True),
    "COLLECT": Aggregate(ArrayType, partial(_Collection, MAX_COLLECTED)),
    "STDDEV_SAMP": Aggregate(_double, partial(_Spread, 1, root=True)),
    "STDDEV_POP": Aggregate(_double, partial(_Spread, 0, root=True)),
    "VAR_SAMP": Aggregate(_double, partial(_Spread, 1, root=False)),
    "VAR_POP": Aggregate(_double, partial(_Spread, 0, root=False)),
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
        partial(_Collection, MAX_COLLECTED, empty=False),
        takes_nulls=True,
        most=MAX_COLLECTED,
    ),
    "ANY_VALUE": Aggregate(
        lambda kind: kind, partial(_Fold, lambda first, _: first), different=True
    ),
    "BOOL_AND": Aggregate(_truth, partial(_Fold, lambda one, other: one and other), different=True),
    "BOOL_OR": Aggregate(_truth, partial(_Fold, lambda one, other: one or other), different=True),
    "COUNT_IF": Aggregate(_counted_truth, _TrueCount),
    "MAX_BY": Aggregate(_by_type, partial(_BestBy, values.greater), 2),
    "MIN_BY": Aggregate(_by_type, partial(_BestBy, values.less), 2),
}
"""What may stand in MATCH_RECOGNIZE."""
ROW_AGGREGATE_ALIASES = {
    **{alias: name for alias, name in LOOK_BACK_ALIASES.items() if name != "COLLECT"},
    "EVERY": "BOOL_AND",
    "ARBITRARY": "ANY_VALUE",
}
