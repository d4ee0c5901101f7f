"""What compiled loops must know to decode for a plan, or why it is left to Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from service.codecs.record_layout import READABLE, Layouts, LayoutWriter, NoLayoutError, Wanted
from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning, RuleSetPlan, Slot
from service.config.topics import KAFKA_TIMESTAMP
from service.matcher.columnar.event_masks import Bit, NoMasksError, event_masks
from service.matcher.columnar.lanes import Lanes
from service.pattern.expressions import ColumnPath, Expression
from service.pattern.expressions.nodes import Column
from service.pattern.types import BIGINT, INT, STRING, TIMESTAMP, SqlType, column_type
from service.pipeline.catalogue import Catalogue, EventType
from service.pipeline.columns import WORD_BITS, types_of, wanted_together
from service.pipeline.compiled_decoding import (
    CompiledDecoder,
    EventTimeLane,
    KeyLanes,
    PartLanes,
    Relevance,
    SlotLane,
)
from service.pipeline.decode import DecodeOptions, needed_columns, topic_condition
from service.pipeline.record_faults import Untyped

_WHOLE_KEYS = (INT, BIGINT)


class NotCompiledError(Exception):
    """The plan is left to Spark; the text says why."""


def compiled_decoder(
    plan: RuleSetPlan, catalogue: Catalogue, options: DecodeOptions
) -> CompiledDecoder:
    """The decoder for a plan. Raises NotCompiledError where that is left to Spark."""
    if options.keep_all:
        raise NotCompiledError("late events that no rule wants are written, too")
    lanes, types = Lanes(), catalogue.types
    wanted = []
    for needed, event_type in zip(needed_columns(plan, catalogue), types, strict=True):
        columns: dict[ColumnPath, tuple[int, SqlType]] = {}
        for name in sorted(needed):
            path = tuple(name.split("."))
            kind = column_type(event_type.columns, path)
            if kind not in READABLE:
                raise NotCompiledError(f"column {name} of {event_type.name} is {kind}")
            columns[path] = lanes.value(path, kind), kind
        wanted.append(columns)
    parts, bits = [], []
    first = 0
    for number, part in enumerate(plan.partitionings):
        parts.append(_part(number, first, part, catalogue, lanes))
        bits += [
            Bit(condition, first + place // WORD_BITS, 1 << place % WORD_BITS)
            for place, condition in enumerate(part.conditions)
        ]
        first += parts[-1].words
    known = RecordTypes(tuple((t.input, t.name, t.columns) for t in types))
    try:
        masks = event_masks(known, bits, max(1, first), lanes)
    except NoMasksError as error:
        raise NotCompiledError(str(error)) from error
    layouts, numbers = _layouts(catalogue, wanted, lanes)
    return CompiledDecoder(
        options.topic, options.key_groups, options.max_ahead_ms, layouts, numbers,
        tuple(_event_time(t, columns) for t, columns in zip(types, wanted, strict=True)),
        masks, tuple(parts),
    )  # fmt: skip


def _layouts(
    catalogue: Catalogue, wanted: Sequence[Wanted], lanes: Lanes
) -> tuple[Layouts, NDArray[np.int32]]:
    """The layouts of all schema ids, and their record types."""
    writer = LayoutWriter()
    numbers: dict[int, int] = dict.fromkeys(catalogue.unreadable, Untyped.UNREADABLE)
    for schema_id, writers in catalogue.writers.items():
        if len(writers) != 1 or writers[0].branch is not None:
            raise NotCompiledError(f"schema id {schema_id} has records of several types")
        number = writers[0].type
        if number is None:
            numbers[schema_id] = Untyped.NOT_READ
            continue
        event_type = catalogue.types[number]
        if topic_condition(catalogue, event_type):
            raise NotCompiledError(f"{event_type.name} is not read from every topic")
        try:
            writer.add(schema_id, writers[0].schema, event_type.reader, wanted[number])
        except NoLayoutError as error:
            raise NotCompiledError(f"schema id {schema_id}: {error}") from error
        numbers[schema_id] = number
    for schema_id, number in numbers.items():
        if number < 0:
            writer.skip(schema_id)
    layouts = writer.written(lanes.width)
    return layouts, np.array([numbers[each] for each in layouts.ids.tolist()], np.int32)


def _part(
    number: int, first_word: int, part: Partitioning, catalogue: Catalogue, lanes: Lanes
) -> PartLanes:
    inputs = {name for rule in part.rules for name in rule.plan.rule.events}
    everything = any(not rule.plan.rule.events for rule in part.rules)
    reads = [everything or t.input in inputs for t in catalogue.types]
    return PartLanes(
        number, first_word, -(-len(part.conditions) // WORD_BITS),
        tuple(_key(expression, part.key_name, reads, catalogue, lanes) for expression in part.key),
        tuple(reads), tuple(_slot(slot, catalogue, lanes) for slot in part.slots), _relevance(part),
    )  # fmt: skip


def _key(
    part: Expression, key: str, reads: Sequence[bool], catalogue: Catalogue, lanes: Lanes
) -> KeyLanes:
    if not isinstance(part.node, Column):
        raise NotCompiledError(f"the key {key} is not made of columns")
    path = part.node.path
    kinds = [
        column_type(t.columns, path) if r else None
        for t, r in zip(catalogue.types, reads, strict=True)
    ]
    for kind in kinds:
        if kind not in (STRING, *_WHOLE_KEYS, None):
            raise NotCompiledError(f"the key {key} is {kind}")
    found = {kind for kind in kinds if kind is not None}
    if len(found) > 1:
        raise NotCompiledError(f"the key {key} has several types")
    return KeyLanes(
        found.pop() if found else STRING,
        tuple(-1 if kind is None else lanes.value(path, kind) for kind in kinds),
    )


def _slot(slot: Slot, catalogue: Catalogue, lanes: Lanes) -> SlotLane:
    found = {
        t.number: kind
        for t in types_of(catalogue, slot.events, slot.of_type)
        if (kind := column_type(t.columns, slot.path)) is not None
    }
    if len(set(found.values())) != 1:
        raise NotCompiledError(f"column {'.'.join(slot.path)} has not one type")
    (kind,) = set(found.values())
    return SlotLane(
        lanes.value(slot.path, kind), kind, tuple(t.number in found for t in catalogue.types)
    )


def _relevance(part: Partitioning) -> Relevance:
    wanted, others = wanted_together(part.rules)
    strict = sum({1 << rule.input_bit for rule in part.rules if rule.plan.strict})
    return Relevance(
        strict,
        tuple((1 << inputs, sum(1 << bit for bit in bits)) for inputs, bits in wanted.items()),
        tuple(dict.fromkeys((r.input_bit, r.plan.relevant, r.bits) for r in others)),
    )


def _event_time(
    event_type: EventType, columns: Mapping[ColumnPath, tuple[int, SqlType]]
) -> EventTimeLane:
    if event_type.event_time == KAFKA_TIMESTAMP:
        return EventTimeLane(-1, BIGINT, "millis")
    lane, kind = columns[tuple(event_type.event_time.split("."))]
    if kind not in (TIMESTAMP, *_WHOLE_KEYS):
        raise NotCompiledError(f"the event time {event_type.event_time} is {kind}")
    return EventTimeLane(lane, kind, event_type.event_time_unit)
