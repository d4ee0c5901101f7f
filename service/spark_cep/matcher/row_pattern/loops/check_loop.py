"""The compiled check of what keys remember, before the other loops follow it."""

from __future__ import annotations

from spark_cep.columns.compilation import NONE, compiled, inlined
from spark_cep.matcher.row_pattern.loops.tables import EDGE, ROWS_LIMIT, THREADS_LIMIT

#: Numbers of rows, and steps of work, are far below.
_MOST = 1 << 60


@inlined
def _is_chain(lengths, first_node, nodes, node, length, most):
    """Return whether a node, or none, has so many rows behind it, and these are no more than
    ``most``."""
    if node < NONE or node >= nodes or length > most:
        return False
    return length == (lengths[first_node + node] if node != NONE else 0)


@compiled
def wrong_key(keys, threads, nodes, tried, instructions, variables, lengths):
    """The number of the first key whose numbers lead outside its rows, nodes, variables or
    instructions, or in a circle; ``NONE``: there is none. ``lengths``: room for a number for each
    node."""
    first_thread, first_node, first_tried = 0, 0, 0
    for number in range(len(keys)):
        key = keys[number]
        if min(key.rows, key.threads, key.nodes, key.tried) < 0:
            return number
        if first_thread + key.threads > len(threads) or first_node + key.nodes > len(nodes):
            return number
        if first_tried + key.tried > len(tried):
            return number
        if not 0 <= key.first <= key.next_start or max(key.first, key.rows) > _MOST:
            return number
        if not NONE <= key.frontier < key.first + key.rows or not 0 <= key.work <= _MOST:
            return number
        if key.limit not in (0, ROWS_LIMIT, THREADS_LIMIT):
            return number
        taken = 0
        if key.attempt:
            if not key.first <= key.start <= key.next_row <= key.first + key.rows:
                return number
            if key.start >= key.first + key.rows:
                return number
            taken = key.next_row - key.start
        elif key.threads or key.nodes or key.tried or key.found or key.dropped:
            return number
        for place in range(key.nodes):
            node = nodes[first_node + place]
            # A node stands behind those that it points to.
            if not NONE <= node.previous < place or not EDGE <= node.label < variables:
                return number
            length = lengths[first_node + node.previous] if node.previous != NONE else 0
            lengths[first_node + place] = length + (node.label != EDGE)
        for place in range(key.threads):
            thread = threads[first_thread + place]
            if not 0 <= thread.at < instructions or not _is_chain(
                lengths, first_node, key.nodes, thread.node, thread.length, taken
            ):
                return number
        if key.found and not _is_chain(
            lengths, first_node, key.nodes, key.found_node, key.found_length, taken
        ):
            return number
        if key.dropped and not _is_chain(
            lengths, first_node, key.nodes, key.dropped_node, key.dropped_length, taken
        ):
            return number
        for place in range(first_tried, first_tried + key.tried):
            if not NONE <= tried[place].at < instructions:
                return number
            # Each row ends with one; the last row is the attempt's second at least.
            taken -= tried[place].at == NONE
        if taken < 0:
            return number
        first_thread += key.threads
        first_node += key.nodes
        first_tried += key.tried
    return NONE
