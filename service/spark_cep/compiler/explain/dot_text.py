"""Drawings as DOT text, the language of Graphviz. No ``dot`` program is needed to write it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import graphviz

from spark_cep.compiler.explain.drawing import Drawing
from spark_cep.compiler.plan import Action, StateKind

_STATES: Final = {
    StateKind.START: {"shape": "box", "style": "rounded,bold"},
    StateKind.NORMAL: {"shape": "box", "style": "rounded"},
    StateKind.PENDING: {"shape": "hexagon"},
    StateKind.STOP: {"shape": "octagon"},
    StateKind.FINAL: {"shape": "box", "style": "rounded", "peripheries": "2"},
}
_EDGES: Final = {
    Action.TAKE: {"style": "bold"},
    Action.IGNORE: {"style": "dashed"},
    Action.PROCEED: {"style": "dotted"},
}


def dot_text(drawings: Sequence[Drawing]) -> str:
    """One DOT graph with a cluster for each drawing. TAKE edges are bold, IGNORE dashed, PROCEED
    dotted."""
    graph = graphviz.Digraph("plans")
    graph.attr(fontname="sans-serif")
    graph.attr("node", fontname="sans-serif")
    graph.attr("edge", fontname="sans-serif", fontsize="11")
    for number, drawing in enumerate(drawings):
        with graph.subgraph(name=f"cluster_{number}") as cluster:
            _add(cluster, f"r{number}", drawing)
    return str(graph.source)


def _add(cluster: graphviz.Digraph, prefix: str, drawing: Drawing) -> None:
    # Notes stand in the heading: as a node they would push the states aside.
    cluster.attr(label=_label([drawing.title, *drawing.notes], end=r"\l"), labeljust="l")
    for state in drawing.states:
        cluster.node(f"{prefix}s{state.number}", _label(state.lines), **_STATES[state.kind])
    for edge in drawing.edges:
        cluster.edge(
            f"{prefix}s{edge.source}",
            f"{prefix}s{edge.target}",
            _label([edge.label]),
            **_EDGES[edge.action],
        )


def _label(lines: Iterable[str], end: str = "") -> str:
    r"""The lines as one label: centred, or with ``end`` ``\l`` at the left. Graphviz reads
    backslashes and HTML entities in labels; quotes are the library's."""
    escaped = [graphviz.escape(line.replace("&", "&amp;")) for line in lines]
    return "".join(line + end for line in escaped) if end else r"\n".join(escaped)
