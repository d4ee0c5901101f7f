"""Threads run the program, compiled: what :mod:`service.matcher.row_pattern.threads` does.

A thread's rows are a chain of nodes that threads share. What conditions read of them is in
registers, which a thread gets with each row it takes. A step writes behind what it was given, so
that a step for which a table is too small can be made again.
"""

from __future__ import annotations

import numpy as np

from service.matcher.columnar.compilation import NONE, compiled, inlined
from service.matcher.columnar.expression_loop import (
    DOUBLE,
    GREATER,
    LESS,
    LOOK_BACK,
    compare_doubles,
    compare_wholes,
    read,
    step,
)
from service.matcher.row_pattern.compiled.tables import (
    AVERAGE,
    BEST,
    CLASSIFIER,
    COUNT,
    COUNTED,
    DONE,
    EDGE,
    END,
    FIRST_ROWS,
    FROM_REGISTER,
    FROM_START,
    JUMP,
    LABEL,
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
    SAME_LABELS,
    SAME_WORDS,
    SAVE,
    SPLIT,
    SUM,
    TRACE,
    YES,
)

#: What a step returns: done, or which table is full.
STEPPED, FULL_THREADS, FULL_NODES, FULL_REGISTERS = range(4)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_LOWER = 0xFFFFFFFF


@inlined
def run_threads(program, programs, columns, rows, work, ask, control, key, until):
    """Every thread goes on as far as the rows before number ``until`` let it; beyond the last row,
    the partition has ended."""
    control.serial += 1
    control.known = min(until, control.end)
    control.ended = until > control.end
    words = program.clause[0].words
    nodes, slots, resting, seen = control.nodes, control.slots, 0, 0
    top = control.threads
    if 2 * top >= len(work.stack):
        return FULL_THREADS
    for place in range(top):
        work.stack[top - 1 - place] = work.threads[place]
    while top > 0:
        top -= 1
        at, node = work.stack[top].at, work.stack[top].node
        length, slot = work.stack[top].length, work.stack[top].slot
        alive = True
        while alive:
            if (
                resting >= len(work.following)
                or seen >= len(work.seen)
                or top + 1 >= len(work.stack)
            ):
                return FULL_THREADS
            if work.heads[at, 0] == control.serial and _was_seen(
                program, work, at, node, length, slot
            ):
                break
            entry = work.seen[seen]
            entry.node, entry.length, entry.slot = node, length, slot
            entry.next = work.heads[at, 1] if work.heads[at, 0] == control.serial else NONE
            work.heads[at, 0], work.heads[at, 1] = control.serial, seen
            seen += 1
            instruction = program.instructions[at]
            code = instruction.code
            row = control.start + length
            rests = False
            if code == LABEL:
                if row >= control.end and control.ended:
                    break
                if row >= until:
                    rests = True
                else:
                    variable = instruction.first
                    condition = program.variables[variable]
                    place = rows.at[control.first_row + row - control.base]
                    if rows.bits[place] & condition.bits != condition.bits:
                        break
                    if nodes >= len(work.nodes):
                        return FULL_NODES
                    work.nodes[nodes].previous = node
                    work.nodes[nodes].label = variable
                    taken = slot
                    if words:
                        if slots >= len(work.registers):
                            return FULL_REGISTERS
                        taken = slots
                        take(program, columns, work, slot, taken, variable, row, place)
                    answer = YES
                    if condition.first_test < condition.end_test:
                        answer = _answer(
                            condition, row, place, taken, nodes, program, programs, columns, rows,
                            work, ask, control,
                        )  # fmt: skip
                    if answer == NO:
                        break
                    if answer == OPEN:
                        rests = True
                    else:
                        node, slot = nodes, taken
                        nodes += 1
                        slots += words > 0
                        length += 1
                        at += 1
            elif code == SPLIT:
                other = work.stack[top]
                other.at, other.node, other.length, other.slot = (
                    instruction.second, node, length, slot,
                )  # fmt: skip
                top += 1
                at = instruction.first
            elif code == JUMP:
                at = instruction.first
            elif code == SAVE:
                if nodes >= len(work.nodes):
                    return FULL_NODES
                work.nodes[nodes].previous = node
                work.nodes[nodes].label = EDGE
                node = nodes
                nodes += 1
                at += 1
            elif code == END:
                if row < control.known:
                    break
                if control.ended:
                    at += 1
                else:
                    rests = True
            elif code == DONE:
                key.found, key.found_at, key.found_node, key.found_length = 1, at, node, length
                top = 0
                alive = False
            elif row == 0:
                at += 1
            else:
                break
            if rests:
                thread = work.following[resting]
                thread.at, thread.node, thread.length, thread.slot = at, node, length, slot
                resting += 1
                alive = False
    for place in range(resting):
        work.threads[place] = work.following[place]
    control.threads, control.nodes, control.slots = resting, nodes, slots
    return STEPPED


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
            mixed = (np.uint64(registers[target, word]) ^ np.uint64(row + 1)) * _PRIME
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


