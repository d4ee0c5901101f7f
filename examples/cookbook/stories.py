"""Cases as text for people: events and results as tables, outcomes in a few words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from spark_cep.cases.document.loading import Case
from spark_cep.cases.document.values import relative
from spark_cep.cases.running.case_run import CaseRun
from spark_cep.cases.running.comparing import compared
from spark_cep.cases.running.found import FoundResult, found_results, micros_of
from spark_cep.cases.running.outcome import CaseOutcome

_KINDS: Final = {
    "matches": ("match", "matches"),
    "timeouts": ("timeout", "timeouts"),
    "late": ("late event", "late events"),
}


def story(outcome: CaseOutcome) -> Iterator[str]:
    """The events of a case, and what was found in them."""
    run = outcome.run
    yield from (f"**Example: {outcome.case.name}**", "")
    time = run.case.shape.event_time
    names = dict.fromkeys(name for event in run.events for name in event.values if name != time)
    yield from _heading(["time", "event", *names])
    for event in run.events:
        values = [FoundResult.text(event.values.get(name)) for name in names]
        shown = ["" if value == "null" else value for value in values]
        yield _row([relative(micros_of(event.time), run.start), str(run.written(event)), *shown])
    yield ""
    yield from _results(run)


def _results(run: CaseRun) -> Iterator[str]:
    found = found_results(run)
    yield from _heading(["result", "key", "time", "events", "measures"])
    for kind, (one, _) in _KINDS.items():
        for result in found[kind]:
            yield _row([one, *(_cell(result, name) for name in ("key", "at")), *_content(result)])


def _content(result: FoundResult) -> tuple[str, str]:
    steps, measures = [], []
    for name, value in result.values.items():
        group, _, inner = name.partition(".")
        if group == "steps" and value:
            steps.append(f"`{inner}`: {result.shown(name)}")
        elif group == "measures":
            measures.append(f"`{inner}`: {result.shown(name)}")
    return "; ".join(steps), "; ".join(measures)


def _cell(result: FoundResult, name: str) -> str:
    return (result.shown(name) or "") if result.has(name) else ""


def outcome_in_words(case: Case) -> str:
    """The outcome that a case expects: ``no match``, or how many results of which kind."""
    expected = compared(case.shape.expect)
    parts = [_count(len(expected[k]), words) for k, words in _KINDS.items() if expected.get(k)]
    if not expected.get("matches", True):
        parts.insert(0, "no match")
    return ", ".join(parts)


def _count(number: int, words: tuple[str, str]) -> str:
    one, several = words
    return f"1 {one}" if number == 1 else f"{number} {several}"


def _heading(names: Sequence[str]) -> Iterator[str]:
    yield _row(names)
    yield _row(["---"] * len(names))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
