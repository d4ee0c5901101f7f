"""The compiled inner loop: many keys' events applied to many rules' partial matches.

It does what :mod:`service.matcher.machine` does, over numbers in arrays instead of objects, and is
tested against it. Numba compiles it at first use and keeps the result in its cache.

A *unit* is one rule for one key. Events, nodes (an event taken behind a previous node) and units
are row numbers. Of two events of one key, the one with the lower number is applied first. The
partial matches of a unit are in the order of their starts.

``run`` works until it is done, or returns at an event's boundary because there is not enough room
(``GROW``: the caller grows what ``NEED`` names) or because much has been found (``DRAIN``: the
caller takes it out). Called again, it goes on where it was.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U8 = NDArray[np.uint8]

FOREVER = (1 << 63) - 1
NEVER = -(1 << 63)
NONE = -1

DONE, GROW, DRAIN = 0, 1, 2

NO_SKIP, TO_NEXT, PAST_LAST_EVENT, TO_FIRST, TO_LAST = 0, 1, 2, 3, 4
DROP_OLDEST, REJECT_NEW, PAUSE_RULE = 0, 1, 2
UNCHANGED, STOPS, PASSES_TO_MATCH = 1, 2, 4
SKIP_FAILED, LIMIT_REACHED, CONDITION_FAILED = 0, 1, 2

# Places in ``control``: where the run stands, what the open unit is like, how full the tables are.
(
    UNIT, OPEN, POSITION, WATERMARK, DRAIN_AT, MOST_TAKES, MOST_MOVES,
    DEADLINE, QUIET, PAUSED, LIMITED, EVENTS_BOUND,
    SERIAL, FIRST_NODE, LIVE_NODES,
    NODES, PARTIALS, NEXT_PARTIALS, FINISHED, MATCHES, TIMEOUTS, FAILURES,
    KEPT_PARTIALS, KEPT_FINISHED,
    NEED_NODES, NEED_PARTIALS, NEED_FINISHED, NEED_MATCHES, NEED_TIMEOUTS, NEED_FAILURES,
    NEED_KEPT_PARTIALS, NEED_KEPT_FINISHED,
    CONTROL_SIZE,
) = range(33)  # fmt: skip


class Rules(NamedTuple):
    """The rules, one row each. A missing duration is ``FOREVER``, a missing time ``NEVER``."""

    start: I32
    first_state: I32
    first_question: I32
    questions: I32
    window: I64
    skip: I32
    skip_step: I32
    error_on_miss: U8
    cooldown: I64
    effective_from: I64
    most_partials: I64
    most_events: I64
    on_limit: I32
    step_gaps: U8


class States(NamedTuple):
    """The plans' states, one row each, those of a rule from its ``first_state`` on."""

    gap: I64
    taking_gap: I64
    absence: U8
    live: U8
    final: U8


class Outcomes(NamedTuple):
    """What an event does to a partial match: rows of takes and passes per outcome."""

    flags: U8
    first_take: I32
    take_step: I32
    take_target: I32
    take_completes: U8
    first_pass: I32
    pass_target: I32


class Classes(NamedTuple):
    """Kinds of event, by what is true of them for a rule. The outcome for a state and the answers
    to its questions is ``outcome[first_outcome + (state << questions) + answers]``; the questions
    that matter are the mask ``asked[first_asked + state]``."""

    first_outcome: I32
    outcome: I32
    first_asked: I32
    asked: I32


class Feed(NamedTuple):
    """Events' times, and per unit the events that touch its rule, each with its class."""

    time: I64
    event: I32
    event_class: I32


class Units(NamedTuple):
    """The units to run, with ranges in ``Feed`` and ``Partials`` and what else they remember."""

    rule: I32
    first_event: I64
    end_event: I64
    first_partial: I64
    end_partial: I64
    first_finished: I64
    end_finished: I64
    quiet: I64
    paused: U8
    limited: U8
    events_bound: I64


class Partials(NamedTuple):
    """Partial matches, one row each."""

    state: I32
    first: I32
    last: I32
    deadline: I64
    matched: U8


class Finished(NamedTuple):
    """Complete matches that wait for the skip strategy, one row each."""

    first: I32
    last: I32
    time: I64


