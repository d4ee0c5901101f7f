"""Runs a rule set over records with the compiled matcher, and nothing else of the job: conditions
are evaluated one by one for each event, keys are in one table, and the watermark is the caller's.

What the job's own two stages (:mod:`spark_cep.runner`) are held against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, RuleSetPlan
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.batch.input_batch import InputBatch, batches_together, reached
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import RuleState
from spark_cep.matcher.keys import KeysMatcher, KeysState
from spark_cep.matcher.keys import rule_states as states_of
from spark_cep.matcher.snapshot.stored_keys import decode
from spark_cep.matcher.snapshot.waiting_events import decode_batch, encode_batch
from spark_cep.matcher.snapshot.written_state import encode
from spark_cep.model import Coordinates, DeadLetter, Event, LateEvent
from spark_cep.pattern.expressions import ColumnPath, Expression, bind
from spark_cep.pattern.expressions.canonical import expression as expression_of
from spark_cep.pattern.expressions.nodes import Cast
from spark_cep.pattern.expressions.structure import with_columns_of
from spark_cep.pattern.types import STRING, RecordType
from tests.reference.key_text import key_text

BEFORE_TIME = -(1 << 62)


@dataclass(frozen=True, slots=True)
class Record:
    """One decoded record. ``values``: its columns, nested records as mappings; ``micros``: what its
    time has behind the millisecond; ``payload``: its original bytes."""

    at: Coordinates
    time: int
    values: Mapping[str, Any]
    input: str = ""
    type: str | None = None
    micros: int = 0
    payload: bytes | None = None


_Evaluator = Callable[[Mapping[str, Any]], Any]


class _Evaluators(NamedTuple):
    """What an event's columns give: the parts of its key as text, and its conditions."""

    key: list[_Evaluator]
    conditions: list[_Evaluator | None]


class EventReader:
    """What the decoder does to an event for one partitioning: key, bits, columns. As there, an
    expression is computed with the types of the event's own record type."""

    def __init__(self, partitioning: Partitioning, types: RecordTypes) -> None:
        self._partitioning = partitioning
        self._types = types
        self._evaluators: dict[tuple[str, str | None], _Evaluators] = {}

    def missing_key(self, record: Record) -> DeadLetter | None:
        """The dead letter of an event whose key, or a part of it, is NULL, though a rule of steps
        needs it."""
        if not self._partitioning.needs_key(record.input) or None not in self._key_parts(record):
            return None
        return DeadLetter(record.at, "missing_key", f"a key is null: {self._partitioning.key_name}")

    def key(self, record: Record) -> str | None:
        """The event's key; several parts joined. ``None`` for the global partition, and where the
        key's only part is NULL."""
        parts = self._key_parts(record)
        if not parts:
            return None
        if len(parts) == 1:
            return parts[0]
        return key_text(parts)

    def _key_parts(self, record: Record) -> list[str | None]:
        parts: list[str | None] = []
        for value in self._of(record).key:
            try:
                parts.append(value(record.values))
            except Exception:  # noqa: BLE001  what cannot be computed is no key
                parts.append(None)
        return parts

    def _of(self, record: Record) -> _Evaluators:
        at = record.input, record.type
        if at not in self._evaluators:
            columns = self._types.of((record.input, ""), record.type)
            self._evaluators[at] = _Evaluators(
                [_evaluator(_cast_to_text(part), columns) for part in self._partitioning.key],
                [
                    None if condition.expression is None
                    else _evaluator(condition.expression, columns)
                    for condition in self._partitioning.conditions
                ],
            )  # fmt: skip
        return self._evaluators[at]

    def by_key(self, records: Iterable[Record], outputs: Outputs) -> dict[str | None, list[Event]]:
        """The events that the partitioning's rules read, by key. Those that lack a key which rules
        of steps need are dead letters in ``outputs``, and there for rules in SQL alone."""
        events: dict[str | None, list[Event]] = {}
        for record in records:
            if not self._partitioning.reads(record.input):
                continue
            letter = self.missing_key(record)
            if letter is not None:
                outputs.dead_letters.append(letter)
                if not self._partitioning.takes_null(record.input):
                    continue
            events.setdefault(self.key(record), []).append(self.event(record, outputs))
        return events

    def event(self, record: Record, outputs: Outputs) -> Event:
        """The event as the matcher wants it. A condition that fails is not true of it, and is
        named in ``outputs`` for each rule that has it."""
        part = self._partitioning
        unseen = part.unseen_by_steps
        bits = unseen if unseen and part.has_null(self.key(record)) else 0
        tests = self._of(record).conditions
        for number, condition in enumerate(part.conditions):
            if condition.events and record.input not in condition.events:
                continue
            if condition.of_type is not None and not _is_of(record.type, condition.of_type):
                continue
            test = tests[number]
            try:
                if test is None or test(record.values) is True:
                    bits |= 1 << number
            except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
                outputs.dead_letters += self._failures(number, record, error)
        columns = tuple(_column(record.values, slot.path) for slot in part.slots)
        payload = record.payload if part.keeps_payload else None
        return Event(record.time, record.at, bits, columns, payload, record.type, record.micros)

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
                    rule_version=rule.plan.rule.version,
                )


