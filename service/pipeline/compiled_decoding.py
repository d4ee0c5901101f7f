"""From Kafka records to one flat row an event, by compiled loops in Python.

What :mod:`service.pipeline.decode` leaves to Spark's ``from_avro`` and its generated code, for
plans whose columns, conditions and keys are simple enough: Spark then reads records and nothing
else, which takes two thirds of the time. Both make the same rows, so all that follows knows no
difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from service.codecs import record_bytes
from service.codecs.record_bytes import copy_texts
from service.codecs.record_layout import (
    READABLE,
    Layouts,
    LayoutWriter,
    NoLayoutError,
    Read,
    Wanted,
)
from service.compiler.formula import Formula
from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Partitioning, RuleSetPlan, Slot
from service.config.topics import KAFKA_TIMESTAMP
from service.matcher.columnar.event_masks import (
    Bit,
    EventMasks,
    NoMasksError,
    event_masks,
)
from service.matcher.columnar.lanes import Lanes
from service.matcher.columnar.text_hash import SEED, text_hashes
from service.pattern.expressions import ColumnPath
from service.pattern.expressions.nodes import Column
from service.pattern.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
    column_type,
)
from service.pipeline.catalogue import Catalogue, EventType
from service.pipeline.columns import TYPE_COLUMN, WORD_BITS, types_of, wanted_together, word
from service.pipeline.crossing import NO_TIME, Tally, tallies
from service.pipeline.decode import (
    FIRST_TIME,
    LAST_TIME,
    DecodeOptions,
    needed_columns,
    topic_condition,
)
from service.pipeline.record_faults import Fault, Untyped

_PARTITION_BITS = 15
_OFFSET_BITS = 48

_ARROW: dict[SqlType, pa.DataType] = {
    INT: pa.int32(),
    BIGINT: pa.int64(),
    BOOLEAN: pa.bool_(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
}
_WHOLE_KEYS = (INT, BIGINT)
_MOST_SECONDS = 1_000_000_000_000
_NOTHING = bytes(1)
_OUTCOMES = {
    record_bytes.READ: Fault.NONE,
    record_bytes.UNDECODABLE: Fault.UNDECODABLE,
    record_bytes.BAD_VALUE: Fault.BAD_VALUE,
    record_bytes.ABSENT: Fault.TOMBSTONE,
    record_bytes.NOT_FRAMED: Fault.NOT_FRAMED,
    record_bytes.UNKNOWN_ID: Fault.UNKNOWN_ID,
    record_bytes.SKIPPED: Fault.UNREADABLE_SCHEMA,
}
_FAULT_OF_OUTCOME = np.array([_OUTCOMES[each] for each in range(len(_OUTCOMES))], np.int32)

_Longs = NDArray[np.int64]
_Flags = NDArray[np.bool_]


class NotCompiledError(Exception):
    """The plan is left to Spark; the text says why."""


def bare(records: DataFrame, topic: str | None) -> DataFrame:
    """Kafka's records with what :class:`CompiledDecoder` reads; ``topic``: the only one, if there
    is only one."""
    fits = f"partition < {1 << _PARTITION_BITS} AND offset < {1 << _OFFSET_BITS}L"
    place = f"shiftleft(offset, {_PARTITION_BITS}) | partition"
    message = "'a partition above 32,767 or an offset above 2^48: set source.decoder to spark'"
    columns = [
        F.expr(f"IF({fits}, {place}, raise_error({message}))").alias("place"),
        F.unix_millis("timestamp").alias("kafka_time"),
        F.col("value"),
        F.col("key").alias("record_key"),
        # As text: Arrow takes several microseconds a row for an array, even where it is NULL.
        F.expr("IF(size(headers) > 0, to_json(headers), NULL)").alias("headers"),
    ]
    return records.select(*columns, *([] if topic is not None else ["topic"]))


@dataclass(frozen=True)
class _Relevance:
    """Which sets of true conditions of a partitioning concern a rule: ``tests`` of the inputs' bit
    and bits of which one is enough, as whole masks, and formulas of all other rules."""

    strict: int
    tests: tuple[tuple[int, int], ...]
    others: tuple[tuple[int, Formula, tuple[int, ...]], ...]

    def of(self, mask: int) -> tuple[bool, bool]:
        """Whether such an event must go to the matcher, and whether some condition of a rule is
        true."""
        relevant = any(mask & inputs and mask & bits for inputs, bits in self.tests) or any(
            mask >> input_bit & 1
            and formula.evaluate(sum(1 << i for i, bit in enumerate(bits) if mask >> bit & 1))
            for input_bit, formula, bits in self.others
        )
        return relevant or bool(mask & self.strict), relevant


@dataclass(frozen=True)
class _Slot:
    """Where a slot is, and by record type whether it is of that."""

    lane: int
    kind: SqlType
    of: tuple[bool, ...]


@dataclass(frozen=True)
class _Part:
    """One partitioning: its words among all; by record type the lane of its key (-1: it has none)
    and whether a rule reads it; the type of its keys, ``None``: all events have the same."""

    number: int
    first_word: int
    words: int
    key_kind: SqlType | None
    key_lanes: tuple[int, ...]
    reads: tuple[bool, ...]
    slots: tuple[_Slot, ...]
    relevance: _Relevance


@dataclass(frozen=True)
class _EventTime:
    """Where the event time of a record type is: its lane (-1: Kafka's timestamp), type and unit."""

    lane: int
    kind: SqlType
    unit: str


@dataclass(frozen=True)
class CompiledDecoder:
    """Records of :func:`bare` to rows, in the worker; picklable.

    ``types``: by place among the layouts' ids, the record type or :class:`Untyped`.
    """

    topic: str | None
    key_groups: int
    max_ahead_ms: int | None
    layouts: Layouts
    types: NDArray[np.int32]
    times: tuple[_EventTime, ...]
    masks: EventMasks
    parts: tuple[_Part, ...]

    def read(
        self, batches: Sequence[pa.RecordBatch], latest: int | None
    ) -> tuple[list[Tally], pa.RecordBatch]:
        """See :class:`service.pipeline.pack.Records`."""
        records = _Records(batches, self.topic)
        read = self.layouts.read(records.data, records.ends, records.present)
        types, faults = self._typed(read)
        of = np.maximum(types, -1)
        sound = faults == Fault.NONE
        words = self.masks.of(
            np.where(sound, of, -1), records.data, read.wholes, read.doubles, read.nulls
        )
        time = self._times(read, of, records.kafka_time)
        self._judge_times(faults, time, records.kafka_time, latest)
        unkeyed = [self._unkeyed(part, read, of) for part in self.parts]
        for part, missing in zip(self.parts, unkeyed, strict=True):
            reads = np.array([*part.reads, False]).take(of)
            faults[missing & reads & (faults == Fault.NONE)] = Fault.MISSING_KEY
        timed = (faults == Fault.NONE) | (faults == Fault.MISSING_KEY)
        time[~timed] = NO_TIME
        judged = faults > Fault.NOT_READ
        kept, relevant = [], np.zeros(len(of), bool)
        carried = judged.copy()
        for part in self.parts:
            keep, wanted = self._concerned(part, words)
            kept.append(keep)
            carried |= keep
            relevant |= wanted
        rows = np.flatnonzero(carried)
        made = records.rows(rows, judged | relevant)
        made["time"] = pa.array(time[rows], mask=time[rows] == NO_TIME)
        made["fault"], made[TYPE_COLUMN] = pa.array(faults[rows]), pa.array(types[rows])
        for part, missing, keep in zip(self.parts, unkeyed, kept, strict=True):
            here = (timed & keep & ~missing)[rows]
            made |= self._of_part(part, records.data, read, of, words, rows, here)
        return records.tallies(faults, time), pa.RecordBatch.from_pydict(made)

    def _typed(self, read: Read) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Record types and faults."""
        types = np.append(self.types, np.int32(Untyped.UNKNOWN_ID)).take(read.layouts)
        unframed = (read.outcomes == record_bytes.ABSENT) | (
            read.outcomes == record_bytes.NOT_FRAMED
        )
        types[unframed] = Untyped.NOT_FRAMED
        faults = _FAULT_OF_OUTCOME.take(read.outcomes)
        faults[types == Untyped.NOT_READ] = Fault.NOT_READ
        return types, faults

    def _times(self, read: Read, of: NDArray[np.int32], kafka_time: _Longs) -> _Longs:
        """Event times in milliseconds."""
        time = np.full(len(of), NO_TIME, np.int64)
        for number, where in enumerate(self.times):
            mine = of == number
            if where.lane < 0:
                found = kafka_time[mine]
            else:
                mine &= read.nulls[:, where.lane] == 0
                found = _in_millis(read.wholes[mine, where.lane], where)
            # Before all that are within bounds, but not as those that have none.
            time[mine] = np.maximum(found, FIRST_TIME - 1)
        return time

    def _judge_times(
        self, faults: NDArray[np.int32], time: _Longs, kafka_time: _Longs, latest: int | None
    ) -> None:
        missing = time == NO_TIME
        outside = (time < FIRST_TIME) | (time > LAST_TIME)
        if self.max_ahead_ms is not None:
            # A record without timestamp has -1.
            outside |= (kafka_time >= 0) & (time > kafka_time + self.max_ahead_ms)
        if latest is not None:
            outside |= time > latest
        sound = faults == Fault.NONE
        faults[sound & outside] = Fault.TIME_OUT_OF_BOUNDS
        faults[sound & missing] = Fault.MISSING_TIME

    @staticmethod
    def _unkeyed(part: _Part, read: Read, of: NDArray[np.int32]) -> _Flags:
        """Which events have no key."""
        if part.key_kind is None:
            return np.zeros(len(of), bool)
        lanes = set(part.key_lanes)
        if len(lanes) == 1 and -1 not in lanes:
            return np.asarray(read.nulls[:, lanes.pop()] != 0)
        lane = np.array([*part.key_lanes, -1])[of]
        return np.asarray((lane < 0) | (read.nulls[np.arange(len(of)), lane] != 0))

    @staticmethod
    def _concerned(part: _Part, words: _Longs) -> tuple[_Flags, _Flags]:
        """Which events must go to the matcher, and of which some condition of a rule is true."""
        mine = np.ascontiguousarray(words[:, part.first_word : part.first_word + part.words])
        kind = pa.int64() if part.words == 1 else pa.binary(8 * part.words)
        encoded = pa.Array.from_buffers(kind, len(mine), [None, pa.py_buffer(mine)])
        distinct = encoded.dictionary_encode()
        answers = np.array(
            [part.relevance.of(_mask(each)) for each in distinct.dictionary.to_pylist()], bool
        ).reshape(-1, 2)
        keep, relevant = answers[distinct.indices.to_numpy()].T
        return keep, relevant

    def _of_part(
        self,
        part: _Part,
        data: NDArray[np.uint8],
        read: Read,
        of: NDArray[np.int32],
        words: _Longs,
        rows: NDArray[np.intp],
        here: _Flags,
    ) -> dict[str, pa.Array]:
        """The columns of a partitioning, of the events that are ``here``."""
        p = part.number
        lane = np.array([*part.key_lanes, 0])[of[rows]]
        if part.key_kind is None:
            key = pa.nulls(len(rows), pa.string())
            group = np.full(len(rows), SEED)
        else:
            values = read.wholes[rows, lane]
            if part.key_kind == STRING:
                key = _texts(data, values, ~here)
            else:
                key = pa.array(values, mask=~here).cast(pa.string())
            group = np.empty(len(rows), np.int64)
            text_hashes(*_pool(key), group)
        made = {
            f"key_{p}": key,
            f"group_{p}": pa.array((group % self.key_groups).astype(np.int32), mask=~here),
        }
        for number in range(part.words):
            made[word(p, number)] = pa.array(
                np.where(here, words[rows, part.first_word + number], 0)
            )
        for number, slot in enumerate(part.slots):
            mine = np.array([*slot.of, False])[of[rows]]
            null = ~here | ~mine | (read.nulls[rows, slot.lane] != 0)
            made[f"slot_{p}_{number}"] = _column(slot, data, read, rows, null)
        return made


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
) -> _Part:
    inputs = {name for rule in part.rules for name in rule.plan.rule.events}
    everything = any(not rule.plan.rule.events for rule in part.rules)
    reads = [everything or t.input in inputs for t in catalogue.types]
    kinds: set[SqlType | None] = set()
    key_lanes = []
    for event_type, read in zip(catalogue.types, reads, strict=True):
        lane = -1
        if read and part.key:
            node = part.key[0].node
            if len(part.key) > 1 or not isinstance(node, Column):
                raise NotCompiledError(f"the key {part.key_name} is not a column")
            kind = column_type(event_type.columns, node.path)
            if kind not in (STRING, *_WHOLE_KEYS):
                raise NotCompiledError(f"the key {part.key_name} is {kind}")
            kinds.add(kind)
            lane = lanes.value(node.path, kind)
        key_lanes.append(lane)
    if len(kinds) > 1:
        raise NotCompiledError(f"the key {part.key_name} has several types")
    return _Part(
        number, first_word, -(-len(part.conditions) // WORD_BITS), kinds.pop() if kinds else None,
        tuple(key_lanes), tuple(reads), tuple(_slot(slot, catalogue, lanes) for slot in part.slots),
        _relevance(part),
    )  # fmt: skip


def _slot(slot: Slot, catalogue: Catalogue, lanes: Lanes) -> _Slot:
    found = {
        t.number: kind
        for t in types_of(catalogue, slot.events, slot.of_type)
        if (kind := column_type(t.columns, slot.path)) is not None
    }
    if len(set(found.values())) != 1:
        raise NotCompiledError(f"column {'.'.join(slot.path)} has not one type")
    (kind,) = set(found.values())
    return _Slot(
        lanes.value(slot.path, kind), kind, tuple(t.number in found for t in catalogue.types)
    )


def _relevance(part: Partitioning) -> _Relevance:
    wanted, others = wanted_together(part.rules)
    strict = sum({1 << rule.input_bit for rule in part.rules if rule.plan.strict})
    return _Relevance(
        strict,
        tuple((1 << inputs, sum(1 << bit for bit in bits)) for inputs, bits in wanted.items()),
        tuple(dict.fromkeys((r.input_bit, r.plan.relevant, r.bits) for r in others)),
    )


def _event_time(
    event_type: EventType, columns: Mapping[ColumnPath, tuple[int, SqlType]]
) -> _EventTime:
    if event_type.event_time == KAFKA_TIMESTAMP:
        return _EventTime(-1, BIGINT, "millis")
    lane, kind = columns[tuple(event_type.event_time.split("."))]
    if kind not in (TIMESTAMP, *_WHOLE_KEYS):
        raise NotCompiledError(f"the event time {event_type.event_time} is {kind}")
    return _EventTime(lane, kind, event_type.event_time_unit)


def _in_millis(values: _Longs, where: _EventTime) -> _Longs:
    """As :mod:`service.pipeline.decode` has it: rounded down."""
    if where.kind == TIMESTAMP or where.unit == "micros":
        return values // 1_000
    if where.unit != "seconds":
        return values
    beyond = np.where(values > 0, _MOST_SECONDS, -_MOST_SECONDS) * 1_000
    fits = (values >= -_MOST_SECONDS) & (values <= _MOST_SECONDS)
    return np.where(fits, values, 0) * 1_000 + np.where(fits, 0, beyond)


def _mask(words: bytes | int) -> int:
    """A set of conditions, given as its only word or the bytes of all, as one number."""
    if isinstance(words, int):
        return words
    found = np.frombuffer(words, np.int64).tolist()
    return sum(each << WORD_BITS * number for number, each in enumerate(found))


class _Records:
    """Columns of :func:`bare`, whole."""

    def __init__(self, batches: Sequence[pa.RecordBatch], topic: str | None) -> None:
        def column(name: str) -> pa.Array:
            columns = [batch.column(name) for batch in batches]
            return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)

        place = column("place").to_numpy()
        self.partition = (place & (1 << _PARTITION_BITS) - 1).astype(np.int32)
        self.offset = place >> _PARTITION_BITS
        self.kafka_time = column("kafka_time").to_numpy()
        self._key, self._value = column("record_key"), column("value")
        self._headers = column("headers")
        self.data, self.ends = _pool(self._value)
        self.present = pc.is_valid(self._value).to_numpy(zero_copy_only=False).view(np.uint8)
        lengths = (pc.fill_null(pc.binary_length(c), 0) for c in (self._key, self._value))
        self.sizes = pc.add(*lengths).to_numpy()
        self._topics: list[str] = [] if topic is None else [topic]
        self._topic: Any = 0
        if topic is None:
            encoded = column("topic").dictionary_encode()
            self._topics = encoded.dictionary.to_pylist()
            self._topic = encoded.indices.to_numpy()

    def rows(self, rows: NDArray[np.intp], whole: _Flags) -> dict[str, pa.Array]:
        """The columns of some records; those that are ``whole`` with the record's own bytes."""
        take = pa.array(rows)
        topics = pa.array(self._topics, pa.string())
        if len(topics) == 1:
            topic = pa.repeat(topics[0], len(rows))
        else:
            topic = topics.take(pa.array(self._topic[rows]))
        made = {
            "topic": topic,
            "partition": pa.array(self.partition[rows]),
            "offset": pa.array(self.offset[rows]),
            "kafka_time": pa.array(self.kafka_time[rows]),
            "size": pa.array(self.sizes[rows]),
        }
        with_bytes = whole[rows]
        for name, column in (
            ("record_key", self._key), ("value", self._value), ("headers", self._headers),
        ):  # fmt: skip
            taken = column.take(take)
            if not with_bytes.all():
                taken = pc.if_else(pa.array(with_bytes), taken, pa.scalar(None, taken.type))
            made[name] = taken
        return made

    def tallies(self, faults: NDArray[np.int32], time: _Longs) -> list[Tally]:
        """What all of them count."""
        return tallies(
            self._topics, self._topic, self.partition, faults, time,
            self.kafka_time, self.sizes,
        )  # fmt: skip


def _pool(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """The bytes of all, and where each begins and ends."""
    _, ends, data = texts.buffers()
    if not len(texts):
        return np.frombuffer(_NOTHING, np.uint8), np.frombuffer(bytes(4), np.int32)
    return (
        np.frombuffer(data if data is not None and data.size else _NOTHING, np.uint8),
        np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1],
    )


def _texts(data: NDArray[np.uint8], places: _Longs, null: _Flags) -> pa.Array:
    """The texts at ``places``, as a column."""
    ends = np.zeros(len(places) + 1, np.int32)
    size = int((places[~null] & 0xFFFFFFFF).sum())
    out = np.empty(size, np.uint8)
    copy_texts(data, places, null, out, ends)
    valid = pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(
        pa.string(), len(places), [valid, pa.py_buffer(ends), pa.py_buffer(out)]
    )


def _column(
    slot: _Slot, data: NDArray[np.uint8], read: Read, rows: NDArray[np.intp], null: _Flags
) -> pa.Array:
    if slot.kind == STRING:
        return _texts(data, read.wholes[rows, slot.lane], null)
    if slot.kind in (FLOAT, DOUBLE):
        values = read.doubles[rows, slot.lane]
        return pa.array(values.astype(_ARROW[slot.kind].to_pandas_dtype()), mask=null)
    whole = read.wholes[rows, slot.lane]
    if slot.kind == TIMESTAMP:
        return pa.array(whole, mask=null).view(_ARROW[slot.kind])
    return pa.array(whole.astype(_ARROW[slot.kind].to_pandas_dtype()), mask=null)
