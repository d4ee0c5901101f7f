"""The compiled inner loop: many keys' events applied to many rules' partial matches.

It does what :mod:`service.matcher.machine` does, over rows of numbers instead of objects, and is
tested against it. Numba compiles it at first use and keeps the result in its cache.

A *unit* is one rule for one key. Events, nodes (an event taken behind a previous node) and units
are row numbers. Of two events of one key, the one with the lower number is applied first. The
partial matches of a unit are in the order of their starts.

``run`` works until it is done, or returns at an event's boundary because there is not enough room
(``GROW``: the caller grows what ``CONTROL``'s ``need_…`` say) or because much has been found
(``DRAIN``: the caller takes it out). Called again, it goes on where it was.

Tables are arrays of records: a function that needs rows is handed few arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
#: An array of the records that a ``dtype`` below describes.
Table = NDArray[np.void]

FOREVER = (1 << 63) - 1
NEVER = -(1 << 63)
NONE = -1

DONE, GROW, DRAIN = 0, 1, 2

NO_SKIP, TO_NEXT, PAST_LAST_EVENT, TO_FIRST, TO_LAST = 0, 1, 2, 3, 4
DROP_OLDEST, REJECT_NEW, PAUSE_RULE = 0, 1, 2
UNCHANGED, STOPS, TAKES = 1, 2, 4
PASS = -1
SKIP_FAILED, LIMIT_REACHED = 0, 1
NOT_MATCHED, BEGINNING_MATCHED, ITSELF_MATCHED = 0, 1, 2

# What programs are made of. On DOUBLE, an operation's code is higher by ``DOUBLE``.
DOUBLE = 64
(
    NULL, CONSTANT, TEXT, COLUMN, LOOK_BACK, TO_DOUBLE, TO_MOMENT,
    EQUAL, NOT_EQUAL, LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL,
    ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE,
    AND, OR, NOT, IS_NULL, IS_TRUE, IS_FALSE,
) = range(24)  # fmt: skip
#: A program's stack holds so many values at most.
STACK = 64
FIRST, LAST, SUM, AVG, MIN, MAX, COUNT = range(7)
_DAY = 86_400_000_000
_LEAST_INT, _MOST_INT = -(1 << 31), (1 << 31) - 1


def _record(**fields: str) -> np.dtype[np.void]:
    return np.dtype(list(fields.items()), align=True)


#: A rule. A missing duration is ``FOREVER``, a missing time ``NEVER``; ``tables`` go on at its
#: ``first_state`` and ``first_question``.
RULE = _record(
    window="i8", cooldown="i8", effective_from="i8", most_partials="i8", most_events="i8",
    start="i4", first_state="i4", first_question="i4", questions="i4", skip="i4", skip_step="i4",
    on_limit="i4", error_on_miss="u1", step_gaps="u1",
)  # fmt: skip
#: A state of a plan; see :class:`service.compiler.plan.State`.
STATE = _record(gap="i8", taking_gap="i8", absence="u1", live="u1", final="u1")
#: What an event does to a partial match: rows of ``MOVE``.
OUTCOME = _record(first_move="i4", end_move="i4", flags="u1")
#: See :class:`service.matcher.transitions.Move`.
MOVE = _record(step="i4", target="i4", completes="u1")
#: A kind of event, by what is true of it for a rule. The outcome for a state and the answers to
#: its questions is at ``first_outcome + (state << questions) + answers``, the mask of the
#: questions that matter at ``first_asked + state``.
CLASS = _record(first_outcome="i4", first_asked="i4")
#: An event that touches a unit's rule.
FEED = _record(event="i4", event_class="i4")
#: A unit: what it is given (places in ``FEED`` and among the partial and finished matches) and
#: what it remembers, before the run and after.
UNIT = _record(
    first_event="i8", end_event="i8", first_partial="i8", end_partial="i8", first_finished="i8",
    end_finished="i8", deadline="i8", quiet="i8", events_bound="i8", rule="i4", partials="i4",
    finished="i4", paused="u1", limited="u1",
)  # fmt: skip
#: A partial match. ``same`` is the kernel's own.
PARTIAL = _record(deadline="i8", state="i4", first="i4", last="i4", same="i4", matched="u1")
#: A complete match that waits for the skip strategy.
FINISHED = _record(time="i8", first="i4", last="i4")
#: An event taken, behind ``previous`` (``NONE`` for the first). The other fields are the kernel's
#: own.
NODE = _record(
    previous="i4", step="i4", event="i4", mark="i4", completed="i4", taking="i4", child="i4",
    sibling="i4", standing="i4", partial="i4",
)  # fmt: skip
#: A condition that only the partial match answers: on the time since its last event (``gap``), or,
#: where there are operations, a program.
QUESTION = _record(gap="i8", first_operation="i4", end_operation="i4", first_look="i4")
#: See :mod:`service.matcher.columnar.programs`. A text's ``whole`` is its place among all texts.
OPERATION = _record(whole="i8", double="f8", code="i4", operand="i4")
LOOK = _record(function="i4", step="i4", column="i4", offset="i4", double="u1")
#: A value on a program's stack.
VALUE = _record(whole="i8", double="f8", null="u1")
MATCH = _record(time="i8", unit="i4", first="i4", last="i4")
TIMEOUT = _record(deadline="i8", unit="i4", first="i4", last="i4", matched="u1")
FAILURE = _record(detail="i8", unit="i4", kind="i4", event="i4", last="i4")
#: Counts per rule: events, partial matches that they were tested against (with those that might
#: begin), partial matches begun, those and complete ones that the skip strategy ended, and those
#: dropped by a limit.
TALLY = _record(events="i8", tested="i8", started="i8", pruned="i8", dropped="i8")
#: Where a run stands, what the open unit is like, how full the tables are and must be. One row.
CONTROL = _record(
    **dict.fromkeys(
        (
            "unit", "position", "watermark", "drain_at", "most_moves",
            "open", "deadline", "quiet", "paused", "limited", "events_bound", "pruned",
            "serial", "first_node", "live_nodes",
            "nodes", "partials", "following", "finished", "matches", "timeouts", "failures",
            "kept_partials", "kept_finished",
            "need_nodes", "need_partials", "need_finished", "need_matches", "need_timeouts",
            "need_failures", "need_kept_partials", "need_kept_finished",
        ),
        "i8",
    )
)  # fmt: skip


def compiled(function: Any) -> Any:
    """The function, compiled at its first call."""
    try:
        return njit(function, cache=True, **_COMPILER)
    except RuntimeError:
        # No folder to keep the result in can be written: every process compiles anew.
        return njit(function, **_COMPILER)


def inlined(function: Any) -> Any:
    """The function as a part of those that call it."""
    return njit(function, inline="always", **_COMPILER)


#: Nothing here makes arrays, and the caller keeps those that it hands in. Without the runtime that
#: counts references to arrays, at each call of each function, the loop takes a sixth of the time.
_COMPILER: dict[str, Any] = {"error_model": "numpy", "_nrt": False}


@compiled
def run(
    rules, states, outcomes, moves, classes, outcome_of, asked, questions, operations,
    looks, wholes, doubles, nulls, stack, path, time_of, feed, units, held, held_finished, nodes,
    partials, following, finished, event_mark, matches, timeouts, failures, tallies, kept_partials,
    kept_finished, controls,
):  # fmt: skip
    """Run all units; see the module's text."""
    control = controls[0]
    while control.unit < len(units):
        unit = units[control.unit]
        rule = rules[unit.rule]
        if not control.open:
            control.need_partials = unit.end_partial - unit.first_partial
            control.need_finished = unit.end_finished - unit.first_finished
            if control.need_partials > len(partials) or control.need_finished > len(finished):
                return GROW
            _open(unit, held, held_finished, partials, finished, control)
        while control.position <= unit.end_event:
            if control.matches + control.timeouts + control.failures >= control.drain_at:
                return DRAIN
            if (
                control.nodes + (control.partials + 1) * control.most_moves > len(nodes)
                and control.nodes - control.first_node > 2 * control.live_nodes + 1024
            ):
                _collect(nodes, partials, finished, matches, timeouts, failures, control)
            _reckon(control)
            if (
                control.need_nodes > len(nodes)
                or control.need_partials > len(partials)
                or control.need_finished > len(finished)
                or control.need_matches > len(matches)
                or control.need_timeouts > len(timeouts)
                or control.need_failures > len(failures)
                or control.need_kept_partials > len(kept_partials)
                or control.need_kept_finished > len(kept_finished)
            ):
                return GROW
            closing = control.position == unit.end_event
            time = control.watermark if closing else time_of[feed[control.position].event]
            if control.deadline <= time:
                _advance(
                    time, rule, states, time_of, nodes, partials, finished, matches, timeouts,
                    failures, control,
                )  # fmt: skip
            if closing:
                _close(unit, partials, finished, kept_partials, kept_finished, control)
                tallies[unit.rule].pruned += control.pruned
                control.pruned = 0
            elif not control.paused and time >= rule.effective_from:
                fed = feed[control.position]
                tallies[unit.rule].events += 1
                tallies[unit.rule].tested += control.partials + 1
                _apply(
                    fed.event, time, classes[fed.event_class], rule, states, outcomes, moves,
                    outcome_of, asked, questions, operations, looks, wholes, doubles,
                    nulls, stack, path, time_of, nodes, partials, following, finished,
                    event_mark, matches, failures, tallies[unit.rule], control,
                )  # fmt: skip
            control.position += 1
        control.open = 0
        control.unit += 1
    return DONE


