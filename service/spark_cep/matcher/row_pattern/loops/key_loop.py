"""Rows of many keys to results, compiled: attempts one after the other, each settled when it is
final. ``tests.reference.row_pattern`` does the same a row at a time.

``run`` works until it is done, or returns between two steps because a table is full (``FULL_…``:
the caller makes it larger) or because much has been found (``DRAIN``: the caller takes it out).
Called again, it goes on where it was.
"""

from __future__ import annotations

from spark_cep.columns.compilation import FOREVER, NONE, compiled, inlined
from spark_cep.matcher.row_pattern.loops.condition_loop import clear, copy, take
from spark_cep.matcher.row_pattern.loops.failed_loop import (
    forget_tried,
    is_tried_kept,
    is_within,
    keep_tried,
    may_match,
    take_up_tried,
)
from spark_cep.matcher.row_pattern.loops.settling_loop import (
    DONE,
    DRAIN,
    FULL_KEPT,
    FULL_RESULTS,
    last_read,
    put,
    room_to_settle,
    settle,
)
from spark_cep.matcher.row_pattern.loops.shared_loop import (
    goes_before,
    goes_on_alike,
    note_anew,
    note_threads,
    shares,
)
from spark_cep.matcher.row_pattern.loops.tables import (
    CLOSED,
    COUNTED,
    LABEL,
    MOST_KEPT_TRIED,
    OPEN,
    ROWS_LIMIT,
    THREADS_LIMIT,
    UNMATCHED,
    WITH_UNMATCHED,
    WORK_LIMIT,
)
from spark_cep.matcher.row_pattern.loops.thread_loop import (
    FULL_NODES,
    FULL_REGISTERS,
    FULL_THREADS,
    STEPPED,
    keep_nodes,
    keep_slots,
    labels_of,
    run_threads,
)


@compiled
def run(program, programs, columns, rows, work, out, ask, controls):
    """Apply all rows; see the module's text."""
    control = controls[0]
    while control.key < len(work.keys):
        key = work.keys[control.key]
        if not control.open:
            if key.nodes > len(work.nodes):
                return FULL_NODES
            if key.threads > len(work.threads):
                return FULL_THREADS
            if program.clause[0].keeps and key.threads >= len(work.registers):
                return FULL_REGISTERS
            _open(program, columns, rows, work, control, key)
        status = _apply(program, programs, columns, rows, work, out, ask, control, key)
        if status != DONE:
            return status
        if control.nodes:
            keep_nodes(work, control, key)
        if (
            control.kept_threads + control.threads > len(out.kept_threads)
            or control.kept_nodes + control.nodes > len(out.kept_nodes)
        ):  # fmt: skip
            return FULL_KEPT
        kept = is_tried_kept(program, control, key)
        if kept and control.kept_tried + MOST_KEPT_TRIED > len(out.kept_tried):
            return FULL_KEPT
        key.tried = 0
        if kept:
            keep_tried(work, out, control, key)
        _close(work, out, control, key)
        control.key += 1
    return DONE


@compiled
def _open(program, columns, rows, work, control, key):
    """Take up what the key remembers."""
    control.first_row = rows.ends[control.key - 1] if control.key else 0
    control.base = key.first
    control.end = key.first + rows.ends[control.key] - control.first_row
    control.start = key.start
    for place in range(key.nodes):
        held = work.held_nodes[control.first_node + place]
        work.nodes[place].previous, work.nodes[place].label = held.previous, held.label
        work.kept[place] = 0
    for place in range(key.threads):
        held = work.held_threads[control.first_thread + place]
        thread = work.threads[place]
        thread.at, thread.node, thread.length = held.at, held.node, held.length
        thread.slot = 0
    control.first_node += key.nodes
    control.first_thread += key.threads
    control.nodes, control.threads, control.slots = key.nodes, key.threads, 1
    if key.tried:
        if program.clause[0].near:
            take_up_tried(work, control, key)
        control.first_tried += key.tried
    if program.clause[0].keeps and key.threads:
        _replay(program, columns, rows, work, control)
    key.time = max(key.time, control.watermark)
    control.failed, control.tried_from = 0, key.start
    note_anew(control)
    control.open = 1


