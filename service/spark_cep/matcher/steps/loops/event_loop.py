"""One event applied to the partial matches of one instance: the innermost part of the kernel."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import FOREVER, NONE, compiled, inlined
from spark_cep.matcher.steps.loops.kernel_tables import (
    BEGINNING_MATCHED,
    ITSELF_MATCHED,
    NOT_MATCHED,
    PASS,
    STOPS,
    TAKES,
    UNCHANGED,
)
from spark_cep.matcher.steps.loops.release_loop import finish, settle
from spark_cep.programs.loops.expression_loop import holds


@inlined
def apply(
    event, time, event_class, rule, plans, programs, columns, work, tables, ask, tally, control
):  # fmt: skip
    """Apply one event to all partial matches of the open instance, and to one that may start."""
    nodes, partials, finished = tables.nodes, tables.partials, tables.finished
    count = control.partials

    # Most events leave most partial matches as they are: look before anything is moved.
    touched = count
    for row in range(count):
        outcome = _outcome(
            partials[row].state, partials[row].last, event, time, event_class, rule, plans,
            programs, columns, work, tables, ask, control,
        )  # fmt: skip
        if not plans.outcomes[outcome].flags & UNCHANGED:
            touched = row
            break
    opening = plans.outcomes[
        _outcome(
            rule.start, NONE, event, time, event_class, rule, plans, programs, columns, work,
            tables, ask, control,
        )
    ]  # fmt: skip
    opens = opening.flags & TAKES
    if touched == count and not opens:
        return
    # Partial matches on one node have one start: all of these are looked at for repetitions.
    while 0 < touched < count and partials[touched - 1].first == partials[touched].first:
        touched -= 1

    control.serial += 1
    control.following = 0
    before = control.finished
    for row in range(touched, count):
        partial = partials[row]
        outcome = plans.outcomes[
            _outcome(
                partial.state, partial.last, event, time, event_class, rule, plans, programs,
                columns, work, tables, ask, control,
            )
        ]  # fmt: skip
        if outcome.flags & UNCHANGED:
            _stand(
                partial.state, partial.first, partial.last, partial.deadline, partial.matched,
                nodes, tables.following, control,
            )  # fmt: skip
        else:
            _follow(
                outcome, event, time, partial.first, partial.last, partial.matched, rule, plans,
                work, tables, control,
            )  # fmt: skip
    if opens:
        tally.started += 1
        _follow(opening, event, time, event, NONE, NOT_MATCHED, rule, plans, work, tables, control)
    for row in range(control.following):
        partials[touched + row] = tables.following[row]
    control.partials = touched + control.following

    # Those whose events, or all but the last of them, are a match have matched.
    if control.finished > before:
        serial = control.serial
        for row in range(before, control.finished):
            nodes[finished[row].last].completed = serial
        for row in range(control.partials):
            last = partials[row].last
            previous = nodes[last].previous
            if nodes[last].completed == serial:
                partials[row].matched = ITSELF_MATCHED
            elif previous != NONE and nodes[previous].completed == serial:
                partials[row].matched = max(partials[row].matched, BEGINNING_MATCHED)
    control.events_bound += 1
    settle(event, rule, tables, tally, control)


@inlined
def _outcome(
    state, last, event, time, event_class, rule, plans, programs, columns, work, tables, ask,
    control,
):  # fmt: skip
    """Return the effect of the event on a partial match in ``state``: a row of outcomes."""
    answers = np.int64(0)
    if rule.conditions:
        answers = _answers(
            plans.asked[event_class.first_asked + state], last, event, time, rule, programs,
            columns, work, tables, ask,
        )  # fmt: skip
        if rule.sparse:
            return _looked_up(event_class.first_outcome + state, answers, plans.answered, control)
    return plans.outcome_of[event_class.first_outcome + (state << rule.conditions) + answers]


@compiled
def _looked_up(state, answers, answered, control):
    """The outcome that is tabled for these answers; ``NONE``, and what they are, where there is
    none yet."""
    last = len(answered) - 1
    row = answered_at(state, answers) & last
    while answered[row].outcome != NONE:
        if answered[row].state == state and answered[row].answers == answers:
            return answered[row].outcome
        row = (row + 1) & last
    control.unresolved_state = state
    control.unresolved_answers = answers
    return np.int32(NONE)


@compiled
def answered_at(state, answers):
    """Return the first place to look at in a table of ``ANSWERED``, before it is cut to the table's
    size."""
    mixed = np.uint64(state) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(answers)
    mixed *= np.uint64(0xC2B2AE3D27D4EB4F)
    return np.int64(mixed >> np.uint64(33))


@compiled
def resolved(
    event, time, event_class, rule, plans, programs, columns, work, tables, ask, control
):  # fmt: skip
    """Return whether it is tabled what the event does to all partial matches."""
    for row in range(-1, control.partials):
        state = rule.start if row < 0 else tables.partials[row].state
        last = NONE if row < 0 else tables.partials[row].last
        outcome = _outcome(
            state, last, event, time, event_class, rule, plans, programs, columns, work, tables,
            ask, control,
        )  # fmt: skip
        if outcome == NONE:
            return False
    return True


@compiled
def _answers(open_conditions, last, event, time, rule, programs, columns, work, tables, ask):
    """Return the mask of the conditions that are true."""
    answers = np.int64(0)
    number = 0
    while open_conditions >> number:
        if open_conditions >> number & 1:
            condition = programs.conditions[rule.first_condition + number]
            if condition.first_operation < condition.end_operation:
                yes = holds(
                    condition, last, event, programs, columns, tables.stack, tables.path,
                    tables.nodes, ask,
                )  # fmt: skip
            else:
                before = work.time_of[tables.nodes[last].event] if last != NONE else time
                yes = time - before < condition.gap
            if yes:
                answers |= np.int64(1) << number
        number += 1
    return answers


@compiled
def _follow(
    outcome, event, time, first, last, matched, rule, plans, work, tables, control
):  # fmt: skip
    """Apply the event to a partial match, or, where ``last`` is ``NONE``, start one."""
    nodes, time_of = tables.nodes, work.time_of
    for row in range(outcome.first_move, outcome.end_move):
        move = plans.moves[row]
        takes = move.step != PASS
        if not takes and last == NONE:
            continue
        end = _take(last, move.step, event, nodes, control) if takes else last
        if move.completes and (takes or matched != ITSELF_MATCHED):
            finish(first, end, time, tables.finished, control)
        state = plans.states[rule.first_state + move.target]
        if outcome.flags & STOPS or state.final:
            continue
        deadline = _deadline(time_of[first], time_of[nodes[end].event], rule, state)
        if takes:
            inherited = min(matched, BEGINNING_MATCHED)
            _stand(move.target, first, end, deadline, inherited, nodes, tables.following, control)
        elif deadline > time:  # else it could only repeat, and the gap is over
            _stand(move.target, first, end, deadline, matched, nodes, tables.following, control)


@compiled
def _take(previous, step, event, nodes, control):
    """The node of ``event`` behind ``previous``: one for each step, however many ask."""
    known = NONE
    if previous == NONE:
        # Only the partial match that starts here takes behind nothing: its nodes come last.
        known = control.nodes - 1
        while (
            known >= control.first_node
            and nodes[known].previous == NONE
            and nodes[known].event == event
        ):
            if nodes[known].step == step:
                return known
            known -= 1
        known = NONE
    elif nodes[previous].taking == control.serial:
        known = nodes[previous].child
        while known != NONE:
            if nodes[known].step == step:
                return known
            known = nodes[known].sibling
        known = nodes[previous].child
    taken = control.nodes
    control.nodes += 1
    nodes[taken].previous = previous
    nodes[taken].step = step
    nodes[taken].event = event
    nodes[taken].sibling = known
    if previous != NONE:
        nodes[previous].taking = control.serial
        nodes[previous].child = taken
    return taken


@inlined
def _deadline(first_time, last_time, rule, state):
    deadline = FOREVER
    if rule.window != FOREVER:
        deadline = first_time + rule.window
    if state.gap != FOREVER:
        deadline = min(deadline, last_time + state.gap)
    return deadline


@compiled
def _stand(state, first, last, deadline, matched, nodes, following, control):
    """Add a partial match to those that go on, unless it stands there already."""
    known = NONE
    if nodes[last].standing == control.serial:
        known = nodes[last].partial
        while known != NONE:
            if following[known].state == state:
                following[known].matched = max(following[known].matched, matched)
                return
            known = following[known].same
        known = nodes[last].partial
    row = control.following
    control.following += 1
    following[row].state = state
    following[row].first = first
    following[row].last = last
    following[row].deadline = deadline
    following[row].matched = matched
    following[row].same = known
    nodes[last].standing = control.serial
    nodes[last].partial = row
