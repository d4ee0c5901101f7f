"""Conditions of threads, compiled: what they read of the rows taken, and what they come to.

What conditions read of a thread's rows is in registers: it gets others with each row it takes.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import NONE, compiled, inlined
from spark_cep.matcher.row_pattern.loops.tables import (
    AVERAGE,
    BEST,
    CLASSIFIER,
    COUNT,
    COUNTED,
    EDGE,
    FIRST_ROWS,
    FROM_REGISTER,
    FROM_START,
    LAST_ROWS,
    LEAST,
    MEAN,
    NO,
    NUMBER,
    OF_ALL,
    OF_BIT,
    OF_PROGRAM,
    OF_PYTHON,
    OPEN,
    PAST_NO,
    PAST_YES,
    SUM,
    TRACE,
    YES,
)
from spark_cep.programs.loops.expression_loop import (
    DOUBLE,
    GREATER,
    LESS,
    LOOK_BACK,
    compare_doubles,
    compare_wholes,
    read,
    step,
)

PRIME = np.uint64(0x9E3779B97F4A7C15)
_LOWER = 0xFFFFFFFF


@compiled
def take(program, columns, work, source, target, variable, row, place):
    """Registers for the rows of ``source`` and one more, which is at ``place``."""
    registers, doubles = work.registers, work.doubles
    for word in range(program.clause[0].words):
        registers[target, word] = registers[source, word]
    for number in range(len(program.registers)):
        register = program.registers[number]
        if not program.sets[register.variables, variable]:
            continue
        kind, word = register.kind, register.word
        if kind == LAST_ROWS:
            for other in range(word + register.words - 1, word, -1):
                registers[target, other] = registers[target, other - 1]
            registers[target, word] = row
        elif kind == FIRST_ROWS:
            for other in range(word, word + register.words):
                if registers[target, other] == NONE:
                    registers[target, other] = row
                    break
        elif kind == TRACE:
            mixed = (np.uint64(registers[target, word]) ^ np.uint64(row + 1)) * PRIME
            registers[target, word] = np.int64(mixed ^ (mixed >> np.uint64(29)))
        elif register.column == NONE:
            registers[target, word] += 1
        elif not columns.nulls[place, register.column]:
            whole = columns.wholes[place, register.column]
            double = columns.doubles[place, register.column]
            registers[target, word] += 1
            if kind == AVERAGE or (kind == SUM and register.double):
                doubles[target, word + 1] += double if register.double else np.float64(whole)
            elif kind == SUM:
                # In halves, so that only the result's own range counts.
                registers[target, word + 1] += whole >> 32
                registers[target, word + 2] += whole & _LOWER
            elif kind != COUNT:
                code = LESS if kind == LEAST else GREATER
                if register.double:
                    better = compare_doubles(code, double, doubles[target, word + 1])
                else:
                    better = compare_wholes(code, whole, registers[target, word + 1])
                if better or registers[target, word] == 1:
                    registers[target, word + 1] = whole


@compiled
def clear(program, work):
    """The registers of a thread without rows, in slot 0."""
    for number in range(len(program.registers)):
        register = program.registers[number]
        nothing = NONE if register.kind <= FIRST_ROWS else 0
        for word in range(register.word, register.word + register.words):
            work.registers[0, word] = nothing


@inlined
def answer_of(
    condition, row, place, slot, node, program, programs, columns, rows, work, ask, control
):  # fmt: skip
    """What the tests of a condition come to."""
    answers, top = work.answers, -1
    number = condition.first_test
    while number < condition.end_test:
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
    """What a program comes to."""
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
    if load.code >= NUMBER:
        _summary(load, value, slot, work, control)
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
def _summary(load, value, slot, work, control):
    """MATCH_NUMBER, or what a register has of all rows of its variables."""
    registers, doubles, word = work.registers, work.doubles, load.word
    if load.code == NUMBER:
        value.whole = control.number
        value.null = 0
    elif load.code == COUNTED:
        value.whole = registers[slot, word]
        value.null = 0
    elif registers[slot, word]:
        value.null = 0
        if load.code == BEST:
            value.whole = registers[slot, word + 1]
            value.double = doubles[slot, word + 1]
        elif load.code == MEAN:
            value.double = doubles[slot, word + 1] / registers[slot, word]
        elif load.double:
            value.double = doubles[slot, word + 1]
        else:
            low = registers[slot, word + 2]
            high = registers[slot, word + 1] + (low >> 32)
            value.whole = (high << 32) | (low & _LOWER)
            value.null = not -(1 << 31) <= high < 1 << 31


@compiled
def _label_at(nodes, node, back):
    """The variable of the row so many before the last one."""
    while nodes[node].label == EDGE or back:
        back -= nodes[node].label != EDGE
        node = nodes[node].previous
    return nodes[node].label
