"""Rows to packets: what travels from the decoding tasks to the key groups.

A task's events are cut by key group, and each cut crosses the shuffle as one opaque packet: Python
and Spark then handle a few packets instead of many rows. Records with a fault are judged here,
few as they are, and leave as dead letters. Each task also tells every key group how far event time
has come in the partitions that it read, and the driver what else is worth knowing of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise
from time import perf_counter_ns
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from service.codecs.dead_letters import Reason, explain_undecodable
from service.codecs.framing import FramingError, read_schema_id
from service.codecs.outputs import OutputEncoder
from service.model import Coordinates, DeadLetter
from service.packing import pack
from service.pipeline.columns import TYPE_COLUMN, word
from service.pipeline.crossing import Tally
from service.pipeline.key_group_labels import label
from service.pipeline.memory import memory_of_task
from service.pipeline.record_faults import Fault

PACKET_SCHEMA = pa.schema([("label", pa.int64()), ("kind", pa.int32()), ("packet", pa.binary())])
#: ``label``: of the key group.
PACKET_SQL_SCHEMA = "label BIGINT, kind INT, packet BINARY"

#: Local property of Spark's with the time at which a batch was planned, in milliseconds.
PLANNED_AT = "spark_cep.planned_at"
#: The same, with the event time after which no event of the batch is late; or nothing.
LATE_UNTIL = "spark_cep.late_until"

#: Starts the text of the error by which the driver learns of schema ids it does not know yet.
NEW_SCHEMA_IDS = "SPARK_CEP_NEW_SCHEMA_IDS:"

#: Bytes of one packet, of any kind, about: half of what so many rows as Spark hands over at once
#: (``maxRecordsPerBatch`` in :mod:`service.pipeline.session`) may have in an Arrow column.
BYTES_PER_PACKET = 1 << 19
#: Rows that wait to be cut into packets.
_ROWS_PER_PACKET = 65_536
#: Spark hands over rows in small batches; so many are looked at together.
_ROWS_TOGETHER, _BYTES_TOGETHER = 20_000, 32 << 20
#: A record's own bytes.
_OF_ORIGINAL = ("record_key", "value", "headers")
_TIMES = {("busy_us", stage) for stage in ("source", "decode", "pack")}
#: In one error, whose text holds them.
_MOST_NEW_IDS = 1_000


class Kind(IntEnum):
    """What a packet holds. ``EVENTS + p`` is for partitioning *p*."""

    MAXIMA = 0
    CLOCK = 1
    RECORDS = 2
    COUNTS = 3
    UNKEYED = 4
    RESULTS = 5
    ARRIVALS = 6
    PROCESS = 7
    EVENTS = 16


class Unkeyed(NamedTuple):
    """An event without the key of some rule. Whether it is late, or a dead letter for the reason
    ``detail``, is for a key group to say: here nobody knows the time. ``headers``: as JSON."""

    topic: str
    partition: int
    offset: int
    time: int
    record_key: bytes | None
    value: bytes
    headers: str | None
    detail: str


class NewSchemaIdsError(Exception):
    """Records with schema ids that the plan does not know; its text carries the ids."""


@dataclass(frozen=True)
class PackedPartitioning:
    """Shape of one partitioning's columns."""

    number: int
    words: int
    slots: int
    keeps_payload: bool

    @property
    def columns(self) -> list[str]:
        """Column names of an events packet, in order."""
        return [
            f"key_{self.number}",
            "time",
            "topic",
            "partition",
            "offset",
            TYPE_COLUMN,
            "record_key",
            "value",
            "headers",
            "first",
            *(word(self.number, w) for w in range(self.words)),
            *(f"slot_{self.number}_{s}" for s in range(self.slots)),
        ]


@dataclass(frozen=True)
class RecordReader:
    """What is needed to say why a record of some schema id is broken: Avro texts. ``readers`` by
    number of the record type."""

    writer: str
    readers: dict[int, str]


class Records(Protocol):
    """Reads what crossed from Spark."""

    def read(
        self, batches: Sequence[pa.RecordBatch], latest: int | None
    ) -> tuple[list[Tally], pa.RecordBatch]:
        """What all records count, and the rows of those that somebody wants or that have a fault
        (the columns are those of :func:`service.pipeline.decode.decode`). An event time after
        ``latest`` is one."""


