"""Accumulators of the events that partial matches have taken.

A rule's aggregates, and what its conditions read of first and last events, have an accumulator
each (``ACCUMULATOR``). Those of one sequence of events stand together: its *totals*, a row of
``TOTALS`` and as many of ``VALUE``. They never change: a sequence that goes on by an event has new
totals, made of those before. Row 0 is that of no events. What a partial match of the state has
taken before a run is added up when a condition first asks for it; only totals of live partial
matches are kept.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import NONE, compiled, inlined
from spark_cep.programs.loops.aggregate_loop import clear, take
from spark_cep.programs.loops.distinct_loop import (
    MOST_BRANCHES,
    close_up,
    keep_marked,
    mark_set,
    with_value,
)
from spark_cep.programs.loops.expression_loop import COUNT_DISTINCT, FIRST, LAST


@compiled
def begin(rule, plans, tables, control):
    """Let there be no totals but those of no events."""
    control.totals = 1
    control.spare_totals = 0
    control.first_spare = NONE
    control.branches = 0
    for number in range(rule.accumulators):
        value = tables.accumulators[number]
        clear(value)
        function = plans.accumulators[rule.first_accumulator + number].function
        if function == COUNT_DISTINCT:
            value.low = NONE
        elif function in (FIRST, LAST):
            value.whole = NONE


@compiled
def has_room(totals, values, rule, tables, control):
    """Return whether there is room for so many new totals, and so many values to sets of distinct
    ones; unless, ``need_…`` say how much it takes."""
    control.need_totals = control.totals + max(totals - control.spare_totals, 0)
    control.need_accumulators = control.need_totals * rule.accumulators
    control.need_branches = control.branches + values * rule.distinct * MOST_BRANCHES
    return not (
        control.need_totals > len(tables.totals)
        or control.need_accumulators > len(tables.accumulators)
        or control.need_branches > len(tables.branches)
    )


@compiled
def sweep(rule, plans, tables, control):
    """Let go the totals that no partial match has any more."""
    control.serial += 1
    serial = control.serial
    totals, accumulators, branches = tables.totals, tables.accumulators, tables.branches
    for row in range(control.partials):
        if tables.partials[row].totals > 0:
            totals[tables.partials[row].totals].mark = serial
    control.spare_totals = 0
    control.first_spare = NONE
    for row in range(1, control.totals):
        if totals[row].mark == serial:
            _each_set(row, rule, plans, accumulators, branches, serial, tables.path, False)
        else:
            totals[row].next = control.first_spare
            control.first_spare = row
            control.spare_totals += 1
    if rule.distinct:
        count = keep_marked(branches, control.branches, serial)
        for row in range(1, control.totals):
            if totals[row].mark == serial:
                _each_set(row, rule, plans, accumulators, branches, serial, tables.path, True)
        close_up(branches, control.branches, serial)
        control.branches = count


@compiled
def _each_set(row, rule, plans, accumulators, branches, serial, todo, moved):
    """Mark the sets of distinct values of totals, or follow them to their places."""
    if not rule.distinct:
        return
    for number in range(rule.accumulators):
        if plans.accumulators[rule.first_accumulator + number].function == COUNT_DISTINCT:
            value = accumulators[row * rule.accumulators + number]
            if value.low != NONE:
                if moved:
                    value.low = branches[value.low].place
                else:
                    mark_set(value.low, branches, serial, todo)


@inlined
def _new_totals(before, rule, tables, control):
    """Make totals that are those of ``before``."""
    if control.first_spare == NONE:
        control.totals += 1
        row = control.totals - 1
    else:
        row = control.first_spare
        control.first_spare = tables.totals[row].next
        control.spare_totals -= 1
    for number in range(rule.accumulators):
        old = tables.accumulators[before * rule.accumulators + number]
        new = tables.accumulators[row * rule.accumulators + number]
        new.whole = old.whole
        new.double = old.double
        new.given = old.given
        new.low = old.low
        new.squares = old.squares
    return row


@inlined
def extended(before, step, event, rule, plans, columns, tables, control):
    """The totals of a sequence with one event more; ``before``: those without."""
    row = _new_totals(before, rule, tables, control)
    _take(row, step, event, False, rule, plans, columns, tables, control)
    return row


@compiled
def added_up(last, count, rule, plans, columns, tables, control):
    """The totals of the ``count`` events up to ``last``."""
    row = _new_totals(0, rule, tables, control)
    nodes, path = tables.nodes, tables.path
    node = last
    for place in range(count):
        path[place] = node
        node = nodes[node].previous
    for place in range(count - 1, -1, -1):
        node = path[place]
        _take(row, nodes[node].step, nodes[node].event, True, rule, plans, columns, tables, control)
    return row


@compiled
def chain_length(last, nodes):
    """Return the number of events up to a node."""
    count = 0
    while last != NONE:
        count += 1
        last = nodes[last].previous
    return count


@inlined
def _take(row, step, event, own, rule, plans, columns, tables, control):
    """Let totals take an event. ``own``: their sets of values are nobody else's."""
    first = row * rule.accumulators
    for number in range(rule.accumulators):
        kind = plans.accumulators[rule.first_accumulator + number]
        if kind.step != NONE and kind.step != step:
            continue
        value = tables.accumulators[first + number]
        column = kind.column
        if kind.function == LAST:
            # The accumulator behind it has the event one nearer, and takes this one later.
            if kind.offset:
                value.whole = tables.accumulators[first + number + 1].whole
            else:
                value.whole = event
        elif kind.function == FIRST:
            if value.given == kind.offset:
                value.whole = event
            value.given += 1
        elif kind.function != COUNT_DISTINCT:
            take(kind, event, columns, value)
        elif not columns.nulls[event, column]:
            whole, double = columns.wholes[event, column], columns.doubles[event, column]
            if kind.double:
                # NaN is one value, and so is 0.
                if np.isnan(double):
                    whole = np.int64(0x7FF8000000000000)
                elif double == 0:
                    whole = np.int64(0)
            root, used = with_value(value.low, whole, tables.branches, control.branches, own)
            value.given += used > control.branches
            value.low = root
            control.branches = used
