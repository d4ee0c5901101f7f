"""The open partial matches of a rule on its drawing, and in a list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from nicegui import ui

from spark_cep.errors import printable
from spark_cep.matcher.findings.partial import FOREVER
from spark_cep.play.page.automaton import Automaton
from spark_cep.watch.job_watch import OpenState
from spark_cep.watch.tokens import DrawnRule, OpenToken

_MOST_DRAWN: Final = 100
_MOST_LISTED: Final = 30


class OpenView:
    """The drawing of one rule, with its open partial matches as tokens."""

    def __init__(self) -> None:
        self._shown: object = None
        self._rule: DrawnRule | None = None
        with ui.element("div").classes("play-bar"):
            self._name = ui.label().classes("play-heading watch-drawn")
            self._count = ui.label().classes("play-counts")
        self.automaton = Automaton()
        self._list = ui.element("div").classes("play-partials watch-partials")

    @property
    def rule(self) -> DrawnRule | None:
        """The rule that is shown."""
        return self._rule

    def show(self, state: OpenState, rule: str | None) -> None:
        """Show the newest version of a rule that is known, if anything differs from before."""
        versions = [version for name, version in (*state.drawn, *state.tokens) if name == rule]
        at = (rule or "", max(versions, default=0))
        tokens = state.tokens.get(at, ())
        if self._shown == (at, tokens, state.batch):
            return
        self._shown = (at, tokens, state.batch)
        drawn = state.drawn.get(at)
        if drawn != self._rule:
            self._rule = drawn
            self.automaton.draw(None if drawn is None else drawn.drawing)
        self._name.set_text("" if rule is None else printable(rule))
        self._count.set_text(_counted(state, tokens))
        self.automaton.place([each.token for each in tokens[:_MOST_DRAWN]])
        self._fill(tokens)

    def _fill(self, tokens: Sequence[OpenToken]) -> None:
        self._list.clear()
        with self._list:
            for each in tokens[:_MOST_LISTED]:
                with ui.element("div").classes("play-partial"):
                    ui.label(str(each.token.number)).classes("play-badge")
                    ui.label("(no key)" if each.key is None else printable(each.key)).classes(
                        "watch-key"
                    )
                    ui.label(each.token.held)
                    ui.label(_times(each)).classes("play-fate")
            if len(tokens) > _MOST_LISTED:
                ui.label(f"and {len(tokens) - _MOST_LISTED:,} more")


def _counted(state: OpenState, tokens: Sequence[OpenToken]) -> str:
    if state.batch is None:
        return "the first batch has not been read yet"
    what = "1 open partial match" if len(tokens) == 1 else f"{len(tokens):,} open partial matches"
    of = "" if state.is_all else ", of a part of the state"
    return f"{what} as of batch {state.batch:,}{of}"


def _times(token: OpenToken) -> str:
    began = _time(token.began)
    return f"since {began}" if token.deadline >= FOREVER else f"{began} to {_time(token.deadline)}"


def _time(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%H:%M:%S}"
