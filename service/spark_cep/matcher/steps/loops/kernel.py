"""The compiled inner loop: many keys' events applied to many rules' partial matches.

It does what ``tests.reference.machine`` does, over rows of numbers instead of objects, and is
tested against it. Numba compiles it at first use and keeps the result in its cache.

An *instance* is one rule's NFA for one key. Instances, events and nodes (an event taken behind a
previous node) are row numbers. Of two events of one key, the one with the lower number is applied
first. The partial matches of an instance are in the order of their starts.

``run`` works until it is done, or returns at an event's boundary because there is not enough room
(``GROW``: the caller grows what ``CONTROL``'s ``need_…`` say) or because much has been found
(``DRAIN``: the caller takes it out). Called again, it goes on where it was.

It also returns when it meets a combination of answers of which nobody has said yet what comes of it
(``RESOLVE``: ``CONTROL``'s ``unresolved_…`` say which).
"""

from __future__ import annotations

from spark_cep.columns.compilation import NEVER, NONE, compiled, inlined
from spark_cep.matcher.steps.loops.accumulators import begin, has_room, sweep
from spark_cep.matcher.steps.loops.collector import collect
from spark_cep.matcher.steps.loops.event_loop import add_up, apply, resolved
from spark_cep.matcher.steps.loops.limit_loop import limit_work
from spark_cep.matcher.steps.loops.release_loop import advance

DONE, GROW, DRAIN, RESOLVE = range(4)
#: Instances with so many nodes are not worth a collection when they are done.
_FEW_NODES = 64


@compiled
def run(plans, programs, columns, work, tables, ask, controls):
    """Run all instances; see the module's text. ``ask``: see
    :data:`spark_cep.programs.loops.expression_loop.ASK`."""
    control = controls[0]
    while control.instance < len(work.instances):
        instance = work.instances[control.instance]
        rule = plans.rules[instance.rule]
        if not control.open:
            control.need_partials = instance.end_partial - instance.first_partial
            control.need_finished = instance.end_finished - instance.first_finished
            if (
                control.need_partials > len(tables.partials)
                or control.need_finished > len(tables.finished)
            ):  # fmt: skip
                return GROW
            _open(instance, work, tables, control)
            begin(rule, plans, tables, control)
        while control.position <= instance.end_event:
            if control.matches + control.timeouts + control.failures >= control.drain_at:
                return DRAIN
            if not _has_room(rule, plans, tables, control):
                return GROW
            closing = control.position == instance.end_event
            time = control.watermark
            if not closing:
                time = work.time_of[work.feed[control.position].event]
            if control.deadline <= time:
                advance(time, rule, plans, work, tables, control)
            if closing:
                _close(instance, tables, control)
                tables.tallies[instance.rule].pruned += control.pruned
                control.pruned = 0
            elif not control.paused and time >= rule.effective_from:
                fed = work.feed[control.position]
                event_class = plans.classes[fed.event_class]
                tally = tables.tallies[instance.rule]
                if (
                    control.partials + 1
                ) * rule.most_cost + control.held_bound * rule.held_cost > rule.most_work:
                    limit_work(fed.event, event_class, rule, plans, tables, tally, control)
                    if control.paused:
                        control.position += 1
                        continue
                if rule.accumulators and not add_up(
                    event_class, rule, plans, columns, tables, control
                ):
                    return GROW
                if rule.sparse and not resolved(
                    fed.event, time, event_class, rule, plans, programs, columns, work, tables,
                    ask, control,
                ):  # fmt: skip
                    return RESOLVE
                tally.events += 1
                tally.tested += control.partials + 1
                nodes = control.nodes
                apply(
                    fed.event, time, event_class, rule, plans, programs, columns, work, tables,
                    ask, tally, control,
                )  # fmt: skip
                control.held_bound += control.nodes - nodes
                control.overworked = 0
            control.position += 1
        control.open = 0
        control.instance += 1
    return DONE


@inlined
def _has_room(rule, plans, tables, control):
    """Return whether the tables have room for whatever the next event does."""
    if (
        control.nodes + (control.partials + 1) * control.most_moves > len(tables.nodes)
        and control.nodes - control.first_node > 2 * control.live_nodes + 1024
    ):
        collect(tables, control)
    if rule.accumulators:
        moving = (control.partials + 1) * control.most_moves
        if not has_room(moving, moving, rule, tables, control):
            sweep(rule, plans, tables, control)
            # Room for some events, so that this is not done at each of them.
            if not has_room(3 * moving, 3 * moving, rule, tables, control):
                return False
    _reckon(control)
    return not (
        control.need_nodes > len(tables.nodes)
        or control.need_partials > len(tables.partials)
        or control.need_finished > len(tables.finished)
        or control.need_matches > len(tables.matches)
        or control.need_timeouts > len(tables.timeouts)
        or control.need_failures > len(tables.failures)
        or control.need_kept_partials > len(tables.kept_partials)
        or control.need_kept_finished > len(tables.kept_finished)
    )


@compiled
def _open(instance, work, tables, control):
    held, partials = work.held, tables.partials
    # It may be sooner than that of any partial match: something is to be looked at again.
    control.deadline = instance.deadline
    control.partials = 0
    for row in range(instance.first_partial, instance.end_partial):
        partials[control.partials] = held[row]
        partials[control.partials].totals = NONE
        control.deadline = min(control.deadline, held[row].deadline)
        control.partials += 1
    control.finished = 0
    for row in range(instance.first_finished, instance.end_finished):
        tables.finished[control.finished] = work.held_finished[row]
        control.finished += 1
    control.quiet = instance.quiet
    control.paused = instance.paused
    control.limited = instance.limited
    control.events_bound = instance.events_bound
    control.held_bound = instance.held
    control.position = instance.first_event
    control.first_node = control.nodes
    control.live_nodes = 0
    control.first_match = control.matches
    control.first_timeout = control.timeouts
    control.first_failure = control.failures
    control.overworked = 0
    control.open = 1


@compiled
def _close(instance, tables, control):
    # The nodes of the next instance stand in the same place: it is in the processor's cache.
    if control.nodes - control.first_node > _FEW_NODES:
        collect(tables, control)
    for row in range(control.partials):
        tables.kept_partials[control.kept_partials] = tables.partials[row]
        control.kept_partials += 1
    for row in range(control.finished):
        tables.kept_finished[control.kept_finished] = tables.finished[row]
        control.kept_finished += 1
    instance.partials = control.partials
    instance.finished = control.finished
    instance.deadline = control.deadline
    over = control.quiet <= control.watermark and control.finished == 0
    instance.quiet = NEVER if over else control.quiet
    instance.paused = control.paused
    instance.limited = control.limited
    instance.events_bound = control.events_bound


@compiled
def _reckon(control):
    """Compute the most room that the next event can need."""
    moving = control.partials + 1
    control.need_nodes = control.nodes + moving * control.most_moves
    control.need_partials = moving * control.most_moves
    control.need_finished = control.finished + moving * (control.most_moves + 2)
    control.need_matches = control.matches + control.need_finished
    control.need_timeouts = control.timeouts + control.partials
    control.need_failures = control.failures + 3 * control.need_finished + 4
    control.need_kept_partials = control.kept_partials + control.partials
    control.need_kept_finished = control.kept_finished + control.finished + control.partials


# After the run.


@compiled
def chain_lengths(nodes, found, lengths):
    """Write the number of events in the chain of each finding."""
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