class Nodes(NamedTuple):
    """Events taken, each behind ``previous`` (``NONE`` for the first); and room for marks."""

    previous: I32
    step: I32
    event: I32
    mark: I32
    completed: I32
    taking: I32
    child: I32
    sibling: I32
    standing: I32
    partial: I32


class Found(NamedTuple):
    """Findings since the caller took them, by unit."""

    match_unit: I32
    match_first: I32
    match_last: I32
    match_time: I64
    timeout_unit: I32
    timeout_first: I32
    timeout_last: I32
    timeout_deadline: I64
    timeout_matched: U8
    failure_unit: I32
    failure_kind: I32
    failure_event: I32
    failure_last: I32
    failure_detail: I64
    started: I64
    dropped: I64


class Kept(NamedTuple):
    """What the units that have run remember, one row a unit."""

    partials: I32
    finished: I32
    deadline: I64
    quiet: I64
    paused: U8
    limited: U8
    events_bound: I64


def compiled(function: Any) -> Any:
    """The function, compiled at its first call."""
    return njit(function, cache=True, error_model="numpy")


@compiled
def run(
    rules, states, outcomes, classes, gaps, feed, units, held, held_finished,
    nodes, partials, following, same, finished, event_mark, found, kept,
    kept_partials, kept_finished, control,
):  # fmt: skip
    """Run all units; see the module's text."""
    while control[UNIT] < len(units.rule):
        unit = control[UNIT]
        rule = units.rule[unit]
        if control[OPEN] == 0:
            count = units.end_partial[unit] - units.first_partial[unit]
            waiting = units.end_finished[unit] - units.first_finished[unit]
            if count > len(partials.state) or waiting > len(finished.first):
                control[NEED_PARTIALS] = count
                control[NEED_FINISHED] = waiting
                return GROW
            _open(unit, units, held, held_finished, partials, finished, control)
        end = units.end_event[unit]
        while control[POSITION] <= end:
            status = _room(nodes, partials, finished, found, kept_partials, kept_finished, control)
            if status != DONE:
                return status
            position = control[POSITION]
            if position < end:
                _apply(
                    unit, rule, feed.event[position], feed.event_class[position],
                    rules, states, outcomes, classes, gaps, feed.time,
                    nodes, partials, following, same, finished, event_mark, found, control,
                )  # fmt: skip
            else:
                if control[DEADLINE] <= control[WATERMARK]:
                    _advance(
                        unit, rule, control[WATERMARK], rules, states, feed.time,
                        nodes, partials, finished, found, control,
                    )  # fmt: skip
                if control[QUIET] <= control[WATERMARK] and control[FINISHED] == 0:
                    control[QUIET] = NEVER
                _close(unit, partials, finished, kept, kept_partials, kept_finished, control)
            control[POSITION] += 1
        control[OPEN] = 0
        control[UNIT] += 1
    return DONE


@compiled
def _open(unit, units, held, held_finished, partials, finished, control):
    count = 0
    deadline = FOREVER
    for row in range(units.first_partial[unit], units.end_partial[unit]):
        partials.state[count] = held.state[row]
        partials.first[count] = held.first[row]
        partials.last[count] = held.last[row]
        partials.deadline[count] = held.deadline[row]
        partials.matched[count] = held.matched[row]
        deadline = min(deadline, held.deadline[row])
        count += 1
    control[PARTIALS] = count
    control[DEADLINE] = deadline
    count = 0
    for row in range(units.first_finished[unit], units.end_finished[unit]):
        finished.first[count] = held_finished.first[row]
        finished.last[count] = held_finished.last[row]
        finished.time[count] = held_finished.time[row]
        count += 1
    control[FINISHED] = count
    control[QUIET] = units.quiet[unit]
    control[PAUSED] = units.paused[unit]
    control[LIMITED] = units.limited[unit]
    control[EVENTS_BOUND] = units.events_bound[unit]
    control[POSITION] = units.first_event[unit]
    control[FIRST_NODE] = control[NODES]
    control[LIVE_NODES] = 0
    control[OPEN] = 1


