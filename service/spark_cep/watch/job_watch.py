"""The newest of what a job reads, does and writes, for all open pages. All of it is bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spark_cep.watch.figures import Figures, Trend
from spark_cep.watch.recent_lines import RecentLines
from spark_cep.watch.tokens import DrawnRule, OpenToken

MOST_LINES: Final = 200


@dataclass(frozen=True, slots=True)
class OpenState:
    """Open partial matches by rule and version, as of a committed ``batch``; ``is_all``: there are
    no others. ``drawn``: the rules that are known, by id and version."""

    batch: int | None = None
    tokens: Mapping[tuple[str, int], Sequence[OpenToken]] = field(default_factory=dict)
    drawn: Mapping[tuple[str, int], DrawnRule] = field(default_factory=dict)
    is_all: bool = True


@dataclass(frozen=True, slots=True)
class JobPages:
    """The job's pages at one time: its state in words, rules, figures, and what is wrong with event
    time."""

    state: str = ""
    rules: Sequence[Mapping[str, Any]] = ()
    figures: Figures = field(default_factory=Figures)
    note: str | None = None


class JobWatch:
    """The model of the page. Each part is written by the thread of its feed alone, and replaced as
    a whole."""

    def __init__(self) -> None:
        self.records = RecentLines(MOST_LINES)
        self.results = RecentLines(MOST_LINES)
        self.trend = Trend()
        self.pages = JobPages()
        self.open = OpenState()

    def took_pages(self, now: float, pages: JobPages) -> None:
        """Take in the job's pages. ``now``: seconds, which never go back."""
        self.trend.add(now, pages.figures)
        self.pages = pages
