"""The results of an attempt that is final, and the place where the next one begins, compiled."""

from __future__ import annotations

from spark_cep.columns.compilation import NONE, compiled
from spark_cep.matcher.findings.loops.listed_loop import list_places
from spark_cep.matcher.row_pattern.loops.tables import (
    EDGE,
    EXCLUDED,
    GIVEN_UP,
    MATCH,
    MOST_AGAIN,
    ONE_ROW,
    PAST_LAST_ROW,
    SKIP_FAILED,
    TARGET_ABSENT,
    THREADS_LIMIT,
    TIMED_OUT,
    TO_FIRST,
    TO_MATCH_START,
    TO_NEXT_ROW,
    TRIED_AGAIN,
    UNMATCHED,
    WITH_UNMATCHED,
    WORK_LIMIT,
)
from spark_cep.matcher.row_pattern.loops.thread_loop import labels_of

#: What a run returns, beside a full table of :mod:`thread_loop`: done, another full table, or much
#: that is to be taken out.
DONE, _, _, _, FULL_RESULTS, FULL_LABELS, FULL_KEPT, DRAIN = range(8)


@compiled
def last_read(program, work, control, key):
    """Return the last row that the measures of a match read; it may still have to come."""
    last = key.start
    if key.found_length == 0:
        return last
    length = key.found_length
    labels = work.one
    labels_of(work.nodes, key.found_node, length, labels)
    first = length - 1
    if program.clause[0].rows != ONE_ROW:
        first = 0
        _exclude(work, key.found_node, length, labels)
    for current in range(first, length):
        if labels[current] < EXCLUDED:
            for number in range(len(program.ahead)):
                place = _position(program, program.ahead[number], current, length, labels)
                if place != NONE:
                    last = max(last, key.start + place)
    return min(last, control.end - 1) if control.closed else last


@compiled
def _position(program, ahead, current, length, labels):
    """The row that a measure reads, counted from the match's first; ``NONE`` for none."""
    last = length - 1 if ahead.final else current
    left = ahead.offset
    for number in range(last + 1):
        at = number if ahead.first else last - number
        variable = labels[at] & (EXCLUDED - 1)
        if ahead.variables == NONE or program.sets[ahead.variables, variable]:
            if left == 0:
                return at + ahead.shift
            left -= 1
    return NONE


@compiled
def _exclude(work, node, length, labels):
    """Mark the labels of rows between edges. From behind, the first edge ends an exclusion."""
    inside, place = False, length
    while node != NONE:
        if work.nodes[node].label == EDGE:
            inside = not inside
        else:
            place -= 1
            if inside:
                labels[place] |= EXCLUDED
        node = work.nodes[node].previous


@compiled
def room_to_settle(clause, out, control, key):
    """Return whether there is room for all that comes of an attempt."""
    results = control.results + 3
    if clause.rows == WITH_UNMATCHED:
        results += max(1, max(key.next_row, key.frontier + 1) - key.start)
    if control.results >= control.drain_at or control.labels >= 4 * control.drain_at:
        return DRAIN
    if results > len(out.results):
        return FULL_RESULTS
    if control.labels + max(key.found_length, 2 * key.dropped_length) > len(out.labels):
        return FULL_LABELS
    return DONE


@compiled
def put(out, control, kind, first, number, length, detail, rows):
    """Write a result."""
    result = out.results[control.results]
    result.kind, result.first, result.number = kind, first, number
    result.length, result.detail = length, detail
    result.key, result.labels = control.key, control.labels
    result.row = rows.at[control.first_row + first - control.base]
    control.results += 1


@compiled
def _put_labels(work, out, control, node, length):
    """Write the variables of a thread, behind its result."""
    labels = out.labels[control.labels :]
    labels_of(work.nodes, node, length, labels)
    _exclude(work, node, length, labels)
    control.labels += length


@compiled
def _put_listed(program, work, out, control, node, length):
    """Write the variables of the rows that a timeout lists, and behind these the place of each in
    the thread, behind its result."""
    labels, variables, places = out.labels[control.labels :], work.one, work.other
    labels_of(work.nodes, node, length, variables)
    counts = work.moved[: 2 * len(program.names)]
    count = list_places(variables, 0, length, counts, places)
    result = out.results[control.results - 1]
    result.length, result.number = count, length - count
    for each in range(count):
        labels[each], labels[count + each] = variables[places[each]], places[each]
    control.labels += 2 * count


@compiled
def settle(program, rows, work, out, control, key):
    """Write what came of an attempt, and say where the next one begins."""
    clause = program.clause[0]
    start = key.start
    after = start + 1
    if key.limit:
        put(out, control, GIVEN_UP, start, 0, 0, key.limit, rows)
        seen = key.next_row - start
        after = start + max(1, seen // TRIED_AGAIN)
        if key.limit == THREADS_LIMIT and seen * clause.most_threads > MOST_AGAIN:
            after = key.next_row
        behind = min(key.frontier + 1, control.end)
        if key.limit == WORK_LIMIT:
            after = max(after, behind)
        elif clause.near:
            # Threads do not count their work: it is that of the rows that are searched again.
            left = max(0, clause.most_work - key.work)
            after = max(after, behind - left // clause.span)
            key.work += max(0, behind - after) * clause.span
    elif key.found:
        _match(program, rows, work, out, control, key)
        return
    elif key.dropped:
        deadline = rows.time[rows.at[control.first_row + start - control.base]] + clause.within
        put(out, control, TIMED_OUT, start, 0, key.dropped_length, deadline, rows)
        _put_listed(program, work, out, control, key.dropped_node, key.dropped_length)
    if clause.rows == WITH_UNMATCHED:
        for row in range(max(start, key.covered), after):
            put(out, control, UNMATCHED, row, row, 0, 0, rows)
    key.next_start = after


@compiled
def _match(program, rows, work, out, control, key):
    clause = program.clause[0]
    length, start = key.found_length, key.start
    labels = control.labels
    put(out, control, MATCH, start, control.number, length, 0, rows)
    _put_labels(work, out, control, key.found_node, length)
    key.matches = control.number
    key.next_start = start + 1
    if length == 0:
        return
    key.covered = max(key.covered, start + length)
    if clause.skip == PAST_LAST_ROW:
        key.next_start = start + length
    elif clause.skip != TO_NEXT_ROW:
        place = NONE
        for at in range(length):
            variable = out.labels[labels + at] & (EXCLUDED - 1)
            if program.sets[clause.target, variable] and (clause.skip != TO_FIRST or place == NONE):
                place = at
        if place > 0:
            key.next_start = start + place
        else:
            fault = TARGET_ABSENT if place == NONE else TO_MATCH_START
            put(out, control, SKIP_FAILED, start, control.number, 0, fault, rows)
