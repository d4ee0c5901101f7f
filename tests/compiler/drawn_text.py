"""Reads DOT and Mermaid text back into states, edges and labels, to hold it against a drawing.

It knows just what the writers write, and refuses every line that it does not know.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

_DOT_ID = r'(?:[A-Za-z_]\w*|"(?:[^"\\]|\\.)*")'
_DOT_ATTRIBUTES = (
    rf"(?: \[(?P<attributes>{_DOT_ID}=(?:{_DOT_ID}|\d+)(?: \w+=(?:{_DOT_ID}|\d+))*)\])"
)
_DOT_LINES = (
    r"digraph plans \{",
    r"\}",
    rf"(?:node|edge){_DOT_ATTRIBUTES}",
    rf"fontname={_DOT_ID}",
    r"subgraph cluster_\d+ \{",
    rf"label=(?P<title>{_DOT_ID}) labeljust=l",
    rf"(?P<source>\w+) -> (?P<target>\w+){_DOT_ATTRIBUTES}",
    rf"(?P<state>\w+){_DOT_ATTRIBUTES}",
)
_SHAPES = {"([": "])", "(": ")", "{{": "}}", "[[": "]]", "(((": ")))", "[": "]"}
_LABEL = r'"(?P<label>[^"\n]*)"'
_MERMAID_LINES = (
    r"flowchart TD",
    r"end",
    rf"subgraph r\d+\[{_LABEL}\]",
    rf"(?P<source>\w+) (?:==>|-\.->|-->)\|{_LABEL}\| (?P<target>\w+)",
    r"class r\d+notes notes",
    r"classDef notes [\w:,-]+",
    *(
        rf"(?P<state>\w+){re.escape(opening)}{_LABEL}{re.escape(closing)}"
        for opening, closing in _SHAPES.items()
    ),
)


@dataclass
class Drawn:
    """What a text draws: titles, labels of states (and notes) by name, and edges."""

    titles: list[str] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    edges: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, found: dict[str, str | None], label: str | None) -> None:
        """Add what one line draws, if anything."""
        if found.get("source"):
            self.edges.append((str(found["source"]), str(found["target"]), label or ""))
        elif found.get("state") and found["state"] not in ("node", "edge"):
            assert found["state"] not in self.states
            self.states[str(found["state"])] = label or ""
        elif label is not None:
            self.titles.append(label)


def read_dot(text: str) -> Drawn:
    """What Graphviz would draw, with line ends in labels."""
    drawn = Drawn()
    for line in filter(None, map(str.strip, text.splitlines())):
        found = _known(line, _DOT_LINES)
        attributes = found.get("attributes") or ""
        label = re.search(rf"\blabel=({_DOT_ID})", attributes)
        written = found.get("title") or (label[1] if label else None)
        read = None if written is None else _dot_label(written)
        if found.get("title") and read is not None:
            read, *notes = read.split("\n")
            if notes:
                drawn.states[f"r{len(drawn.titles)}notes"] = "\n".join(notes)
        drawn.add(found, read)
    assert text.count("subgraph") == len(drawn.titles)
    return drawn


def read_mermaid(text: str) -> Drawn:
    """What Mermaid would draw, with line ends in labels."""
    drawn = Drawn()
    depth = 0
    for line in map(str.strip, text.splitlines()):
        found = _known(line, _MERMAID_LINES)
        depth += line.startswith("subgraph ") - (line == "end")
        assert depth in (0, 1)
        label = found.get("label")
        drawn.add(found, None if label is None else _mermaid_label(label))
    assert depth == 0
    return drawn


def _known(line: str, forms: tuple[str, ...]) -> dict[str, str | None]:
    for form in forms:
        found = re.fullmatch(form, line)
        if found:
            return found.groupdict()
    raise AssertionError(f"no such line is known: {line}")


def _dot_label(written: str) -> str:
    if not written.startswith('"'):
        return written
    # The lexer takes `\"` for a quote and leaves all else to the label.
    label = re.sub(r'\\(["\\])', lambda m: '"' if m[1] == '"' else m[0], written[1:-1])
    ends = {"n": "\n", "l": "\n", "\\": "\\"}
    return html.unescape(re.sub(r"\\(.)", lambda m: ends[m[1]], label)).rstrip("\n")


def _mermaid_label(written: str) -> str:
    lines = written.split("<br/>")
    for line in lines:
        rest = re.sub(r"#(?:\d+|lt|gt|quot|amp);", "", line)
        assert not re.search(r'[<>"#;&`*{}|\[\]\\$%@~^!?]|www\.|://', rest), line
        assert not re.search(r":\S*#|\b_|_\b", line), line
    return "\n".join(
        html.unescape(re.sub(r"#(\d+);", r"&#\1;", re.sub(r"#([a-z]+);", r"&\1;", line)))
        for line in lines
    )
