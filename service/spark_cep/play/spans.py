"""Matches, timeouts and open partial matches as spans of a timeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spark_cep.cases.running.case_run import CaseRun
from spark_cep.cases.running.found import FoundResult, found_results, micros_of
from spark_cep.errors import printable
from spark_cep.play.view import KeyMoment, SpanKind, TimeSpan

#: The kinds of results that are spans, and where each has its end.
_KINDS: Final = (
    ("matches", SpanKind.MATCH, "at"),
    ("timeouts", SpanKind.TIMEOUT, "at"),
    ("partial_matches", SpanKind.OPEN, "until"),
)
_APART: Final = ("rule", "version", "start", "key")


@dataclass(frozen=True)
class Spans:
    """Makes the spans of a run. ``rows``: the row of each event."""

    run: CaseRun
    frames: Sequence[KeyMoment]
    rows: Mapping[int, int]

    def all_spans(self) -> Iterator[TimeSpan]:
        """The spans of all kinds."""
        found = found_results(self.run)
        for name, kind, end in _KINDS:
            for number, result in enumerate(found[name], 1):
                yield self._span(result, kind, number, result.value(end))

    def _span(self, result: FoundResult, kind: SpanKind, number: int, end: int | None) -> TimeSpan:
        key = result.value("key")
        steps = [name for name in result.values if name.startswith("steps.")]
        taken = {each for name in steps for each in result.value(name)}
        times = [micros_of(self.run.events[each].time) for each in taken]
        title = f"{kind.value} {number}" + ("" if key is None else f", key {printable(key)}")
        lines = tuple(
            printable(f"{name.partition('.')[2] or name}: {result.shown(name)}")
            for name in result.all_names
            if name not in _APART
        )
        rows = {self.rows[each] for each in taken}
        mine = [(place, each) for place, each in enumerate(self.frames) if each.key == key]
        if kind is SpanKind.OPEN:
            at = [place for place, each in mine if each.row in rows]
        else:
            at = [place for place, each in mine if each.time == end]
            deadlines = [place for place in at if self.frames[place].row is None]
            at = (deadlines if kind is SpanKind.TIMEOUT else []) or at
        start = min(times, default=end if end is not None else self.run.start)
        return TimeSpan(kind, key, start, end, at[-1] if at else None, title, lines)