@compiled
def _close(unit, partials, finished, kept, kept_partials, kept_finished, control):
    place = control[KEPT_PARTIALS]
    for row in range(control[PARTIALS]):
        kept_partials.state[place] = partials.state[row]
        kept_partials.first[place] = partials.first[row]
        kept_partials.last[place] = partials.last[row]
        kept_partials.deadline[place] = partials.deadline[row]
        kept_partials.matched[place] = partials.matched[row]
        place += 1
    control[KEPT_PARTIALS] = place
    place = control[KEPT_FINISHED]
    for row in range(control[FINISHED]):
        kept_finished.first[place] = finished.first[row]
        kept_finished.last[place] = finished.last[row]
        kept_finished.time[place] = finished.time[row]
        place += 1
    control[KEPT_FINISHED] = place
    kept.partials[unit] = control[PARTIALS]
    kept.finished[unit] = control[FINISHED]
    kept.deadline[unit] = control[DEADLINE]
    kept.quiet[unit] = control[QUIET]
    kept.paused[unit] = control[PAUSED]
    kept.limited[unit] = control[LIMITED]
    kept.events_bound[unit] = control[EVENTS_BOUND]


@compiled
def _room(nodes, partials, finished, found, kept_partials, kept_finished, control):
    """Whether the next event has room, whatever it does."""
    if control[MATCHES] + control[TIMEOUTS] + control[FAILURES] >= control[DRAIN_AT]:
        return DRAIN
    count = control[PARTIALS]
    most_takes = control[MOST_TAKES]
    need_nodes = control[NODES] + (count + 1) * most_takes
    if need_nodes > len(nodes.event) and (
        control[NODES] - control[FIRST_NODE] > 2 * control[LIVE_NODES] + 1024
    ):
        _collect(nodes, partials, finished, found, control)
        need_nodes = control[NODES] + (count + 1) * most_takes
    need_partials = (count + 1) * control[MOST_MOVES]
    need_finished = control[FINISHED] + (count + 1) * (most_takes + 2)
    control[NEED_NODES] = need_nodes
    control[NEED_PARTIALS] = need_partials
    control[NEED_FINISHED] = need_finished
    control[NEED_MATCHES] = control[MATCHES] + need_finished
    control[NEED_TIMEOUTS] = control[TIMEOUTS] + count
    control[NEED_FAILURES] = control[FAILURES] + 2 * need_finished + 2
    control[NEED_KEPT_PARTIALS] = control[KEPT_PARTIALS] + count
    control[NEED_KEPT_FINISHED] = control[KEPT_FINISHED] + control[FINISHED] + count
    if (
        need_nodes > len(nodes.event)
        or need_partials > len(partials.state)
        or need_finished > len(finished.first)
        or control[NEED_MATCHES] > len(found.match_unit)
        or control[NEED_TIMEOUTS] > len(found.timeout_unit)
        or control[NEED_FAILURES] > len(found.failure_unit)
        or control[NEED_KEPT_PARTIALS] > len(kept_partials.state)
        or control[NEED_KEPT_FINISHED] > len(kept_finished.first)
    ):
        return GROW
    return DONE


@compiled
def _collect(nodes, partials, finished, found, control):
    """Free the open unit's nodes that nothing points to any more."""
    base, end = control[FIRST_NODE], control[NODES]
    control[SERIAL] += 1
    serial = control[SERIAL]
    for row in range(control[PARTIALS]):
        _mark(partials.last[row], base, serial, nodes)
    for row in range(control[FINISHED]):
        _mark(finished.last[row], base, serial, nodes)
    for row in range(control[MATCHES]):
        _mark(found.match_last[row], base, serial, nodes)
    for row in range(control[TIMEOUTS]):
        _mark(found.timeout_last[row], base, serial, nodes)
    for row in range(control[FAILURES]):
        _mark(found.failure_last[row], base, serial, nodes)
    place = base
    for node in range(base, end):
        if nodes.mark[node] == serial:
            # A node comes after the one that it points to, so that one has moved already.
            previous = nodes.previous[node]
            nodes.previous[place] = nodes.child[previous] if previous >= base else previous
            nodes.step[place] = nodes.step[node]
            nodes.event[place] = nodes.event[node]
            nodes.child[node] = place
            place += 1
    control[NODES] = place
    control[LIVE_NODES] = place - base
    _move(partials.last, control[PARTIALS], base, nodes)
    _move(finished.last, control[FINISHED], base, nodes)
    _move(found.match_last, control[MATCHES], base, nodes)
    _move(found.timeout_last, control[TIMEOUTS], base, nodes)
    _move(found.failure_last, control[FAILURES], base, nodes)