@dataclass
class Packer:
    """``mapInArrow`` function; picklable. ``readers`` by schema id; ``time_columns`` and
    ``key_texts``, by number of the record type, say in dead letters what was missing."""

    partitionings: tuple[PackedPartitioning, ...]
    key_groups: int
    readers: dict[int, RecordReader]
    unknown_ids: frozenset[int]
    unreadable: dict[int, str]
    encoder: OutputEncoder
    time_columns: tuple[str, ...]
    key_texts: tuple[tuple[str, ...], ...]
    max_ahead_ms: int | None
    records: Records
    _counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    _maxima: dict[tuple[str, int], int | None] = field(default_factory=dict)
    #: By partition, the newest record's timestamp.
    _arrived: dict[tuple[str, int], int] = field(default_factory=dict)
    _waiting: list[list[pa.RecordBatch]] = field(default_factory=list)
    _new_ids: set[int] = field(default_factory=set)
    _late_until: int | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One task: what Spark made of its records in, packets out."""
        self._counts, self._maxima, self._arrived, self._new_ids = Counter(), {}, {}, set()
        self._waiting = [[] for _ in self.partitionings]
        busy = decoding = waited = 0
        asked = perf_counter_ns()
        latest = self._latest()
        self._late_until = self._told_late_until()
        for several in _together(batches):
            began = perf_counter_ns()
            waited += began - asked
            tallies, rows = self.records.read(several, latest)
            read = perf_counter_ns()
            decoding += read - began
            self._count(tallies)
            packets = list(self._take(rows)) if rows.num_rows else []
            busy += perf_counter_ns() - read
            yield from packets
            asked = perf_counter_ns()
            if len(self._new_ids) >= _MOST_NEW_IDS:
                break
        if self._new_ids:
            # All of them at once: each failure costs a start of the query.
            new = sorted(self._new_ids)[:_MOST_NEW_IDS]
            raise NewSchemaIdsError(f"{NEW_SCHEMA_IDS}{','.join(map(str, new))};")
        for number in range(len(self.partitionings)):
            yield from self._flush(number)
        waited += perf_counter_ns() - asked
        self._counts["busy_us", "decode"] += decoding // 1000
        self._counts["busy_us", "pack"] += busy // 1000
        self._counts["busy_us", "source"] += waited // 1000
        yield from self._tell()

    def _latest(self) -> int | None:
        """The last event time that is not too far ahead of the time when the batch was planned."""
        if self.max_ahead_ms is None:
            return None
        planned = _told(PLANNED_AT)
        assert planned
        return int(planned) + self.max_ahead_ms

    @staticmethod
    def _told_late_until() -> int | None:
        told = _told(LATE_UNTIL)
        return int(told) if told else None

    def _take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        faults = batch.column("fault")
        usable = unkeyed = None
        if pc.max(faults).as_py() > Fault.NOT_READ:
            if letters := self._judge(batch):
                yield _packets([(0, Kind.RECORDS, pack(letters))])
            unkeyed = pc.equal(faults, int(Fault.MISSING_KEY))
            if pc.any(unkeyed).as_py():
                yield _packets([(0, Kind.UNKEYED, pack(self._unkeyed(batch.filter(unkeyed))))])
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
                self._counts["relevant", ""] += pc.sum(fresh).as_py() or 0
                self._waiting[part.number].append(self._without_originals(part, rows))
                if sum(r.num_rows for r in self._waiting[part.number]) >= _ROWS_PER_PACKET:
                    yield from self._flush(part.number)

    def _without_originals(self, part: PackedPartitioning, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows; those that cannot be late without the record's bytes, which only late events
        are written with. They are most of a row."""
        if self._late_until is None:
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
            self._counts["records", topic, str(tally.partition)] += tally.records
            self._counts["bytes", topic] += tally.size
            if fault in (Fault.TOMBSTONE, Fault.NOT_READ):
                self._counts[fault.name.lower(), topic] += tally.records
            at, newest = (topic, tally.partition), tally.time
            before = self._maxima.setdefault(at, newest)
            if newest is not None and (before is None or newest > before):
                self._maxima[at] = newest
            self._arrived[at] = max(self._arrived.get(at, -1), tally.kafka_time)

    def _flush(self, number: int) -> Iterator[pa.RecordBatch]:
        waiting, self._waiting[number] = self._waiting[number], []
        if not waiting:
            return
        table = pa.Table.from_batches(waiting).combine_chunks()
        table = table.take(pc.sort_indices(table, sort_keys=[("group", "ascending")]))
        groups = table.column("group").to_numpy()
        rows = table.drop_columns(["group"]).combine_chunks().to_batches()[0]
        if self._late_until is not None:
            rows = rows.replace_schema_metadata({LATE_UNTIL: str(self._late_until)})
        # Large records make packets of few.
        most = max(1, BYTES_PER_PACKET * rows.num_rows // max(1, rows.nbytes))
        changes = (groups[1:] != groups[:-1]).nonzero()[0] + 1
        cuts = [*sorted({*range(0, len(groups), most), *changes.tolist()}), len(groups)]
        for start, end in pairwise(cuts):
            packet = packet_of(rows.slice(start, end - start))
            yield _packets([(int(groups[start]), Kind.EVENTS + number, packet)])

    def _tell(self) -> Iterator[pa.RecordBatch]:
        packets: list[tuple[int, int, bytes]] = []
        if self._maxima:
            maxima = pack([[t, p, time] for (t, p), time in self._maxima.items()])
            packets += [(group, Kind.MAXIMA, maxima) for group in range(self.key_groups)]
            arrivals = [[t, p, self._arrived[t, p], time] for (t, p), time in self._maxima.items()]
            packets.append((0, Kind.ARRIVALS, pack(arrivals)))
            packets.append((0, Kind.PROCESS, pack(memory_of_task())))
        if self._maxima or self._counts.keys() - _TIMES:
            counts = pack([[*what, count] for what, count in self._counts.items()])
            packets.append((0, Kind.COUNTS, counts))
        if packets:
            yield _packets(packets)

    # Records with a fault.

    def _judge(self, batch: pa.RecordBatch) -> list[Any]:
        """Dead letters of a batch."""
        faults = batch.column("fault").to_pylist()
        names = ("topic", "partition", "offset", TYPE_COLUMN, "record_key", "value", "fault")
        judged = set(Fault) - {Fault.NONE, Fault.TOMBSTONE, Fault.NOT_READ, Fault.MISSING_KEY}
        numbers = [n for n, fault in enumerate(faults) if fault in judged]
        rows = batch.select(names).take(pa.array(numbers, pa.int32())).to_pylist()
        ids = {read_schema_id(r["value"]) for r in rows if r["fault"] == Fault.UNKNOWN_ID}
        self._new_ids |= ids - self.unknown_ids
        letters: list[Any] = []
        if self._new_ids:
            return letters
        for row in rows:
            reason, detail = self._reason(Fault(row["fault"]), row)
            letter = DeadLetter(
                at=Coordinates(row["topic"], row["partition"], row["offset"]),
                reason=reason.value,
                detail=detail,
                record_key=row["record_key"],
                record_value=row["value"],
            )
            letters.append(list(self.encoder.dead_letter(letter)))
            self._counts["dead_letters", reason.value] += 1
        return letters

    def _unkeyed(self, rows: pa.RecordBatch) -> list[Unkeyed]:
        """Events whose key, or a part of it, is null."""
        columns = ("topic", "partition", "offset", "time", "record_key", "value", "headers")
        return [
            Unkeyed(
                **{name: row[name] for name in columns},
                detail=f"a key is null: {'; '.join(self.key_texts[row[TYPE_COLUMN]])}",
            )
            for row in rows.select([*columns, TYPE_COLUMN]).to_pylist()
        ]

    def _reason(self, fault: Fault, row: dict[str, Any]) -> tuple[Reason, str]:
        value: bytes = row["value"]
        match fault:
            case Fault.NOT_FRAMED:
                return Reason.NOT_FRAMED, _framing_fault(value)
            case Fault.UNKNOWN_ID:
                unknown = f"the registry has no schema with id {read_schema_id(value)}"
                return Reason.UNKNOWN_SCHEMA_ID, unknown
            case Fault.UNREADABLE_SCHEMA:
                return Reason.UNREADABLE_SCHEMA, self.unreadable[read_schema_id(value)]
            case Fault.TIME_OUT_OF_BOUNDS:
                return Reason.EVENT_TIME_OUT_OF_BOUNDS, self._out_of_bounds()
            case Fault.MISSING_TIME:
                column = self.time_columns[row[TYPE_COLUMN]]
                return Reason.MISSING_EVENT_TIME, f"the event time is null: {column}"
            case Fault.TOO_DEEP:
                return Reason.UNDECODABLE, (
                    f"the schema is recursive and the value has {len(value)} bytes, too many to"
                    " decode without a bound on its depth"
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


def _told(name: str) -> str | None:
    """A local property of the task."""
    task = TaskContext.get()
    assert task is not None
    return task.getLocalProperty(name)


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """The batches, several at a time."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        more = batch.get_total_buffer_size()
        # Large ones stay alone: what is looked at together is copied.
        if rows and (rows >= _ROWS_TOGETHER or size + more > _BYTES_TOGETHER):
            yield waiting
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows += batch.num_rows
        size += more
    if rows:
        yield waiting


def _framing_fault(value: bytes) -> str:
    try:
        read_schema_id(value)
    except FramingError as error:
        return str(error)
    return "the record is not framed"


def packet_of(rows: pa.RecordBatch) -> bytes:
    """Rows as one packet. A packet carries its schema: slot types are Spark's to choose."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def late_until(rows: pa.RecordBatch) -> int | None:
    """Up to which time rows of a packet have the bytes of their records; ``None``: all have."""
    told = (rows.schema.metadata or {}).get(LATE_UNTIL.encode())
    return None if told is None else int(told)


def rows_of(packet: bytes) -> pa.RecordBatch:
    """The rows of a packet."""
    with pa.ipc.open_stream(packet) as reader:
        return reader.read_next_batch()


def _packets(packets: list[tuple[int, int, bytes]]) -> pa.RecordBatch:
    groups, kinds, blobs = zip(*packets, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(map(label, groups), pa.int64()),
            pa.array(kinds, pa.int32()),
            pa.array(blobs, pa.binary()),
        ],
        schema=PACKET_SCHEMA,
    )