@compiled
def _replay(program, columns, rows, work, control):
    """Give each thread the registers of its rows."""
    clear(program, work)
    for place in range(control.threads):
        thread = work.threads[place]
        slot = place + 1
        copy(program, work, 0, slot)
        labels_of(work.nodes, thread.node, thread.length, work.one)
        for length in range(thread.length):
            row = control.start + length
            at = rows.at[control.first_row + row - control.base]
            take(program, columns, work, slot, work.one[length], row, at)
        thread.slot = slot
    control.slots = control.threads + 1


@compiled
def _close(work, out, control, key):
    """Put away what the key remembers from here on."""
    for place in range(control.threads):
        kept = out.kept_threads[control.kept_threads + place]
        thread = work.threads[place]
        kept.at, kept.node, kept.length = thread.at, thread.node, thread.length
    for place in range(control.nodes):
        kept = out.kept_nodes[control.kept_nodes + place]
        kept.previous, kept.label = work.nodes[place].previous, work.nodes[place].label
    control.kept_threads += control.threads
    control.kept_nodes += control.nodes
    key.threads, key.nodes = control.threads, control.nodes
    key.rows = control.end - key.first
    control.open = 0


@compiled
def _apply(program, programs, columns, rows, work, out, ask, control, key):
    """One attempt after the other, as far as the rows go."""
    clause = program.clause[0]
    offset = control.first_row - control.base
    while True:
        control.number = key.matches + 1
        if not key.attempt:
            status = _pass_over(clause, rows, out, control, key)
            if status != DONE:
                return status
            if key.next_start >= control.end:
                return DONE
            again = control.failed and key.next_start < key.frontier
            again = again and not clause.near and not clause.ahead and key.searched != OPEN
            if again and key.searched != COUNTED:
                # Of all later attempts together: none goes where another has failed.
                key.searched = COUNTED
                key.work += (key.frontier + 1 - key.next_start) * clause.span
            if again and key.work <= clause.most_work:
                may = may_match(
                    program, programs, columns, rows, work, ask, control, key, key.next_start,
                    clause.within,
                )  # fmt: skip
                if may < 0:
                    return FULL_NODES
                if not may:
                    if clause.rows == WITH_UNMATCHED and key.next_start >= key.covered:
                        if control.results >= len(out.results):
                            return DRAIN if control.results >= control.drain_at else FULL_RESULTS
                        put(out, control, UNMATCHED, key.next_start, key.next_start, 0, 0, rows)
                    key.next_start += 1
                    _drop_rows(clause, control, key)
                    continue
                # What each attempt can take does not say which of them fail.
                key.searched = OPEN
            _see(program, work, control, key, key.next_start)
            _begin(program, work, control, key)
            if key.work > clause.most_work:
                key.limit = WORK_LIMIT
                control.threads = 0
        begun = rows.at[offset + control.start]
        deadline = FOREVER
        if clause.within != FOREVER:
            deadline = rows.time[begun] + clause.within
        while control.threads:
            until = key.next_row + 1
            of_row = key.attempt and key.next_row < control.end
            if of_row:
                inside = True
                if deadline != FOREVER:
                    at = rows.at[offset + key.next_row]
                    inside = is_within(rows, begun, at, deadline)
                if not inside:
                    _drop_threads(work, control, key)
                    break
            elif key.attempt:
                if deadline != FOREVER and deadline <= key.time:
                    _drop_threads(work, control, key)
                    break
                if not control.closed:
                    return DONE
            if key.attempt:
                _see(program, work, control, key, key.next_row)
            tidied = 0
            while True:
                status = run_threads(
                    program, programs, columns, rows, work, ask, control, key, until
                )
                if status == FULL_NODES and tidied != status:
                    keep_nodes(work, control, key)
                    note_anew(control)
                    if 2 * control.nodes > len(work.nodes):
                        break
                elif status == FULL_REGISTERS and tidied != status:
                    keep_slots(program, work, control)
                    if 2 * control.slots > len(work.registers):
                        break
                else:
                    break
                tidied = status
            if status != STEPPED:
                return status
            if key.attempt and not key.limit:
                if until - key.start > clause.most_rows and _is_long(clause, work, control, key):
                    key.limit = ROWS_LIMIT
                elif control.threads > clause.most_threads:
                    key.limit = THREADS_LIMIT
            if key.limit:
                _drop_threads(work, control, key)
            key.attempt = 1
            key.next_row = until
            if shares(clause) and control.threads and not key.found:
                if control.before and goes_on_alike(work, control, key, until):
                    key.next_row = control.before_end
                else:
                    note_threads(work, control, until)
        if key.found and not key.limit and len(program.ahead):
            last = last_read(program, work, control, key)
            if last >= control.end:
                return DONE
            _see(program, work, control, key, last)
        status = room_to_settle(clause, out, control, key)
        if status != DONE:
            return status
        settle(program, rows, work, out, control, key)
        control.failed = not (key.limit or key.found or key.dropped)
        if not control.failed and clause.near:
            forget_tried(work, control, control.tried_from, key.frontier + 2)
            if key.found and not key.limit:
                key.work += (key.next_row - key.start) * clause.span
            if shares(clause) and key.dropped and not (key.found or key.limit):
                goes_before(control, key)
            else:
                note_anew(control)
        key.attempt, key.found, key.dropped, key.limit = 0, 0, 0, 0
        # What is stored does not tell of attempts that are over.
        key.found_node, key.found_length, key.dropped_node, key.dropped_length = 0, 0, 0, 0
        control.nodes, control.threads, control.slots = 0, 0, 1
        _drop_rows(clause, control, key)


