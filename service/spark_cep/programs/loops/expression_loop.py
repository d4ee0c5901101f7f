"""The compiled expression machine: whether the condition of a program holds.

A program (:mod:`spark_cep.programs.programs`) works on a stack of values. It reads columns of
the event, and of the events that a partial match has taken: those that ``nodes`` lead back to from
``last`` (see :data:`spark_cep.matcher.steps.loops.kernel_tables.NODE`). Aggregates of these events
are kept in accumulators (:mod:`spark_cep.matcher.steps.loops.accumulators`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from spark_cep.columns.compilation import NONE, Table, compiled, inlined, record
from spark_cep.programs.loops import whole_arithmetic
from spark_cep.programs.loops.aggregate_loop import COUNT, result

# What programs are made of. On DOUBLE, an operation's code is higher by ``DOUBLE``.
DOUBLE = 64
# Onto the stack.
NULL, CONSTANT, TEXT, COLUMN, LOOK_BACK = range(5)
# On one value.
(
    TO_DOUBLE, TO_MOMENT, RESCALE, DECIMAL_TO_DOUBLE, FLOOR_DIVIDE, MODULO, NEGATE, ABS,
    NOT, IS_NULL, IS_TRUE, IS_FALSE,
) = range(5, 17)  # fmt: skip
# On two; NULL when one is.
(
    EQUAL, NOT_EQUAL, LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL,
    ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER,
) = range(17, 28)  # fmt: skip
# On two, otherwise.
AND, OR, COALESCE, LEAST, GREATEST = range(28, 33)
# A condition and two values; as many values as the operand says.
SELECT, CALL = 33, 34
#: What arithmetic on whole numbers must not leave, as its operand.
CHECK_NONE, CHECK_INT, CHECK_BIGINT = range(3)
#: A program's stack holds so many values at most.
STACK = 64
#: What a look-back does, beside the aggregates.
FIRST, LAST = range(2)
COUNT_DISTINCT = 11
_DAY = 86_400_000_000
_LEAST_INT, _MOST_INT = -(1 << 31), (1 << 31) - 1

#: A condition that only the partial match answers: on the time since its last event (``gap``), or,
#: where there are operations, a program.
CONDITION = record(
    gap="i8", first_operation="i4", end_operation="i4", first_look="i4", first_call="i4"
)
#: See :mod:`spark_cep.programs.programs`. A text's ``whole`` is its number, that of a call
#: its number in the program.
OPERATION = record(whole="i8", double="f8", code="i4", operand="i4")
#: A look-back's value, read in the rule's accumulator (``NONE``: in the events taken).
LOOK = record(function="i4", step="i4", column="i4", offset="i4", accumulator="i4", double="u1")
#: A value on a program's stack, or the accumulator of an aggregate: how many values it was
#: ``given``, and their sum, the best of them, or their mean and ``squares`` of distances from it.
#: The sum of whole numbers is in halves, ``whole`` and ``low``, so that only the result's own range
#: counts. Of COUNT DISTINCT ``low`` is the values' row in the table of branches.
VALUE = record(whole="i8", double="f8", null="u1", given="i8", low="i8", squares="f8")
#: The type of the function that calls Python: number of the call, event, last node, and the place
#: of the first operand on the stack, where the result goes; gives 1 where it failed, else 0.
ASK = types.int64(types.int64, types.int64, types.int64, types.int64)


class Programs(NamedTuple):
    """Programs of conditions: tables of ``CONDITION``, ``OPERATION`` and ``LOOK``."""

    conditions: Table
    operations: Table
    looks: Table


class Columns(NamedTuple):
    """A row for each event, a column for each column: ``doubles`` is the memory of ``wholes``."""

    wholes: NDArray[np.int64]
    doubles: NDArray[np.float64]
    nulls: NDArray[np.uint8]


@compiled
def holds(
    condition, last, event, programs, columns, first_accumulator, accumulators, stack, nodes, ask
):  # fmt: skip
    """Return whether a program's condition is true: neither false nor NULL. Its accumulators begin
    at ``first_accumulator``. ``ask`` is what computes the calls of Python (see :data:`ASK`); where
    one fails, the condition is not true."""
    top = -1
    for row in range(condition.first_operation, condition.end_operation):
        operation = programs.operations[row]
        code = operation.code & (DOUBLE - 1)
        if code == LOOK_BACK:
            top += 1
            look = programs.looks[condition.first_look + operation.operand]
            value = stack[top]
            value.null = 1
            value.whole = 0
            value.double = 0.0
            if look.accumulator == NONE:
                _look_back(look, last, value, columns, nodes)
            else:
                _read_accumulator(
                    look, accumulators[first_accumulator + look.accumulator], value, columns
                )
        elif code == CALL:
            top += 1 - operation.operand
            if ask(condition.first_call + operation.whole, event, last, top):
                return False
        else:
            top = step(code, operation, event, columns, stack, top)
    return not stack[0].null and stack[0].whole != 0


@compiled
def holds_of_event(condition, event, programs, columns, stack):
    """Return whether a condition without look-backs and calls holds for the event."""
    top = -1
    for row in range(condition.first_operation, condition.end_operation):
        operation = programs.operations[row]
        code = operation.code & (DOUBLE - 1)
        top = step(code, operation, event, columns, stack, top)
    return not stack[0].null and stack[0].whole != 0


@inlined
def step(code, operation, event, columns, stack, top):
    """One operation; the place of the stack's last value then."""
    if code <= LOOK_BACK:
        top += 1
        value = stack[top]
        value.null = code == NULL
        if code == COLUMN:
            read(event, operation.operand, value, columns)
        else:
            value.whole = operation.whole
            value.double = operation.double
    elif code <= IS_FALSE:
        _change(code, operation, stack[top])
    else:
        top -= 1
        if code == SELECT:
            top -= 1
            _select(stack[top], stack[top + 1], stack[top + 2])
        else:
            _combine(code, operation, stack[top], stack[top + 1])
    return top


