"""Everything that is known of a test, as lines of text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from spark_cep.pattern.tree import Rule
from spark_cep.testkit.results import FoundMatch, FoundTimeout, OpenMatch, SentEvent

_MOST_EXPLAINED = 100


def rule_lines(rules: Sequence[Rule]) -> Iterator[str]:
    """A line for each rule."""
    if not rules:
        yield "rules: none"
    for rule in rules:
        state = "" if rule.enabled else ", not enabled"
        yield f"rule {rule.id} version {rule.version}{state}"


def event_lines(
    sent: Sequence[SentEvent],
    late: Collection[int],
    waiting: Collection[int],
    found: Iterable[FoundMatch | FoundTimeout | OpenMatch],
) -> Iterator[str]:
    """A line for each of the newest events: its columns, and what became of it. ``late`` and
    ``waiting`` are numbers of events; those in ``found`` are taken."""
    yield "events:"
    taken = {e.number for each in found for events in each.steps.values() for e in events}
    more = len(sent) - _MOST_EXPLAINED
    if more > 0:
        yield f"  … {more} earlier ones"
    for event in sent[-_MOST_EXPLAINED:]:
        number = event.number
        state = (
            "late" if number in late
            else "waits for the watermark" if number in waiting
            else "taken" if number in taken
            else "in no match, timeout or partial match"
        )  # fmt: skip
        yield f"  {event!r}: {state}"


def section_lines(sections: Mapping[str, Sequence[object]]) -> Iterator[str]:
    """Results, below their titles."""
    for title, found in sections.items():
        yield f"{title}:{'' if found else ' none'}"
        yield from (f"  {each!r}" for each in found)
