"""The values of aggregates, each computed from one value after the other.

Their types are in :mod:`~spark_cep.pattern.expressions.functions.aggregation`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from typing import Any, Protocol, Self

from spark_cep.pattern.expressions.values import arithmetic as values
from spark_cep.pattern.types import MAX_DECIMAL_DIGITS, DecimalType

#: Digits after the point that AVG has more than its values.
MORE_SCALE = 4


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
        """See :class:`Accumulator`."""
        for value in values:
            self.add(value)

    def copied(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other


class _Total(_Copied):
    """The number of values and their sum, exact for whole numbers and decimals."""

    def __init__(self) -> None:
        self._count = 0
        self._total: Any = 0
        self._scale = 0

    def add(self, value: Any) -> None:
        """See :class:`Accumulator`."""
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


class Sum(_Total):
    """SUM. Of whole numbers beyond BIGINT it is NULL."""

    def result(self) -> Any:
        """See :class:`Accumulator`."""
        total = self._total
        if not self._count:
            return None
        if isinstance(total, Decimal):
            return self._decimal()
        low, high = values.BIGINT_RANGE
        return None if isinstance(total, int) and not low <= total <= high else total


class Average(_Total):
    """AVG."""

    def _nothing(self, _: Any) -> float:
        return 0.0

    def result(self) -> Any:
        """See :class:`Accumulator`."""
        if not self._count:
            return None
        if not isinstance(self._total, Decimal):
            return self._total / self._count
        total = self._decimal()
        if total is None:
            return None
        mean = values.EXACT.divide(total, Decimal(self._count))
        scale = min(MAX_DECIMAL_DIGITS, self._scale + MORE_SCALE)
        return values.fit_decimal(mean, DecimalType(MAX_DECIMAL_DIGITS, scale))


class Fold(_Copied):
    """The result of a function of two values over all values, from the first on; NULL without
    any."""

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine
        self._found: Any = None

    def add(self, value: Any) -> None:
        """See :class:`Accumulator`."""
        self._found = value if self._found is None else self._combine(self._found, value)

    def result(self) -> Any:
        """See :class:`Accumulator`."""
        return self._found


class Best(Fold):
    """MIN and MAX: the first value in an order; ``pick`` is that of Python, which has the same
    order for values of some types."""

    def __init__(
        self, before: Callable[[Any, Any], bool], pick: Callable[[Sequence[Any]], Any]
    ) -> None:
        super().__init__(lambda best, value: value if before(value, best) else best)
        self._pick = pick

    def extend(self, values: Sequence[Any]) -> None:
        """See :class:`Accumulator`."""
        if values and set(map(type, values)) in _ORDERED_ALIKE:
            values = (self._pick(values),)
        super().extend(values)


#: Of these Python picks what SQL does: the first of equal values, and there is no NaN.
_ORDERED_ALIKE = ({str}, {int}, {Decimal})


class BestBy(_Copied):
    """MIN_BY and MAX_BY, of pairs: the first value where the second is first in an order; of equal
    ones that of the first row."""

    def __init__(self, before: Callable[[Any, Any], bool]) -> None:
        self._before = before
        self._best: tuple[Any, Any] | None = None

    def add(self, value: tuple[Any, Any]) -> None:
        """See :class:`Accumulator`."""
        if value[1] is None:
            return
        if self._best is None or self._before(value[1], self._best[1]):
            self._best = value

    def result(self) -> Any:
        """See :class:`Accumulator`."""
        return None if self._best is None else self._best[0]


class ValueCount(_Copied):
    """COUNT."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, _: Any) -> None:
        """See :class:`Accumulator`."""
        self._count += 1

    def extend(self, values: Sequence[Any]) -> None:
        """See :class:`Accumulator`."""
        self._count += len(values)

    def result(self) -> int:
        """See :class:`Accumulator`."""
        return self._count


class TrueCount(ValueCount):
    """COUNT_IF."""

    def add(self, value: Any) -> None:
        """See :class:`Accumulator`."""
        self._count += value is True

    def extend(self, values: Sequence[Any]) -> None:
        """See :class:`Accumulator`."""
        self._count += sum(value is True for value in values)


class DistinctCount(_Copied):
    """COUNT(DISTINCT …). The values are in sets of falling size, each at most half as large as the
    one before, which copies share: a value more costs little, also where there are many copies."""

    def __init__(self) -> None:
        self._seen: tuple[frozenset[Hashable], ...] = ()

    def add(self, value: Any) -> None:
        """See :class:`Accumulator`."""
        one = _identity(value)
        if not any(one in each for each in self._seen):
            self._put(frozenset((one,)))

    def extend(self, values: Sequence[Any]) -> None:
        """See :class:`Accumulator`."""
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
        """See :class:`Accumulator`."""
        return sum(map(len, self._seen))


def _identity(value: Any) -> Hashable:
    """Return a key that is equal for values that SQL takes for equal: NaN is one value."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN", None
    return tuple(map(_identity, value)) if isinstance(value, list) else value


class Collection(_Copied):
    """COLLECT and ARRAY_AGG: the first ``most`` values; ``empty``: whether none are an array or
    NULL."""

    def __init__(self, most: int, *, empty: bool = True) -> None:
        self._most, self._empty = most, empty
        # Shared by copies: of its values the first ``_count`` are this one's.
        self._values: list[Any] = []
        self._count = 0

    def add(self, value: Any) -> None:
        """See :class:`Accumulator`."""
        if self._count < self._most:
            if len(self._values) > self._count:
                self._values = self._values[: self._count]
            self._values.append(value)
            self._count += 1

    def extend(self, values: Sequence[Any]) -> None:
        """See :class:`Accumulator`."""
        super().extend(values[: self._most - self._count])

    def result(self) -> list[Any] | None:
        """One array for all rows once it is full, so that the rows of a long match share it."""
        if not self._count and not self._empty:
            return None
        return self._values if self._count == self._most else self._values[: self._count]


class Variance(_Copied):
    """The mean square of the distances from the mean, or its root, by Welford's method; NULL of no
    more than ``fewer`` values."""

    def __init__(self, fewer: int, *, root: bool) -> None:
        self._fewer, self._root = fewer, root
        self._count = 0
        self._mean = self._squares = 0.0

    def add(self, value: Any) -> None:
        """See :class:`Accumulator`."""
        self._count += 1
        distance = float(value) - self._mean
        self._mean += distance / self._count
        self._squares += distance * (float(value) - self._mean)

    def result(self) -> float | None:
        """See :class:`Accumulator`."""
        if self._count <= self._fewer:
            return None
        variance = self._squares / (self._count - self._fewer)
        return math.sqrt(variance) if self._root else variance
