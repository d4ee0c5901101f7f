"""The list of what is wrong, as ``spark-cep check`` gives it: place, message, code and help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from nicegui import ui

from spark_cep.language.answers import Diagnostic, TextPosition
from spark_cep.play.view import TrialProblem

_MOST: Final = 30


class ProblemList:
    """The list. ``go_to`` is called with the place in the rule that a person clicks at."""

    def __init__(self, go_to: Callable[[TextPosition], None]) -> None:
        self._go_to = go_to
        self._box = ui.element("div").classes("play-problems")
        self._box.set_visibility(False)

    def show(
        self,
        diagnostics: Sequence[Diagnostic],
        problems: Sequence[TrialProblem] = (),
        notes: Sequence[str] = (),
    ) -> None:
        """Show these, errors first."""
        self._box.clear()
        with self._box:
            for each in sorted(diagnostics, key=lambda one: one.severity)[:_MOST]:
                self._diagnostic(each)
            for problem in problems[:_MOST]:
                where = problem.field or ""
                if problem.row is not None:
                    where = f"row {problem.row + 1}"
                self._line("error", where, problem.message, problem.help)
            for note in notes[:_MOST]:
                self._line("note", "note", note, None)
        self._box.set_visibility(bool(diagnostics or problems or notes))

    def _diagnostic(self, each: Diagnostic) -> None:
        start = each.range.start
        code = f" [{each.code}]" if each.code else ""
        line = self._line(
            each.severity.value,
            f"{start.line + 1}:{start.column + 1}",
            each.message + code,
            each.help,
        )
        line.on("click", lambda: self._go_to(start))

    @staticmethod
    def _line(kind: str, where: str, message: str, help_: str | None) -> ui.element:
        with ui.element("div").classes(f"play-problem play-problem-{kind}") as line:
            ui.label(where).classes("play-where")
            with ui.element("div"):
                ui.label(message)
                if help_:
                    ui.label(f"help: {help_}").classes("play-help")
        return line
