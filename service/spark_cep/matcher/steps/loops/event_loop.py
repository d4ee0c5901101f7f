"""One event applied to the partial matches of one instance: the innermost part of the kernel."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import FOREVER, NONE, compiled, inlined
from spark_cep.columns.loops.number_hash import mixed_with
from spark_cep.matcher.findings.partial import MATCHED, NOT_MATCHED
from spark_cep.matcher.steps.loops.accumulators import added_up, chain_length, extended, has_room
from spark_cep.matcher.steps.loops.kernel_tables import PASS, STOPS, TAKES, UNCHANGED
from spark_cep.matcher.steps.loops.limit_loop import settle
from spark_cep.matcher.steps.loops.release_loop import finish
from spark_cep.programs.loops.expression_loop import holds


@inlined
def apply(
    event, time, event_class, rule, plans, programs, columns, work, tables, ask, tally, control
):  # fmt: skip
    """Apply one event to all partial matches of the open instance, and to one that may start."""
    nodes, partials = tables.nodes, tables.partials
    count = control.partials

    # Most events leave most partial matches as they are: look before anything is moved.
    touched = count
    for row in range(count):
        if not rule.sparse:
            partials[row].outcome = _outcome(
                partials[row].state, partials[row].last, partials[row].totals, event, time,
                event_class, rule, plans, programs, columns, work, tables, ask, control,
            )  # fmt: skip
        if not plans.outcomes[partials[row].outcome].flags & UNCHANGED:
            touched = row
            break
    if not rule.sparse:
        control.opening = _outcome(
            rule.start, NONE, 0, event, time, event_class, rule, plans, programs, columns, work,
            tables, ask, control,
        )  # fmt: skip
    opening = plans.outcomes[control.opening]
    opens = opening.flags & TAKES
    if touched == count and not opens:
        return
    answered = touched
    # Partial matches on one node have one start: all of these are looked at for repetitions.
    while 0 < touched < count and partials[touched - 1].first == partials[touched].first:
        touched -= 1

    control.serial += 1
    control.following = 0
    for row in range(touched, count):
        partial = partials[row]
        if row > answered and not rule.sparse:
            partial.outcome = _outcome(
                partial.state, partial.last, partial.totals, event, time, event_class, rule, plans,
                programs, columns, work, tables, ask, control,
            )  # fmt: skip
        outcome = plans.outcomes[partial.outcome]
        if outcome.flags & UNCHANGED:
            _stand(
                partial.state, partial.first, partial.last, partial.totals, partial.deadline, nodes,
                tables.following, control,
            )  # fmt: skip
        else:
            _follow(
                outcome, event, time, partial.first, partial.last, partial.totals, rule, plans,
                columns, work, tables, control,
            )  # fmt: skip
    if opens:
        tally.started += 1
        _follow(opening, event, time, event, NONE, 0, rule, plans, columns, work, tables, control)
    for row in range(control.following):
        partials[touched + row] = tables.following[row]
    control.partials = touched + control.following
    control.events_bound += 1
    settle(event, rule, tables, tally, control)


@inlined
def _outcome(
    state, last, totals, event, time, event_class, rule, plans, programs, columns, work, tables,
    ask, control,
):  # fmt: skip
    """Return the effect of the event on a partial match in ``state``: a row of outcomes."""
    answers = np.int64(0)
    if rule.conditions:
        asked = plans.asked[event_class.first_asked + state]
        if asked:
            answers = _answers(
                asked, last, totals, event, time, rule, programs, columns, work, tables, ask
            )
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
    return np.int64(mixed_with(mixed_with(0, state), answers) >> np.uint64(33))


@compiled
def resolved(
    event, time, event_class, rule, plans, programs, columns, work, tables, ask, control
):  # fmt: skip
    """Find what the event does to each partial match, and to one that may start; returns whether
    all of it is tabled."""
    for row in range(-1, control.partials):
        state, last, totals = rule.start, np.int32(NONE), np.int32(0)
        if row >= 0:
            partial = tables.partials[row]
            state, last, totals = partial.state, partial.last, partial.totals
        outcome = _outcome(
            state, last, totals, event, time, event_class, rule, plans, programs, columns, work,
            tables, ask, control,
        )  # fmt: skip
        if outcome == NONE:
            return False
        if row < 0:
            control.opening = outcome
        else:
            tables.partials[row].outcome = outcome
    return True


@compiled
def add_up(event_class, rule, plans, columns, tables, control):
    """Add up what partial matches have taken whose totals a condition asks for. Returns whether
    there was room for that."""
    for row in range(control.partials):
        partial = tables.partials[row]
        if partial.totals == NONE and plans.asked[event_class.first_asked + partial.state]:
            length = chain_length(partial.last, tables.nodes)
            # Beside what the event itself needs.
            moving = (control.partials + 1) * control.most_moves
            if not has_room(moving + 1, moving + length, rule, tables, control):
                return False
            partial.totals = added_up(partial.last, length, rule, plans, columns, tables, control)
    return True


@compiled
def _answers(
    open_conditions, last, totals, event, time, rule, programs, columns, work, tables, ask
):  # fmt: skip
    """Return the mask of the conditions that are true."""
    answers = np.int64(0)
    number = 0
    while open_conditions >> number:
        if open_conditions >> number & 1:
            condition = programs.conditions[rule.first_condition + number]
            if condition.first_operation < condition.end_operation:
                yes = holds(
                    condition, last, event, programs, columns, totals * rule.accumulators,
                    tables.accumulators, tables.stack, tables.nodes, ask,
                )  # fmt: skip
            else:
                before = work.time_of[tables.nodes[last].event] if last != NONE else time
                yes = time - before < condition.gap
            if yes:
                answers |= np.int64(1) << number
        number += 1
    return answers


@inlined
def _follow(
    outcome, event, time, first, last, totals, rule, plans, columns, work, tables, control
):  # fmt: skip
    """Apply the event to a partial match, or, where ``last`` is ``NONE``, start one."""
    nodes, time_of = tables.nodes, work.time_of
    added, of_added = np.int64(NONE), np.int64(NONE)
    for row in range(outcome.first_move, outcome.end_move):
        move = plans.moves[row]
        takes = move.step != PASS
        if not takes and last == NONE:
            continue
        end = _take(last, move.step, event, nodes, control) if takes else last
        if move.completes and nodes[end].matched != MATCHED:
            finish(first, end, time, nodes, tables.finished, control)
        state = plans.states[rule.first_state + move.target]
        if outcome.flags & STOPS or state.final:
            continue
        deadline = _deadline(time_of[first], time_of[nodes[end].event], rule, state)
        if takes:
            if rule.accumulators and totals != NONE and added != end:
                added = end
                of_added = extended(totals, move.step, event, rule, plans, columns, tables, control)
            _stand(move.target, first, end, of_added, deadline, nodes, tables.following, control)
        elif deadline > time:  # else it could only repeat, and the gap is over
            _stand(move.target, first, end, totals, deadline, nodes, tables.following, control)


@inlined
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
    nodes[taken].matched = NOT_MATCHED
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


@inlined
def _stand(state, first, last, totals, deadline, nodes, following, control):
    """Add a partial match to those that go on, unless it stands there already."""
    known = NONE
    if nodes[last].standing == control.serial:
        known = nodes[last].partial
        while known != NONE:
            if following[known].state == state:
                return
            known = following[known].same
        known = nodes[last].partial
    row = control.following
    control.following += 1
    following[row].state = state
    following[row].first = first
    following[row].last = last
    following[row].totals = totals
    following[row].deadline = deadline
    following[row].same = known
    nodes[last].standing = control.serial
    nodes[last].partial = row