@inlined
def _pass_over(clause, rows, out, control, key):
    """Go on to the next row that may begin a match."""
    wanted = clause.first_bits
    first, row = key.next_start, key.next_start
    offset = control.first_row - control.base
    while row < control.end:
        bits = rows.bits[rows.at[offset + row]]
        closed = bits & CLOSED != 0
        if not closed and (wanted == 0 or bits & wanted != 0):
            break
        if clause.rows == WITH_UNMATCHED and row >= key.covered and not closed:
            if control.results >= len(out.results):
                key.next_start = row
                return DRAIN if control.results >= control.drain_at else FULL_RESULTS
            put(out, control, UNMATCHED, row, row, 0, 0, rows)
        row += 1
    if row > first:
        key.next_start = row
        _drop_rows(clause, control, key)
    return DONE


@inlined
def _see(program, work, control, key, row):
    """Let a row be seen; the first time, its work begins, with that of restoring what threads keep
    of their rows: it may be the only row of its batch."""
    if row > key.frontier:
        key.frontier, key.work, key.searched = row, 0, 0
        if program.clause[0].near == 0:
            for number in range(control.threads):
                thread = work.threads[number]
                restored, instruction = program.clause[0].restored, program.instructions[thread.at]
                if instruction.code == LABEL:
                    restored += program.variables[instruction.first].restored
                key.work += thread.length * restored


@inlined
def _begin(program, work, control, key):
    """The attempt at the next row: its only thread stands before it, and at the beginning of the
    program."""
    control.start = control.tried_from = key.next_start
    control.attempts += 1
    control.attempt = control.attempts
    control.nodes, control.slots, control.threads = control.before_nodes, 1, 1
    thread = work.threads[0]
    thread.at, thread.node, thread.length, thread.slot = 0, NONE, 0, 0
    if program.clause[0].keeps:
        clear(program, work)
    key.start, key.next_row = control.start, control.start - 1
    key.found, key.dropped, key.limit = 0, 0, 0


@inlined
def _drop_rows(clause, control, key):
    key.first = max(key.first, min(key.next_start - clause.reach, control.end))


@compiled
def _drop_threads(work, control, key):
    if control.threads:
        thread = work.threads[0]
        key.dropped, key.dropped_node, key.dropped_length = 1, thread.node, thread.length
    control.threads = 0


@compiled
def _is_long(clause, work, control, key):
    """Return whether a thread, or the match so far, has more rows than are allowed."""
    longest = key.found_length if key.found else 0
    for place in range(control.threads):
        longest = max(longest, work.threads[place].length)
    return longest > clause.most_rows
