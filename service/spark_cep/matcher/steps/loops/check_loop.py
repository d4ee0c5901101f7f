"""The compiled check of steps and events of nodes, before the other loops follow them."""

from __future__ import annotations

from spark_cep.columns.compilation import NONE, compiled


@compiled
def wrong_node(nodes, last, counts, limits):
    """The first node whose event is not behind those before it, or with a step that the rule of a
    match that ends with it, or behind it, does not have; ``NONE``: there is none. ``last``: the
    ends of matches, ``counts``: the number of steps of the rule of each; ``limits``: by node, a
    number of steps that is enough for all rules."""
    for match in range(len(last)):
        limits[last[match]] = min(limits[last[match]], counts[match])
    for place in range(len(nodes)):
        # From the last on: nodes stand behind those that they point to.
        row = len(nodes) - 1 - place
        if nodes[row].step < 0 or nodes[row].step >= limits[row]:
            return row
        before = nodes[row].previous
        if before != NONE:
            if nodes[before].event >= nodes[row].event:
                return row
            limits[before] = min(limits[before], limits[row])
    return NONE