@compiled
def _mark(node, base, serial, nodes):
    while node >= base and nodes.mark[node] != serial:
        nodes.mark[node] = serial
        node = nodes.previous[node]


@compiled
def _move(lasts, count, base, nodes):
    for row in range(count):
        if lasts[row] >= base:
            lasts[row] = nodes.child[lasts[row]]


# One event.


@compiled
def _apply(
    unit, rule, event, event_class, rules, states, outcomes, classes, gaps, time_of,
    nodes, partials, following, same, finished, event_mark, found, control,
):  # fmt: skip
    time = time_of[event]
    if time >= control[DEADLINE]:
        _advance(unit, rule, time, rules, states, time_of, nodes, partials, finished, found, control)
    if control[PAUSED] or time < rules.effective_from[rule]:
        return
    first_outcome = classes.first_outcome[event_class]
    first_asked = classes.first_asked[event_class]
    shift = rules.questions[rule]
    first_state = rules.first_state[rule]
    count = control[PARTIALS]

    # Most events leave most partial matches as they are: look before anything is moved.
    touched = count
    for row in range(count):
        state = partials.state[row]
        answers = 0
        if shift:
            answers = _answers(
                rule, classes.asked[first_asked + state], partials.last[row], event,
                rules, gaps, time_of, nodes,
            )  # fmt: skip
        outcome = classes.outcome[first_outcome + (state << shift) + answers]
        if not outcomes.flags[outcome] & UNCHANGED:
            touched = row
            break
    start = rules.start[rule]
    answers = 0
    if shift:
        answers = _answers(
            rule, classes.asked[first_asked + start], NONE, event, rules, gaps, time_of, nodes
        )
    opening = classes.outcome[first_outcome + (start << shift) + answers]
    opens = outcomes.first_take[opening] < outcomes.first_take[opening + 1]
    if touched == count and not opens:
        return

    # Partial matches on one node have one start: all of these are looked at for repetitions.
    while 0 < touched < count and partials.first[touched - 1] == partials.first[touched]:
        touched -= 1
    control[SERIAL] += 1
    control[NEXT_PARTIALS] = 0
    before = control[FINISHED]
    for row in range(touched, count):
        state = partials.state[row]
        answers = 0
        if shift:
            answers = _answers(
                rule, classes.asked[first_asked + state], partials.last[row], event,
                rules, gaps, time_of, nodes,
            )  # fmt: skip
        outcome = classes.outcome[first_outcome + (state << shift) + answers]
        if outcomes.flags[outcome] & UNCHANGED:
            _stand(
                state, partials.first[row], partials.last[row], partials.deadline[row],
                partials.matched[row], nodes, following, same, control,
            )  # fmt: skip
        else:
            _follow(
                rule, outcome, event, time, first_state, partials.first[row], partials.last[row],
                partials.matched[row], rules, states, outcomes, time_of, nodes, following, same,
                finished, control,
            )  # fmt: skip
    if opens:
        found.started[rule] += 1
        _follow(
            rule, opening, event, time, first_state, event, NONE, 0, rules, states, outcomes,
            time_of, nodes, following, same, finished, control,
        )  # fmt: skip

    # Those whose events, or all but the last of them, are a match have matched.
    completed = control[FINISHED] > before
    serial = control[SERIAL]
    for row in range(before, control[FINISHED]):
        nodes.completed[finished.last[row]] = serial
    place = touched
    for row in range(control[NEXT_PARTIALS]):
        partials.state[place] = following.state[row]
        partials.first[place] = following.first[row]
        partials.last[place] = following.last[row]
        partials.deadline[place] = following.deadline[row]
        partials.matched[place] = following.matched[row]
        place += 1
    control[PARTIALS] = place
    if completed:
        for row in range(place):
            last = partials.last[row]
            previous = nodes.previous[last]
            if nodes.completed[last] == serial or (
                previous != NONE and nodes.completed[previous] == serial
            ):
                partials.matched[row] = 1
    control[EVENTS_BOUND] += 1
    _settle(
        unit, rule, event, rules, nodes, partials, finished, event_mark, found, control, time_of
    )