@compiled
def _open(unit, held, held_finished, partials, finished, control):
    control.deadline = FOREVER
    control.partials = 0
    for row in range(unit.first_partial, unit.end_partial):
        partials[control.partials] = held[row]
        control.deadline = min(control.deadline, held[row].deadline)
        control.partials += 1
    control.finished = 0
    for row in range(unit.first_finished, unit.end_finished):
        finished[control.finished] = held_finished[row]
        control.finished += 1
    control.quiet = unit.quiet
    control.paused = unit.paused
    control.limited = unit.limited
    control.events_bound = unit.events_bound
    control.position = unit.first_event
    control.first_node = control.nodes
    control.live_nodes = 0
    control.open = 1


@compiled
def _close(unit, partials, finished, kept_partials, kept_finished, control):
    for row in range(control.partials):
        kept_partials[control.kept_partials] = partials[row]
        control.kept_partials += 1
    for row in range(control.finished):
        kept_finished[control.kept_finished] = finished[row]
        control.kept_finished += 1
    unit.partials = control.partials
    unit.finished = control.finished
    unit.deadline = control.deadline
    over = control.quiet <= control.watermark and control.finished == 0
    unit.quiet = NEVER if over else control.quiet
    unit.paused = control.paused
    unit.limited = control.limited
    unit.events_bound = control.events_bound