@dataclass
class _PartitioningState:
    """What is remembered for one partitioning, and the events ahead of the watermark."""

    keys: KeysState = field(default_factory=KeysState)
    ahead: InputBatch = field(default_factory=InputBatch)
    names: Names = field(default_factory=Names)


@dataclass
class LocalJob:
    """A rule set with its state. Records are given in arrival order.

    With ``columns``, matches and timeouts stay columns."""

    plan: RuleSetPlan
    types: RecordTypes = field(default_factory=RecordTypes)
    watermark: int = BEFORE_TIME
    outputs: Outputs = field(default_factory=Outputs)
    late: list[LateEvent] = field(default_factory=list)
    columns: bool = False

    def __post_init__(self) -> None:
        self._readers = [EventReader(part, self.types) for part in self.plan.partitionings]
        self._matchers = [KeysMatcher(part, self.types) for part in self.plan.partitionings]
        self._states = [_PartitioningState() for _ in self._readers]

    def advance(self, records: Iterable[Record], watermark: int) -> None:
        """Take in ``records``; those at or before the watermark so far are late. Then move on."""
        fresh = timely(records, self.watermark, self.late)
        self.watermark = max(self.watermark, watermark)
        for reader, matcher, state in zip(self._readers, self._matchers, self._states, strict=True):
            events = InputBatch.of(reader.by_key(fresh, self.outputs), state.names, matcher.slots)
            ready, state.ahead = reached(batches_together([state.ahead, events]), self.watermark)
            for found in matcher.advance(state.keys, ready, self.watermark, state.names):
                self.outputs.add(found if self.columns else found.as_objects())

    def partial_matches(self) -> Iterator[PartialMatch]:
        """The live partial matches, key by key; behind them those of rules in SQL."""
        for matcher, state in zip(self._matchers, self._states, strict=True):
            yield from matcher.live(state.keys, state.names)

    def rule_states(self) -> Iterator[tuple[str | None, Plan, RuleState]]:
        """What is remembered of rules of steps: key, rule, and the rule's state for the key."""
        for matcher, state in zip(self._matchers, self._states, strict=True):
            plans = matcher.partitioning.step_plans
            for key, number, rule_state in states_of(state.keys, state.names, matcher.slots):
                yield key, plans[number], rule_state

    def reload(self) -> None:
        """Write the whole state to bytes and read it back, as a restart does."""
        for matcher, state in zip(self._matchers, self._states, strict=True):
            numbers = range(len(matcher.partitioning.rules))
            (stored,) = encode(state.keys, numbers)
            state.keys = decode(stored, dict(enumerate(numbers)))
            state.ahead = decode_batch(encode_batch(state.ahead))


def timely(records: Iterable[Record], watermark: int, late: list[LateEvent]) -> list[Record]:
    """The records that are not late; the others are added to ``late``."""
    fresh = []
    for record in records:
        if record.time <= watermark:
            late.append(LateEvent(record.at, record.time, watermark, None, None))
        else:
            fresh.append(record)
    return fresh


def _cast_to_text(part: Expression) -> Expression:
    return expression_of(Cast(part.node, STRING))


def _evaluator(expression: Expression, event: RecordType | None) -> _Evaluator:
    if event is not None:
        expression = expression_of(with_columns_of(expression.node, event))
    paths = sorted(expression.columns)
    value = bind(expression, {path: number for number, path in enumerate(paths)}, {}, event)
    return lambda values: value([_column(values, path) for path in paths], ())


def _is_of(name: str | None, wanted: str) -> bool:
    return name is not None and wanted in (name, name.rpartition(".")[2])


def _column(values: Mapping[str, Any], path: ColumnPath) -> Any:
    found: Any = values
    for part in path:
        if found is None:
            return None
        found = found.get(part)
    return found
