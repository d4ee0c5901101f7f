"""Threads run the program, compiled: from one row to the next, in the order of preference.

A thread's rows are a chain of nodes that threads share. A step writes behind what it was given, so
that a step for which a table is too small can be made again.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import NONE, compiled, inlined
from spark_cep.columns.loops.number_hash import mixed_with
from spark_cep.matcher.row_pattern.loops.condition_loop import answer_of, copy, take
from spark_cep.matcher.row_pattern.loops.failed_loop import take_back, was_tried
from spark_cep.matcher.row_pattern.loops.tables import (
    DONE,
    EDGE,
    END,
    JUMP,
    LABEL,
    NO,
    OPEN,
    SAME_LABELS,
    SAME_WORDS,
    SAVE,
    SPLIT,
    WORK_LIMIT,
    YES,
)

#: What a step returns: done, or which table is full.
STEPPED, FULL_THREADS, FULL_NODES, FULL_REGISTERS = range(4)


@inlined
def run_threads(program, programs, columns, rows, work, ask, control, key, until):
    """Every thread goes on as far as the rows before number ``until`` let it; beyond the last row,
    the partition has ended."""
    control.serial += 1
    control.mixed_slot = NONE
    near, steps = program.clause[0].near, key.work
    control.known = min(until, control.end)
    control.ended = until > control.end
    keeps = program.clause[0].keeps
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
                take_back(work, control, near, seen)
                return FULL_THREADS
            instruction = program.instructions[at]
            head = at
            if instruction.first_distinction < instruction.end_distinction:
                head = _head(program, work, control, instruction, at, slot)
            if work.heads[head, 0] == control.serial and _was_seen(
                program, work, head, at, node, length, slot
            ):
                break
            entry = work.seen[seen]
            entry.at, entry.node, entry.length, entry.slot = at, node, length, slot
            entry.next = work.heads[head, 1] if work.heads[head, 0] == control.serial else NONE
            work.heads[head, 0], work.heads[head, 1] = control.serial, seen
            seen += 1
            code = instruction.code
            row = control.start + length
            rests = False
            if near:
                # A thread that rests comes to its instruction again.
                if (
                    (code != LABEL or row < until)
                    and code != END
                    and was_tried(work, control, row, at)
                ):
                    break
            else:
                steps += program.clause[0].step
                if steps > program.clause[0].most_work:
                    key.limit = WORK_LIMIT
                    key.work = steps
                    return STEPPED
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
                    steps += condition.cost
                    if nodes >= len(work.nodes):
                        take_back(work, control, near, seen)
                        return FULL_NODES
                    work.nodes[nodes].previous = node
                    work.nodes[nodes].label = variable
                    work.kept[nodes] = 0
                    taken = slot
                    if keeps:
                        if slots >= len(work.registers):
                            take_back(work, control, near, seen)
                            return FULL_REGISTERS
                        taken = slots
                        copy(program, work, slot, taken)
                        take(program, columns, work, taken, variable, row, place)
                    answer = YES
                    if condition.first_test < condition.end_test:
                        answer = answer_of(
                            condition.first_test, condition.end_test, row, place, taken, nodes,
                            program, programs, columns, rows, work, ask, control,
                        )  # fmt: skip
                    if answer == NO:
                        break
                    if answer == OPEN:
                        rests = True
                    else:
                        node, slot = nodes, taken
                        nodes += 1
                        slots += keeps
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
                    take_back(work, control, near, seen)
                    return FULL_NODES
                work.nodes[nodes].previous = node
                work.nodes[nodes].label = EDGE
                work.kept[nodes] = 0
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
                key.found, key.found_node, key.found_length = 1, node, length
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
    if not near:
        key.work = steps
    return STEPPED


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
def path_back(nodes, kept, node, out):
    """Write a node and those before it, the last first, up to the next of which Python keeps
    something; returns how many."""
    count = 0
    while True:
        out[count] = node
        count += 1
        node = nodes[node].previous
        if node == NONE or kept[node]:
            return count


@compiled
def _head(program, work, control, instruction, at, slot):
    """Return the head of the list of threads with the same registers, which may be equal to this
    one. Without these lists, each of very many threads would be compared with all."""
    if control.mixed_slot != slot or control.mixed_of != instruction.first_distinction:
        # A thread comes to many instructions with the same distinctions.
        mixed = np.uint64(0)
        for number in range(instruction.first_distinction, instruction.end_distinction):
            distinction = program.distinctions[number]
            if distinction.kind != SAME_LABELS:
                for word in range(distinction.word, distinction.word + distinction.count):
                    mixed = mixed_with(mixed, work.registers[slot, word])
        control.mixed = np.int64(mixed)
        control.mixed_slot, control.mixed_of = slot, instruction.first_distinction
    return np.int64(mixed_with(control.mixed, at) % np.uint64(len(work.heads)))


@compiled
def _was_seen(program, work, head, at, node, length, slot):
    """Return whether a thread that nothing tells apart from this one stood here in this step; some
    stood here that may be equal."""
    instruction = program.instructions[at]
    entry = work.heads[head, 1]
    same = False
    while entry != NONE and not same:
        seen = work.seen[entry]
        if seen.at == at and seen.length == length:
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
    """Return whether a condition reads the same of two threads."""
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


@compiled
def keep_nodes(work, control, key):
    """Let go of the nodes that no thread has. Nodes stand before those behind them."""
    nodes, moved = work.nodes, work.moved
    for node in range(control.nodes):
        moved[node] = 0
    for place in range(control.threads):
        _mark(moved, work.threads[place].node)
    if key.found:
        _mark(moved, key.found_node)
    if key.dropped:
        _mark(moved, key.dropped_node)
    for node in range(control.nodes - 1, -1, -1):
        if moved[node]:
            _mark(moved, nodes[node].previous)
    count = 0
    for node in range(control.nodes):
        if moved[node]:
            moved[node] = count
            previous = nodes[node].previous
            nodes[count].label = nodes[node].label
            work.kept[count] = work.kept[node]
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


@inlined
def _mark(moved, node):
    if node != NONE:
        moved[node] = 1


@compiled
def keep_slots(program, work, control):
    """Let go of the registers that no thread has."""
    moved = work.moved
    for slot in range(control.slots):
        moved[slot] = NONE
    for place in range(control.threads):
        moved[work.threads[place].slot] = 0
    count = 0
    for slot in range(control.slots):
        if moved[slot] != NONE:
            moved[slot] = count
            copy(program, work, slot, count)
            count += 1
    for place in range(control.threads):
        work.threads[place].slot = moved[work.threads[place].slot]
    control.slots = count
