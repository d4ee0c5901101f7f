"""Matches, timeouts and open partial matches as spans of a timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spark_cep.cases.running.case_run import CaseRun
from spark_cep.cases.running.found import FoundResult, found_results
from spark_cep.errors import printable
from spark_cep.play.view import Frame, SpanKind, TimeSpan

#: The kinds of results that are spans, and where each has its end.
_KINDS: Final = (
    ("matches", SpanKind.MATCH, "at"),
    ("timeouts", SpanKind.TIMEOUT, "at"),
    ("partial_matches", SpanKind.OPEN, "until"),
)
_APART: Final = ("rule", "version", "start")


@dataclass(frozen=True)
class Spans:
    """Makes the spans of a run."""

    run: CaseRun
    frames: Sequence[Frame]

    def all_spans(self) -> Iterator[TimeSpan]:
        """The spans of all kinds."""
        found = found_results(self.run)
        for name, kind, end in _KINDS:
            for number, result in enumerate(found[name], 1):
                yield self._span(result, kind, number, result.value(end))

    def _span(self, result: FoundResult, kind: SpanKind, number: int, end: int | None) -> TimeSpan:
        key = result.value("key")
        numbers = sorted(
            {
                each
                for name in result.values
                if name.startswith("steps.")
                for each in result.value(name)
            }
        )
        times = {event.number: event.time for event in self.run.events}
        start = result.value("start")
        if start is None:
            from spark_cep.cases.running.found import micros_of

            start = min((micros_of(times[each]) for each in numbers), default=end or self.run.start)
        title = f"{kind.value} {number}" + ("" if key is None else f", key {key}")
        lines = tuple(
            printable(f"{name.removeprefix('measures.')}: {result.shown(name)}")
            for name in result.all_names
            if name not in _APART and name != "key"
        )
        return TimeSpan(kind, key, start, end, self._frame(key, numbers, kind, end), title, lines)

    def _frame(
        self, key: str | None, numbers: Sequence[int], kind: SpanKind, end: int | None
    ) -> int | None:
        """The frame at the end of a span: of its deadline, or of its last event."""
        mine = [(place, frame) for place, frame in enumerate(self.frames) if frame.key == key]
        if kind is SpanKind.TIMEOUT:
            at = [place for place, frame in mine if frame.row is None and frame.time == end]
            return at[0] if at else self._by_time(mine, end)
        if kind is SpanKind.MATCH:
            return self._by_time(mine, end)
        last = max((self.run.events[each].number for each in numbers), default=None)
        rows = [place for place, frame in mine if frame.row is not None]
        return rows[-1] if rows and last is not None else None

    @staticmethod
    def _by_time(frames: Sequence[tuple[int, Frame]], end: int | None) -> int | None:
        return next((place for place, frame in reversed(frames) if frame.time == end), None)
