"""Drawings as a Mermaid flowchart, which GitHub and many editors draw."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from spark_cep.compiler.explain.drawing import Drawing
from spark_cep.compiler.plan import Action, StateKind

_STATES: Final = {
    StateKind.START: ("([", "])"),
    StateKind.NORMAL: ("(", ")"),
    StateKind.PENDING: ("{{", "}}"),
    StateKind.STOP: ("[[", "]]"),
    StateKind.FINAL: ("(((", ")))"),
}
_EDGES: Final = {Action.TAKE: "==>", Action.IGNORE: "-.->", Action.PROCEED: "-->"}

# Labels are read as Markdown and HTML, and the text around them is searched for directives, so
# whatever is not plainly harmless is written as an entity. `_` is harmless inside words, `.` but
# for `www.`, which begins a link, and `:` before a blank and before the number that ends a label.
_HARMLESS: Final = r"[^\W_]|(?<=[^\W_])_(?=[^\W_])|(?<![wW])\.|:(?= |\d+\Z)|[ ,()='/+-]"
_OTHER: Final = re.compile(rf"({_HARMLESS})|(.)", re.DOTALL)
_ENTITIES: Final = {"<": "lt", ">": "gt", '"': "quot", "&": "amp"}


def mermaid_text(drawings: Sequence[Drawing]) -> str:
    """One flowchart with a subgraph for each drawing. TAKE edges are thick, IGNORE dotted, PROCEED
    thin."""
    lines = ["flowchart TD"]
    for number, drawing in enumerate(drawings):
        lines += _subgraph(f"r{number}", drawing)
    if any(drawing.notes for drawing in drawings):
        lines.append("  classDef notes fill:none,stroke:none,text-align:left")
    return "\n".join(lines) + "\n"


def mermaid_states(drawing: Drawing) -> str:
    """A flowchart of the states and edges alone, from left to right; where events pass and the
    partial match stays, without the condition."""
    return "\n".join(["flowchart LR", *_graph("r0", drawing, loops=False)]) + "\n"


def _graph(prefix: str, drawing: Drawing, *, loops: bool = True) -> Iterator[str]:
    for state in drawing.states:
        opening, closing = _STATES[state.kind]
        yield f"    {prefix}s{state.number}{opening}{_label(state.lines)}{closing}"
    for edge in drawing.edges:
        source, target = f"{prefix}s{edge.source}", f"{prefix}s{edge.target}"
        is_loop = edge.action is Action.IGNORE and source == target
        label = f"|{_label([edge.label])}|" if loops or not is_loop else ""
        yield f"    {source} {_EDGES[edge.action]}{label} {target}"


def _subgraph(prefix: str, drawing: Drawing) -> Iterator[str]:
    yield f"  subgraph {prefix}[{_label([drawing.title])}]"
    yield from _graph(prefix, drawing)
    if drawing.notes:
        yield f"    {prefix}notes[{_label(drawing.notes)}]"
        yield f"    class {prefix}notes notes"
    yield "  end"


def _label(lines: Iterable[str]) -> str:
    return '"' + "<br/>".join(_OTHER.sub(_entity, line) for line in lines) + '"'


def _entity(found: re.Match[str]) -> str:
    if found[1] is not None:
        return found[0]
    return f"#{_ENTITIES.get(found[0], ord(found[0]))};"