@compiled
def _answers(rule, asked, last, event, rules, gaps, time_of, nodes):
    """Which of the ``asked`` questions are answered yes."""
    answers = 0
    question = 0
    while asked:
        if asked & 1 and (
            last == NONE
            or time_of[event] - time_of[nodes.event[last]]
            < gaps[rules.first_question[rule] + question]
        ):
            answers |= 1 << question
        asked >>= 1
        question += 1
    return answers


@compiled
def _follow(
    rule, outcome, event, time, first_state, first, last, matched, rules, states, outcomes,
    time_of, nodes, following, same, finished, control,
):  # fmt: skip
    """What becomes of a partial match, or, where ``last`` is ``NONE``, of one that may start."""
    flags = outcomes.flags[outcome]
    if flags & PASSES_TO_MATCH and last != NONE:
        _finish(first, last, time, finished, control)
    for row in range(outcomes.first_take[outcome], outcomes.first_take[outcome + 1]):
        taken = _take(last, outcomes.take_step[row], event, nodes, control)
        if outcomes.take_completes[row]:
            _finish(first, taken, time, finished, control)
        target = outcomes.take_target[row]
        if not flags & STOPS and not states.final[first_state + target]:
            deadline = _deadline(rule, first_state + target, first, taken, rules, states, time_of, nodes)
            _stand(target, first, taken, deadline, matched, nodes, following, same, control)
    if not flags & STOPS and last != NONE:
        for row in range(outcomes.first_pass[outcome], outcomes.first_pass[outcome + 1]):
            target = outcomes.pass_target[row]
            deadline = _deadline(rule, first_state + target, first, last, rules, states, time_of, nodes)
            if deadline > time:  # else it could only repeat, and the gap is over
                _stand(target, first, last, deadline, matched, nodes, following, same, control)


@compiled
def _finish(first, last, time, finished, control):
    row = control[FINISHED]
    finished.first[row] = first
    finished.last[row] = last
    finished.time[row] = time
    control[FINISHED] = row + 1


@compiled
def _take(previous, step, event, nodes, control):
    """The node of ``event`` behind ``previous``: one for each step, however many ask."""
    known = NONE
    if previous != NONE and nodes.taking[previous] == control[SERIAL]:
        known = nodes.child[previous]
        while known != NONE and nodes.step[known] != step:
            known = nodes.sibling[known]
        if known != NONE:
            return known
        known = nodes.child[previous]
    elif previous == NONE:
        # Only the partial match that starts here takes behind nothing: its nodes come last.
        known = control[NODES] - 1
        while (
            known >= control[FIRST_NODE]
            and nodes.previous[known] == NONE
            and nodes.event[known] == event
        ):
            if nodes.step[known] == step:
                return known
            known -= 1
        known = NONE
    node = control[NODES]
    nodes.previous[node] = previous
    nodes.step[node] = step
    nodes.event[node] = event
    nodes.sibling[node] = known
    if previous != NONE:
        nodes.taking[previous] = control[SERIAL]
        nodes.child[previous] = node
    control[NODES] = node + 1
    return node


@compiled
def _deadline(rule, state, first, last, rules, states, time_of, nodes):
    deadline = FOREVER
    if rules.window[rule] != FOREVER:
        deadline = time_of[first] + rules.window[rule]
    if states.gap[state] != FOREVER:
        deadline = min(deadline, time_of[nodes.event[last]] + states.gap[state])
    return deadline


@compiled
def _stand(state, first, last, deadline, matched, nodes, following, same, control):
    """Add a partial match to those that go on, unless it stands there already."""
    serial = control[SERIAL]
    known = NONE
    if nodes.standing[last] == serial:
        known = nodes.partial[last]
        while known != NONE:
            if following.state[known] == state:
                if matched:
                    following.matched[known] = 1
                return
            known = same[known]
        known = nodes.partial[last]
    row = control[NEXT_PARTIALS]
    following.state[row] = state
    following.first[row] = first
    following.last[row] = last
    following.deadline[row] = deadline
    following.matched[row] = matched
    same[row] = known
    nodes.standing[last] = serial
    nodes.partial[last] = row
    control[NEXT_PARTIALS] = row + 1


# Time, skip strategy, limits.


@compiled
def _refresh_deadline(partials, control):
    deadline = FOREVER
    for row in range(control[PARTIALS]):
        deadline = min(deadline, partials.deadline[row])
    control[DEADLINE] = deadline


