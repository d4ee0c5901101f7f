"""Frees the events taken that no partial match stands on any more.

Nodes are rows that point to earlier rows (``previous``). What is still in use is marked from the
rows that stand on it, moved down over what is not, and everything that points to it follows.
"""

from __future__ import annotations

from spark_cep.columns.compilation import compiled


@compiled
def collect(nodes, partials, finished, matches, timeouts, failures, control):
    """Free the open instance's nodes that nothing points to any more."""
    base, end = control.first_node, control.nodes
    control.collections += 1
    control.serial += 1
    serial = control.serial
    mark_all(partials, control.partials, base, serial, nodes)
    mark_all(finished, control.finished, base, serial, nodes)
    mark_all(matches, control.matches, base, serial, nodes)
    mark_all(timeouts, control.timeouts, base, serial, nodes)
    mark_all(failures, control.failures, base, serial, nodes)
    place = base
    for row in range(base, end):
        if nodes[row].mark == serial:
            put(row, place, base, nodes)
            place += 1
    control.nodes = place
    control.live_nodes = place - base
    move_all(partials, control.partials, base, nodes)
    move_all(finished, control.finished, base, nodes)
    move_all(matches, control.matches, base, nodes)
    move_all(timeouts, control.timeouts, base, nodes)
    move_all(failures, control.failures, base, nodes)


@compiled
def mark_all(table, count, base, serial, nodes):
    """Mark the nodes from ``base`` on that the table's first rows stand on."""
    for place in range(count):
        row = table[place].last
        while row >= base and nodes[row].mark != serial:
            nodes[row].mark = serial
            row = nodes[row].previous


@compiled
def move_all(table, count, base, nodes):
    """Let the table's first rows follow the nodes that were put elsewhere."""
    for place in range(count):
        table[place].last = _moved(table[place].last, base, nodes)


@compiled
def put(row, place, base, nodes):
    """Move a node down; ``child`` says from then on where it went."""
    # A node stands after the one that it points to, so that one has moved already.
    nodes[place].previous = _moved(nodes[row].previous, base, nodes)
    nodes[place].step = nodes[row].step
    nodes[place].event = nodes[row].event
    nodes[place].matched = nodes[row].matched
    nodes[row].child = place


@compiled
def _moved(row, base, nodes):
    return nodes[row].child if row >= base else row


@compiled
def compact(nodes, count, partials, finished, event_mark, serial):
    """Keep the nodes that partial and finished matches stand on (these are moved along), and mark
    their events in ``event_mark``; returns how many nodes there are then."""
    mark_all(partials, len(partials), 0, serial, nodes)
    mark_all(finished, len(finished), 0, serial, nodes)
    place = 0
    for row in range(count):
        if nodes[row].mark == serial:
            event_mark[nodes[row].event] = serial
            put(row, place, 0, nodes)
            place += 1
    move_all(partials, len(partials), 0, nodes)
    move_all(finished, len(finished), 0, nodes)
    return place
