"""Attempts that go on as the one before them, compiled.

Where ``WITHIN`` ends one attempt after the other, each would go through nearly all rows of the one
before it. Where conditions say the same of each attempt, threads that stand at the same
instructions, in the same order, before the same row go on alike. So from the row on at which the
threads of an attempt stand as those of the one before it did, it has the threads that that one had
in the end; they differ by the rows taken until there alone.

Each attempt notes where its threads stand before each row. Nodes are in the order of rows. Those
of the attempt before stay until the next one has met it: then the nodes of that one take the place
of those before the row at which both meet, which no thread has any more.
"""

from __future__ import annotations

from spark_cep.columns.compilation import FOREVER, NONE, compiled, inlined
from spark_cep.matcher.row_pattern.loops.failed_loop import forget_tried, place_of_row


@inlined
def shares(clause):
    """Return whether attempts may go on as those before them, which time has ended."""
    return clause.near != 0 and clause.within != FOREVER


@inlined
def note_anew(control):
    """Let what is noted from here on be of an attempt that no other went before."""
    control.attempts += 1
    control.attempt, control.before, control.before_nodes = control.attempts, 0, 0


@inlined
def goes_before(control, key):
    """Let the next attempt go on as this one, which time has ended."""
    control.before, control.before_end = control.attempt, key.next_row
    control.before_nodes = control.nodes


@inlined
def _noted(work, control, row, attempt):
    """Return the place of what an attempt has noted before a row; ``NONE`` if it has not, or if a
    later row has that place."""
    place, at = place_of_row(control, row, work.stood)
    stood = work.stood[at]
    return at if stood.place == place and stood.attempt == attempt else NONE


@compiled
def note_threads(work, control, row):
    """Note where threads stand before a row."""
    place, at = place_of_row(control, row, work.stood)
    stood = work.stood[at]
    stood.place, stood.attempt, stood.nodes = place, control.attempt, control.nodes
    stood.count = control.threads
    for number in range(control.threads):
        standing, thread = work.standing[at, number], work.threads[number]
        standing.at, standing.node = thread.at, thread.node


@compiled
def goes_on_alike(work, control, key, row):
    """Let the attempt have the last threads of the one before it, if both stand alike before a row;
    returns whether they do."""
    if row >= control.before_end:
        return False
    before = control.before
    met = _noted(work, control, row, before)
    behind = _noted(work, control, row + 1, before)
    last = _noted(work, control, control.before_end, before)
    if met == NONE or behind == NONE or last == NONE or not _stand_alike(work, control, met):
        return False
    end, own = work.stood[met].nodes, control.nodes - control.before_nodes
    if own > end:
        return False
    down = control.before_nodes + own - end
    for node in range(end, work.stood[behind].nodes):
        if work.nodes[node].previous < end:
            work.nodes[node].previous = _same_place(work, control, met, node) - down
    for number in range(own):
        node, to = work.nodes[control.before_nodes + number], work.nodes[end - own + number]
        to.label = node.label
        to.previous = NONE if node.previous == NONE else node.previous - down
        work.kept[end - own + number] = 0
    _note_as_before(work, control, key, row, down)
    for number in range(control.threads):
        work.standing[met, number].node = work.threads[number].node - down
    # What it has tried of the rows between is not noted.
    forget_tried(work, control, key.start, row + 1)
    control.tried_from = control.before_end
    control.threads, control.nodes = work.stood[last].count, control.before_nodes
    for number in range(control.threads):
        thread, standing = work.threads[number], work.standing[last, number]
        thread.at, thread.node, thread.slot = standing.at, standing.node, 0
        thread.length = control.before_end - key.start
    control.attempt, control.before, control.before_nodes = before, 0, 0
    return True


@inlined
def _stand_alike(work, control, met):
    """Return whether the threads stand where those of the attempt before did, in the same order,
    and those that had the same rows there have the same ones here."""
    alike = work.stood[met].count == control.threads
    for number in range(control.threads):
        if alike:
            thread, standing = work.threads[number], work.standing[met, number]
            alike = thread.at == standing.at and thread.node != NONE
            for other in range(number):
                if (
                    work.standing[met, other].node == standing.node
                    and work.threads[other].node != thread.node
                ):
                    alike = False
    return alike


@inlined
def _same_place(work, control, met, node):
    """Return the last node of the thread that stands where the one did that went on to a node."""
    found = NONE
    for number in range(control.threads):
        if work.standing[met, number].node == work.nodes[node].previous:
            found = work.threads[number].node
    return found


@inlined
def _note_as_before(work, control, key, row, down):
    """Let what the attempt has noted be of the one that it goes on as, with its nodes moved."""
    for each in range(key.start, row):
        at = _noted(work, control, each, control.attempt)
        if at != NONE:
            stood = work.stood[at]
            stood.attempt = control.before
            stood.nodes -= down
            for number in range(stood.count):
                if work.standing[at, number].node != NONE:
                    work.standing[at, number].node -= down
