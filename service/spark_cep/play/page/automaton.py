"""The automaton, drawn, with the partial matches on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicegui import ui
from nicegui.element import Element

from spark_cep.compiler.explain.drawing import Drawing
from spark_cep.compiler.explain.mermaid_text import mermaid_states
from spark_cep.play.view import DrawnPartial

# The element's package registers Mermaid, which automaton.js imports.
_ = ui.mermaid


class Automaton(Element, component="automaton.js"):
    """A drawing of states and edges; partial matches move between its states."""

    def __init__(self) -> None:
        super().__init__()
        self._props["drawing"] = ""
        self._props["tokens"] = []
        self._props["dark"] = False

    def draw(self, drawing: Drawing | None) -> None:
        """Draw another automaton. What holds for the whole rule stands elsewhere."""
        self._props["drawing"] = "" if drawing is None else mermaid_states(drawing)

    def place(self, tokens: Sequence[DrawnPartial]) -> None:
        """Move the partial matches to where they stand."""
        self._props["tokens"] = [_data(each) for each in tokens]

    def dark(self, dark: bool) -> None:
        """Set the colours."""
        self._props["dark"] = dark


def _data(token: DrawnPartial) -> dict[str, Any]:
    return {
        "number": token.number,
        "places": list(token.places),
        "fate": token.fate.value,
        "moved": token.moved,
        "parent": token.parent,
        "text": " – ".join(filter(None, (token.held, token.ending))),
    }