@compiled
def labels_of(nodes, node, length, out):
    """Write the variables of so many rows."""
    place = length
    while node != NONE:
        if nodes[node].label != EDGE:
            place -= 1
            out[place] = nodes[node].label
        node = nodes[node].previous


@compiled
def _was_seen(program, work, at, node, length, slot):
    """Whether a thread that nothing tells apart from this one stood here, as is known that some
    did, in this step."""
    instruction = program.instructions[at]
    entry = work.heads[at, 1]
    same = False
    while entry != NONE and not same:
        seen = work.seen[entry]
        if seen.length == length:
            same = seen.node == node
            if not same:
                same = True
                for number in range(instruction.first_distinction, instruction.end_distinction):
                    if same:
                        same = _same_past(
                            program.distinctions[number], program, work, node, seen.node, length,
                            slot, seen.slot,
                        )  # fmt: skip
        entry = seen.next
    return same


@compiled
def _same_past(distinction, program, work, node, other_node, length, slot, other_slot):
    """Whether a condition reads the same of two threads."""
    kind = distinction.kind
    if kind != SAME_LABELS:
        for word in range(distinction.word, distinction.word + distinction.count):
            if work.registers[slot, word] != work.registers[other_slot, word]:
                return False
        if kind == SAME_WORDS:
            return True
    # Different rows may have the same trace.
    one, other = work.one, work.other
    labels_of(work.nodes, node, length, one)
    labels_of(work.nodes, other_node, length, other)
    first, end = 0, length
    left = distinction.count if kind == SAME_LABELS and distinction.last >= 0 else -1
    step_on = 1
    if distinction.last == 1:
        first, end, step_on = length - 1, -1, -1
    for row in range(first, end, step_on):
        if left == 0:
            break
        inside = program.sets[distinction.variables, one[row]]
        if inside != program.sets[distinction.variables, other[row]]:
            return False
        if inside:
            left -= 1
            near = row + distinction.shift
            if kind == SAME_LABELS and 0 <= near < length and one[near] != other[near]:
                return False
    if kind == SAME_LABELS:
        for row in range(max(0, length + distinction.shift), length):
            if one[row] != other[row]:
                return False
    return True


@inlined
def _answer(
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
            question = programs.questions[test.operand]
            answers[top] = _computed(
                question, row, place, slot, node, program, programs, columns, rows, work, control
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
    question, row, place, slot, node, program, programs, columns, rows, work, control
):  # fmt: skip
    """What a program comes to."""
    stack, top = work.values, -1
    for number in range(question.first_operation, question.end_operation):
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


@compiled
def keep_nodes(work, control, key):
    """Let go of the nodes that no thread has. Nodes stand before those behind them."""
    nodes, moved = work.nodes, work.moved
    for node in range(control.nodes):
        moved[node] = 0
    for place in range(control.threads):
        _mark(nodes, moved, work.threads[place].node)
    if key.found:
        _mark(nodes, moved, key.found_node)
    if key.dropped:
        _mark(nodes, moved, key.dropped_node)
    count = 0
    for node in range(control.nodes):
        if moved[node]:
            moved[node] = count
            previous = nodes[node].previous
            nodes[count].label = nodes[node].label
            nodes[count].previous = NONE if previous == NONE else moved[previous]
            count += 1
    for place in range(control.threads):
        thread = work.threads[place]
        thread.node = NONE if thread.node == NONE else moved[thread.node]
    if key.found and key.found_node != NONE:
        key.found_node = moved[key.found_node]
    if key.dropped and key.dropped_node != NONE:
        key.dropped_node = moved[key.dropped_node]
    control.nodes = count


@compiled
def _mark(nodes, moved, node):
    while node != NONE and not moved[node]:
        moved[node] = 1
        node = nodes[node].previous


@compiled
def keep_slots(program, work, control):
    """Let go of the registers that no thread has."""
    words = program.clause[0].words
    moved = work.moved
    for slot in range(control.slots):
        moved[slot] = NONE
    for place in range(control.threads):
        moved[work.threads[place].slot] = 0
    count = 0
    for slot in range(control.slots):
        if moved[slot] != NONE:
            moved[slot] = count
            for word in range(words):
                work.registers[count, word] = work.registers[slot, word]
            count += 1
    for place in range(control.threads):
        work.threads[place].slot = moved[work.threads[place].slot]
    control.slots = count
