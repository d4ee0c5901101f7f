"""Rows to packets: what travels from the decoding tasks to the key groups.

A task's events are cut by key group, and each cut crosses the shuffle as one opaque packet: Python
and Spark then handle a few packets instead of many rows. Records with a fault are judged here,
few as they are, and become dead letters. Of each task it is also known how far event time has come
in the partitions that it read, and what else the driver counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter_ns
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_cep.codecs.avro.loops.record_bytes import MOST_DEEP
from spark_cep.codecs.output.dead_letters import Reason, explain_undecodable
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.registry.framing import FramingError, read_schema_id
from spark_cep.codecs.registry.schema_lookup import (
    FORGOTTEN_AFTER_SECONDS,
    MOST_ASKED,
    SchemaLookup,
)
from spark_cep.model import Coordinates, DeadLetter
from spark_cep.pipeline.decode.decoder import Decoder, pieces
from spark_cep.pipeline.decode.tallies import Tally
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.event_packets import (
    TYPE_COLUMN,
    PackedPartitioning,
    packet_of,
    sizes_of,
    with_late_until,
)
from spark_cep.pipeline.wire.new_schema_ids import NewSchemaIdsError
from spark_cep.pipeline.wire.packets import (
    BYTES_PER_PACKET,
    EventTimes,
    PacketKind,
    PartitionTime,
    Unkeyed,
    UnkeyedEvents,
)
from spark_cep.pipeline.wire.reports import (
    Count,
    Counts,
    PartitionRead,
    ProcessMemory,
    Report,
    count_dead_letter,
)
from spark_cep.pipeline.wire.task_properties import TaskProperties

#: Rows of a partitioning, and bytes of all of them, that wait to be cut into packets.
_ROWS_WAITING, _BYTES_WAITING = 65_536, 16 << 20
#: A record's own bytes.
_OF_ORIGINAL = ("record_key", "value", "headers")
_NO_SCHEMA = "the registry has no schema with id {}"
_NOT_ASKED = (
    "schema id {} is not known, and the registry was not asked for it: records had more than"
    f" {MOST_ASKED:,} ids that are not known"
)
#: In one error, whose text holds them.
_MOST_NEW_IDS = 1_000


@dataclass(frozen=True)
class WriterOfId:
    """Avro schemas that explain a broken record of one schema id. ``readers`` by number of the
    record type."""

    writer: str
    readers: dict[int, str]


class Packed(NamedTuple):
    """The output for some records: packets, each with its key group and kind, and dead letters."""

    packets: list[tuple[int, int, bytes]]
    letters: list[DeadLetter]


@dataclass
class Packer:
    """Makes packets of records; picklable. ``readers`` by schema id; ``unknown_ids``: what counts
    for a while where ``lookup`` (``None``: no format has ids) gets no answer, with when the
    registry said so (ms since 1970);
    ``time_columns`` and ``key_texts``, by number of the record type, say in dead letters what was
    missing."""

    partitionings: tuple[PackedPartitioning, ...]
    key_groups: int
    readers: dict[int, WriterOfId]
    unknown_ids: dict[int, int]
    lookup: SchemaLookup | None
    unreadable: dict[int, str]
    time_columns: tuple[str, ...]
    key_texts: tuple[tuple[str, ...], ...]
    max_ahead_ms: int | None
    decoder: Decoder
    _counts: Counts = field(default_factory=Counter)
    _maxima: dict[tuple[str, int], int | None] = field(default_factory=dict)
    #: By partition, the newest record's timestamp.
    _arrived: dict[tuple[str, int], int] = field(default_factory=dict)
    _waiting: list[list[pa.RecordBatch]] = field(default_factory=list)
    _bytes_waiting: int = 0
    _new_ids: set[int] = field(default_factory=set)
    #: Ids without schema, and what dead letters say of them; how many the registry was asked for.
    _no_schema: dict[int, str] = field(default_factory=dict)
    _asked: int = 0
    #: Whether the batch knows no other ids than it did before.
    _decided: bool = False
    _late_until: int | None = None
    _planned_at: int = 0

    def pack(self, read: Iterable[KafkaRecords], told: TaskProperties) -> Iterator[Packed]:
        """One task: its records in, packets out. :attr:`times` and :meth:`report` are about all of
        them, when they have been taken."""
        self._counts, self._maxima, self._arrived, self._new_ids = Counter(), {}, {}, set()
        self._waiting, self._bytes_waiting = [[] for _ in self.partitionings], 0
        self._no_schema, self._asked = {}, 0
        busy = decoding = waited = 0
        asked = perf_counter_ns()
        latest = None if self.max_ahead_ms is None else told.planned_at + self.max_ahead_ms
        self._late_until = told.late_until
        self._planned_at = told.planned_at
        self._decided = told.schema_ids is not None
        decoder = self.decoder
        if told.schema_ids is not None:
            decoder = replace(decoder, reader=decoder.reader.only(told.schema_ids))
        for records in read:
            began = perf_counter_ns()
            waited += began - asked
            for tallies, rows, failures in pieces(decoder, records, latest, self._late_until):
                decoded = perf_counter_ns()
                decoding += decoded - began
                self._count(tallies)
                self._count_failures(failures)
                letters = self._judged(rows) if rows.num_rows else []
                packets = list(self._take(rows)) if rows.num_rows else []
                busy += perf_counter_ns() - decoded
                yield Packed(packets, letters + failures)
                began = asked = perf_counter_ns()
            if len(self._new_ids) >= _MOST_NEW_IDS:
                break
        if self._new_ids:
            # All of them at once: each failure costs a start of the query.
            raise NewSchemaIdsError(sorted(self._new_ids)[:_MOST_NEW_IDS])
        for number in range(len(self.partitionings)):
            yield Packed(list(self._flush(number)), [])
        waited += perf_counter_ns() - asked
        if self._counts:
            self._counts[Count.BUSY_US, "decode"] += decoding // 1000
            self._counts[Count.BUSY_US, "pack"] += busy // 1000
            self._counts[Count.BUSY_US, "source"] += waited // 1000

    @property
    def times(self) -> EventTimes:
        """Return the largest event time of each partition of the records."""
        return EventTimes(tuple(PartitionTime(t, p, ms) for (t, p), ms in self._maxima.items()))

    def report(self, processes: Sequence[ProcessMemory] = ()) -> Report:
        """Return the counts of the records. ``processes``: memory, as the task sees it."""
        read = tuple(
            PartitionRead(t, p, self._arrived[t, p], ms) for (t, p), ms in self._maxima.items()
        )
        return Report(self._counts, read, tuple(processes))

    def _judged(self, batch: pa.RecordBatch) -> list[DeadLetter]:
        """Dead letters of a batch."""
        return list(self._judge(batch)) if _has_faults(batch) else []

    def _take(self, batch: pa.RecordBatch) -> Iterator[tuple[int, int, bytes]]:
        usable = unkeyed = None
        if _has_faults(batch):
            faults = batch.column("fault")
            unkeyed = pc.equal(faults, int(Fault.MISSING_KEY))
            if pc.any(unkeyed).as_py():
                for events in UnkeyedEvents.several(self._unkeyed(batch.filter(unkeyed))):
                    yield 0, PacketKind.UNKEYED, events.encode()
            usable = pc.or_(pc.equal(faults, int(Fault.NONE)), unkeyed)
        first = None
        for part in self.partitionings:
            groups = batch.column(f"group_{part.number}")
            wanted = pc.is_valid(groups)
            if usable is not None:
                wanted = pc.and_(wanted, usable)
            columns = {name: batch.column(name) for name in part.columns if name != "first"}
            earlier = (
                pa.array([True]).take(pa.array([0] * batch.num_rows)) if first is None else first
            )
            # Where a late event is told of as one without key, it is told of already.
            columns["first"] = earlier if unkeyed is None else pc.and_(earlier, pc.invert(unkeyed))
            rows = pa.RecordBatch.from_pydict(
                {"group": groups, **{name: columns[name] for name in part.columns}}
            ).filter(wanted)
            first = pc.and_(earlier, pc.invert(wanted))
            if rows.num_rows:
                fresh = pc.and_(earlier, wanted)
                self._counts[Count.RELEVANT_EVENTS,] += pc.sum(fresh).as_py() or 0
                rows = self._without_originals(part, rows)
                waiting = self._waiting[part.number]
                waiting.append(rows)
                self._bytes_waiting += rows.nbytes
                if sum(r.num_rows for r in waiting) >= _ROWS_WAITING:
                    yield from self._flush(part.number)
        if self._bytes_waiting >= _BYTES_WAITING:
            for number in range(len(self.partitionings)):
                yield from self._flush(number)

    def _without_originals(self, part: PackedPartitioning, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows; those that cannot be late without the record's bytes, which only late events
        are written with. They are most of a row."""
        if self._late_until is None or not any(p.keeps_payload for p in self.partitionings):
            # The decoder has left them behind.
            return rows
        timely = pc.greater(rows.column("time"), self._late_until)
        for name in ("record_key", "headers") if part.keeps_payload else _OF_ORIGINAL:
            column = rows.column(name)
            left = pc.if_else(timely, pa.scalar(None, column.type), column)
            rows = rows.set_column(rows.schema.get_field_index(name), name, left)
        return rows

    def _count(self, tallies: Iterable[Tally]) -> None:
        for tally in tallies:
            topic, fault = tally.topic, Fault(tally.fault)
            self._counts[Count.RECORDS, topic] += tally.records
            self._counts[Count.BYTES, topic] += tally.size
            if fault is Fault.TOMBSTONE:
                self._counts[Count.TOMBSTONES, topic] += tally.records
            at, newest = (topic, tally.partition), tally.time
            before = self._maxima.setdefault(at, newest)
            if newest is not None and (before is None or newest > before):
                self._maxima[at] = newest
            self._arrived[at] = max(self._arrived.get(at, -1), tally.kafka_time)

    def _flush(self, number: int) -> Iterator[tuple[int, int, bytes]]:
        waiting, self._waiting[number] = self._waiting[number], []
        if not waiting:
            return
        self._bytes_waiting -= sum(rows.nbytes for rows in waiting)
        table = pa.Table.from_batches(waiting).combine_chunks()
        table = table.take(pc.sort_indices(table, sort_keys=[("group", "ascending")]))
        groups = table.column("group").to_numpy()
        rows = table.drop_columns(["group"]).combine_chunks().to_batches()[0]
        if self._late_until is not None:
            rows = with_late_until(rows, self._late_until)
        sizes = sizes_of(rows)
        packets = (sizes.cumsum() - sizes) // BYTES_PER_PACKET
        changes = ((groups[1:] != groups[:-1]) | (packets[1:] != packets[:-1])).nonzero()[0] + 1
        cuts = [0, *changes.tolist(), len(groups)]
        for start, end in pairwise(cuts):
            packet = packet_of(rows.slice(start, end - start))
            yield int(groups[start]), PacketKind.EVENTS + number, packet

    # Records with a fault.

    def _judge(self, batch: pa.RecordBatch) -> Iterator[DeadLetter]:
        faults = batch.column("fault").to_pylist()
        names = ("topic", "partition", "offset", TYPE_COLUMN, "record_key", "value", "fault")
        judged = set(Fault) - {Fault.NONE, Fault.TOMBSTONE, Fault.NOT_READ, Fault.MISSING_KEY}
        numbers = [n for n, fault in enumerate(faults) if fault in judged]
        rows = batch.select(names).take(pa.array(numbers, pa.int32())).to_pylist()
        self._look_up(
            Counter(read_schema_id(r["value"]) for r in rows if r["fault"] == Fault.UNKNOWN_ID)
        )
        if self._new_ids:
            return
        for row in rows:
            reason, detail = self._reason(Fault(row["fault"]), row)
            self._counts[Count.DEAD_LETTERS, reason.value] += 1
            yield DeadLetter(
                at=Coordinates(row["topic"], row["partition"], row["offset"]),
                reason=reason.value,
                detail=detail,
                record_key=row["record_key"],
                record_value=row["value"],
            )

    def _look_up(self, ids: Counter[int]) -> None:
        """Find out which of the ids that the plan does not know have a schema."""
        for known in self._no_schema:
            ids.pop(known, None)
        if not ids:
            return
        if self._decided:
            self._no_schema |= {each: _NO_SCHEMA.format(each) for each in ids}
            return
        assert self.lookup is not None
        answers = self.lookup.ask(ids, MOST_ASKED - self._asked)
        self._asked += answers.asked
        # It may have been registered since; a batch that runs again comes to the same.
        known_since = self._planned_at - FORGOTTEN_AFTER_SECONDS * 1000
        unknown = {i for i, since in self.unknown_ids.items() if since > known_since}
        self._new_ids |= answers.open - unknown
        for each in ids:
            self._no_schema[each] = (
                _NOT_ASKED if each in answers.not_asked else _NO_SCHEMA
            ).format(each)

    def _count_failures(self, letters: Iterable[DeadLetter]) -> None:
        """Count dead letters of conditions."""
        for letter in letters:
            count_dead_letter(self._counts, letter.reason, letter.rule_id, letter.rule_version)

    def _unkeyed(self, rows: pa.RecordBatch) -> Iterator[Unkeyed]:
        """Events whose key, or a part of it, is null, though a rule of steps needs it."""
        columns = ("topic", "partition", "offset", "time", "record_key", "value", "headers")
        for row in rows.select([*columns, TYPE_COLUMN]).to_pylist():
            yield Unkeyed(
                **{name: row[name] for name in columns},
                detail=f"a key is null: {'; '.join(self.key_texts[row[TYPE_COLUMN]])}",
            )

    def _reason(self, fault: Fault, row: dict[str, Any]) -> tuple[Reason, str]:
        value: bytes = row["value"]
        match fault:
            case Fault.NOT_FRAMED:
                return Reason.NOT_FRAMED, _framing_fault(value)
            case Fault.UNKNOWN_ID:
                return Reason.UNKNOWN_SCHEMA_ID, self._no_schema[read_schema_id(value)]
            case Fault.UNREADABLE_SCHEMA:
                return Reason.UNREADABLE_SCHEMA, self.unreadable[read_schema_id(value)]
            case Fault.TIME_OUT_OF_BOUNDS:
                return Reason.EVENT_TIME_OUT_OF_BOUNDS, self._out_of_bounds()
            case Fault.MISSING_TIME:
                column = self.time_columns[row[TYPE_COLUMN]]
                return Reason.MISSING_EVENT_TIME, f"the event time is null: {column}"
            case Fault.TOO_DEEP:
                return Reason.UNDECODABLE, (
                    f"the schema is recursive, and in this value of {len(value)} bytes types"
                    f" contain themselves more than {MOST_DEEP} times"
                )
        known = self.readers[read_schema_id(value)]
        # A union's branch that there is not has no reader: the writer's fault comes first.
        reader = known.readers.get(row[TYPE_COLUMN], known.writer)
        return explain_undecodable(value, known.writer, reader)

    def _out_of_bounds(self) -> str:
        years = "the event time is outside the years 1 to 9999"
        if self.max_ahead_ms is None:
            return years
        return (
            f"the event time is more than {self.max_ahead_ms} ms ahead of the record's timestamp or"
            f" of the clock; or {years[15:]}"
        )


def _has_faults(batch: pa.RecordBatch) -> bool:
    return bool(pc.max(batch.column("fault")).as_py() > Fault.NOT_READ)


def _framing_fault(value: bytes) -> str:
    try:
        read_schema_id(value)
    except FramingError as error:
        return str(error)
    return "the record is not framed"
