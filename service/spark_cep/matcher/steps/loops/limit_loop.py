"""Limits of an instance: the partial matches, events, matches and work that it may have."""

from __future__ import annotations

from spark_cep.columns.compilation import NONE, compiled, inlined
from spark_cep.matcher.steps.loops.kernel_tables import (
    DROP_OLDEST,
    LIMIT_REACHED,
    MATCH_LIMIT_REACHED,
    PAUSE_RULE,
    REJECT_NEW,
    SPARE_PART,
    WORK_LIMIT_REACHED,
)
from spark_cep.matcher.steps.loops.release_loop import fail, refresh_deadline, release


@inlined
def settle(event, rule, tables, tally, control):
    """Let go what an event has completed, and hold the instance to its limits."""
    first_match = control.matches
    release(rule, tables, control)
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
            fail(LIMIT_REACHED, event, NONE, dropped, 0, tables.failures, control)
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
            fail(MATCH_LIMIT_REACHED, event, NONE, dropped, 0, tables.failures, control)
    control.limited = beyond or too_many or control.overworked
    refresh_deadline(tables.partials, control)


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
        fail(WORK_LIMIT_REACHED, event, NONE, dropped, found, tables.failures, control)
    control.overworked = 1
    control.limited = 1
    # What is let go skips more.
    release(rule, tables, control)
    refresh_deadline(partials, control)


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
        release(rule, tables, control)
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
