"""What the user sees: steps, arrivals, progress; live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from examples.demo.expected import Counts
from examples.demo.metrics import Progress
from spark_cep.watch.result_line import ResultLine, clock

_STYLES = {"match": "green", "timeout": "yellow", "late": "magenta", "dead letter": "red"}
_PLAIN_EVERY_SECONDS = 5.0
_PLAIN_WIDTH = 100


@dataclass(frozen=True)
class Status:
    """What the progress display shows."""

    wave: str = ""
    sent: Counter[str] = field(default_factory=Counter)
    progress: Progress = field(default_factory=Progress)
    found: Counts = field(default_factory=Counts)


class Screen:
    """The one place that prints. ``plain``: no colours, no live region, whatever the terminal."""

    def __init__(self, *, plain: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._live_region = self._console.is_terminal and not plain
        if not self._live_region:
            self._console = console or Console(
                highlight=False, width=_PLAIN_WIDTH, color_system=None, force_terminal=False
            )
        self._live: Live | None = None
        self._began = time.monotonic()
        self._last_progress = self._began

    @property
    def seconds(self) -> float:
        """Time since the demo began."""
        return time.monotonic() - self._began

    def say(self, text: str, style: str = "") -> None:
        """One line of the demo itself."""
        stamp = Text(f"{self.seconds:6.1f} s  ", style="dim")
        self._print(stamp + Text(text, style=style))

    def error(self, text: str) -> None:
        """Something that went wrong."""
        self._print(Text(text, style="red"))

    def arrived(self, line: ResultLine) -> None:
        """One output record."""
        shown = Text("      →   " + line.text(), style=_STYLES[line.kind])
        if self._live_region:
            shown.truncate(self._console.width, overflow="ellipsis")
        self._print(shown)

    def show(self, *renderables: RenderableType) -> None:
        """Tables."""
        for each in renderables:
            self._console.print()
            self._console.print(each)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """While a step of the set-up runs."""
        spinner = self._console.status(text) if self._live_region else nullcontext()
        with spinner:
            yield

    @contextmanager
    def progress(self) -> Iterator[None]:
        """While the stream runs: :meth:`update` shows where it stands."""
        if not self._live_region:
            yield
            return
        with Live(console=self._console, refresh_per_second=4, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def update(self, status: Status) -> None:
        """Where the demo stands; called often, shown as often as is readable."""
        if self._live is not None:
            self._live.update(_panel(status, self.seconds))
        elif time.monotonic() - self._last_progress >= _PLAIN_EVERY_SECONDS:
            self._last_progress = time.monotonic()
            self.say(one_line(status))

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def one_line(status: Status) -> str:
    """Progress as one line."""
    progress, found = status.progress, status.found
    return (
        f"wave {status.wave}, produced {status.sent.total()}, read {progress.read.total()},"
        f" matches {found.matches.total()}, timeouts {found.timeouts.total()},"
        f" late {found.late.total()}, dead letters {found.dead_letters.total()},"
        f" watermark {_watermark(progress)}, {progress.waiting} events wait for it"
    )


def _watermark(progress: Progress) -> str:
    return "-" if progress.watermark is None else clock(progress.watermark)


def _panel(status: Status, seconds: float) -> RenderableType:
    progress, found = status.progress, status.found
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("input", "produced", "read", "", "output", "records", "", "job", ""):
        right = name in ("produced", "read", "records")
        table.add_column(name, justify="right" if right else "left", style="", no_wrap=True)
    outputs = (
        ("matches", found.matches.total(), "green"),
        ("timeouts", found.timeouts.total(), "yellow"),
        ("late", found.late.total(), "magenta"),
        ("dead letters", found.dead_letters.total(), "red"),
    )
    job = (
        ("watermark", _watermark(progress)),
        ("events that wait for it", str(progress.waiting)),
        ("batches, new plans", f"{progress.batches}, {progress.restarts}"),
        ("wave", f"{status.wave}, {seconds:.0f} s"),
    )
    for (topic, sent), (name, number, style), (what, value) in zip(
        status.sent.items(), outputs, job, strict=False
    ):
        table.add_row(
            topic, str(sent), str(progress.read[topic]), "",
            Text(name, style), Text(str(number), style), "", what, value,
        )  # fmt: skip
    return Group(Rule(style="dim"), table)
