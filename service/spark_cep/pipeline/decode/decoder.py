"""From Kafka records to one row an event: loops compiled by Numba read the wanted columns out of
the bytes, look up texts and evaluate conditions; only what they cannot is evaluated in Python, on
the events for which it still matters.

What cannot go on carries a *fault* and is judged by :mod:`spark_cep.pipeline.decode.pack`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import Read, RecordReader
from spark_cep.columns.representation import Representation, representation
from spark_cep.event_times import FIRST_TIME, ISO_TEXT, LAST_TIME
from spark_cep.model import Coordinates, DeadLetter
from spark_cep.packing import pack
from spark_cep.pipeline.decode.column_bytes import MOST_BYTES, TooManyBytesError, bytes_at, taken
from spark_cep.pipeline.decode.decoder_parts import (
    DecodedCondition,
    Part,
    SlotVectors,
    TimeColumn,
)
from spark_cep.pipeline.decode.evaluation import ColumnVector
from spark_cep.pipeline.decode.iso_times import micros_of
from spark_cep.pipeline.decode.kafka_columns import KafkaColumns
from spark_cep.pipeline.decode.keys import KeyTexts, keys_of
from spark_cep.pipeline.decode.tallies import NO_TIME, Tally, tallies
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.event_packets import (
    MICROS_COLUMN,
    TYPE_COLUMN,
    conditions_column,
)
from spark_cep.pipeline.wire.masks import condition_sets
from spark_cep.programs.event_masks import EventMasks

_MOST_SECONDS = 1_000_000_000_000
#: The column of texts that should be event times and are none.
TIME_TEXT = "time_text"
#: Dead letters of conditions that failed, of records that are decoded together.
MOST_FAILURES = 1_000

_Longs = NDArray[np.int64]
_Flags = NDArray[np.bool_]


class Decoded(NamedTuple):
    """Decoded records: the counts of all; the rows of those that a rule needs or that have a fault;
    dead letters of conditions that could not be computed."""

    tallies: list[Tally]
    rows: pa.RecordBatch
    failures: list[DeadLetter]


@dataclass(frozen=True)
class Decoder:
    """Decodes for one plan; picklable. ``max_ahead_ms``: how far event time may be ahead of the
    record's Kafka timestamp. ``keep_all``: events that no rule wants go on, too."""

    reader: RecordReader
    key_groups: int
    max_ahead_ms: int | None
    keep_all: bool
    times: tuple[TimeColumn, ...]
    masks: EventMasks
    conditions: tuple[DecodedCondition, ...]
    parts: tuple[Part, ...]
    kafka: KafkaColumns

    def read(
        self, records: KafkaRecords, latest: int | None, late_until: int | None = None
    ) -> Decoded:
        """Decode ``records``. An event time after ``latest`` is a fault. After ``late_until`` no
        event is late (``None``: any may be): events leave their record's bytes behind then, which
        are most of a row, and which only late events are written with.

        Columns of the rows: ``topic, partition, offset, time`` (ms, NULL when unknown), ``micros``
        (behind the millisecond; where event times may be finer), ``kafka_time, size`` (the record's
        own: ms, bytes of key and value), ``fault``, ``event_type``, ``record_key, value, headers``
        (headers as JSON; NULL where nobody needs them), :data:`TIME_TEXT` (where event times may be
        text), and per partitioning *p*: ``key_p, group_p, conditions_p, slot_p_s …`` (no
        conditions where nothing is to be done; slots as
        :mod:`spark_cep.pipeline.match.event_columns` reads them).
        """
        read = self.kafka.filled(self._columns(records), records)
        if read.added > MOST_BYTES and len(records) > 1:
            raise TooManyBytesError
        faults = read.faults
        of = np.where(faults == Fault.NONE, read.types, np.int32(-1))
        time, micros = self._times(read, of, records.time)
        texts_of_time = self._texts_of_time(read, of, faults, time)
        self._judge_times(faults, time, records.time, latest)
        timed = faults == Fault.NONE
        of[~timed] = -1
        time[~timed] = NO_TIME
        if micros is not None:
            micros[~timed] = 0
        words = self.masks.of(of, read.data, read.wholes, read.doubles, read.nulls)
        failures = self._evaluate(read, of, words, records)
        keys, unkeyed = [], []
        for part in self.parts:
            texts = [KeyTexts(each, read, of) for each in part.key]
            keys.append(texts)
            missing = np.logical_or.reduce([t.missing for t in texts] or [~timed])
            unkeyed.append(missing & ~_of_types(part.takes_null, of))
            lacking = np.flatnonzero(missing & _of_types(part.needs_key, of) & timed)
            if len(lacking):
                # Where no step could take an event, nobody misses its key.
                taken_by_step = part.of_steps.of(words[lacking], part.first_word)[:, 1]
                lacking = lacking[taken_by_step]
            faults[lacking] = Fault.MISSING_KEY
        judged = faults > Fault.NOT_READ
        kept, whole = [], np.zeros(len(of), bool)
        carried = judged.copy()
        may_be_late = np.ones(len(of), bool) if late_until is None else time <= late_until
        for part in self.parts:
            keep, wanted = self._concerned(part, words, of)
            kept.append(keep)
            carried |= keep
            whole |= wanted if part.keeps_payload else wanted & may_be_late
        rows = np.flatnonzero(carried)
        made = records.rows(rows, judged | whole)
        made["time"] = pa.array(time[rows], mask=time[rows] == NO_TIME)
        if micros is not None:
            made[MICROS_COLUMN] = pa.array(micros[rows])
        made["fault"], made[TYPE_COLUMN] = pa.array(faults[rows]), pa.array(read.types[rows])
        if texts_of_time is not None:
            made[TIME_TEXT] = texts_of_time.take(pa.array(rows))
        for part, texts, missing, keep in zip(self.parts, keys, unkeyed, kept, strict=True):
            here = (timed & keep & ~missing)[rows]
            made |= self._of_part(part, texts, read, of, words, rows, here)
        counted = tallies(
            records.topic, records.partition, faults, time, records.time, records.sizes
        )
        return Decoded(counted, pa.RecordBatch.from_pydict(made), failures)

    def _columns(self, records: KafkaRecords) -> Read:
        return self.reader.read(records.topic, records.value, records.headers)

    @property
    def in_micros(self) -> bool:
        """Return whether event times may be finer than milliseconds."""
        return any(where.in_micros for where in self.times)

    def event_times(self, records: KafkaRecords) -> _Longs:
        """The event times of records in milliseconds; ``NO_TIME`` of those that have none within
        bounds, or cannot be read."""
        read = self.kafka.filled(self._columns(records), records)
        if read.added > MOST_BYTES and len(records) > 1:
            half = len(records) // 2
            parts = (records.between(0, half), records.between(half, len(records)))
            return np.concatenate([self.event_times(part) for part in parts])
        of = np.where(read.faults == Fault.NONE, read.types, np.int32(-1))
        time, _ = self._times(read, of, records.time)
        time[(time < FIRST_TIME) | (time > LAST_TIME)] = NO_TIME
        return time

    def _times(
        self, read: Read, of: NDArray[np.int32], kafka_time: _Longs
    ) -> tuple[_Longs, NDArray[np.int16] | None]:
        """Event times in milliseconds, and microseconds behind them where there may be some."""
        time = np.full(len(of), NO_TIME, np.int64)
        micros = np.zeros(len(of), np.int16) if self.in_micros else None
        for number, where in enumerate(self.times):
            source = where.source
            mine = of == number
            if source is None:
                found = kafka_time[mine]
            elif where.unit == ISO_TEXT and where.text is not None:
                rows = np.flatnonzero(mine & (read.nulls[:, where.text.vector] == 0))
                found, known = micros_of(where.text.texts(read, rows))
                mine, found = rows[known], found[known]
            elif isinstance(source, ColumnVector):
                mine &= read.nulls[:, source.vector] == 0
                found = read.wholes[mine, source.vector]
            else:
                rows = np.flatnonzero(mine)
                values, places, _ = source.of(read, rows)
                known = np.array([v is not None for v in values], bool)[places]
                mine = rows[known]
                found = np.array([v or 0 for v in values], np.int64)[places[known]]
            if where.in_micros:
                assert micros is not None
                micros[mine] = found % 1_000
            found = _in_millis(found, where)
            # Before all that are within bounds, but not as those that have none.
            time[mine] = np.maximum(found, FIRST_TIME - 1)
        return time, micros

    def _texts_of_time(
        self, read: Read, of: NDArray[np.int32], faults: NDArray[np.int32], time: _Longs
    ) -> pa.Array | None:
        """The texts that should be event times and are none, which becomes the fault of their
        records; ``None`` where no event time is text."""
        if all(where.text is None for where in self.times):
            return None
        found: list[str | None] = [None] * len(of)
        for number, where in enumerate(self.times):
            if where.text is None:
                continue
            wrong = (of == number) & (time == NO_TIME) & (read.nulls[:, where.text.vector] == 0)
            rows = np.flatnonzero(wrong)
            faults[rows] = Fault.UNREADABLE_TIME
            texts = where.text.texts(read, rows).to_pylist()
            for row, text in zip(rows.tolist(), texts, strict=True):
                found[row] = text
        return pa.array(found, pa.string())

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

    def _evaluate(
        self, read: Read, of: NDArray[np.int32], words: _Longs, records: KafkaRecords
    ) -> list[DeadLetter]:
        """Take out of ``words`` what is not true of events by parts that are evaluated; dead
        letters of those that fail."""
        failed: list[DeadLetter] = []
        for condition in self.conditions:
            possible = np.zeros(len(of), bool)
            for number, mask in condition.targets:
                possible |= (words[:, number] & mask) != 0
            rows = np.flatnonzero(possible & (of == condition.type))
            if not len(rows):
                continue
            values, places, errors = condition.evaluation.of(read, rows)
            for place, error in errors.items():
                at = rows[places == place].tolist()
                failed += self._failures(condition, words, records, at, error, len(failed))
            untrue = rows[np.array([v is not True for v in values], bool)[places]]
            for number, mask in condition.targets:
                words[untrue, number] &= ~mask
        return failed

    @staticmethod
    def _failures(
        condition: DecodedCondition,
        words: _Longs,
        records: KafkaRecords,
        rows: Iterable[int],
        error: Exception,
        already: int,
    ) -> Iterable[DeadLetter]:
        for row in rows:
            for each in condition.concerned:
                if not words[row, each.word] & each.mask:
                    continue
                at = Coordinates(records.topic, records.partition, int(records.offset[row]))
                for atom in each.atoms:
                    if already >= MOST_FAILURES:
                        return
                    already += 1
                    yield DeadLetter(
                        at=at,
                        reason=Reason.CONDITION_FAILED.value,
                        detail=f"{atom.text}: {error!r}",
                        rule_id=atom.rule,
                        step=atom.step,
                        rule_version=atom.version,
                    )

    def _concerned(self, part: Part, words: _Longs, of: NDArray[np.int32]) -> tuple[_Flags, _Flags]:
        """Return the events that go to the matcher, and those that go with their own bytes."""
        if self.keep_all:
            reads = _of_types(part.needs_key, of) | _of_types(part.takes_null, of)
            return reads, reads
        keep, relevant = part.relevance.of(words, part.first_word).T
        return keep, relevant

    def _of_part(
        self,
        part: Part,
        texts: Sequence[KeyTexts],
        read: Read,
        of: NDArray[np.int32],
        words: _Longs,
        rows: NDArray[np.intp],
        here: _Flags,
    ) -> dict[str, pa.Array]:
        """The columns of a partitioning, of the events that are ``here``."""
        p = part.number
        key, group = keys_of(texts, rows, here, self.key_groups)
        true = words[rows, part.first_word : part.first_word + part.words]
        true[~here] = 0
        made = {
            f"key_{p}": key,
            f"group_{p}": pa.array(group, mask=~here),
            conditions_column(p): condition_sets(true),
        }
        for number, slot in enumerate(part.slots):
            made[f"slot_{p}_{number}"] = self._slot(slot, read, of, rows, here)
        return made

    def _slot(
        self,
        slot: SlotVectors,
        read: Read,
        of: NDArray[np.int32],
        rows: NDArray[np.intp],
        here: _Flags,
    ) -> pa.Array:
        types = of[rows]
        null = ~here | np.array([*(each is None for each in slot.of), True])[types]
        vectors = {each.vector: each for each in slot.of if each is not None}
        if not vectors:
            return pa.nulls(len(rows), pa.binary())
        vector: Any = next(iter(vectors))
        if len(vectors) > 1:
            vector = np.array([0 if each is None else each.vector for each in slot.of] + [0])[types]
        null |= read.nulls[rows, vector] != 0
        match representation(slot.kind):
            case Representation.TEXT:
                return bytes_at(read.data, read.wholes[rows, vector], null, pa.string())
            case Representation.WHOLE:
                return pa.array(read.wholes[rows, vector], mask=null)
            case Representation.DOUBLE:
                return pa.array(read.doubles[rows, vector], mask=null)
            case Representation.OBJECT:
                (source,) = vectors.values()
                mine = np.flatnonzero(~null)
                values, places, _ = source.distinct(read, rows[mine])
                packed = pa.array([None if v is None else pack(v) for v in values], pa.binary())
                at = np.zeros(len(rows), np.int64)
                at[mine] = places
                return taken(packed, at, null)


def pieces(
    decoder: Decoder, records: KafkaRecords, latest: int | None, late_until: int | None = None
) -> Iterator[Decoded]:
    """Decode ``records`` as :meth:`Decoder.read` does, in pieces if their columns are too large."""
    try:
        decoded = decoder.read(records, latest, late_until)
    except TooManyBytesError:
        half = len(records) // 2
        for part in (records.between(0, half), records.between(half, len(records))):
            yield from pieces(decoder, part, latest, late_until)
    else:
        yield decoded


def _of_types(which: Sequence[bool], of: NDArray[np.int32]) -> _Flags:
    """Return for each event the flag of its record type; false for no type (-1)."""
    return np.array([*which, False]).take(of)


def _in_millis(values: _Longs, where: TimeColumn) -> _Longs:
    """Rounded down; what leaves 64 bits is beyond the bounds of event time."""
    if where.in_micros:
        return values // 1_000
    if where.source is None or where.unit != "seconds":
        return values
    beyond = np.where(values > 0, _MOST_SECONDS, -_MOST_SECONDS) * 1_000
    fits = (values >= -_MOST_SECONDS) & (values <= _MOST_SECONDS)
    return np.where(fits, values, 0) * 1_000 + np.where(fits, 0, beyond)
