"""Patterns of Ververica's dynamic Flink CEP, in their JSON, as patterns of rules.

The JSON is a graph: nodes with quantifiers and conditions, edges that say how one follows another,
a window, what happens after a match. It names neither key nor inputs, so it stands in a rule, as
``ververica`` in place of ``pattern``. ``rewriting`` makes an ordinary rule document of such a
one, whose parts know where they come from; everything after that is the same for all rules.

``format`` is the shape of the JSON, ``graph`` its nodes and edges as steps, ``conditions`` and
``aviator`` its conditions as SQL. What has no counterpart in a rule, or would mean something else,
is refused by name and place.
"""
