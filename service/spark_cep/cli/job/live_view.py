"""The compact view of a running job on a terminal: rate, lag, watermark, and what each rule finds.

It reads the job's own metrics twice a second; the log goes on above it. Elsewhere than on a
terminal there is none, and the log is JSON lines.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from prometheus_client import CollectorRegistry
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from spark_cep.durations import format_duration
from spark_cep.errors import printable
from spark_cep.watch.figures import Figures, read_figures

_REFRESHES_PER_SECOND: Final = 2
#: The rate is that of the last seconds.
_RATE_SECONDS: Final = 5.0
_MOST_RULES: Final = 10


class LiveView:
    """Makes the view. ``state``: the job's state in words; ``clock``: seconds that only differ."""

    def __init__(
        self,
        registry: CollectorRegistry,
        state: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._state = state
        self._clock = clock
        self._now = now
        self._read: deque[tuple[float, float]] = deque()

    def __call__(self) -> RenderableType:
        """The view now."""
        figures = read_figures(self._registry.collect())
        head = Table.grid(padding=(0, 3, 0, 0))
        head.add_row(
            Text(printable(self._state()), style="bold"),
            f"{self._rate(figures.records):,.0f} records/s",
            f"lag {figures.lag:,.0f}",
            f"watermark {self._watermark(figures.watermark)}",
            f"late {figures.late:,.0f}",
            Text(
                f"dead letters {figures.dead_letters:,.0f}",
                style="red" if figures.dead_letters else "",
            ),
        )
        return Group(Rule(style="dim"), head, *self._rules(figures))

    def _rate(self, records: float) -> float:
        now = self._clock()
        self._read.append((now, records))
        while len(self._read) > 2 and now - self._read[0][0] > _RATE_SECONDS:  # noqa: PLR2004  a pair
            self._read.popleft()
        began, before = self._read[0]
        return (records - before) / (now - began) if now > began else 0.0

    def _watermark(self, seconds: float | None) -> str:
        if seconds is None:
            return "not yet"
        behind = max(0, round(self._now() - seconds))
        moment = datetime.fromtimestamp(seconds, UTC)
        return f"{moment:%Y-%m-%d %H:%M:%S} ({format_duration(behind * 1000)} behind)"

    @staticmethod
    def _rules(figures: Figures) -> Iterator[RenderableType]:
        rules = sorted(
            {*figures.matches, *figures.timeouts, *figures.open},
            key=lambda rule: (-figures.matches[rule], -figures.open[rule], rule),
        )
        if not rules:
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("rule", no_wrap=True)
        for name in ("matches", "timeouts", "open"):
            table.add_column(name, justify="right")
        for rule in rules[:_MOST_RULES]:
            counts = (figures.matches[rule], figures.timeouts[rule], figures.open[rule])
            table.add_row(Text(printable(rule)), *(f"{count:,}" for count in counts))
        yield table
        if len(rules) > _MOST_RULES:
            yield Text(f"and {len(rules) - _MOST_RULES:,} more rules", style="dim")


@contextmanager
def shown(view: LiveView, console: Console) -> Iterator[None]:
    """Show the view at the bottom of a terminal while the block runs, with the log above it."""
    live = Live(
        get_renderable=view,
        console=console,
        refresh_per_second=_REFRESHES_PER_SECOND,
        transient=True,
    )
    handlers = [
        each for each in logging.getLogger().handlers if isinstance(each, logging.StreamHandler)
    ]
    with live:
        # Standard output is rich's now, which writes lines above the view.
        before = [(each, each.setStream(sys.stdout)) for each in handlers]
        try:
            yield
        finally:
            for handler, stream in before:
                if stream is not None:
                    handler.setStream(stream)
