"""Instructions before rows from which attempts have failed, which later attempts need not try.

They are noted for the last rows, in bits (``tried``), where conditions say the same of each
attempt. Between batches they are stored with the key, so that an attempt that fails does not let
the next one go through all of its rows again.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import FOREVER, NONE, compiled, inlined
from spark_cep.matcher.row_pattern.loops.condition_loop import answer_of
from spark_cep.matcher.row_pattern.loops.tables import (
    DONE,
    END,
    JUMP,
    LABEL,
    MOST_KEPT_TRIED,
    SAVE,
    SPLIT,
    YES,
)


@inlined
def place_of_row(control, row, noted):
    """Return the place of a row among those of all keys, and that of what is noted of it in a table
    of the last rows."""
    place = control.first_row + control.key + row - control.base
    return place, place & (len(noted) - 1)


@inlined
def _bit(at):
    return np.uint64(1) << np.uint64(at & 63)


@compiled
def take_back(work, control, near, seen):
    """Take back what a step has noted that is made again."""
    if near:
        for number in range(seen):
            row, at = control.start + work.seen[number].length, work.seen[number].at
            place, window = place_of_row(control, row, work.tried)
            if work.tried_of[window] == place:
                work.tried[window, at >> 6] &= ~_bit(at)


@inlined
def was_tried(work, control, row, at):
    """Return whether an attempt was at an instruction before a row, and note that one was."""
    place, window = place_of_row(control, row, work.tried)
    if work.tried_of[window] != place:
        work.tried_of[window] = place
        work.tried[window, :] = 0
    was = work.tried[window, at >> 6] & _bit(at)
    work.tried[window, at >> 6] |= _bit(at)
    return was != 0


@compiled
def forget_tried(work, control, first, end):
    """Let an attempt have been nowhere before rows: it has not failed."""
    for row in range(first, end):
        place, window = place_of_row(control, row, work.tried)
        if work.tried_of[window] == place:
            work.tried_of[window] = NONE


@inlined
def is_tried_kept(program, control, key):
    """Return whether it is stored where the attempt under way, and those that failed before it,
    have been: it may still fail, and to make it again would cost more."""
    return (
        program.clause[0].near != 0
        and key.attempt != 0
        and key.found == 0
        and control.threads > 0
        and (key.next_row - key.start) * len(program.instructions) > control.repeated
    )


@compiled
def keep_tried(work, out, control, key):
    """Store where attempts have been since the first row of the one under way."""
    first, words = control.kept_tried, work.tried.shape[1]
    done, before = first, NONE
    for row in range(key.next_row, key.start, -1):
        place, window = place_of_row(control, row, work.tried)
        if work.tried_of[window] != place:
            # Threads that rest have not come to an instruction before the next row.
            if row < key.next_row:
                break
            work.tried_of[window] = place
            work.tried[window, :] = 0
        end = done
        for word in range(words):
            changed = work.tried[window, word]
            if before != NONE:
                changed ^= work.tried[before, word]
            if changed != 0:
                for at in range(64 * word, 64 * word + 64):
                    if changed & _bit(at) != 0 and end < first + MOST_KEPT_TRIED:
                        out.kept_tried[end].at = at
                        end += 1
        if end == first + MOST_KEPT_TRIED:
            break
        out.kept_tried[end].at = NONE
        done, before = end + 1, window
    key.tried = done - first
    control.kept_tried = done


@compiled
def take_up_tried(work, control, key):
    """Note where attempts have been by what was stored of it."""
    row = key.next_row
    place, window = place_of_row(control, row, work.tried)
    work.tried_of[window] = place
    work.tried[window, :] = 0
    # The last one ends the last row.
    for number in range(control.first_tried, control.first_tried + key.tried - 1):
        at = work.held_tried[number].at
        if at != NONE:
            work.tried[window, at >> 6] ^= _bit(at)
            continue
        row -= 1
        if row <= key.next_row - len(work.tried):
            break
        before = window
        place, window = place_of_row(control, row, work.tried)
        work.tried_of[window] = place
        for word in range(work.tried.shape[1]):
            work.tried[window, word] = work.tried[before, word]


@inlined
def may_match(program, programs, columns, rows, work, ask, control, key, begun, within):
    """Return whether a match may begin at a row, or is open behind the rows seen, as far as
    conditions say the same of each attempt. -1: there are too few nodes.

    Instructions before rows from which nothing was found are not looked at again.
    """
    nodes, top = work.nodes, 0
    nodes[0].previous, nodes[0].label = begun - control.base, 0
    first = rows.at[control.first_row + begun - control.base]
    while top >= 0:
        if top + 1 >= len(nodes):
            forget_tried(work, control, begun, key.frontier + 2)
            return -1
        row, at = control.base + nodes[top].previous, nodes[top].label
        top -= 1
        while not was_tried(work, control, row, at):
            instruction = program.instructions[at]
            code = instruction.code
            if code == LABEL:
                place = NONE
                if row <= key.frontier and row < control.end:
                    place = rows.at[control.first_row + row - control.base]
                if place == NONE or (
                    within != FOREVER
                    and not is_within(rows, first, place, rows.time[first] + within)
                ):
                    forget_tried(work, control, begun, key.frontier + 2)
                    return 1
                condition = program.variables[instruction.first]
                if rows.bits[place] & condition.bits != condition.bits:
                    break
                if condition.first_test < condition.end_near:
                    control.known = row + 1
                    if answer_of(
                        condition.first_test, condition.end_near, row, place, 0, NONE, program,
                        programs, columns, rows, work, ask, control,
                    ) != YES:  # fmt: skip
                        break
                row += 1
                at += 1
            elif code == SPLIT:
                top += 1
                nodes[top].previous, nodes[top].label = row - control.base, instruction.second
                at = instruction.first
            elif code == JUMP:
                at = instruction.first
            elif code in (DONE, END):
                forget_tried(work, control, begun, key.frontier + 2)
                return 1
            elif code == SAVE or row == 0:
                at += 1
            else:
                break
    return 0


@inlined
def is_within(rows, begun, at, deadline):
    """Return whether a row comes before the end of WITHIN, to the microsecond."""
    return rows.time[at] < deadline or (
        rows.time[at] == deadline and rows.micros[at] < rows.micros[begun]
    )
