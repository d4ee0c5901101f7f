"""Frees the events taken that no partial match stands on any more.

Nodes are rows that point to earlier rows (``previous``). What is still in use is marked, from the
rows that stand on it and then from the last node to the first, moved down over what is not, and
everything that points to it follows. Chains are not followed one by one: those of many starts lie
across each other, so that each step would be to another part of the memory.
"""

from __future__ import annotations

from spark_cep.columns.compilation import compiled


@compiled
def collect(tables, control):
    """Free the open instance's nodes that nothing points to any more."""
    nodes, partials, finished = tables.nodes, tables.partials, tables.finished
    matches, timeouts, failures = tables.matches, tables.timeouts, tables.failures
    base, end = control.first_node, control.nodes
    control.collections += 1
    control.serial += 1
    serial = control.serial
    mark_all(partials, 0, control.partials, base, serial, nodes)
    mark_all(finished, 0, control.finished, base, serial, nodes)
    mark_all(matches, control.first_match, control.matches, base, serial, nodes)
    mark_all(timeouts, control.first_timeout, control.timeouts, base, serial, nodes)
    mark_all(failures, control.first_failure, control.failures, base, serial, nodes)
    mark_before(base, end, serial, nodes)
    place = base
    for row in range(base, end):
        if nodes[row].mark == serial:
            put(row, place, base, nodes)
            place += 1
    control.nodes = place
    control.live_nodes = place - base
    move_all(partials, 0, control.partials, base, nodes)
    move_all(finished, 0, control.finished, base, nodes)
    move_all(matches, control.first_match, control.matches, base, nodes)
    move_all(timeouts, control.first_timeout, control.timeouts, base, nodes)
    move_all(failures, control.first_failure, control.failures, base, nodes)


@compiled
def mark_all(table, first, end, base, serial, nodes):
    """Mark the nodes from ``base`` on that some rows of the table end with."""
    for place in range(first, end):
        if table[place].last >= base:
            nodes[table[place].last].mark = serial


@compiled
def mark_before(base, end, serial, nodes):
    """Mark the nodes from ``base`` on that stand before marked ones."""
    for row in range(end - 1, base - 1, -1):
        if nodes[row].mark == serial and nodes[row].previous >= base:
            nodes[nodes[row].previous].mark = serial


@compiled
def move_all(table, first, end, base, nodes):
    """Let some rows of the table follow the nodes that were put elsewhere."""
    for place in range(first, end):
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
def count_held(instances, partials, finished, nodes, count):
    """Write, of the first so many nodes, how many the partial and finished matches of each instance
    have taken. Nodes have no marks, before and after."""
    for number in range(len(instances)):
        instance = instances[number]
        instance.held = 0
        for row in range(instance.first_partial, instance.end_partial):
            nodes[partials[row].last].mark = number + 1
        for row in range(instance.first_finished, instance.end_finished):
            nodes[finished[row].last].mark = number + 1
    for row in range(count - 1, -1, -1):
        owner = nodes[row].mark
        if owner:
            nodes[row].mark = 0
            instances[owner - 1].held += 1
            if nodes[row].previous >= 0:
                nodes[nodes[row].previous].mark = owner


@compiled
def take_up(held, nodes):
    """Write the nodes that are held from before as the first of all."""
    for row in range(len(held)):
        nodes[row].previous, nodes[row].step = held[row].previous, held[row].step
        nodes[row].event, nodes[row].matched = held[row].event, held[row].matched


@compiled
def mark_held(nodes, count, partials, finished, serial):
    """Mark those of so many nodes that partial and finished matches stand on; returns how many they
    are."""
    mark_all(partials, 0, len(partials), 0, serial, nodes)
    mark_all(finished, 0, len(finished), 0, serial, nodes)
    mark_before(0, count, serial, nodes)
    held = 0
    for row in range(count):
        held += nodes[row].mark == serial
    return held


@compiled
def put_away(nodes, partials, finished, serial, held):
    """Write the marked nodes to ``held``; partial and finished matches are moved along."""
    row = 0
    for place in range(len(held)):
        while nodes[row].mark != serial:
            row += 1
        held[place].previous = _moved(nodes[row].previous, 0, nodes)
        held[place].step, held[place].event = nodes[row].step, nodes[row].event
        held[place].matched = nodes[row].matched
        nodes[row].child = place
        row += 1
    move_all(partials, 0, len(partials), 0, nodes)
    move_all(finished, 0, len(finished), 0, nodes)