@compiled
def _advance(
    unit, rule, time, rules, states, time_of, nodes, partials, finished, found, control
):  # fmt: skip
    """Decide what has its deadline at or before ``time``, deadline by deadline."""
    first_state = rules.first_state[rule]
    while control[DEADLINE] <= time:
        deadline = control[DEADLINE]
        control[SERIAL] += 1
        absent = control[SERIAL]
        held = rules.step_gaps[rule] == 1
        for row in range(control[PARTIALS]):
            last = partials.last[row]
            if partials.deadline[row] > deadline:
                if held:
                    nodes.mark[last] = absent
            elif (
                states.absence[first_state + partials.state[row]]
                and nodes.completed[last] != absent
            ):
                nodes.completed[last] = absent
                _finish(partials.first[row], last, deadline, finished, control)
        place = 0
        for row in range(control[PARTIALS]):
            last = partials.last[row]
            if partials.deadline[row] > deadline:
                if place < row:
                    _copy(partials, row, place)
                place += 1
                continue
            state = first_state + partials.state[row]
            gap = states.taking_gap[state]
            could_take = gap == FOREVER or deadline <= time_of[nodes.event[last]] + gap
            if not states.live[state] or not could_take or (held and nodes.mark[last] == absent):
                continue
            matched = partials.matched[row] or nodes.completed[last] == absent
            if nodes.standing[last] == absent:
                if matched:
                    found.timeout_matched[nodes.partial[last]] = 1
                continue
            report = control[TIMEOUTS]
            nodes.standing[last] = absent
            nodes.partial[last] = report
            found.timeout_unit[report] = unit
            found.timeout_first[report] = partials.first[row]
            found.timeout_last[report] = last
            found.timeout_deadline[report] = deadline
            found.timeout_matched[report] = matched
            control[TIMEOUTS] = report + 1
        control[PARTIALS] = place
        _refresh_deadline(partials, control)
        _release(unit, rule, rules, nodes, partials, finished, found, control)


@compiled
def _copy(partials, row, place):
    partials.state[place] = partials.state[row]
    partials.first[place] = partials.first[row]
    partials.last[place] = partials.last[row]
    partials.deadline[place] = partials.deadline[row]
    partials.matched[place] = partials.matched[row]


@compiled
def _release(unit, rule, rules, nodes, partials, finished, found, control):
    """Let go the finished matches whose turn has come, and drop what they skip."""
    if control[FINISHED] == 0:
        return
    _distinct(nodes, finished, control)
    skip = rules.skip[rule]
    count = control[FINISHED]
    if skip == NO_SKIP:
        for row in range(count):
            _emit(unit, rule, row, rules, finished, found, control)
        control[FINISHED] = 0
        return
    _sort(finished, count)
    # Starts and cuts are compared as twice the event, plus one where the event's own start goes.
    cut = NEVER
    turn, waits_for = 0, 0
    while turn < count:
        start = 2 * finished.first[turn]
        if start < cut:
            turn += 1
            continue
        while waits_for < control[PARTIALS] and 2 * partials.first[waits_for] < cut:
            waits_for += 1
        if waits_for < control[PARTIALS] and 2 * partials.first[waits_for] < start:
            break
        _emit(unit, rule, turn, rules, finished, found, control)
        cut = max(cut, _cut(unit, rule, turn, rules, nodes, finished, found, control))
        turn += 1
    while turn < count and 2 * finished.first[turn] < cut:
        turn += 1
    for row in range(turn, count):
        finished.first[row - turn] = finished.first[row]
        finished.last[row - turn] = finished.last[row]
        finished.time[row - turn] = finished.time[row]
    control[FINISHED] = count - turn
    place = 0
    for row in range(control[PARTIALS]):
        if 2 * partials.first[row] >= cut:
            if place < row:
                _copy(partials, row, place)
            place += 1
    if place < control[PARTIALS]:
        control[PARTIALS] = place
        _refresh_deadline(partials, control)


