"""The dialog in which a rule is added."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import run, ui

from spark_cep.watch.error_text import error_text


class AddRule:
    """The dialog. ``add`` is called with the rule's text, on a thread of its own; it returns what
    to say."""

    def __init__(self, add: Callable[[str], str]) -> None:
        self._add = add
        with ui.dialog() as self._dialog, ui.card().classes("watch-dialog"):
            ui.label("Add a rule").classes("play-heading")
            self._text = ui.codemirror(language="YAML", indent="  ").classes("watch-editor")
            self._problems = ui.label().classes("watch-problems")
            with ui.row():
                ui.button("Add", on_click=self._submit).props("flat no-caps").classes("watch-add")
                ui.button("Cancel", on_click=self._dialog.close).props("flat no-caps")

    def open(self, text: str) -> None:
        """Open it with a text to begin with."""
        self._text.set_value(text)
        self._problems.set_text("")
        self._dialog.open()

    def dark(self, dark: bool) -> None:
        """Set the colours."""
        self._text.set_theme("githubDark" if dark else "githubLight")

    async def _submit(self) -> None:
        try:
            said = await run.io_bound(self._add, self._text.value)
        except Exception as error:  # noqa: BLE001  clients raise all kinds, and the page goes on
            self._problems.set_text(f"The rule is not added:\n{error_text(error)}")
            return
        self._dialog.close()
        ui.notify(said, multi_line=True)
