"""Deadlines and skip strategies: what lets matches and partial matches go.

Skip strategies are those of ``org.apache.flink.cep.nfa.aftermatch``.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import FOREVER, NEVER, NONE, compiled, inlined
from spark_cep.matcher.findings.partial import MATCHED, MATCHED_WITH_MORE, NOT_MATCHED
from spark_cep.matcher.steps.loops.kernel_tables import (
    NO_SKIP,
    PAST_LAST_EVENT,
    SKIP_FAILED,
    TO_FIRST,
    TO_NEXT,
)


@inlined
def finish(first, last, time, nodes, finished, control):
    """Add a complete match, which the skip strategy may hold back."""
    nodes[last].matched = MATCHED
    row = nodes[last].previous
    while row != NONE and nodes[row].matched == NOT_MATCHED:
        nodes[row].matched = MATCHED_WITH_MORE
        row = nodes[row].previous
    finished[control.finished].first = first
    finished[control.finished].last = last
    finished[control.finished].time = time
    control.finished += 1


@compiled
def refresh_deadline(partials, control):
    """Find the earliest deadline again."""
    deadline = FOREVER
    for row in range(control.partials):
        deadline = min(deadline, partials[row].deadline)
    control.deadline = deadline


@inlined
def advance(time, rule, plans, work, tables, control):
    """Decide what has its deadline at or before ``time``, deadline by deadline."""
    states, time_of = plans.states, work.time_of
    nodes, partials, finished = tables.nodes, tables.partials, tables.finished
    timeouts = tables.timeouts
    first_state = rule.first_state
    while control.deadline <= time:
        deadline = control.deadline
        control.serial += 1
        serial = control.serial
        for row in range(control.partials):
            last = partials[row].last
            if partials[row].deadline > deadline:
                # Only a gap between repetitions gives the holders of one sequence several
                # deadlines.
                if rule.step_gaps:
                    nodes[last].mark = serial
            elif (
                states[first_state + partials[row].state].absence and nodes[last].matched != MATCHED
            ):
                finish(partials[row].first, last, deadline, nodes, finished, control)
        place = 0
        for row in range(control.partials):
            last = partials[row].last
            if partials[row].deadline > deadline:
                if place < row:
                    partials[place] = partials[row]
                place += 1
                continue
            state = states[first_state + partials[row].state]
            could_take = (
                state.taking_gap == FOREVER
                or deadline <= time_of[nodes[last].event] + state.taking_gap
            )
            if not state.live or not could_take:
                continue
            if rule.step_gaps and nodes[last].mark == serial:
                continue
            if nodes[last].standing == serial:
                continue
            nodes[last].standing = serial
            report = timeouts[control.timeouts]
            report.instance = control.instance
            report.first = partials[row].first
            report.last = last
            report.deadline = deadline
            report.matched = _had_matched(last, nodes)
            control.timeouts += 1
        control.partials = place
        refresh_deadline(partials, control)
        release(rule, tables, control)


@compiled
def _had_matched(last, nodes):
    """Return whether a match began with these events, or these events with a match."""
    if nodes[last].matched != NOT_MATCHED:
        return True
    row = nodes[last].previous
    while row != NONE:
        if nodes[row].matched == MATCHED:
            return True
        row = nodes[row].previous
    return False


@compiled
def release(rule, tables, control):
    """Let go the finished matches whose turn has come, and drop what they skip."""
    if control.finished == 0:
        return
    nodes, partials, finished = tables.nodes, tables.partials, tables.finished
    count = control.finished
    if rule.skip == NO_SKIP:
        for row in range(count):
            _emit(finished[row], rule, tables.matches, control)
        control.finished = 0
        return
    _sort(finished, count)
    # Starts and cuts are compared as twice the event, plus one where the event's own start goes.
    cut = NEVER
    turn, waits_for = 0, 0
    while turn < count:
        start = 2 * np.int64(finished[turn].first)
        if start < cut:
            control.pruned += 1
            turn += 1
            continue
        while waits_for < control.partials and 2 * np.int64(partials[waits_for].first) < cut:
            waits_for += 1
        if waits_for < control.partials and 2 * np.int64(partials[waits_for].first) < start:
            break
        _emit(finished[turn], rule, tables.matches, control)
        cut = max(cut, _cut(finished[turn], rule, nodes, tables.failures, control))
        turn += 1
    for row in range(turn, count):
        finished[row - turn] = finished[row]
    control.finished = count - turn
    place = 0
    for row in range(control.partials):
        if 2 * np.int64(partials[row].first) >= cut:
            if place < row:
                partials[place] = partials[row]
            place += 1
    if place < control.partials:
        control.pruned += control.partials - place
        control.partials = place
        refresh_deadline(partials, control)


@compiled
def _sort(finished, count):
    """By start; what is found in order, as nearly always, costs one look."""
    for row in range(1, count):
        first, last, time = finished[row].first, finished[row].last, finished[row].time
        place = row
        while place > 0 and finished[place - 1].first > first:
            finished[place] = finished[place - 1]
            place -= 1
        finished[place].first = first
        finished[place].last = last
        finished[place].time = time


@compiled
def _emit(match, rule, matches, control):
    if rule.cooldown != FOREVER:
        if control.quiet != NEVER and match.time < control.quiet:
            return
        control.quiet = match.time + rule.cooldown
    report = matches[control.matches]
    report.instance = control.instance
    report.first = match.first
    report.last = match.last
    report.time = match.time
    control.matches += 1


@compiled
def _cut(match, rule, nodes, failures, control):
    """Return the cut of a match: starts below it are skipped. ``NEVER`` for none."""
    if rule.skip == TO_NEXT:
        return 2 * np.int64(match.first) + 1
    if rule.skip == PAST_LAST_EVENT:
        return 2 * np.int64(nodes[match.last].event) + 1
    target = NONE
    row = match.last
    while row != NONE and (target == NONE or rule.skip == TO_FIRST):
        if nodes[row].step == rule.skip_step:
            target = nodes[row].event
        row = nodes[row].previous
    if rule.error_on_miss and (target == NONE or target == match.first):
        fail(SKIP_FAILED, nodes[match.last].event, match.last, 0, 0, failures, control)
    return NEVER if target == NONE else 2 * np.int64(target)


@compiled
def fail(kind, event, last, detail, work, failures, control):
    """Report a failure of the instance."""
    report = failures[control.failures]
    report.instance = control.instance
    report.kind = kind
    report.event = event
    report.last = last
    report.detail = detail
    report.work = work
    control.failures += 1