@compiled
def _reckon(control):
    """How much room the next event needs at most, whatever it does."""
    moving = control.partials + 1
    control.need_nodes = control.nodes + moving * control.most_moves
    control.need_partials = moving * control.most_moves
    control.need_finished = control.finished + moving * (control.most_moves + 2)
    control.need_matches = control.matches + control.need_finished
    control.need_timeouts = control.timeouts + control.partials
    control.need_failures = control.failures + 2 * control.need_finished + 2
    control.need_kept_partials = control.kept_partials + control.partials
    control.need_kept_finished = control.kept_finished + control.finished + control.partials


@compiled
def _collect(nodes, partials, finished, matches, timeouts, failures, control):
    """Free the open unit's nodes that nothing points to any more."""
    base, end = control.first_node, control.nodes
    control.serial += 1
    serial = control.serial
    _mark_all(partials, control.partials, base, serial, nodes)
    _mark_all(finished, control.finished, base, serial, nodes)
    _mark_all(matches, control.matches, base, serial, nodes)
    _mark_all(timeouts, control.timeouts, base, serial, nodes)
    _mark_all(failures, control.failures, base, serial, nodes)
    place = base
    for row in range(base, end):
        if nodes[row].mark == serial:
            _put(row, place, base, nodes)
            place += 1
    control.nodes = place
    control.live_nodes = place - base
    _move_all(partials, control.partials, base, nodes)
    _move_all(finished, control.finished, base, nodes)
    _move_all(matches, control.matches, base, nodes)
    _move_all(timeouts, control.timeouts, base, nodes)
    _move_all(failures, control.failures, base, nodes)


