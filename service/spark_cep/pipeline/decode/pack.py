"""Rows to packets: what travels from the decoding tasks to the key groups.

A task's events are cut by key group, and each cut crosses the shuffle as one opaque packet: Python
and Spark then handle a few packets instead of many rows. Records with a fault are judged here,
few as they are, and become dead letters. Of each task it is also known how far event time has come
in the partitions that it read, and what else the driver counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter_ns
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_headers import headers_in
from spark_cep.codecs.record_reader import RawRecord, RecordReader
from spark_cep.errors import shortened
from spark_cep.model import Coordinates, DeadLetter
from spark_cep.pipeline.decode.decoder import TIME_TEXT, Decoder, pieces
from spark_cep.pipeline.decode.tallies import Tally
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.event_packets import (
    TYPE_COLUMN,
    PackedPartitioning,
    packet_of,
    sizes_of,
    with_late_until,
)
from spark_cep.pipeline.wire.new_schemas import NewSchemasError
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import (
    BYTES_PER_PACKET,
    EventTimes,
    PartitionTime,
    Unkeyed,
    UnkeyedEvents,
)
from spark_cep.pipeline.wire.reports import (
    Count,
    Counts,
    LostRecords,
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
#: In one error, whose text holds them.
_MOST_NEW_SCHEMAS = 1_000


class Packed(NamedTuple):
    """The output for some records: packets, each with its key group and kind, and dead letters."""

    packets: list[tuple[int, int, bytes]]
    letters: list[DeadLetter]


@dataclass
class Packer:
    """Makes packets of records. ``time_columns`` and ``key_texts``, by number of the record type,
    say in dead letters what was missing."""

    partitionings: tuple[PackedPartitioning, ...]
    time_columns: tuple[str, ...]
    key_texts: tuple[tuple[str, ...], ...]
    max_ahead_ms: int | None
    decoder: Decoder
    _counts: Counts = field(default_factory=Counter)
    _maxima: dict[tuple[str, int], int | None] = field(default_factory=dict)
    #: By partition, the newest record's timestamp.
    _arrived: dict[tuple[str, int], int] = field(default_factory=dict)
    _lost: list[LostRecords] = field(default_factory=list)
    _waiting: list[list[pa.RecordBatch]] = field(default_factory=list)
    _bytes_waiting: int = 0
    _new_schemas: set[str] = field(default_factory=set)
    _late_until: int | None = None

    def pack(
        self, read: Iterable[KafkaRecords | LostRecords], properties: TaskProperties
    ) -> Iterator[Packed]:
        """One task: its records in, packets out. :attr:`times` and :meth:`report` are about all of
        them, when they have been taken."""
        self._counts, self._maxima, self._arrived, self._new_schemas = Counter(), {}, {}, set()
        self._lost = []
        self._waiting, self._bytes_waiting = [[] for _ in self.partitionings], 0
        busy = decoding = waited = 0
        asked = perf_counter_ns()
        latest = None if self.max_ahead_ms is None else properties.planned_at + self.max_ahead_ms
        self._late_until = properties.late_until
        reader = self.decoder.reader.of_task(properties.planned_at, properties.schemas)
        decoder = replace(self.decoder, reader=reader)
        for records in read:
            began = perf_counter_ns()
            waited += began - asked
            if isinstance(records, LostRecords):
                self._lost.append(records)
                self._counts[Count.LOST, records.topic] += records.end - records.start
                asked = began
                continue
            for tallies, rows, failures in pieces(decoder, records, latest, self._late_until):
                decoded = perf_counter_ns()
                decoding += decoded - began
                self._count(tallies)
                for letter in failures:
                    count_dead_letter(
                        self._counts, letter.reason, letter.rule_id, letter.rule_version
                    )
                letters = list(self.judged(reader, rows)) if rows.num_rows else []
                packets = list(self._take(rows)) if rows.num_rows else []
                busy += perf_counter_ns() - decoded
                yield Packed(packets, letters + failures)
                began = asked = perf_counter_ns()
            if len(self._new_schemas) >= _MOST_NEW_SCHEMAS:
                break
        if self._new_schemas:
            # All of them at once: each failure costs a start of the query.
            raise NewSchemasError(sorted(self._new_schemas)[:_MOST_NEW_SCHEMAS])
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

    def report(self, processes: Sequence[ProcessMemory] = (), *, of_records: bool = True) -> Report:
        """Return the counts of the records; or, since another task with the same ones has, only
        how long this one took. ``processes``: memory, as the task sees it."""
        if not of_records:
            spent = {what: us for what, us in self._counts.items() if what[0] is Count.BUSY_US}
            return Report(Counter(spent), processes=tuple(processes))
        read = tuple(
            PartitionRead(t, p, self._arrived[t, p], ms) for (t, p), ms in self._maxima.items()
        )
        return Report(self._counts, read, tuple(processes), lost=tuple(self._lost))

    def _take(self, batch: pa.RecordBatch) -> Iterator[tuple[int, int, bytes]]:
        usable = unkeyed = None
        faults = batch.column("fault")
        if pc.max(faults).as_py() > Fault.NOT_READ:
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
            )
            if not pc.all(wanted).as_py():
                rows = rows.filter(wanted)
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
        for name in _OF_ORIGINAL:
            if table.column(name).null_count == len(table):
                place = table.schema.get_field_index(name)
                table = table.set_column(place, name, pa.nulls(len(table)))
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

    def judged(self, reader: RecordReader, batch: pa.RecordBatch) -> Iterator[DeadLetter]:
        """The dead letters of a batch that ``reader`` has read; none while there are new schemas,
        with which the batch runs again."""
        names = (
            "topic", "partition", "offset", TYPE_COLUMN, "record_key", "value", "headers", "fault",
        )  # fmt: skip
        faults = batch.column("fault")
        judged = pc.and_(
            pc.greater(faults, int(Fault.NOT_READ)), pc.not_equal(faults, int(Fault.MISSING_KEY))
        )
        texts = [TIME_TEXT] if TIME_TEXT in batch.schema.names else []
        rows = batch.select([*names, *texts]).filter(judged).to_pylist()
        unknown = [_raw(row) for row in rows if row["fault"] == Fault.UNKNOWN_SCHEMA]
        if unknown:
            self._new_schemas.update(reader.new_schemas(unknown))
        if self._new_schemas:
            return
        for row in rows:
            reason, detail = self._reason(reader, row)
            self._counts[Count.DEAD_LETTERS, reason.value] += 1
            yield DeadLetter(
                at=Coordinates(row["topic"], row["partition"], row["offset"]),
                reason=reason.value,
                detail=detail,
                record_key=row["record_key"],
                record_value=row["value"],
            )

    def _unkeyed(self, rows: pa.RecordBatch) -> Iterator[Unkeyed]:
        """Events whose key, or a part of it, is null, though a rule of steps needs it."""
        columns = ("topic", "partition", "offset", "time", "record_key", "value", "headers")
        groups = [f"group_{part.number}" for part in self.partitionings]
        for row in rows.select([*columns, TYPE_COLUMN, *groups]).to_pylist():
            yield Unkeyed(
                **{name: row[name] for name in columns},
                detail=f"a key is null: {'; '.join(self.key_texts[row[TYPE_COLUMN]])}",
                used=any(row[group] is not None for group in groups),
            )

    def _reason(self, reader: RecordReader, row: dict[str, Any]) -> tuple[Reason, str]:
        match fault := Fault(row["fault"]):
            case Fault.TIME_OUT_OF_BOUNDS:
                return Reason.EVENT_TIME_OUT_OF_BOUNDS, self._out_of_bounds()
            case Fault.MISSING_TIME:
                column = self.time_columns[row[TYPE_COLUMN]]
                return Reason.MISSING_EVENT_TIME, f"the event time is null: {column}"
            case Fault.UNREADABLE_TIME:
                column = self.time_columns[row[TYPE_COLUMN]]
                text = repr(shortened(row[TIME_TEXT]))
                detail = f"the event time cannot be read: {column} is {text}"
                return Reason.MISSING_EVENT_TIME, detail
        return reader.explain(_raw(row), fault, row[TYPE_COLUMN])

    def _out_of_bounds(self) -> str:
        years = "the event time is outside the years 1 to 9999"
        if self.max_ahead_ms is None:
            return years
        return (
            f"the event time is more than {self.max_ahead_ms} ms ahead of the record's timestamp or"
            f" of the clock; or {years[15:]}"
        )


def _raw(row: Mapping[str, Any]) -> RawRecord:
    return RawRecord(row["topic"], row["value"], headers_in(row["headers"]))
