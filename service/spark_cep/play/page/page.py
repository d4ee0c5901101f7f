"""The page: editor and events at the left, automaton, why-text and timeline at the right."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nicegui import background_tasks, ui
from nicegui.events import MultiUploadEventArguments

from spark_cep.errors import ConfigurationError
from spark_cep.language.answers import Completion, Hover, Severity, TextPosition
from spark_cep.play.assisting import completions_at, hover_at, problems_in
from spark_cep.play.files.given_files import MOST_BYTES, GivenFile
from spark_cep.play.files.opening import opened
from spark_cep.play.files.sharing import shared
from spark_cep.play.page.event_table import EventGrid
from spark_cep.play.page.problem_list import ProblemList
from spark_cep.play.page.rule_editor import RuleEditor
from spark_cep.play.page.settings_menu import SettingsMenu
from spark_cep.play.page.stepping import Stepper
from spark_cep.play.page.timeline import Timeline, legend
from spark_cep.play.running import played
from spark_cep.play.trial import MOST_TEXT, OF_ALL, RowKind, Trial
from spark_cep.play.view import KeyMoment, Played, TrialProblem
from spark_cep.play.worker import TooSlowError, Worker

#: A person types; what is typed is run once there is a pause.
_PAUSE: Final = 0.25


@dataclass(frozen=True)
class Workers:
    """The processes that check texts and run trials."""

    checking: Worker
    running: Worker


class Page:
    """The page of one browser tab.

    Args:
        trials: What it begins with; the first is shown.
        workers: What does its work.
    """

    def __init__(self, trials: Sequence[Trial], workers: Workers) -> None:
        self._workers = workers
        self._trials = tuple(trials)
        self._trial = trials[0]
        self._version = 0
        self._is_dark = False
        self._columns: tuple[str, ...] = ()
        self._dark = ui.dark_mode(None)
        self._body = ui.element("div").classes("play-page")
        self._header()
        with self._body:
            with ui.element("div").classes("play-column"):
                self._left()
            with ui.element("div").classes("play-column"):
                self._right()
        ui.on("play-dark", lambda event: self._colours(dark=bool(event.args)))
        self._show(self._trial)

    def _header(self) -> None:
        with ui.header(elevated=False).classes("play-header"):
            ui.label("spark-cep play").classes("play-name")
            self._cases = ui.select({}, on_change=lambda event: self._chosen(event.value))
            self._cases.classes("play-cases").props("dense options-dense borderless")
            self._status = ui.label().classes("play-status")
            self._upload = ui.upload(
                multiple=True, auto_upload=True, max_total_size=MOST_BYTES,
                on_multi_upload=self._open, on_rejected=lambda: self._say(_TOO_LARGE),
            ).classes("play-hidden")  # fmt: skip
            open_ = ui.button("Open…", icon="folder_open").props("flat dense no-caps")
            open_.on("click", js_handler=f"() => getElement({self._upload.id}).pickFiles()")
            open_.tooltip(
                "Rules, test cases, schemas, or recorded events: JSON lines, CSV, Avro, Parquet"
            )
            share = ui.button("Share", icon="ios_share", on_click=self._share)
            share.props("flat dense no-caps").classes("play-share")
            share.tooltip("A file with the rule and this case, for spark-cep test")
            dark = ui.button(icon="contrast", on_click=self._other_colours)
            dark.props("flat dense round").tooltip("light or dark")

    def _left(self) -> None:
        with ui.element("section").classes("play-card play-text"):
            with ui.tabs().props("dense no-caps align=left").classes("play-tabs") as tabs:
                rule, schema = ui.tab("rule", "Rule"), ui.tab("schema", "Schema")
            with ui.tab_panels(tabs, value=rule, animated=False, keep_alive=True).classes(
                "play-panels"
            ):
                with ui.tab_panel(rule):
                    self._editor = RuleEditor(self._new_text, self._complete, self._explain)
                with ui.tab_panel(schema):
                    self._schema_of = ui.select({}, on_change=self._show_schema)
                    self._schema_of.props("dense options-dense borderless").classes(
                        "play-schema-of"
                    )
                    self._schema = ui.codemirror(
                        language="JSON", indent="  ", on_change=lambda e: self._new_schema(e.value)
                    )
                    self._schema.classes("play-editor")
            self._problems = ProblemList(self._editor_go_to)
        with ui.element("section").classes("play-card play-events"):
            with ui.element("div").classes("play-bar"):
                ui.label("Events").classes("play-heading")
                self._bar_button("add", "event", lambda: self._table.add(RowKind.EVENT))
                self._bar_button("schedule", "clock", lambda: self._table.add(RowKind.CLOCK))
                self._bar_button("view_column", "column", self._ask_for_column)
                self._bar_button("delete_outline", "delete", self._delete)
                ui.space()
                self._settings = SettingsMenu(self._new_settings)
            self._table = EventGrid(self._new_rows, self._pointed)

    def _right(self) -> None:
        self._stepper = Stepper(self._moved)
        with ui.element("section").classes("play-card play-time"):
            with ui.element("div").classes("play-bar"):
                ui.label("Timeline").classes("play-heading")
                for name, colour in legend():
                    with ui.element("span").classes("play-legend"):
                        ui.element("i").style(f"background: {colour}")
                        ui.label(name)
                ui.space()
                self._counts = ui.label().classes("play-counts")
            with ui.element("div").classes("play-scroll"):
                self._timeline = Timeline(self._stepper.go)

    @staticmethod
    def _bar_button(icon: str, name: str, clicked: Callable[[], Any]) -> None:
        button = ui.button(name, icon=icon, on_click=clicked)
        button.props("flat dense no-caps size=sm")

    # What a person does.

    def _new_text(self, text: str) -> None:
        self._change(text=text)

    def _new_schema(self, text: str) -> None:
        name = self._schema_of.value or OF_ALL
        if text != self._trial.schemas.get(name, ""):
            self._change(schemas={**self._trial.schemas, name: text})

    def _new_rows(self) -> None:
        self._change(rows=tuple(self._table.rows))

    def _new_settings(self, settings: Mapping[str, Any]) -> None:
        self._change(**settings)

    def _change(self, **changes: Any) -> None:
        self._trial = replace(self._trial, **changes)
        self._run_soon()

    def _chosen(self, place: int | None) -> None:
        if place is not None and self._trials[place] is not self._trial:
            self._show(self._trials[place])

    async def _delete(self) -> None:
        await self._table.delete()

    def _pointed(self, row: int) -> None:
        self._stepper.go_to_row(row)

    def _editor_go_to(self, position: TextPosition) -> None:
        self._editor.go_to(position)

    async def _ask_for_column(self) -> None:
        with ui.dialog() as dialog, ui.card():
            name = ui.input("Name of the column", on_change=None).props("dense autofocus")
            name.on("keydown.enter", lambda: dialog.submit(name.value))
            ui.button("Add", on_click=lambda: dialog.submit(name.value)).props("flat no-caps")
        self._table.add_column((await dialog or "").strip())
        dialog.delete()

    async def _open(self, event: MultiUploadEventArguments) -> None:
        files = [GivenFile(each.name, await each.read()) for each in event.files]
        self._upload.reset()
        found = await self._done(self._workers.running, opened, files, self._trial)
        if found is not None:
            self._trials = found.trials
            self._show(found.trials[0], found.notes)

    async def _share(self) -> None:
        files = await self._done(self._workers.running, shared, self._trial)
        if files is None:
            return
        name = next(iter(files))
        content = files[name].encode()
        if len(files) > 1:
            content, name = _packed(files), name.rpartition(".")[0] + ".zip"
        ui.download.content(content, name)

    async def _complete(self, at: TextPosition) -> list[Completion]:
        trial = self._trial
        return await self._done(self._workers.checking, completions_at, trial, at, quiet=True) or []

    async def _explain(self, at: TextPosition) -> Hover | None:
        trial = self._trial
        found: Hover | None
        found = await self._done(self._workers.checking, hover_at, trial, at, quiet=True)
        return found

    async def _done(
        self, worker: Worker, function: Callable[..., Any], *given: Any, quiet: bool = False
    ) -> Any:
        """The result of a function; ``None`` where it has none, which is said."""
        try:
            return await worker.call(function, *given)
        except (ConfigurationError, TooSlowError) as error:
            if not quiet:
                self._say(str(error))
            return None

    def _say(self, text: str) -> None:
        with self._body:
            ui.notify(text, type="negative", multi_line=True, close_button="close", timeout=15_000)

    # What the page shows.

    def _show(self, trial: Trial, notes: Sequence[str] = ()) -> None:
        """Show a trial."""
        self._trial = trial
        names = {place: f"{each.file}: {each.case}" for place, each in enumerate(self._trials)}
        place = next((n for n, each in enumerate(self._trials) if each is trial), None)
        self._cases.set_options(names, value=place)
        self._editor.set(trial.text, in_sql=trial.in_sql)
        inputs = list(trial.schemas) or [OF_ALL]
        self._schema_of.set_options(
            {name: name or "all inputs" for name in inputs}, value=inputs[0]
        )
        self._schema_of.set_visibility(len(inputs) > 1)
        self._show_schema()
        self._table.set(trial.rows, trial.columns)
        self._settings.show(trial)
        self._problems.show(())
        for note in notes:
            ui.notify(note, multi_line=True, timeout=10_000)
        self._run_soon(0)

    def _show_schema(self) -> None:
        self._schema.set_value(self._trial.schemas.get(self._schema_of.value or OF_ALL, ""))

    def _run_soon(self, pause: float = _PAUSE) -> None:
        self._version += 1
        background_tasks.create(self._run(self._version, pause))

    async def _run(self, version: int, pause: float) -> None:
        """Check and run what is there, unless it has changed by then."""
        await asyncio.sleep(pause)
        if version != self._version:
            return
        trial = self._trial
        if len(trial.text) > MOST_TEXT:
            self._failed(f"the rule has more than {MOST_TEXT:,} characters")
            return
        self._status.set_text("checking…")
        try:
            found = await self._workers.checking.call(problems_in, trial)
            if version != self._version:
                return
            self._editor.show(found)
            errors = sum(each.severity is Severity.ERROR for each in found)
            if errors:
                self._problems.show(found)
                self._stale("1 error" if errors == 1 else f"{errors} errors")
                return
            self._status.set_text("running…" if self._workers.running.is_ready else _GETTING_READY)
            result = await self._workers.running.call(played, trial)
        except (ConfigurationError, TooSlowError) as error:
            self._failed(str(error))
            return
        if version == self._version:
            self._problems.show(found, result.problems, result.notes)
            self._result(result)

    def _failed(self, why: str) -> None:
        self._problems.show((), [TrialProblem(why)])
        self._stale("not run")

    def _stale(self, status: str) -> None:
        """Show that the results are those of an earlier run."""
        self._status.set_text(status)
        self._body.classes(add="play-stale")

    def _result(self, result: Played) -> None:
        self._body.classes(remove="play-stale")
        self._status.set_text("not run" if result.problems and not result.frames else "")
        if not self._table.columns and result.columns:
            self._table.set(
                self._trial.rows, [n for n in result.columns if n != self._trial.event_time]
            )
        self._timeline.show(result, self._trial.start * 1_000)
        self._table.show_results(result.rows or {}, result.problems)
        self._stepper.show(result)
        self._settings.rules(result.rules, result.rule)
        kinds = [each.kind.value for each in result.spans]
        counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
        said = [
            f"{count} {_several(kind) if count > 1 else kind}" for kind, count in counts.items()
        ]
        self._counts.set_text(", ".join(said) or ("no match" if result.frames else ""))

    def _moved(self, frame: KeyMoment | None) -> None:
        self._timeline.point(frame)
        self._table.point(None if frame is None else frame.row)

    def _other_colours(self) -> None:
        self._dark.set_value(not self._is_dark)

    def _colours(self, *, dark: bool) -> None:
        self._is_dark = dark
        self._editor.dark(dark)
        self._schema.set_theme("githubDark" if dark else "githubLight")
        self._stepper.automaton.dark(dark)
        self._timeline.dark(dark)


_GETTING_READY: Final = "getting ready: the first time on a machine that takes up to five minutes…"
_TOO_LARGE: Final = (
    f"at most {MOST_BYTES >> 20} MiB can be opened; spark-cep backtest runs files of any size"
)


def _several(kind: str) -> str:
    return {"match": "matches", "timeout": "timeouts"}.get(kind, kind)


def _packed(files: Mapping[str, str]) -> bytes:
    """The files as one archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()
