"""Conditions of threads, compiled: what they read of the rows taken, and what they come to.

What conditions read of a thread's rows is in registers: it gets others with each row it takes.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import NONE, compiled, inlined
from spark_cep.columns.loops.number_hash import mixed_with
from spark_cep.matcher.row_pattern.loops.tables import (
    AGGREGATE,
    CLASSIFIER,
    EDGE,
    FIRST_ROWS,
    FROM_REGISTER,
    FROM_START,
    LAST_ROWS,
    NO,
    NUMBER,
    OF_ALL,
    OF_BIT,
    OF_PROGRAM,
    OF_PYTHON,
    OPEN,
    PAST_NO,
    PAST_YES,
    YES,
)
from spark_cep.programs.loops import aggregate_loop
from spark_cep.programs.loops.expression_loop import DOUBLE, LOOK_BACK, read, step


@inlined
def take(program, columns, work, slot, variable, row, place):
    """Let the registers of a thread be those of its rows and one more, which is at ``place``."""
    registers = work.registers
    for number in range(len(program.registers)):
        register = program.registers[number]
        if not program.sets[register.variables, variable]:
            continue
        kind, word = register.kind, register.word
        if kind == LAST_ROWS:
            for other in range(word + register.words - 1, word, -1):
                registers[slot, other] = registers[slot, other - 1]
            registers[slot, word] = row
        elif kind == FIRST_ROWS:
            for other in range(word, word + register.words):
                if registers[slot, other] == NONE:
                    registers[slot, other] = row
                    break
        else:
            registers[slot, word] = np.int64(mixed_with(registers[slot, word], row + 1))
    for number in range(len(program.aggregates)):
        aggregate = program.aggregates[number]
        if program.sets[aggregate.variables, variable]:
            aggregate_loop.take(aggregate, place, columns, work.accumulators[slot, number])


@compiled
def clear(program, work):
    """The registers of a thread without rows, in slot 0."""
    for number in range(len(program.registers)):
        register = program.registers[number]
        nothing = NONE if register.kind <= FIRST_ROWS else 0
        for word in range(register.word, register.word + register.words):
            work.registers[0, word] = nothing
    for number in range(len(program.aggregates)):
        aggregate_loop.clear(work.accumulators[0, number])


@inlined
def copy(program, work, source, target):
    """The registers of one slot as those of another."""
    for word in range(program.clause[0].words):
        work.registers[target, word] = work.registers[source, word]
    for number in range(len(program.aggregates)):
        work.accumulators[target, number] = work.accumulators[source, number]


@inlined
def answer_of(
    first, end, row, place, slot, node, program, programs, columns, rows, work, ask, control
):  # fmt: skip
    """Return the result of the tests from one on to another."""
    answers, top = work.answers, -1
    number = first
    while number < end:
        test = program.tests[number]
        code = test.code
        number += 1
        if code == OF_BIT:
            top += 1
            answers[top] = YES if rows.bits[place] & test.operand else NO
        elif code == OF_PROGRAM:
            top += 1
            asked = programs.conditions[test.operand]
            answers[top] = _computed(
                asked, row, place, slot, node, program, programs, columns, rows, work, control
            )
        elif code == OF_PYTHON:
            top += 1
            answers[top] = ask(test.operand, row, node, control.known)
        elif code in (PAST_NO, PAST_YES):
            if answers[top] == (NO if code == PAST_NO else YES):
                number = test.operand
        else:
            top -= 1
            decisive = NO if code == OF_ALL else YES
            if answers[top] == decisive or answers[top + 1] == decisive:
                answers[top] = decisive
            elif answers[top] == OPEN or answers[top + 1] == OPEN:
                answers[top] = OPEN
            else:
                answers[top] = YES if code == OF_ALL else NO
    return answers[0]


@inlined
def _computed(
    asked, row, place, slot, node, program, programs, columns, rows, work, control
):  # fmt: skip
    """Return the result of a program."""
    stack, top = work.values, -1
    for number in range(asked.first_operation, asked.end_operation):
        operation = programs.operations[number]
        code = operation.code & (DOUBLE - 1)
        if code == LOOK_BACK:
            top += 1
            if not _load(
                program.loads[operation.operand], stack[top], row, slot, node, program, columns,
                rows, work, control,
            ):  # fmt: skip
                return OPEN
        else:
            top = step(code, operation, place, columns, stack, top)
    return NO if stack[0].null or stack[0].whole == 0 else YES


@inlined
def _load(load, value, current, slot, node, program, columns, rows, work, control):
    """Put a value of the match on the stack; whether it is known."""
    value.null = 1
    value.whole = 0
    value.double = 0.0
    if load.code == NUMBER:
        value.whole = control.number
        value.null = 0
        return True
    if load.code == AGGREGATE:
        aggregate = program.aggregates[load.word]
        accumulator = work.accumulators[slot, load.word]
        aggregate_loop.result(aggregate.function, aggregate.double, accumulator, value)
        return True
    if load.place == FROM_REGISTER:
        number = work.registers[slot, load.word + load.offset]
        if number == NONE:
            return True
    elif load.offset > current - control.start:
        return True
    else:
        number = current - load.offset
        if load.place == FROM_START:
            number = control.start + load.offset
    number += load.shift
    if load.code == CLASSIFIER:
        if control.start <= number <= current:
            value.whole = program.names[_label_at(work.nodes, node, current - number)]
            value.null = 0
        return True
    if number < 0:
        return True
    if number >= control.known:
        return control.ended != 0
    read(rows.at[control.first_row + number - control.base], load.column, value, columns)
    return True


@compiled
def _label_at(nodes, node, back):
    """The variable of the row so many before the last one."""
    while nodes[node].label == EDGE or back:
        back -= nodes[node].label != EDGE
        node = nodes[node].previous
    return nodes[node].label