@compiled
def _select(test, yes, no):
    """The second or the third value, into the first."""
    chosen = yes if not test.null and test.whole != 0 else no
    test.whole = chosen.whole
    test.double = chosen.double
    test.null = chosen.null


@compiled
def _combine(code, operation, left, right):
    """An operation on two values, into ``left``."""
    if code in (AND, OR):
        _join(code, left, right)
    elif code >= COALESCE:
        _choose(operation.code, left, right)
    elif left.null or right.null:
        left.null = 1
    elif code <= GREATER_OR_EQUAL:
        if operation.code & DOUBLE:
            left.whole = compare_doubles(code, left.double, right.double)
        else:
            left.whole = compare_wholes(code, left.whole, right.whole)
    elif operation.code & DOUBLE:
        _compute_double(code, left, right.double)
    else:
        _compute_whole(code, operation.operand, left, right.whole)


@compiled
def _change(code, operation, value):
    """An operation on one value."""
    if code == IS_NULL:
        value.whole = value.null
        value.null = 0
    elif code == IS_TRUE:
        value.whole = not value.null and value.whole != 0
        value.null = 0
    elif code == IS_FALSE:
        value.whole = not value.null and value.whole == 0
        value.null = 0
    elif value.null:
        # The number beside a NULL may be any.
        return
    elif code == NOT:
        value.whole = value.whole == 0
    elif code == TO_DOUBLE:
        value.double = value.whole
    elif code == TO_MOMENT:
        value.whole *= _DAY
    elif code == RESCALE:
        value.whole *= operation.whole
    elif code == DECIMAL_TO_DOUBLE:
        value.double = value.whole / operation.whole
    elif code == FLOOR_DIVIDE:
        value.whole //= operation.whole
    elif code == MODULO:
        value.whole %= operation.whole
    elif operation.code & DOUBLE:
        value.double = -value.double if code == NEGATE else abs(value.double)
    elif code == NEGATE or value.whole < 0:
        value.whole, beyond = whole_arithmetic.subtract(0, value.whole)
        if beyond:
            value.null = 1
        _check(operation.operand, value)