@compiled
def _distinct(nodes, finished, control):
    """Keep each sequence of events once, in its first place with its latest time."""
    control[SERIAL] += 1
    serial = control[SERIAL]
    place = 0
    for row in range(control[FINISHED]):
        last = finished.last[row]
        if nodes.mark[last] == serial:
            finished.time[nodes.child[last]] = finished.time[row]
            continue
        nodes.mark[last] = serial
        nodes.child[last] = place
        finished.first[place] = finished.first[row]
        finished.last[place] = last
        finished.time[place] = finished.time[row]
        place += 1
    control[FINISHED] = place


@compiled
def _sort(finished, count):
    """By start; what is found in order, as nearly always, costs one look."""
    for row in range(1, count):
        first, last, time = finished.first[row], finished.last[row], finished.time[row]
        place = row
        while place > 0 and finished.first[place - 1] > first:
            finished.first[place] = finished.first[place - 1]
            finished.last[place] = finished.last[place - 1]
            finished.time[place] = finished.time[place - 1]
            place -= 1
        finished.first[place] = first
        finished.last[place] = last
        finished.time[place] = time


@compiled
def _emit(unit, rule, row, rules, finished, found, control):
    if rules.cooldown[rule] != FOREVER:
        if control[QUIET] != NEVER and finished.time[row] < control[QUIET]:
            return
        control[QUIET] = finished.time[row] + rules.cooldown[rule]
    report = control[MATCHES]
    found.match_unit[report] = unit
    found.match_first[report] = finished.first[row]
    found.match_last[report] = finished.last[row]
    found.match_time[report] = finished.time[row]
    control[MATCHES] = report + 1


@compiled
def _cut(unit, rule, row, rules, nodes, finished, found, control):
    """What a match skips: starts below the cut. ``NEVER`` for none."""
    skip = rules.skip[rule]
    first, last = finished.first[row], finished.last[row]
    if skip == TO_NEXT:
        return 2 * np.int64(first) + 1
    if skip == PAST_LAST_EVENT:
        return 2 * np.int64(nodes.event[last]) + 1
    target = NONE
    node = last
    while node != NONE and (target == NONE or skip == TO_FIRST):
        if nodes.step[node] == rules.skip_step[rule]:
            target = nodes.event[node]
        node = nodes.previous[node]
    if rules.error_on_miss[rule] and (target == NONE or target == first):
        _fail(unit, SKIP_FAILED, nodes.event[last], last, 0, found, control)
    return NEVER if target == NONE else 2 * np.int64(target)


@compiled
def _fail(unit, kind, event, last, detail, found, control):
    report = control[FAILURES]
    found.failure_unit[report] = unit
    found.failure_kind[report] = kind
    found.failure_event[report] = event
    found.failure_last[report] = last
    found.failure_detail[report] = detail
    control[FAILURES] = report + 1


@compiled
def _settle(
    unit, rule, event, rules, nodes, partials, finished, event_mark, found, control, time_of
):  # fmt: skip
    _release(unit, rule, rules, nodes, partials, finished, found, control)
    if _beyond(rule, rules, nodes, partials, finished, event_mark, control):
        dropped = _enforce(unit, rule, rules, nodes, partials, finished, event_mark, found, control)
        found.dropped[rule] += dropped
        if not control[LIMITED]:
            _fail(unit, LIMIT_REACHED, event, NONE, dropped, found, control)
        control[LIMITED] = 1
    else:
        control[LIMITED] = 0
    _refresh_deadline(partials, control)


@compiled
def _beyond(rule, rules, nodes, partials, finished, event_mark, control):
    if control[PARTIALS] + control[FINISHED] > rules.most_partials[rule]:
        return True
    if control[EVENTS_BOUND] <= rules.most_events[rule]:
        return False
    control[SERIAL] += 1
    events = 0
    for row in range(control[PARTIALS]):
        events += _new_events(partials.last[row], True, nodes, event_mark, control)
    for row in range(control[FINISHED]):
        events += _new_events(finished.last[row], True, nodes, event_mark, control)
    control[EVENTS_BOUND] = events
    return events > rules.most_events[rule]


@compiled
def _new_events(last, mark, nodes, event_mark, control):
    """How many events of a chain no marked chain has; they are marked if asked for."""
    serial = control[SERIAL]
    events = 0
    node = last
    while node != NONE and nodes.mark[node] != serial:
        if event_mark[nodes.event[node]] != serial:
            events += 1
        if mark:
            nodes.mark[node] = serial
            event_mark[nodes.event[node]] = serial
        node = nodes.previous[node]
    return events


