"""The editor of the rule: CodeMirror, with problems underlined, completion, and meanings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import markdown2
from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from spark_cep.language.answers import Completion, Diagnostic, Hover, NameKind, TextPosition

_TYPES: Final = {
    NameKind.KEY: "property",
    NameKind.VALUE: "enum",
    NameKind.COLUMN: "variable",
    NameKind.STEP: "class",
    NameKind.FUNCTION: "function",
    NameKind.KEYWORD: "keyword",
    NameKind.UNIT: "constant",
}
Complete = Callable[[TextPosition], Awaitable[Sequence[Completion]]]
Explain = Callable[[TextPosition], Awaitable[Hover | None]]


class RuleEditor:
    """The editor.

    Args:
        changed: Is called with each new text.
        complete: Gives what may stand at a position.
        explain: Gives the meaning of what stands there.
    """

    def __init__(
        self, changed: Callable[[str], None], complete: Complete, explain: Explain
    ) -> None:
        self._told = ""
        self._changed = changed
        self.code = ui.codemirror(indent="  ", on_change=lambda event: self._new(event.value))
        self.code.classes("play-editor")
        self._assistance = _Assistance(self.code, complete, explain)

    def set(self, text: str, *, in_sql: bool) -> None:
        """Show another text."""
        self._told = text
        self.code.set_language("SQL" if in_sql else "YAML")
        self.code.set_value(text)

    def dark(self, dark: bool) -> None:
        """Set the colours."""
        self.code.set_theme("githubDark" if dark else "githubLight")

    def show(self, problems: Sequence[Diagnostic]) -> None:
        """Underline these problems."""
        self._assistance.run_method("show", [_problem(each) for each in problems])

    def go_to(self, position: TextPosition) -> None:
        """Put the cursor there."""
        self._assistance.run_method("goTo", list(position))

    def _new(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._changed(text)


class _Assistance(Element, component="assistance.js"):
    """Puts problems, completion and meanings into an editor."""

    def __init__(self, editor: ui.codemirror, complete: Complete, explain: Explain) -> None:
        super().__init__()
        self._props["editor"] = editor.id
        self._complete, self._explain = complete, explain
        self.on("ask", self._answer)

    async def _answer(self, event: GenericEventArguments) -> None:
        at = TextPosition(*event.args["position"])
        found: Any
        if event.args["kind"] == "complete":
            found = [_completion(each) for each in await self._complete(at)]
        else:
            meaning = await self._explain(at)
            found = None if meaning is None else _meaning(meaning)
        self.run_method("answer", event.args["id"], found)


def _problem(each: Diagnostic) -> dict[str, Any]:
    start, end = each.range
    return {
        "start": list(start),
        "end": list(end),
        "severity": each.severity.value,
        "message": each.message,
        "code": each.code,
        "help": each.help,
    }


def _completion(each: Completion) -> dict[str, Any]:
    return {
        "label": each.label,
        "type": _TYPES.get(each.kind, "text"),
        "detail": each.detail,
        "text": each.edit.text,
        "start": list(each.edit.range.start),
        "info": _html(each.documentation) if each.documentation else "",
    }


def _meaning(each: Hover) -> dict[str, Any]:
    start, end = each.range
    return {"start": list(start), "end": list(end), "html": _html(each.text)}


def _html(text: str) -> str:
    """Markdown as HTML, in which what others have written stays text."""
    html: str = markdown2.markdown(
        text, safe_mode="escape", extras=["fenced-code-blocks", "tables", "cuddled-lists"]
    )
    return html
