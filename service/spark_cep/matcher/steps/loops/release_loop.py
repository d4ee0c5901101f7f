"""Deadlines, skip strategies and limits: what lets matches and partial matches go.

Skip strategies are those of ``org.apache.flink.cep.nfa.aftermatch``.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import FOREVER, NEVER, NONE, compiled, inlined
from spark_cep.matcher.steps.loops.kernel_tables import (
    DROP_OLDEST,
    LIMIT_REACHED,
    MATCH_LIMIT_REACHED,
    MATCHED,
    MATCHED_WITH_MORE,
    NO_SKIP,
    NOT_MATCHED,
    PAST_LAST_EVENT,
    PAUSE_RULE,
    REJECT_NEW,
    SKIP_FAILED,
    SPARE_PART,
    TO_FIRST,
    TO_NEXT,
    WORK_LIMIT_REACHED,
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
def _refresh_deadline(partials, control):
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
        _refresh_deadline(partials, control)
        _release(rule, tables, control)


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
def _release(rule, tables, control):
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
        _refresh_deadline(partials, control)


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
        _fail(SKIP_FAILED, nodes[match.last].event, match.last, 0, 0, failures, control)
    return NEVER if target == NONE else 2 * np.int64(target)


@compiled
def _fail(kind, event, last, detail, work, failures, control):
    report = failures[control.failures]
    report.instance = control.instance
    report.kind = kind
    report.event = event
    report.last = last
    report.detail = detail
    report.work = work
    control.failures += 1


@inlined
def settle(event, rule, tables, tally, control):
    """Let go what an event has completed, and hold the instance to its limits."""
    first_match = control.matches
    _release(rule, tables, control)
    beyond = _beyond(rule, tables, control)
    if beyond:
        before = control.partials + control.finished
        if rule.on_limit == DROP_OLDEST:
            dropped = _drop_oldest(rule, tables, control)
        elif rule.on_limit == REJECT_NEW:
            _reject_new(rule, tables, control)
            dropped = before - control.partials - control.finished
        else:
            dropped = before
            control.partials = 0
            control.finished = 0
            control.paused = 1
        tally.dropped += dropped
        if not control.limited:
            _fail(LIMIT_REACHED, event, NONE, dropped, 0, tables.failures, control)
    too_many = control.matches - first_match > rule.most_matches
    if too_many:
        if rule.on_limit == PAUSE_RULE:
            tally.dropped += control.partials + control.finished
            control.partials = 0
            control.finished = 0
            control.paused = 1
        dropped = _drop_matches(first_match, rule, tables.matches, control)
        tally.dropped_matches += dropped
        if not control.limited:
            _fail(MATCH_LIMIT_REACHED, event, NONE, dropped, 0, tables.failures, control)
    control.limited = beyond or too_many or control.overworked
    _refresh_deadline(tables.partials, control)


@compiled
def limit_work(event, event_class, rule, plans, tables, tally, control):
    """Drop partial matches that would cost an event more work than its rule allows, before it is
    applied."""
    partials, costs, first = tables.partials, plans.costs, event_class.first_asked
    opening = costs[first + rule.start]
    asked = opening
    for row in range(control.partials):
        asked += costs[first + partials[row].state]
    if asked + control.held_bound * rule.held_cost > rule.most_work:
        held = _held_back(tables, control)
        for row in range(control.partials):
            held += _new_nodes(partials[row].last, tables, control)
        control.held_bound = held
    found = asked + control.held_bound * rule.held_cost
    if found <= rule.most_work:
        return
    most = rule.most_work - control.held_bound * rule.held_cost // SPARE_PART
    before = control.partials
    held = _held_back(tables, control)
    work, kept, begin = opening + held * rule.held_cost, 0, 0
    oldest_first = rule.on_limit == REJECT_NEW
    while kept < before and rule.on_limit != PAUSE_RULE:
        row = kept if oldest_first else before - kept - 1
        taken = _new_nodes(partials[row].last, tables, control)
        work += costs[first + partials[row].state] + taken * rule.held_cost
        if work > most:
            break
        kept += 1
        held += taken
    control.held_bound = held
    if rule.on_limit == DROP_OLDEST:
        begin = before - kept
    for row in range(kept):
        partials[row] = partials[begin + row]
    control.partials = kept
    dropped = before - kept
    if rule.on_limit == PAUSE_RULE:
        dropped += control.finished
        control.finished = 0
        control.paused = 1
    tally.dropped += dropped
    if not control.limited:
        _fail(WORK_LIMIT_REACHED, event, NONE, dropped, found, tables.failures, control)
    control.overworked = 1
    control.limited = 1
    # What is let go skips more.
    _release(rule, tables, control)
    _refresh_deadline(partials, control)


@compiled
def _held_back(tables, control):
    """Mark the events taken of complete matches that are held back; returns how many."""
    control.serial += 1
    held = 0
    for row in range(control.finished):
        held += _new_nodes(tables.finished[row].last, tables, control)
    return held


@compiled
def _new_nodes(last, tables, control):
    """Mark the events taken of a chain that no marked chain has; returns how many."""
    nodes, serial = tables.nodes, control.serial
    count, row = 0, last
    while row != NONE and nodes[row].mark != serial:
        nodes[row].mark = serial
        count += 1
        row = nodes[row].previous
    return count


@compiled
def _drop_matches(first, rule, matches, control):
    """Drop those of an event's matches, which begin at row ``first`` in the order of their starts,
    that are too many; returns how many."""
    count = control.matches - first
    kept = 0 if rule.on_limit == PAUSE_RULE else rule.most_matches
    if rule.on_limit == DROP_OLDEST:
        for row in range(kept):
            matches[first + row] = matches[control.matches - kept + row]
    control.matches = first + kept
    return count - kept


@compiled
def _beyond(rule, tables, control):
    """Return whether the instance holds more than its limits allow."""
    if control.partials + control.finished > rule.most_partials:
        return True
    if control.events_bound <= rule.most_events:
        return False
    control.serial += 1
    events = 0
    for row in range(control.partials):
        events += _new_events(tables.partials[row].last, True, tables, control)
    for row in range(control.finished):
        events += _new_events(tables.finished[row].last, True, tables, control)
    control.events_bound = events
    return events > rule.most_events


@compiled
def _new_events(last, mark, tables, control):
    """Return the number of events of a chain that no marked chain has; they are marked if asked
    for."""
    nodes, event_mark = tables.nodes, tables.event_mark
    serial = control.serial
    events = 0
    row = last
    while row != NONE and nodes[row].mark != serial:
        if event_mark[nodes[row].event] != serial:
            events += 1
        if mark:
            nodes[row].mark = serial
            event_mark[nodes[row].event] = serial
        row = nodes[row].previous
    return events


@compiled
def _drop_oldest(rule, tables, control):
    partials = tables.partials
    dropped = 0
    while control.partials > 0 and _beyond(rule, tables, control):
        before = control.partials
        excess = min(before, before + control.finished - rule.most_partials)
        if excess <= 0:
            # No later start holds the oldest start's event, so that one at least is freed.
            excess = 1
            while excess < before and partials[excess].first == partials[0].first:
                excess += 1
        for row in range(excess, before):
            partials[row - excess] = partials[row]
        control.partials = before - excess
        # What is let go skips more.
        _release(rule, tables, control)
        dropped += excess
    return dropped


@compiled
def _reject_new(rule, tables, control):
    partials, finished = tables.partials, tables.finished
    count_events = control.events_bound > rule.most_events
    control.serial += 1
    events = 0
    partial, match = 0, 0
    kept, kept_matches = 0, 0
    while partial < control.partials or match < control.finished:
        if kept + kept_matches == rule.most_partials:
            break
        takes_partial = match >= control.finished or (
            partial < control.partials and partials[partial].first <= finished[match].first
        )
        last = partials[partial].last if takes_partial else finished[match].last
        fits = True
        if count_events:
            more = _new_events(last, False, tables, control)
            fits = events + more <= rule.most_events
            if fits:
                events += _new_events(last, True, tables, control)
        if takes_partial:
            if fits:
                partials[kept] = partials[partial]
                kept += 1
            partial += 1
        else:
            if fits:
                finished[kept_matches] = finished[match]
                kept_matches += 1
            match += 1
    control.partials = kept
    control.finished = kept_matches
