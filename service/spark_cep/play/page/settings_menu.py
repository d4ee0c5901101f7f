"""Settings of a test case besides its events: its name, beginning, disorder, event-time column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from nicegui import ui

from spark_cep.durations import DurationError, format_duration, parse_duration
from spark_cep.event_times import instant_text, instant_us
from spark_cep.play.trial import Trial


class SettingsMenu:
    """The menu. ``changed`` is called with those fields of the trial that a person has changed."""

    def __init__(self, changed: Callable[[Mapping[str, Any]], None]) -> None:
        self._changed = changed
        self._trial: Trial | None = None
        button = ui.button("case", icon="tune").props("flat dense no-caps size=sm")
        with (
            button,
            ui.menu().props("no-parent-event=false"),
            ui.element("div").classes("play-settings"),
        ):
            self._name = self._input("Name of the case", "case", str)
            self._start = self._input("Beginning", "start", _instant)
            self._disorder = self._input("Allowed disorder", "allowed_disorder", _duration)
            self._time = self._input(
                "Column with the event time", "event_time", lambda t: t or None
            )
            self._rule = ui.select([], label="Rule", on_change=lambda e: self._new_rule(e.value))
            self._rule.props("dense options-dense")

    def show(self, trial: Trial) -> None:
        """Show those of a trial."""
        self._trial = trial
        self._name.set_value(trial.case)
        self._start.set_value(instant_text(trial.start * 1_000))
        self._disorder.set_value(format_duration(trial.allowed_disorder))
        self._time.set_value(trial.event_time or "")

    def rules(self, rules: Sequence[str], rule: str | None) -> None:
        """Show which rules there are."""
        self._rule.set_visibility(len(rules) > 1)
        if list(self._rule.options) != list(rules) or self._rule.value != rule:
            self._rule.set_options(list(rules), value=rule)

    def _input(self, label: str, name: str, read: Callable[[str], Any]) -> ui.input:
        def wrong(text: str) -> str | None:
            try:
                read(text.strip())
            except (ValueError, OverflowError) as error:
                return str(error)
            return None

        def left() -> None:
            text = (field.value or "").strip()
            if wrong(text) is None and self._trial is not None:
                self._changed({name: read(text)})

        field = ui.input(label, validation=wrong).props("dense")
        field.on("blur", left)
        field.on("keydown.enter", left)
        return field

    def _new_rule(self, rule: str | None) -> None:
        if rule is not None and self._trial is not None:
            self._changed({"rule": rule})


def _instant(text: str) -> int:
    try:
        return instant_us(text) // 1_000
    except ValueError:
        example = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
        raise ValueError(f"a time such as {example}") from None


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except DurationError as error:
        raise ValueError(str(error)) from None
