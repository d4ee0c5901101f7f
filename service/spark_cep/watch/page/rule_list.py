"""The job's rules: state, open partial matches, what each has found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nicegui import ui

from spark_cep.errors import printable, printable_lines
from spark_cep.watch.figures import Figures
from spark_cep.watch.job_watch import JobPages

_MOST: Final = 50
_REJECTED: Final = "rejected"
_PAUSED: Final = "paused"
_HEAD: Final = ("rule", "version", "state", "open", "matches", "timeouts", "")


class RuleList:
    """The list.

    Args:
        chosen: Is called with the id of the rule that a person clicks at.
        pause: Is called with a rule's id, and whether to pause or to resume it; ``None``: this page
            changes nothing.
    """

    def __init__(
        self, chosen: Callable[[str], None], pause: Callable[[str, bool], Any] | None
    ) -> None:
        self._chosen = chosen
        self._pause = pause
        self._shown: object = None
        self._box = ui.element("div").classes("watch-table")

    def show(self, pages: JobPages, chosen: str | None) -> None:
        """Show these rules, if they are others than before."""
        rows = [_row(each, pages.figures) for each in _ordered(pages)]
        if self._shown == (rows, chosen):
            return
        self._shown = rows, chosen
        self._box.clear()
        with self._box:
            with ui.element("div").classes("watch-row watch-head"):
                for name in _HEAD:
                    ui.label(name)
            for cells, reason in rows[:_MOST]:
                self._add(cells, reason, is_chosen=cells[0] == chosen)
            if len(rows) > _MOST:
                ui.label(f"and {len(rows) - _MOST:,} more").classes("watch-reason")

    def _add(self, cells: Sequence[str], reason: str, *, is_chosen: bool) -> None:
        rule, _, state, *_ = cells
        row = ui.element("div").classes(f"watch-row watch-rule-{state}")
        if is_chosen:
            row.classes("watch-chosen")
        with row:
            for name, cell in zip(_HEAD, cells, strict=False):
                is_number = name in ("version", "open", "matches", "timeouts")
                style = "watch-number" if is_number else f"watch-{name}"
                ui.label(cell).classes(style).on("click", lambda: self._chosen(rule))
            with ui.element("div").classes("watch-button"):
                if self._pause is not None and state != _REJECTED:
                    self._button(rule, paused=state == _PAUSED)
        if reason:
            ui.label(reason).classes("watch-reason")

    def _button(self, rule: str, *, paused: bool) -> None:
        pause = self._pause
        assert pause is not None
        word = "resume" if paused else "pause"
        icon = "play_arrow" if paused else "pause"
        button = ui.button(icon=icon, on_click=lambda: pause(rule, not paused))
        button.props(f"flat dense round size=sm aria-label={word}").tooltip(word)


def _ordered(pages: JobPages) -> Sequence[Mapping[str, Any]]:
    """The rules: what is rejected first, then as the job has them."""
    return sorted(pages.rules, key=lambda row: row["state"] != _REJECTED)


def _row(row: Mapping[str, Any], figures: Figures) -> tuple[tuple[str, ...], str]:
    """The cells of a rule, and the reason of its state."""
    rule, state = str(row.get("id") or ""), str(row["state"])
    reason = printable_lines(str(row.get("reason") or ""))
    if state == _REJECTED:
        return (printable(rule), "", state, "", "", ""), reason
    counts = row.get("partial_matches", 0), figures.matches[rule], figures.timeouts[rule]
    shown = (f"{count:,}" for count in counts)
    return (printable(rule), str(row.get("version")), state, *shown), reason