@compiled
def _choose(code, left, right):
    """COALESCE, LEAST and GREATEST, into ``left``."""
    if right.null:
        return
    take = left.null != 0
    kind = code & (DOUBLE - 1)
    if not take and kind != COALESCE:
        compare = LESS if kind == LEAST else GREATER
        if code & DOUBLE:
            take = compare_doubles(compare, right.double, left.double)
        else:
            take = compare_wholes(compare, right.whole, left.whole)
    if take:
        left.whole = right.whole
        left.double = right.double
        left.null = 0


@compiled
def _join(code, left, right):
    """AND and OR of three truth values, into ``left``."""
    decisive = 0 if code == AND else 1
    if (not left.null and (left.whole != 0) == decisive) or (
        not right.null and (right.whole != 0) == decisive
    ):
        left.whole = decisive
        left.null = 0
    elif left.null or right.null:
        left.null = 1
    else:
        left.whole = 1 - decisive


@inlined
def compare_wholes(code, left, right):
    """Return whether a comparison holds."""
    return (
        (code == EQUAL and left == right)
        or (code == NOT_EQUAL and left != right)
        or (code == LESS and left < right)
        or (code == LESS_OR_EQUAL and left <= right)
        or (code == GREATER and left > right)
        or (code == GREATER_OR_EQUAL and left >= right)
    )


@compiled
def compare_doubles(code, left, right):
    """NaN equals NaN and is above all else."""
    left_nan, right_nan = np.isnan(left), np.isnan(right)
    if left_nan or right_nan:
        return compare_wholes(code, np.int64(left_nan), np.int64(right_nan))
    return compare_wholes(code, left, right)


@compiled
def _compute_double(code, left, right):
    if code == ADD:
        left.double += right
    elif code == SUBTRACT:
        left.double -= right
    elif code == MULTIPLY:
        left.double *= right
    elif right == 0:
        left.null = 1
    elif code == DIVIDE:
        left.double /= right
    else:
        left.double = np.nan if np.isinf(left.double) else np.fmod(left.double, right)


@compiled
def _compute_whole(code, check, left, right):
    """Compute with two whole numbers; the result is NULL beyond the range of the type
    (``check``)."""
    one = left.whole
    if code == ADD:
        left.whole, beyond = whole_arithmetic.add(one, right)
    elif code == SUBTRACT:
        left.whole, beyond = whole_arithmetic.subtract(one, right)
    elif code == MULTIPLY:
        left.whole, beyond = whole_arithmetic.multiply(one, right)
    elif right in (0, -1):
        # By -1 nothing is left; the least number divided by it is none.
        left.whole = 0
        beyond = right == 0
    else:
        left.whole = one % right
        # With the sign of the first one.
        if left.whole != 0 and (one < 0) != (right < 0):
            left.whole -= right
        beyond = False
    if beyond:
        left.null = 1
    _check(check, left)


@inlined
def _check(check, value):
    if check == CHECK_INT and not _LEAST_INT <= value.whole <= _MOST_INT:
        value.null = 1


@compiled
def _look_back(look, last, value, columns, nodes):
    """The value of a LAST so far back that no accumulator has it; NULL where there is none."""
    count = 0
    row = last
    while row != NONE:
        if look.step == NONE or nodes[row].step == look.step:
            if count == look.offset:
                _of_event(look, nodes[row].event, value, columns)
                return
            count += 1
        row = nodes[row].previous


@compiled
def _read_accumulator(look, accumulator, value, columns):
    """The value of a look-back whose accumulator has taken all events."""
    if look.function in (FIRST, LAST):
        if accumulator.whole != NONE:
            _of_event(look, accumulator.whole, value, columns)
    elif look.function in (COUNT, COUNT_DISTINCT):
        value.whole = accumulator.given
        value.null = 0
    else:
        result(look.function, look.double, accumulator, value)


@inlined
def _of_event(look, event, value, columns):
    """The look-back's column of an event, or, without one, the event's number."""
    if look.column == NONE:
        value.whole = event
        value.null = 0
    else:
        read(event, look.column, value, columns)


@inlined
def read(event, column, value, columns):
    """A column of an event, into ``value``."""
    value.null = columns.nulls[event, column]
    value.whole = columns.wholes[event, column]
    value.double = columns.doubles[event, column]
