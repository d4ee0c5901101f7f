"""A first rule over a sample of events, which finds a match in them: two things that one key does
one after the other, or the same key several times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final

import yaml

from spark_cep.cases.writing.case_text import CaseEvent
from spark_cep.cli.setup.sample import Sample
from spark_cep.durations import parse_duration
from spark_cep.pattern.expressions import ExpressionError, parse
from spark_cep.pattern.types import BIGINT, INT, STRING

RULE_ID: Final = "first-rule"
_KEY: Final = re.compile(
    r"(?i)(^|_)(id|key)$|user|account|customer|client|card|device|host|sensor|machine|order|session|ip$"
)
_KIND: Final = re.compile(r"(?i)type|kind|event|status|state|action|level|result|name")
_MOST_KINDS: Final = 20
_TIMES: Final = 3
_WITHIN: Final = (
    "1 minute", "10 minutes", "1 hour", "6 hours", "1 day", "7 days", "30 days", "365 days",
)  # fmt: skip


@dataclass(frozen=True)
class FirstRule:
    """The rule's text, and where it finds a match: the key as results have it, and the times of the
    first and the last event in microseconds since 1970."""

    text: str
    key: str | None
    begin: int
    end: int


@dataclass(frozen=True)
class _Found:
    """A pattern that the sample has: the steps' conditions, how often a step is taken, the events
    of a match, and its description in words."""

    conditions: tuple[str, ...]
    times: int
    within: str
    taken: tuple[CaseEvent, ...]
    words: str


def first_rule(sample: Sample, source: str) -> FirstRule:
    """The rule for a sample; ``source``: what the sample is of, for people."""
    key = _key_column(sample)
    by_key: dict[Any, list[CaseEvent]] = {}
    for event in sample.events:
        by_key.setdefault(None if key is None else event.columns.get(key), []).append(event)
    if key is not None:
        by_key.pop(None, None)
    found = _sequence(sample, key, by_key) or _repetition(by_key)
    value = None if key is None else found.taken[0].columns[key]
    return FirstRule(
        "".join(f"{line}\n" for line in _lines(sample, source, key, found)),
        None if value is None else str(value),
        found.taken[0].time,
        found.taken[-1].time,
    )


def _key_column(sample: Sample) -> str | None:
    """The column that several events share most likely: by its name, then by its values."""
    best: tuple[Any, ...] = ()
    chosen = None
    for name, kind in sample.columns.items():
        if kind not in (STRING, BIGINT, INT) or name == sample.event_time[0]:
            continue
        counts = Counter(each.columns.get(name) for each in sample.events)
        counts.pop(None, None)
        if not counts or counts.most_common(1)[0][1] < 2:  # noqa: PLR2004  twice
            continue
        rank = (bool(_KEY.search(name)), len(counts) > 1, kind == STRING, len(counts))
        if rank > best:
            best, chosen = rank, name
    return chosen


def _kind_columns(sample: Sample, key: str | None) -> list[str]:
    """Columns with few texts, those first that are called as kinds are."""
    found = []
    for name, kind in sample.columns.items():
        if kind != STRING or name in (key, sample.event_time[0]):
            continue
        values = {each.columns.get(name) for each in sample.events} - {None}
        if 1 < len(values) <= min(_MOST_KINDS, len(sample.events) // 2):
            found.append((not _KIND.search(name), len(values), name))
    return [name for _, _, name in sorted(found)]


def _sequence(
    sample: Sample, key: str | None, by_key: Mapping[Any, Sequence[CaseEvent]]
) -> _Found | None:
    """Two kinds that follow each other most often."""
    for column in _kind_columns(sample, key):
        pairs = [
            (first, second)
            for events in by_key.values()
            for first, second in pairwise(each for each in events if each.columns.get(column))
            if first.columns[column] != second.columns[column]
        ]
        if not pairs:
            continue
        counts = Counter((a.columns[column], b.columns[column]) for a, b in pairs)
        kinds, _ = max(counts.items(), key=lambda item: (item[1], item[0]))
        alike = [(a, b) for a, b in pairs if (a.columns[column], b.columns[column]) == kinds]
        within = _within(median(b.time - a.time for a, b in alike))
        taken = next((pair for pair in alike if _is_within(pair, within)), None)
        if taken is not None:
            name = quoted(column)
            conditions = tuple(f"{name} = {_literal(each)}" for each in kinds)
            words = f"{kinds[0]}, then {kinds[1]}"
            return _Found(conditions, 1, within, taken, words)
    return None


def _repetition(by_key: Mapping[Any, Sequence[CaseEvent]]) -> _Found:
    """Several events of one key, as close together as they are anywhere."""
    times = min(_TIMES, max(map(len, by_key.values())))
    runs = [
        tuple(events[start : start + times])
        for events in by_key.values()
        for start in range(len(events) - times + 1)
    ]
    taken = min(runs, key=lambda run: (run[-1].time - run[0].time, run[0].time))
    within = _within(taken[-1].time - taken[0].time)
    return _Found((), times, within, taken, "an event" if times == 1 else f"{times} events")


def _within(micros: float) -> str:
    """The least of the usual durations that is longer."""
    return next((each for each in _WITHIN if parse_duration(each) * 1_000 > micros), _WITHIN[-1])


def _is_within(taken: Sequence[CaseEvent], within: str) -> bool:
    return taken[-1].time - taken[0].time < parse_duration(within) * 1_000


def _lines(sample: Sample, source: str, key: str | None, found: _Found) -> Iterator[str]:
    of_key = "" if key is None else f" of the same {key}"
    yield f"# Made by `spark-cep init` from {source}: a beginning, to be changed."
    if key is None:
        yield "# spark-cep: allow no-key because no column of these events is shared by several"
    yield f"id: {RULE_ID}"
    yield "version: 1"
    yield f"description: {_scalar(f'{found.words}{of_key}, within {found.within}')}"
    yield f"events: {sample.input}"
    if key is not None:
        yield f"key: {_scalar(quoted(key))}"
    yield "pattern:"
    names = ("first", "second") if found.conditions else ("event",)
    for number, name in enumerate(_apart(names, sample.columns)):
        yield f"  - step: {name}"
        if number:
            yield "    after: followed_by"
        if found.conditions:
            yield f"    where: {_scalar(found.conditions[number])}"
        if sample.of_type is not None:
            yield f"    of_type: {sample.of_type}"
        if found.times > 1:
            yield f"    times: {found.times}"
    yield f"within: {found.within}"
    yield "after_match: skip_past_last_event"


def _apart(names: Sequence[str], columns: Mapping[str, Any]) -> list[str]:
    """Names of steps that no column has."""
    return [f"{name}_event" if name in columns else name for name in names]


def quoted(column: str) -> str:
    """The column's name in an expression."""
    try:
        if re.fullmatch(r"[A-Za-z_]\w*", column) and parse(column).canonical == column:
            return column
    except ExpressionError:
        pass
    return f"`{column}`"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _scalar(text: str) -> str:
    written: str = yaml.safe_dump(text, allow_unicode=True, width=1 << 20)
    return written.removesuffix("\n").removesuffix("\n...")
