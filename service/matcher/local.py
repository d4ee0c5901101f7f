"""Runs a whole rule set over records in this process: no Spark, same answers.

Conditions are evaluated in Python by the same expression trees that Spark gets as SQL, and the
watermark is the caller's. For tests, test kits and short back-tests; the service itself evaluates
conditions in the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from service.compiler.key_text import key_text
from service.compiler.plan import Plan
from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning, RuleSetPlan
from service.matcher.engines import Engine, PartitioningMatcher, PartitioningState
from service.matcher.live import PartialMatch, live_partials
from service.matcher.outputs import Outputs
from service.matcher.partial import RuleState
from service.model import Coordinates, DeadLetter, Event, LateEvent
from service.pattern.expressions import ColumnPath, Expression, bind
from service.pattern.types import RecordType

BEFORE_TIME = -(1 << 62)


@dataclass(frozen=True, slots=True)
class Record:
    """One decoded record. ``values``: its columns, nested records as mappings."""

    at: Coordinates
    time: int
    values: Mapping[str, Any]
    input: str = ""
    type: str | None = None


class EventReader:
    """What Spark does to an event for one partitioning: key, bits, columns."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes) -> None:
        self._partitioning = partitioning
        self._key = [_evaluator(expression, types.of((), None)) for expression in partitioning.key]
        self._conditions = [
            None
            if c.expression is None
            else _evaluator(c.expression, types.of(c.events, c.of_type))
            for c in partitioning.conditions
        ]

    def missing_key(self, record: Record) -> DeadLetter | None:
        """The dead letter of an event whose key, or a part of it, is NULL."""
        if all(value(record.values) is not None for value in self._key):
            return None
        return DeadLetter(record.at, "missing_key", f"a key is null: {self._partitioning.key_name}")

    def key(self, record: Record) -> str | None:
        """The event's key; several parts joined. ``None`` for the global partition."""
        parts = [_text(value(record.values)) for value in self._key]
        if not parts:
            return None
        if len(parts) == 1:
            return parts[0]
        return key_text([str(part) for part in parts])

    def event(self, record: Record, outputs: Outputs) -> Event:
        """The event as the matcher wants it. A condition that fails is not true of it, and is
        named in ``outputs`` for each rule that has it."""
        bits = 0
        for number, condition in enumerate(self._partitioning.conditions):
            if condition.events and record.input not in condition.events:
                continue
            if condition.of_type is not None and not _is_of(record.type, condition.of_type):
                continue
            test = self._conditions[number]
            try:
                if test is None or test(record.values) is True:
                    bits |= 1 << number
            except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
                outputs.dead_letters += self._failures(number, record, error)
        columns = tuple(_column(record.values, slot.path) for slot in self._partitioning.slots)
        return Event(record.time, record.at, bits, columns, None, record.type)

    def _failures(self, number: int, record: Record, error: Exception) -> Iterator[DeadLetter]:
        for rule in self._partitioning.rules:
            if number in rule.bits:
                atom = rule.plan.event_atoms[rule.bits.index(number)]
                yield DeadLetter(
                    at=record.at,
                    reason="condition_failed",
                    detail=f"{atom}: {error!r}",
                    rule_id=rule.plan.rule.id,
                    step=atom.step,
                )


@dataclass
class LocalJob:
    """A rule set with its state. Records are given in arrival order.

    With ``columns``, matches and timeouts stay columns where they can."""

    plan: RuleSetPlan
    types: RecordTypes = field(default_factory=RecordTypes)
    watermark: int = BEFORE_TIME
    outputs: Outputs = field(default_factory=Outputs)
    late: list[LateEvent] = field(default_factory=list)
    engine: Engine = Engine.FASTEST
    columns: bool = False

    def __post_init__(self) -> None:
        self._readers = [EventReader(part, self.types) for part in self.plan.partitionings]
        self._matchers = [
            PartitioningMatcher(part, self.types, self.engine, columns=self.columns)
            for part in self.plan.partitionings
        ]
        self._states = [PartitioningState() for _ in self._readers]

    def advance(self, records: Iterable[Record], watermark: int) -> None:
        """Take in ``records``; those at or before the watermark so far are late. Then move on."""
        fresh = []
        for record in records:
            if record.time <= self.watermark:
                self.late.append(LateEvent(record.at, record.time, self.watermark, None, None))
            else:
                fresh.append(record)
        self.watermark = max(self.watermark, watermark)
        for partitioning, reader, matcher, state in zip(
            self.plan.partitionings, self._readers, self._matchers, self._states, strict=True
        ):
            events: dict[str | None, list[Event]] = {}
            for record in fresh:
                if not partitioning.reads(record.input):
                    continue
                letter = reader.missing_key(record)
                if letter is not None:
                    self.outputs.dead_letters.append(letter)
                    continue
                event = reader.event(record, self.outputs)
                events.setdefault(reader.key(record), []).append(event)
            matcher.advance(state, events, self.watermark, self.outputs)

    def partial_matches(self) -> Iterator[PartialMatch]:
        """The live partial matches, key by key."""
        for key, plan, rule_state in self.rule_states():
            yield from live_partials(plan, key, rule_state)

    def rule_states(self) -> Iterator[tuple[str | None, Plan, RuleState]]:
        """What is remembered: key, rule, and the rule's state for the key."""
        for matcher, state in zip(self._matchers, self._states, strict=True):
            yield from matcher.rule_states(state)

    def reload(self) -> None:
        """Write the whole state to bytes and read it back, as a restart does."""
        for matcher, state in zip(self._matchers, self._states, strict=True):
            matcher.reload(state)


def _evaluator(
    expression: Expression, event: RecordType | None
) -> Callable[[Mapping[str, Any]], Any]:
    paths = sorted(expression.columns)
    value = bind(expression, {path: number for number, path in enumerate(paths)}, {}, event)
    return lambda values: value([_column(values, path) for path in paths], ())


def _text(value: Any) -> str:
    """A key part as SQL's ``CAST(… AS STRING)`` writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _is_of(name: str | None, wanted: str) -> bool:
    return name is not None and wanted in (name, name.rpartition(".")[2])


def _column(values: Mapping[str, Any], path: ColumnPath) -> Any:
    found: Any = values
    for part in path:
        if found is None:
            return None
        found = found.get(part)
    return found
