"""The outcome of cases: passed, failed with differences, or not run to the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

from spark_cep.cases.document.files import Suite
from spark_cep.cases.document.loading import Case
from spark_cep.cases.document.values import relative
from spark_cep.cases.running.case_run import CaseRun, run_case
from spark_cep.cases.running.comparing import Difference, Pair, differences
from spark_cep.cases.running.found import FoundResult, micros_of
from spark_cep.errors import printable, shortened
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.pipeline.match.group_matcher import MakeMatcher
from spark_cep.testkit.results import SentEvent

_MOST_EVENTS = 100
_KINDS = {
    "matches": "match",
    "rows": "row",
    "timeouts": "timeout",
    "late": "late event",
    "dead_letters": "dead letter",
    "partial_matches": "partial match",
}
_WIDEST = 60


@dataclass(frozen=True)
class CaseOutcome:
    """The outcome of one case."""

    suite: Suite
    run: CaseRun
    differences: tuple[Difference, ...]
    seconds: float

    @property
    def case(self) -> Case:
        """The case."""
        return self.run.case

    @property
    def passed(self) -> bool:
        """Return whether all is as expected."""
        return self.run.problem is None and not self.differences

    @property
    def summary(self) -> str:
        """The difference in one line."""
        if self.run.problem is not None:
            return self.run.problem.message
        return "; ".join(_counts(each) for each in self.differences)

    def lines(self) -> Iterator[str]:
        """The difference as text for people: expected and found side by side, then the events."""
        if self.run.problem is not None:
            yield from self.run.problem.render().split("\n")
            return
        for difference in self.differences:
            yield _counts(difference)
            for pair in difference.pairs:
                yield from (f"  {line}" for line in _pair_lines(difference.kind, pair))
        yield "events"
        yield from (f"  {line}" for line in _event_lines(self.run))
        for warning in self.run.kit.warnings:
            yield from f"warning: {warning.render()}".split("\n")


def outcome(suite: Suite, case: Case, matcher: MakeMatcher = KeysMatcher) -> CaseOutcome:
    """Run a case, and compare."""
    began = perf_counter()
    run = run_case(suite, case, matcher)
    found = () if run.problem is not None else tuple(differences(run))
    return CaseOutcome(suite, run, found, perf_counter() - began)


def _counts(difference: Difference) -> str:
    return f"{difference.kind}: {difference.expected} expected, {difference.found} found"


def _pair_lines(kind: str, pair: Pair) -> Iterator[str]:
    name = _KINDS[kind]
    if pair.number is None:
        yield f"{name} that is not expected"
        width = max((len(line.name) for line in pair.lines), default=0)
        yield from (f"  {line.name:<{width}}  {_cut(line.found)}" for line in pair.lines)
        return
    title = f"{name} {pair.number}"
    if not pair.found:
        title += ": none is left that could be it"
    table = [(title, "expected", "found", " ")]
    table += [
        (f"  {line.name}", _cut(line.expected), _cut(line.found), " " if line.same else "≠")
        for line in pair.lines
    ]
    widths = [max(len(row[place]) for row in table) for place in range(2)]
    if not pair.found:
        yield title
        yield from (f"  {line.name}  {_cut(line.expected)}" for line in pair.lines)
        return
    for first, expected, found, mark in table:
        yield f"{first:<{widths[0]}}  {expected:<{widths[1]}}  {mark} {found}".rstrip()


def _cut(text: str | None) -> str:
    return "" if text is None else shortened(printable(text), _WIDEST)


def _event_lines(run: CaseRun) -> Iterator[str]:
    events = run.events
    if not events:
        yield "none"
    more = len(events) - _MOST_EVENTS
    if more > 0:
        yield f"… {more} earlier ones"
    shown = [_event_row(run, event) for event in events[-_MOST_EVENTS:]]
    late = {arrival.event.number for arrival in run.kit.late}
    widths = [max((len(row[place]) for row in shown), default=0) for place in range(2)]
    for event, (name, time, columns) in zip(events[-_MOST_EVENTS:], shown, strict=True):
        note = "  (late)" if event.number in late else ""
        yield f"{name:<{widths[0]}}  {time:<{widths[1]}}  {columns}{note}"


def _event_row(run: CaseRun, event: SentEvent) -> tuple[str, str, str]:
    written = run.written(event)
    name = f"event {written}" if isinstance(written, int) else written
    kind = f"{event.of_type} " if event.of_type else ""
    values = ", ".join(f"{name}: {FoundResult.text(value)}" for name, value in event.values.items())
    return name, relative(micros_of(event.time), run.start), printable(kind + values)