@compiled
def _enforce(unit, rule, rules, nodes, partials, finished, event_mark, found, control):
    """Bring the unit back within its limits; returns how many were dropped."""
    if rules.on_limit[rule] == DROP_OLDEST:
        return _drop_oldest(unit, rule, rules, nodes, partials, finished, event_mark, found, control)
    if rules.on_limit[rule] == REJECT_NEW:
        return _reject_new(rule, rules, nodes, partials, finished, event_mark, control)
    dropped = control[PARTIALS] + control[FINISHED]
    control[PARTIALS] = 0
    control[FINISHED] = 0
    control[PAUSED] = 1
    return dropped


@compiled
def _drop_oldest(unit, rule, rules, nodes, partials, finished, event_mark, found, control):
    dropped = 0
    while control[PARTIALS] > 0 and _beyond(
        rule, rules, nodes, partials, finished, event_mark, control
    ):
        before = control[PARTIALS]
        excess = min(before, before + control[FINISHED] - rules.most_partials[rule])
        if excess <= 0:
            # No later start holds the oldest start's event, so that one at least is freed.
            excess = 1
            while excess < before and partials.first[excess] == partials.first[0]:
                excess += 1
        for row in range(excess, before):
            _copy(partials, row, row - excess)
        control[PARTIALS] = before - excess
        dropped += excess
        _release(unit, rule, rules, nodes, partials, finished, found, control)
    return dropped


@compiled
def _reject_new(rule, rules, nodes, partials, finished, event_mark, control):
    before = control[PARTIALS] + control[FINISHED]
    count_events = control[EVENTS_BOUND] > rules.most_events[rule]
    control[SERIAL] += 1
    events = 0
    partial, match = 0, 0
    kept, kept_matches = 0, 0
    while partial < control[PARTIALS] or match < control[FINISHED]:
        if kept + kept_matches == rules.most_partials[rule]:
            break
        take_partial = match >= control[FINISHED] or (
            partial < control[PARTIALS] and partials.first[partial] <= finished.first[match]
        )
        last = partials.last[partial] if take_partial else finished.last[match]
        fits = True
        if count_events:
            more = _new_events(last, False, nodes, event_mark, control)
            fits = events + more <= rules.most_events[rule]
            if fits:
                events += _new_events(last, True, nodes, event_mark, control)
        if take_partial:
            if fits:
                _copy(partials, partial, kept)
                kept += 1
            partial += 1
        else:
            if fits:
                finished.first[kept_matches] = finished.first[match]
                finished.last[kept_matches] = finished.last[match]
                finished.time[kept_matches] = finished.time[match]
                kept_matches += 1
            match += 1
    control[PARTIALS] = kept
    control[FINISHED] = kept_matches
    return before - kept - kept_matches


# After the run.


@compiled
def compact(nodes, count, lasts, event_mark, serial):
    """Keep the nodes that ``lasts`` (moved in place) stand on, and mark their events in
    ``event_mark``; returns how many nodes there are then."""
    for row in range(len(lasts)):
        _mark(lasts[row], 0, serial, nodes)
    place = 0
    for node in range(count):
        if nodes.mark[node] == serial:
            previous = nodes.previous[node]
            nodes.previous[place] = nodes.child[previous] if previous >= 0 else NONE
            nodes.step[place] = nodes.step[node]
            nodes.event[place] = nodes.event[node]
            event_mark[nodes.event[node]] = serial
            nodes.child[node] = place
            place += 1
    for row in range(len(lasts)):
        lasts[row] = nodes.child[lasts[row]]
    return place


@compiled
def chain_lengths(nodes, lasts, lengths):
    """How many events each chain has."""
    for row in range(len(lasts)):
        node = lasts[row]
        length = 0
        while node != NONE:
            length += 1
            node = nodes.previous[node]
        lengths[row] = length


@compiled
def chains(nodes, lasts, ends, steps, events):
    """Write each chain's steps and events, first to last, so that they end at ``ends``."""
    for row in range(len(lasts)):
        node = lasts[row]
        place = ends[row]
        while node != NONE:
            place -= 1
            steps[place] = nodes.step[node]
            events[place] = nodes.event[node]
            node = nodes.previous[node]
