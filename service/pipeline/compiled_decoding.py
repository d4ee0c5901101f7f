"""From Kafka records to one flat row an event, by compiled loops in Python.

What :mod:`service.pipeline.decode` leaves to Spark's ``from_avro`` and its generated code, for
plans whose columns, conditions and keys are simple enough (:mod:`service.pipeline.compiled_plan`):
Spark then reads records and nothing else, which takes two thirds of the time. Both make the same
rows, so all that follows knows no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from service.codecs import record_bytes
from service.codecs.record_layout import Layouts, Read
from service.compiler.formula import Formula
from service.compiler.key_text import ESCAPED, escaped
from service.matcher.columnar.event_masks import EventMasks
from service.matcher.columnar.text_hash import SEED, text_hashes
from service.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
)
from service.pipeline.bare_records import BareRecords, pool, texts_at
from service.pipeline.columns import TYPE_COLUMN, word
from service.pipeline.crossing import NO_TIME, Tally
from service.pipeline.decode import FIRST_TIME, LAST_TIME
from service.pipeline.masks import distinct_masks
from service.pipeline.record_faults import Fault, Untyped

_ARROW: dict[SqlType, pa.DataType] = {
    INT: pa.int32(),
    BIGINT: pa.int64(),
    BOOLEAN: pa.bool_(),
    DATE: pa.date32(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
}
_MOST_SECONDS = 1_000_000_000_000
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


@dataclass(frozen=True)
class Relevance:
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
class SlotLane:
    """Where a slot is, and by record type whether it is of that."""

    lane: int
    kind: SqlType
    of: tuple[bool, ...]


@dataclass(frozen=True)
class KeyLanes:
    """A part of a key: its type, and where it is by record type (-1: nowhere)."""

    kind: SqlType
    lanes: tuple[int, ...]


@dataclass(frozen=True)
class PartLanes:
    """One partitioning: its words among all; the parts of its key (none: all events have the same);
    by record type whether a rule reads it."""

    number: int
    first_word: int
    words: int
    key: tuple[KeyLanes, ...]
    reads: tuple[bool, ...]
    slots: tuple[SlotLane, ...]
    relevance: Relevance


@dataclass(frozen=True)
class EventTimeLane:
    """Where the event time of a record type is: its lane (-1: Kafka's timestamp), type and unit."""

    lane: int
    kind: SqlType
    unit: str


@dataclass(frozen=True)
class CompiledDecoder:
    """Records of :func:`service.pipeline.bare_records.bare` to rows, in the worker; picklable.

    ``types``: by place among the layouts' ids, the record type or :class:`Untyped`.
    """

    topic: str | None
    key_groups: int
    max_ahead_ms: int | None
    layouts: Layouts
    types: NDArray[np.int32]
    times: tuple[EventTimeLane, ...]
    masks: EventMasks
    parts: tuple[PartLanes, ...]

    def read(
        self, batches: Sequence[pa.RecordBatch], latest: int | None
    ) -> tuple[list[Tally], pa.RecordBatch]:
        """See :class:`service.pipeline.pack.Records`."""
        records = BareRecords(batches, self.topic)
        read = self.layouts.read(records.data, records.ends, records.present)
        types, faults = self._typed(read)
        of = np.maximum(types, -1)
        sound = faults == Fault.NONE
        words = self.masks.of(
            np.where(sound, of, -1), read.data, read.wholes, read.doubles, read.nulls
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
            made |= self._of_part(part, read, of, words, rows, here)
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
    def _unkeyed(part: PartLanes, read: Read, of: NDArray[np.int32]) -> _Flags:
        """Which events have no key."""
        missing = np.zeros(len(of), bool)
        for key in part.key:
            lanes = set(key.lanes)
            if len(lanes) == 1 and -1 not in lanes:
                missing |= read.nulls[:, lanes.pop()] != 0
            else:
                lane = np.array([*key.lanes, -1])[of]
                missing |= (lane < 0) | (read.nulls[np.arange(len(of)), lane] != 0)
        return missing

    @staticmethod
    def _concerned(part: PartLanes, words: _Longs) -> tuple[_Flags, _Flags]:
        """Which events must go to the matcher, and of which some condition of a rule is true."""
        masks, places = distinct_masks(words[:, part.first_word : part.first_word + part.words])
        answers = np.array([part.relevance.of(mask) for mask in masks], bool).reshape(-1, 2)
        keep, relevant = answers[places].T
        return keep, relevant

    def _of_part(
        self,
        part: PartLanes,
        read: Read,
        of: NDArray[np.int32],
        words: _Longs,
        rows: NDArray[np.intp],
        here: _Flags,
    ) -> dict[str, pa.Array]:
        """The columns of a partitioning, of the events that are ``here``."""
        p = part.number
        keys = []
        for each in part.key:
            values = read.wholes[rows, np.array([*each.lanes, 0])[of[rows]]]
            if each.kind == STRING:
                keys.append(texts_at(read.data, values, ~here))
            else:
                keys.append(pa.array(values, mask=~here).cast(pa.string()))
        if not keys:
            key = pa.nulls(len(rows), pa.string())
            group = np.full(len(rows), SEED)
        else:
            key = keys[0] if len(keys) == 1 else _key_texts(keys)
            group = np.empty(len(rows), np.int64)
            text_hashes(*pool(key), group)
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
            made[f"slot_{p}_{number}"] = _column(slot, read, rows, null)
        return made


def _in_millis(values: _Longs, where: EventTimeLane) -> _Longs:
    """As :mod:`service.pipeline.decode` has it: rounded down."""
    if where.kind == TIMESTAMP or where.unit == "micros":
        return values // 1_000
    if where.unit != "seconds":
        return values
    beyond = np.where(values > 0, _MOST_SECONDS, -_MOST_SECONDS) * 1_000
    fits = (values >= -_MOST_SECONDS) & (values <= _MOST_SECONDS)
    return np.where(fits, values, 0) * 1_000 + np.where(fits, 0, beyond)


def _key_texts(parts: Sequence[pa.Array]) -> pa.Array:
    """See :func:`service.compiler.key_text.key_text`."""
    between = [
        pa.array([None if t is None else escaped(t) for t in part.to_pylist()], pa.string())
        if pc.any(pc.match_substring_regex(part, ESCAPED)).as_py()
        else part
        for part in parts
    ]
    joined = pc.binary_join_element_wise(*between, '","')
    return pc.binary_join_element_wise('["', joined, '"]', "")


def _column(slot: SlotLane, read: Read, rows: NDArray[np.intp], null: _Flags) -> pa.Array:
    if slot.kind == STRING:
        return texts_at(read.data, read.wholes[rows, slot.lane], null)
    if slot.kind in (FLOAT, DOUBLE):
        values = read.doubles[rows, slot.lane]
        return pa.array(values.astype(_ARROW[slot.kind].to_pandas_dtype()), mask=null)
    whole = read.wholes[rows, slot.lane]
    if slot.kind == TIMESTAMP:
        return pa.array(whole, mask=null).view(_ARROW[slot.kind])
    if slot.kind == DATE:
        return pa.array(whole.astype(np.int32), mask=null).view(_ARROW[slot.kind])
    return pa.array(whole.astype(_ARROW[slot.kind].to_pandas_dtype()), mask=null)
