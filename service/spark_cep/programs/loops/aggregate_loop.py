"""Aggregates, compiled: an accumulator is cleared, takes values one by one, and gives the result.

They are the same for the events that a partial match has taken and for the rows of a thread of a
row pattern. An accumulator is a :data:`spark_cep.programs.loops.expression_loop.VALUE`. An
aggregate is a row of ``AGGREGATES`` and a branch of ``add`` and of ``result``; for which types it
is compiled, the writers of programs say.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spark_cep.columns.compilation import NONE, inlined

SUM, AVG, MIN, MAX, COUNT, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP = range(2, 11)
#: By the name in :data:`spark_cep.pattern.expressions.functions.aggregation.AGGREGATES`.
AGGREGATES: Final = {"SUM": SUM, "AVG": AVG, "MIN": MIN, "MAX": MAX, "COUNT": COUNT}
#: Of numbers alone, and computed as DOUBLE.
SPREADS: Final = {
    "VAR_POP": VAR_POP, "VAR_SAMP": VAR_SAMP, "STDDEV_POP": STDDEV_POP, "STDDEV_SAMP": STDDEV_SAMP,
}  # fmt: skip
_LOWER = 0xFFFFFFFF


@inlined
def clear(accumulator):
    """Let an accumulator be that of no values."""
    accumulator.given = 0
    accumulator.whole = 0
    accumulator.low = 0
    accumulator.double = 0.0
    accumulator.squares = 0.0


@inlined
def take(aggregate, event, columns, accumulator):
    """Take the value of the aggregate's column in an event, or, without a column, the event."""
    column = aggregate.column
    if column == NONE:
        accumulator.given += 1
    elif not columns.nulls[event, column]:
        whole, double = columns.wholes[event, column], columns.doubles[event, column]
        _add(aggregate.function, aggregate.double, whole, double, accumulator)


@inlined
def _add(function, of_doubles, whole, double, accumulator):
    """Take one more value, which is not NULL."""
    accumulator.given += 1
    if function in (MIN, MAX):
        # NaN is above all else.
        if of_doubles:
            best = accumulator.double
            less = double < best or (np.isnan(best) and not np.isnan(double))
            greater = double > best or (np.isnan(double) and not np.isnan(best))
        else:
            less, greater = whole < accumulator.whole, whole > accumulator.whole
        if accumulator.given == 1 or (less if function == MIN else greater):
            accumulator.whole = whole
            accumulator.double = double
    elif function >= VAR_POP:
        # Welford's method.
        number = double if of_doubles else np.float64(whole)
        distance = number - accumulator.double
        accumulator.double += distance / accumulator.given
        accumulator.squares += distance * (number - accumulator.double)
    elif function == AVG and not of_doubles:
        accumulator.double += whole
    elif function == SUM and not of_doubles:
        accumulator.whole += whole >> 32
        accumulator.low += whole & _LOWER
    elif function != COUNT:
        accumulator.double += double


@inlined
def result(function, of_doubles, accumulator, value):
    """Put the aggregate of the values so far into ``value``, which may be the accumulator."""
    given = accumulator.given
    value.null = given == 0 and function != COUNT
    if function == COUNT:
        value.whole = given
    elif function == AVG:
        value.double = accumulator.double / given
    elif function >= VAR_POP:
        fewer = 1 if function in (VAR_SAMP, STDDEV_SAMP) else 0
        value.null = given <= fewer
        if given > fewer:
            value.double = accumulator.squares / (given - fewer)
            if function >= STDDEV_POP:
                value.double = np.sqrt(value.double)
    elif function == SUM and not of_doubles:
        low = accumulator.low
        high = accumulator.whole + (low >> 32)
        value.whole = (high << 32) | (low & _LOWER)
        value.null = value.null or not -(1 << 31) <= high < 1 << 31
    else:
        value.whole = accumulator.whole
        value.double = accumulator.double