@compiled
def _mark_all(table, count, base, serial, nodes):
    """Mark the nodes from ``base`` on that the table's first rows stand on."""
    for place in range(count):
        row = table[place].last
        while row >= base and nodes[row].mark != serial:
            nodes[row].mark = serial
            row = nodes[row].previous


@compiled
def _move_all(table, count, base, nodes):
    """Let the table's first rows follow the nodes that were put elsewhere."""
    for place in range(count):
        table[place].last = _moved(table[place].last, base, nodes)


@compiled
def _put(row, place, base, nodes):
    """Move a node down; ``child`` says from then on where it went."""
    # A node stands after the one that it points to, so that one has moved already.
    nodes[place].previous = _moved(nodes[row].previous, base, nodes)
    nodes[place].step = nodes[row].step
    nodes[place].event = nodes[row].event
    nodes[row].child = place


@compiled
def _moved(row, base, nodes):
    return nodes[row].child if row >= base else row


# One event.


@compiled
def _apply(
    event, time, event_class, rule, states, outcomes, moves, outcome_of, asked, questions,
    operations, looks, wholes, doubles, nulls, stack, path, time_of, nodes, partials, following,
    finished, event_mark, matches, failures, tally, control,
):  # fmt: skip
    first_state = rule.first_state
    count = control.partials

    # Most events leave most partial matches as they are: look before anything is moved.
    touched = count
    for row in range(count):
        outcome = _outcome(
            partials[row].state, partials[row].last, event, time, event_class, rule, outcome_of,
            asked, questions, operations, looks, wholes, doubles, nulls, stack, path, time_of,
            nodes,
        )  # fmt: skip
        if not outcomes[outcome].flags & UNCHANGED:
            touched = row
            break
    opening = outcomes[
        _outcome(
            rule.start, NONE, event, time, event_class, rule, outcome_of, asked, questions,
            operations, looks, wholes, doubles, nulls, stack, path, time_of, nodes,
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
        outcome = outcomes[
            _outcome(
                partial.state, partial.last, event, time, event_class, rule, outcome_of, asked,
                questions, operations, looks, wholes, doubles, nulls, stack, path, time_of, nodes,
            )
        ]  # fmt: skip
        if outcome.flags & UNCHANGED:
            _stand(
                partial.state, partial.first, partial.last, partial.deadline, partial.matched,
                nodes, following, control,
            )  # fmt: skip
        else:
            _follow(
                outcome, event, time, partial.first, partial.last, partial.matched, rule,
                first_state, states, moves, time_of, nodes, following, finished, control,
            )  # fmt: skip
    if opens:
        tally.started += 1
        _follow(
            opening, event, time, event, NONE, NOT_MATCHED, rule, first_state, states, moves,
            time_of, nodes, following, finished, control,
        )  # fmt: skip
    for row in range(control.following):
        partials[touched + row] = following[row]
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
    _settle(
        event, rule, nodes, partials, finished, event_mark, matches, failures, tally, control
    )  # fmt: skip


@inlined
def _outcome(
    state, last, event, time, event_class, rule, outcome_of, asked, questions, operations, looks,
    wholes, doubles, nulls, stack, path, time_of, nodes,
):  # fmt: skip
    """What the event does to a partial match in ``state``: a row of outcomes."""
    answers = 0
    if rule.questions:
        answers = _answers(
            asked[event_class.first_asked + state], last, event, time, rule, questions, operations,
            looks, wholes, doubles, nulls, stack, path, time_of, nodes,
        )  # fmt: skip
    return outcome_of[event_class.first_outcome + (state << rule.questions) + answers]


@compiled
def _answers(
    open_questions, last, event, time, rule, questions, operations, looks, wholes, doubles, nulls,
    stack, path, time_of, nodes,
):  # fmt: skip
    """Which of the questions are answered yes."""
    answers = 0
    number = 0
    while open_questions >> number:
        if open_questions >> number & 1:
            question = questions[rule.first_question + number]
            if question.first_operation < question.end_operation:
                yes = holds(
                    question, last, event, operations, looks, wholes, doubles, nulls, stack, path,
                    nodes,
                )  # fmt: skip
            else:
                yes = last == NONE or time - time_of[nodes[last].event] < question.gap
            if yes:
                answers |= 1 << number
        number += 1
    return answers


@compiled
def holds(question, last, event, operations, looks, wholes, doubles, nulls, stack, path, nodes):
    """Whether a program's condition is true: neither false nor NULL."""
    top = -1
    for row in range(question.first_operation, question.end_operation):
        operation = operations[row]
        code = operation.code & (DOUBLE - 1)
        if code <= LOOK_BACK:
            top += 1
            value = stack[top]
            value.null = 0
            if code == NULL:
                value.null = 1
            elif code == COLUMN:
                value.null = nulls[event, operation.operand]
                value.whole = wholes[event, operation.operand]
                value.double = doubles[event, operation.operand]
            elif code == LOOK_BACK:
                _look_back(
                    looks[question.first_look + operation.operand], last, value, wholes, doubles,
                    nulls, path, nodes,
                )  # fmt: skip
            else:
                value.whole = operation.whole
                value.double = operation.double
        elif code <= TO_MOMENT or code >= NOT or code == NEGATE:
            _change(code, stack[top])
        else:
            top -= 1
            if code in (AND, OR):
                _join(code, stack[top], stack[top + 1])
            elif stack[top].null or stack[top + 1].null:
                stack[top].null = 1
            elif code <= GREATER_OR_EQUAL:
                if operation.code & DOUBLE:
                    stack[top].whole = _compare_doubles(
                        code, stack[top].double, stack[top + 1].double
                    )
                else:
                    stack[top].whole = _compare_wholes(code, stack[top].whole, stack[top + 1].whole)
            elif operation.code & DOUBLE:
                _compute_double(code, stack[top], stack[top + 1].double)
            else:
                _compute_int(code, stack[top], stack[top + 1].whole)
    return not stack[0].null and stack[0].whole != 0


@compiled
def _change(code, value):
    """An operation on one value."""
    if code == IS_NULL:
        value.whole = value.null
        value.null = 0
    elif code == IS_TRUE:
        value.whole = not value.null and value.whole != 0
        value.null = 0
    elif code == IS_FALSE:
        value.whole = not value.null and value.whole == 0
        value.null = 0
    elif code == NOT:
        value.whole = value.whole == 0
    elif code == TO_DOUBLE:
        value.double = value.whole
    elif code == TO_MOMENT:
        value.whole *= _DAY
    else:
        value.double = -value.double


@compiled
def _join(code, left, right):
    """AND and OR of three truth values, into ``left``."""
    decisive = 0 if code == AND else 1
    if (not left.null and (left.whole != 0) == decisive) or (
        not right.null and (right.whole != 0) == decisive
    ):
        left.whole = decisive
        left.null = 0
    elif left.null or right.null:
        left.null = 1
    else:
        left.whole = 1 - decisive


@inlined
def _compare_wholes(code, left, right):
    return (
        (code == EQUAL and left == right)
        or (code == NOT_EQUAL and left != right)
        or (code == LESS and left < right)
        or (code == LESS_OR_EQUAL and left <= right)
        or (code == GREATER and left > right)
        or (code == GREATER_OR_EQUAL and left >= right)
    )


@compiled
def _compare_doubles(code, left, right):
    """NaN equals NaN and is above all else."""
    left_nan, right_nan = np.isnan(left), np.isnan(right)
    if left_nan or right_nan:
        return _compare_wholes(code, np.int64(left_nan), np.int64(right_nan))
    return _compare_wholes(code, left, right)


@compiled
def _compute_double(code, left, right):
    if code == ADD:
        left.double += right
    elif code == SUBTRACT:
        left.double -= right
    elif code == MULTIPLY:
        left.double *= right
    elif right == 0:
        left.null = 1
    else:
        left.double /= right


@compiled
def _compute_int(code, left, right):
    """Of two INTs; NULL where the result is none."""
    if code == ADD:
        left.whole += right
    elif code == SUBTRACT:
        left.whole -= right
    else:
        left.whole *= right
    if not _LEAST_INT <= left.whole <= _MOST_INT:
        left.null = 1


@compiled
def _look_back(look, last, value, wholes, doubles, nulls, path, nodes):
    """The value of a look-back over the events taken; NULL where there is none."""
    value.null = 1
    value.whole = 0
    value.double = 0.0
    count = 0
    row = last
    if look.function == LAST:
        while row != NONE:
            if look.step == NONE or nodes[row].step == look.step:
                if count == look.offset:
                    _read(nodes[row].event, look.column, value, wholes, doubles, nulls)
                    return
                count += 1
            row = nodes[row].previous
        return
    while row != NONE:
        if look.step == NONE or nodes[row].step == look.step:
            path[count] = nodes[row].event
            count += 1
        row = nodes[row].previous
    if look.function == FIRST:
        if look.offset < count:
            _read(path[count - 1 - look.offset], look.column, value, wholes, doubles, nulls)
        return
    if look.column == NONE:
        value.whole = count
        value.null = 0
        return
    _aggregate(look, count, value, wholes, doubles, nulls, path)


@inlined
def _read(event, column, value, wholes, doubles, nulls):
    value.null = nulls[event, column]
    value.whole = wholes[event, column]
    value.double = doubles[event, column]


@compiled
def _aggregate(look, count, value, wholes, doubles, nulls, path):
    """Over the first ``count`` events of ``path``, which has the last one first."""
    column = look.column
    given = 0
    high, low = 0, 0
    total = 0.0
    for place in range(count - 1, -1, -1):
        event = path[place]
        if nulls[event, column]:
            continue
        given += 1
        whole, double = wholes[event, column], doubles[event, column]
        if look.function == MIN or look.function == MAX:
            code = LESS if look.function == MIN else GREATER
            if look.double:
                better = _compare_doubles(code, double, value.double)
            else:
                better = _compare_wholes(code, whole, value.whole)
            if given == 1 or better:
                value.whole = whole
                value.double = double
        elif look.double:
            total += double
        elif look.function == AVG:
            total += whole
        else:
            # In halves, so that only the result's own range counts.
            high += whole >> 32
            low += whole & 0xFFFFFFFF
    if look.function == COUNT:
        value.whole = given
        value.null = 0
    elif given:
        value.null = 0
        if look.function == AVG:
            value.double = total / given
        elif look.function == SUM and look.double:
            value.double = total
        elif look.function == SUM:
            high += low >> 32
            value.whole = (high << 32) | (low & 0xFFFFFFFF)
            value.null = not -(1 << 31) <= high < 1 << 31


@compiled
def _follow(
    outcome, event, time, first, last, matched, rule, first_state, states, moves, time_of, nodes,
    following, finished, control,
):  # fmt: skip
    """What becomes of a partial match, or, where ``last`` is ``NONE``, of one that may start."""
    for row in range(outcome.first_move, outcome.end_move):
        move = moves[row]
        takes = move.step != PASS
        if not takes and last == NONE:
            continue
        end = _take(last, move.step, event, nodes, control) if takes else last
        if move.completes and (takes or matched != ITSELF_MATCHED):
            _finish(first, end, time, finished, control)
        state = states[first_state + move.target]
        if outcome.flags & STOPS or state.final:
            continue
        deadline = _deadline(time_of[first], time_of[nodes[end].event], rule, state)
        if takes:
            inherited = min(matched, BEGINNING_MATCHED)
            _stand(move.target, first, end, deadline, inherited, nodes, following, control)
        elif deadline > time:  # else it could only repeat, and the gap is over
            _stand(move.target, first, end, deadline, matched, nodes, following, control)


@inlined
def _finish(first, last, time, finished, control):
    finished[control.finished].first = first
    finished[control.finished].last = last
    finished[control.finished].time = time
    control.finished += 1


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


# Time, skip strategy, limits.


@compiled
def _refresh_deadline(partials, control):
    deadline = FOREVER
    for row in range(control.partials):
        deadline = min(deadline, partials[row].deadline)
    control.deadline = deadline


@compiled
def _advance(
    time, rule, states, time_of, nodes, partials, finished, matches, timeouts, failures, control
):  # fmt: skip
    """Decide what has its deadline at or before ``time``, deadline by deadline."""
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
                states[first_state + partials[row].state].absence
                and partials[row].matched != ITSELF_MATCHED
                and nodes[last].completed != serial
            ):
                nodes[last].completed = serial
                _finish(partials[row].first, last, deadline, finished, control)
        place = 0
        for row in range(control.partials):
            last = partials[row].last
            if partials[row].deadline > deadline:
                if nodes[last].completed == serial:
                    partials[row].matched = ITSELF_MATCHED
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
            matched = partials[row].matched != NOT_MATCHED or nodes[last].completed == serial
            if nodes[last].standing == serial:
                if matched:
                    timeouts[nodes[last].partial].matched = 1
                continue
            nodes[last].standing = serial
            nodes[last].partial = control.timeouts
            report = timeouts[control.timeouts]
            report.unit = control.unit
            report.first = partials[row].first
            report.last = last
            report.deadline = deadline
            report.matched = matched
            control.timeouts += 1
        control.partials = place
        _refresh_deadline(partials, control)
        _release(rule, nodes, partials, finished, matches, failures, control)


@compiled
def _release(rule, nodes, partials, finished, matches, failures, control):
    """Let go the finished matches whose turn has come, and drop what they skip."""
    if control.finished == 0:
        return
    _distinct(nodes, finished, control)
    count = control.finished
    if rule.skip == NO_SKIP:
        for row in range(count):
            _emit(finished[row], rule, matches, control)
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
        _emit(finished[turn], rule, matches, control)
        cut = max(cut, _cut(finished[turn], rule, nodes, failures, control))
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
def _distinct(nodes, finished, control):
    """Keep each sequence of events once, in its first place with its latest time."""
    control.serial += 1
    serial = control.serial
    place = 0
    for row in range(control.finished):
        node = nodes[finished[row].last]
        if node.mark == serial:
            finished[node.child].time = finished[row].time
            continue
        node.mark = serial
        node.child = place
        finished[place] = finished[row]
        place += 1
    control.finished = place


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
    report.unit = control.unit
    report.first = match.first
    report.last = match.last
    report.time = match.time
    control.matches += 1


@compiled
def _cut(match, rule, nodes, failures, control):
    """What a match skips: starts below the cut. ``NEVER`` for none."""
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
        _fail(SKIP_FAILED, nodes[match.last].event, match.last, 0, failures, control)
    return NEVER if target == NONE else 2 * np.int64(target)


@compiled
def _fail(kind, event, last, detail, failures, control):
    report = failures[control.failures]
    report.unit = control.unit
    report.kind = kind
    report.event = event
    report.last = last
    report.detail = detail
    control.failures += 1


@compiled
def _settle(event, rule, nodes, partials, finished, event_mark, matches, failures, tally, control):
    _release(rule, nodes, partials, finished, matches, failures, control)
    if _beyond(rule, nodes, partials, finished, event_mark, control):
        before = control.partials + control.finished
        if rule.on_limit == DROP_OLDEST:
            dropped = _drop_oldest(
                rule, nodes, partials, finished, event_mark, matches, failures, control
            )
        elif rule.on_limit == REJECT_NEW:
            _reject_new(rule, nodes, partials, finished, event_mark, control)
            dropped = before - control.partials - control.finished
        else:
            dropped = before
            control.partials = 0
            control.finished = 0
            control.paused = 1
        tally.dropped += dropped
        if not control.limited:
            _fail(LIMIT_REACHED, event, NONE, dropped, failures, control)
        control.limited = 1
    else:
        control.limited = 0
    _refresh_deadline(partials, control)


@compiled
def _beyond(rule, nodes, partials, finished, event_mark, control):
    """Whether the unit holds more than its limits allow."""
    if control.partials + control.finished > rule.most_partials:
        return True
    if control.events_bound <= rule.most_events:
        return False
    control.serial += 1
    events = 0
    for row in range(control.partials):
        events += _new_events(partials[row].last, True, nodes, event_mark, control)
    for row in range(control.finished):
        events += _new_events(finished[row].last, True, nodes, event_mark, control)
    control.events_bound = events
    return events > rule.most_events


@compiled
def _new_events(last, mark, nodes, event_mark, control):
    """How many events of a chain no marked chain has; they are marked if asked for."""
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
def _drop_oldest(rule, nodes, partials, finished, event_mark, matches, failures, control):
    dropped = 0
    while control.partials > 0 and _beyond(rule, nodes, partials, finished, event_mark, control):
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
        _release(rule, nodes, partials, finished, matches, failures, control)
        dropped += excess
    return dropped


@compiled
def _reject_new(rule, nodes, partials, finished, event_mark, control):
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
            more = _new_events(last, False, nodes, event_mark, control)
            fits = events + more <= rule.most_events
            if fits:
                events += _new_events(last, True, nodes, event_mark, control)
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


# After the run.


@compiled
def compact(nodes, count, partials, finished, event_mark, serial):
    """Keep the nodes that partial and finished matches stand on (these are moved along), and mark
    their events in ``event_mark``; returns how many nodes there are then."""
    _mark_all(partials, len(partials), 0, serial, nodes)
    _mark_all(finished, len(finished), 0, serial, nodes)
    place = 0
    for row in range(count):
        if nodes[row].mark == serial:
            event_mark[nodes[row].event] = serial
            _put(row, place, 0, nodes)
            place += 1
    _move_all(partials, len(partials), 0, nodes)
    _move_all(finished, len(finished), 0, nodes)
    return place


@compiled
def chain_lengths(nodes, found, lengths):
    """How many events the chain of each finding has."""
    for number in range(len(found)):
        row = found[number].last
        lengths[number] = 0
        while row != NONE:
            lengths[number] += 1
            row = nodes[row].previous


@compiled
def chains(nodes, found, ends, steps, events):
    """Write the steps and events of each finding's chain, first to last, to end at ``ends``."""
    for number in range(len(found)):
        row = found[number].last
        place = ends[number]
        while row != NONE:
            place -= 1
            steps[place] = nodes[row].step
            events[place] = nodes[row].event
            row = nodes[row].previous


def prepare() -> None:
    """Compile everything, or load what was compiled before, so that no batch waits for it.

    Raises OSError when it would have to be kept in a cache that cannot be written.
    """

    def rows(kind: Any, *shape: int) -> Any:
        return np.zeros(shape or 0, kind)

    values = rows(np.int64, 0, 1)
    nodes, partials, finished = rows(NODE), rows(PARTIAL), rows(FINISHED)
    run(
        rows(RULE), rows(STATE), rows(OUTCOME), rows(MOVE), rows(CLASS),
        rows(np.int32), rows(np.int32), rows(QUESTION), rows(OPERATION), rows(LOOK), values,
        values.view(np.float64), values.astype(np.uint8), rows(VALUE), rows(np.int32),
        rows(np.int64), rows(FEED), rows(UNIT), partials, finished, nodes, partials, partials,
        finished, rows(np.int32), rows(MATCH), rows(TIMEOUT), rows(FAILURE), rows(TALLY), partials,
        finished, rows(CONTROL, 1),
    )  # fmt: skip
    compact(nodes, 0, partials, finished, rows(np.int32), 0)
    for kind in (MATCH, TIMEOUT):
        chain_lengths(nodes, rows(kind), rows(np.int64))
        chains(nodes, rows(kind), rows(np.int64), rows(np.int32), rows(np.int32))
