"""The events of one key, out of files or topics, whole.

They go production's way: a rule with the key of the one that is asked about, whose only step takes
each event of the key and emits all of its columns, is run over them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from spark_cep.cases.writing.case_text import CaseEvent
from spark_cep.compiler.rule_set import RuleSetPlan, compile_rules
from spark_cep.documents.nearest import listed
from spark_cep.errors import ConfigurationError
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import Coordinates, DeadLetter
from spark_cep.pattern.expressions import parse
from spark_cep.pattern.tree import MOST_COUNTED, Emit, Limits, Rule, Step
from spark_cep.pattern.types import TIMESTAMP
from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.pipeline.wire.new_schemas import NewSchemasError
from spark_cep.recorded.events import RecordedBatch, RecordedEvents
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.runner.runner import Runner

MOST_EVENTS: Final = 10_000
"""Most events of a case that is made of what was seen."""

_SETTINGS: Final = RunSettings(key_groups=1)


@dataclass(frozen=True)
class TappedEvent:
    """An event of the key, and where it was read."""

    at: Coordinates
    event: CaseEvent


@dataclass(frozen=True)
class EventAt:
    """The key of one event. ``recorded_at``: the time (ms) by which recordings are cut: its
    timestamp in Kafka, or, without one, its event time; ``None`` where it has neither."""

    key: str | None
    recorded_at: int | None


def event_at(events: RecordedEvents, rule: Rule, at: Coordinates) -> EventAt:
    """The event at these coordinates. Raises ConfigurationError where there is none, or ``rule``
    has no key for it."""
    taps = _taps(events, rule, None)
    around = events.around(at)
    letters: list[DeadLetter] = []
    recorded_at: int | None = None

    def here(batch: RecordedBatch) -> Batch:
        nonlocal recorded_at
        letters.extend(each for each in batch.letters if each.at == at)
        kept = [
            each.take(np.flatnonzero(each.offset == at.offset))
            for each in batch.batch.records
            if (each.topic, each.partition) == at[:2]
        ]
        for each in filter(len, kept):
            recorded_at = int(each.time[0])
        return replace(batch.batch, records=kept)

    for outputs in _run(around, compile_rules(taps.rules, events.inputs(1).types), here):
        letters += outputs.dead_letters
        for match in outputs.matches:
            kafka_time = recorded_at if recorded_at is not None and recorded_at >= 0 else None
            return EventAt(match.key, match.time if kafka_time is None else kafka_time)
    where = at.text
    if letters:
        raise ConfigurationError(
            f"--event {where}: rule {rule.id} has no key for it, as it is a dead letter:"
            f" {letters[0].reason}: {letters[0].detail}"
        )
    raise ConfigurationError(
        f"--event {where}: rule {rule.id} reads no such event; what is read is"
        f" {listed(sorted({each.name for each in events.recordings}))}"
    )


def tapped_events(
    events: RecordedEvents, rule: Rule, key: str | None, most: int = MOST_EVENTS
) -> list[TappedEvent]:
    """The events of ``key`` that ``rule`` reads, in the order of partitions and offsets; of several
    partitions in the order of time.

    Raises ConfigurationError where there are none, or more than ``most``.
    """
    taps = _taps(events, rule, _condition(rule, key))
    found: dict[Coordinates, TappedEvent] = {}
    for outputs in _run(events, compile_rules(taps.rules, events.inputs(1).types), _batch):
        for match in outputs.matches:
            (taken,) = (each for several in match.steps.values() for each in several)
            if match.key != key:
                continue
            kind = taps.types[match.rule_id]
            columns = {n.strip("`"): value for n, value in (taken.columns or {}).items()}
            seen = CaseEvent(
                taken.time * 1_000,
                kind.input if taps.several_inputs else None,
                kind.name.rpartition(".")[2] if taps.several_types else None,
                {name: value for name, value in columns.items() if value is not None},
            )
            found[taken.at] = TappedEvent(taken.at, seen)
        if len(found) > most:
            if not rule.key:
                raise ConfigurationError(f"there are more than {most:,} events")
            raise ConfigurationError(
                f"key {key!r} has more than {most:,} events: choose less of them, with --from and"
                " --to"
            )
    if not found and not rule.key:
        raise ConfigurationError(f"rule {rule.id} reads no event that is there")
    if not found:
        raise ConfigurationError(
            f"rule {rule.id} reads no event with the key {key!r} there; keys are compared as text,"
            ' as results have them: `ann`, `17`, `["ann","17"]` of two parts'
        )
    partitions = {at[:2] for at in found}
    if len(partitions) == 1:
        return [found[at] for at in sorted(found)]
    return sorted(found.values(), key=lambda each: (each.event.time, each.at))


def disorder_of(events: Sequence[TappedEvent]) -> int:
    """The most milliseconds that an event is behind one before it."""
    newest, most = BEGINNING, 0
    for each in events:
        newest = max(newest, each.event.time)
        most = max(most, newest - each.event.time)
    return most // 1_000


def event_time_column(events: RecordedEvents, seen: Sequence[TappedEvent]) -> str | None:
    """The column that has the event time, where a case can fill it in: it is one of all record
    types, and its values are the times."""
    names = {each.event_time for each in events.format.types}
    if len(names) != 1:
        return None
    (name,) = names
    for kind in events.format.types:
        if kind.columns.fields.get(name) != TIMESTAMP:
            return None
    for each in seen:
        value = each.event.columns.get(name)
        if value is None or round(value.timestamp() * 1_000_000) != each.event.time:
            return None
    return name


@dataclass(frozen=True)
class _Type:
    """A record type of an input."""

    input: str
    name: str


@dataclass(frozen=True)
class _Taps:
    """The rules that take events, one of each record type, which is in ``types`` by their ids."""

    rules: tuple[Rule, ...]
    types: Mapping[str, _Type]

    @property
    def several_inputs(self) -> bool:
        """Return whether events are of several inputs."""
        return len({each.input for each in self.types.values()}) > 1

    @property
    def several_types(self) -> bool:
        """Return whether an input has several record types."""
        return len(self.types) > len({each.input for each in self.types.values()})


def _taps(events: RecordedEvents, rule: Rule, condition: Any) -> _Taps:
    rules, types = [], dict[str, _Type]()
    for number, kind in enumerate(events.format.types):
        if rule.events and kind.input not in rule.events:
            continue
        types[f"tap-{number}"] = _Type(kind.input, kind.name)
        rules.append(
            Rule(
                f"tap-{number}",
                1,
                pattern=(Step("event", where=condition, of_type=kind.name),),
                key=rule.key,
                events=(kind.input,),
                emit=Emit(events=tuple(f"`{name}`" for name in kind.columns.fields)),
                limits=Limits(MOST_COUNTED, MOST_COUNTED, matches=MOST_COUNTED, work=MOST_COUNTED),
            )
        )
    return _Taps(tuple(rules), types)


def _condition(rule: Rule, key: str | None) -> Any:
    """The condition that an event has this key, so that no others are kept."""
    if not rule.key:
        return None
    parts: list[str | None] = [key]
    if len(rule.key) > 1:
        try:
            parts = json.loads(key or "")
        except ValueError:
            parts = []
        if not isinstance(parts, list) or len(parts) != len(rule.key):
            count = len(rule.key)
            raise ConfigurationError(
                f"--key {key}: rule {rule.id} has a key of {count} parts: give a JSON list of so"
                ' many texts, as results have it: `["ann","17"]`'
            )
    tests = []
    for expression, part in zip(rule.key, parts, strict=True):
        if part is None:
            tests.append(f"({expression.canonical}) IS NULL")
        else:
            quoted = str(part).replace("\\", "\\\\").replace("'", "''")
            tests.append(f"CAST(({expression.canonical}) AS STRING) = '{quoted}'")
    return parse(" AND ".join(tests))


def _batch(recorded: RecordedBatch) -> Batch:
    return recorded.batch


def _run(
    events: RecordedEvents, plan: RuleSetPlan, chosen: Callable[[RecordedBatch], Batch]
) -> Iterator[Outputs]:
    """The matches of the taps in what is ``chosen`` of each batch."""
    runner = Runner(plan, events.inputs(_SETTINGS.key_groups), _SETTINGS)
    for each in events.batches(_SETTINGS):
        # Nothing is late, however far behind.
        batch = replace(chosen(each), watermark=BEGINNING)
        try:
            found = runner.apply(batch)
        except NewSchemasError as error:
            events.learn(error)
            runner.use(plan, events.inputs(_SETTINGS.key_groups))
            found = runner.apply(batch)
        yield found.outputs
    yield runner.apply(Batch(watermark=END)).outputs
