"""The page: rules, records and figures at the left, partial matches and results at the right."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final, Literal, Protocol

from nicegui import run, ui

from spark_cep.watch.error_text import error_text
from spark_cep.watch.job_watch import MOST_LINES, JobWatch
from spark_cep.watch.page.adding import AddRule
from spark_cep.watch.page.open_view import OpenView
from spark_cep.watch.page.rule_list import RuleList
from spark_cep.watch.page.trend_chart import TrendChart
from spark_cep.watch.readers import Readers
from spark_cep.watch.recent_lines import RecentLines

_SECONDS: Final = 0.5
_ID: Final = re.compile(r"^id: .*$", re.MULTILINE)


class Changes(Protocol):
    """Changes the job's rules. Each returns a sentence, and raises an error of spark-cep's."""

    def pause(self, rule: str) -> str:
        """Pause a rule."""

    def resume(self, rule: str) -> str:
        """Resume a rule."""

    def add(self, text: str, ids: frozenset[str]) -> str:
        """Add a rule; ``ids``: of those that the job has."""


class WatchPage:
    """The page of one browser tab.

    Args:
        watch: What it shows.
        readers: What reads that while pages are open.
        changes: What changes the job's rules; ``None``: nothing does.
    """

    def __init__(self, watch: JobWatch, readers: Readers, changes: Changes | None) -> None:
        self._watch = watch
        self._readers = readers
        self._changes = changes
        #: The rule that a person has chosen, and the one that is shown.
        self._chosen: str | None = None
        self._rule: str | None = None
        self._is_dark = False
        self._dark = ui.dark_mode(None)
        self._header()
        with ui.element("div").classes("play-page") as self._body:
            with ui.element("div").classes("play-column"):
                self._left()
            with ui.element("div").classes("play-column"):
                self._right()
        ui.on("play-dark", lambda event: self._colours(dark=bool(event.args)))
        ui.timer(_SECONDS, self._refresh)

    def _header(self) -> None:
        with ui.header(elevated=False).classes("play-header"):
            ui.label("spark-cep watch").classes("play-name")
            self._status = ui.label().classes("play-status watch-status")
            self._figures: dict[str, ui.label] = {}
            with ui.element("div").classes("watch-figures"):
                for name in ("records/s", "lag", "watermark", "late", "dead letters"):
                    with ui.element("div"):
                        ui.label(name)
                        self._figures[name] = ui.label("-").classes("watch-figure")
            dark = ui.button(icon="contrast", on_click=self._other_colours)
            dark.props("flat dense round").tooltip("light or dark")

    def _left(self) -> None:
        changes = self._changes
        with ui.element("section").classes("play-card watch-rules"):
            with ui.element("div").classes("play-bar"):
                ui.label("Rules").classes("play-heading")
                if changes is not None:
                    ui.space()
                    self._adding = AddRule(self._add)
                    add = ui.button("add a rule…", icon="add", on_click=self._open_dialog)
                    add.props("flat dense no-caps size=sm").classes("watch-open-dialog")
            self._rules = RuleList(self._choose, None if changes is None else self._pause)
        self._records = _Lines("Records", "watch-records", self._watch.records)
        with ui.element("section").classes("play-card watch-trend"):
            self._trend = TrendChart()
        self._notes = ui.label().classes("watch-notes")

    def _right(self) -> None:
        with ui.element("section").classes("play-card watch-open"):
            self._open = OpenView()
        self._results = _Lines("Results", "watch-results", self._watch.results)

    # What a person does.

    def _choose(self, rule: str) -> None:
        self._chosen = rule
        self._refresh()

    async def _pause(self, rule: str, pause: bool) -> None:
        changes = self._changes
        assert changes is not None
        word = "paused" if pause else "resumed"
        try:
            said = await run.io_bound(changes.pause if pause else changes.resume, rule)
        except Exception as error:  # noqa: BLE001  clients raise all kinds, and the page goes on
            self._say(f"{rule} is not {word}: {error_text(error)}", kind="negative")
        else:
            self._say(f"{rule} is {word} from the next batch on: {said}", kind="info")

    def _add(self, text: str) -> str:
        assert self._changes is not None
        ids = frozenset(str(row["id"]) for row in self._watch.pages.rules if row.get("id"))
        return self._changes.add(text, ids)

    def _open_dialog(self) -> None:
        """Begin with a copy of the rule that is shown."""
        rule = self._open.rule
        self._adding.open("" if rule is None else _ID.sub(f"id: {rule.id}-2", rule.text, count=1))

    def _say(self, text: str, kind: Literal["info", "negative"]) -> None:
        with self._body:
            ui.notify(text, type=kind, multi_line=True, close_button="close")

    # What the page shows.

    def _refresh(self) -> None:
        self._readers.ask()
        watch = self._watch
        self._rule = self._chosen or self._busiest()
        self._rules.show(watch.pages, self._rule)
        self._open.show(watch.open, self._rule)
        self._records.refresh()
        self._results.refresh()
        self._show_figures()

    def _busiest(self) -> str | None:
        """The rule with the most open partial matches; the one before as long as it has any."""
        pages = self._watch.pages
        live = {
            str(row["id"]): int(row.get("partial_matches", 0))
            for row in pages.rules
            if row["state"] != "rejected"
        }
        if self._rule is not None and live.get(self._rule):
            return self._rule
        busiest = max(live, key=lambda rule: live[rule], default=None)
        return busiest if busiest is not None and live[busiest] else self._rule or busiest

    def _show_figures(self) -> None:
        pages, points = self._watch.pages, self._watch.trend.points
        self._status.set_text(pages.state)
        notes = [
            f"The {name} cannot be read: {why}" for name, why in sorted(self._readers.notes.items())
        ]
        self._notes.set_text("\n".join([*notes, *filter(None, [pages.note])]))
        if not points:
            return
        self._trend.show(points)
        figures, now = pages.figures, points[-1]
        watermark = "not yet"
        if figures.watermark is not None:
            watermark = f"{datetime.fromtimestamp(figures.watermark, UTC):%Y-%m-%d %H:%M:%S}"
        shown = {
            "records/s": f"{now.rate:,.0f}",
            "lag": f"{now.lag:,.0f}",
            "watermark": watermark,
            "late": f"{figures.late:,.0f}",
            "dead letters": f"{figures.dead_letters:,.0f}",
        }
        for name, text in shown.items():
            self._figures[name].set_text(text)

    def _other_colours(self) -> None:
        self._dark.set_value(not self._is_dark)

    def _colours(self, *, dark: bool) -> None:
        self._is_dark = dark
        self._open.automaton.dark(dark)
        self._trend.dark(dark)
        if self._changes is not None:
            self._adding.dark(dark)


class _Lines:
    """Lines as they come, each once."""

    def __init__(self, title: str, style: str, lines: RecentLines) -> None:
        self._lines = lines
        self._count = 0
        with ui.element("section").classes(f"play-card {style}"):
            with ui.element("div").classes("play-bar"):
                ui.label(title).classes("play-heading")
                self._counted = ui.label().classes("play-counts")
            self._log = ui.log(max_lines=MOST_LINES).classes("watch-log")

    def refresh(self) -> None:
        """Show those that have come."""
        new, count = self._lines.since(self._count)
        if count == self._count:
            return
        self._count = count
        for each in new:
            self._log.push(each.text, classes=f"watch-{each.kind.replace(' ', '-')}")
        more = f", the newest {MOST_LINES:,} are kept" if count > MOST_LINES else ""
        self._counted.set_text(f"{count:,}{more}")
