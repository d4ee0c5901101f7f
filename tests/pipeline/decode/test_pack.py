"""Packets of bounded size, however large records are, and a bounded number of bytes that wait."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from spark_cep.codecs.output.avro_results import AvroResults
from spark_cep.codecs.output.outputs import OutputEncoder, OutputTopics
from spark_cep.codecs.output.schemas import schema_text
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.registry.framing import frame
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.codecs.registry.schema_ids import SchemaId
from spark_cep.codecs.registry.schema_lookup import MOST_ASKED
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.model import Coordinates, DeadLetter
from spark_cep.pipeline.decode.pack import _BYTES_WAITING, Packer
from spark_cep.pipeline.decode.tallies import Tally
from spark_cep.pipeline.state.key_group_labels import group_of
from spark_cep.pipeline.tasks.pack_batch import rows_of_task
from spark_cep.pipeline.wire.event_packets import (
    TOPIC,
    TYPE_COLUMN,
    PackedPartitioning,
    conditions_column,
    rows_of,
    sizes_of,
)
from spark_cep.pipeline.wire.fragments import whole
from spark_cep.pipeline.wire.new_schemas import NewSchemasError, schemas_in
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import BYTES_PER_PACKET, OutputRecords, UnkeyedEvents
from spark_cep.pipeline.wire.reports import Count, Counts, LostRecords, ProcessMemory, Report
from spark_cep.pipeline.wire.task_properties import TaskProperties
from tests.pipeline.decode.lookups import lookup

MIB = 2**20
GROUPS = 3
_TOLD = TaskProperties(0, None)
ENCODER = OutputEncoder(
    OutputTopics("m", "t", "l", "d", "s", "r"), AvroResults(1, 2, 3, 4), largest=9 * MIB
)


@dataclass
class AsTheyAre:
    """Rows that are decoded already; counts the bytes that were read."""

    sizes: list[int] = field(default_factory=list)
    failures: list[DeadLetter] = field(default_factory=list)
    reader: Any = None

    @property
    def size(self) -> int:
        """Bytes that were read."""
        return sum(self.sizes)

    def read(
        self, table: pa.RecordBatch, latest: int | None, late_until: int | None
    ) -> tuple[list[Tally], pa.RecordBatch, list[DeadLetter]]:
        """See :class:`spark_cep.pipeline.decode.decoder.Decoder`."""
        assert latest is None
        self.sizes.append(table.nbytes)
        return [], table, self.failures


def packer(decoder: Any, asked: Any = None, unknown: dict[SchemaId, int] | None = None) -> Packer:
    """For one partitioning."""
    schemas = ResolvedSchemas((), unknown_ids=unknown or {}, lookup=asked or lookup())
    decoder.reader = schemas.reader([], ColumnVectors())
    return Packer(
        (PackedPartitioning(0, 0, keeps_payload=True),), ("ts",), (("k",),), None,
        decoder,
    )  # fmt: skip


def run(
    packer: Packer,
    read: Iterable[Any],
    told: TaskProperties = _TOLD,
    key_groups: range = range(GROUPS),
) -> Iterator[pa.RecordBatch]:
    """The rows of a task."""
    return rows_of_task(packer, ENCODER, read, told, key_groups)


def rows(sizes: Sequence[int], fault: Fault = Fault.NONE) -> pa.RecordBatch:
    """Events with values of these sizes, for group after group."""
    count = len(sizes)
    missing = fault == Fault.MISSING_KEY
    columns = {
        "key_0": pa.array([None if missing else "k"] * count, pa.string()),
        "group_0": pa.array([None if missing else n % GROUPS for n in range(count)], pa.int32()),
        "time": pa.array(range(count), pa.int64()),
        "topic": pa.array(["t"] * count, TOPIC),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
        TYPE_COLUMN: pa.array([0] * count, pa.int32()),
        "record_key": pa.array([b"k"] * count),
        "value": pa.array(map(bytes, sizes), pa.binary()),
        "headers": pa.nulls(count, pa.string()),
        "fault": pa.array([int(fault)] * count, pa.int32()),
        conditions_column(0): pa.array([1] * count, pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


def packets_of(made: Iterator[pa.RecordBatch], kind: int) -> list[bytes]:
    """The packets of a kind."""
    rows = ((row["kind"], row["packet"]) for batch in made for row in batch.to_pylist())
    return [packet for of, packet in whole(rows) if of == kind]


def test_packets_end_with_the_row_that_fills_them() -> None:
    """Small events in a row of large ones do not make them larger, and all arrive."""
    sizes = [100, 5 * MIB, 2_000, 300_000, 300_000, 50] * 4
    made = packets_of(run(packer(AsTheyAre()), [rows(sizes)]), PacketKind.EVENTS)
    found = [rows_of(packet) for packet in made]
    assert sorted(n for each in found for n in each.column("offset").to_pylist()) == list(range(24))
    for each in found:
        assert sizes_of(each)[:-1].sum() <= BYTES_PER_PACKET


def test_lost_records_are_reported() -> None:
    """They are counted by topic and told one by one, beside the records that are left; the next
    task begins anew."""
    lost = [LostRecords("t", 0, 3, 9), LostRecords("t", 0, 20, 21)]
    task = packer(AsTheyAre())
    (report,) = packets_of(run(task, [lost[0], rows([1, 2]), lost[1]]), PacketKind.REPORT)
    found = Report.decode(report)
    assert (found.lost, found.counts[Count.LOST, "t"]) == (tuple(lost), 7)
    (report,) = packets_of(run(task, [rows([1])]), PacketKind.REPORT)
    assert Report.decode(report).lost == ()


def test_what_waits_is_bounded() -> None:
    """Packets leave when 16 MiB wait, not at the end: whatever a task reads, it holds no more."""
    records = AsTheyAre()
    packed = 0
    for batch in run(packer(records), (rows([100_000] * 60) for _ in range(40))):
        packed += batch.nbytes
        assert records.size - packed <= _BYTES_WAITING + 2 * 16 * MIB
    assert packed > 40 * 60 * 100_000


@pytest.mark.parametrize("fault", [Fault.NONE, Fault.NOT_FRAMED, Fault.MISSING_KEY])
def test_refused_records_travel_in_packets_of_the_same_size(fault: Fault) -> None:
    """Dead letters of conditions and of the decoder, and events without key, for which a group
    must tell the time."""
    sizes = [200_000] * 20
    decoder = AsTheyAre()
    if fault is Fault.NONE:
        decoder.failures = [
            DeadLetter(Coordinates("t", 0, offset), "condition_failed", "", b"k", bytes(size))
            for offset, size in enumerate(sizes)
        ]
    kind = PacketKind.UNKEYED if fault is Fault.MISSING_KEY else PacketKind.RECORDS
    made = packets_of(run(packer(decoder), [rows(sizes, fault)]), kind)
    assert all(len(packet) <= BYTES_PER_PACKET + 300_000 for packet in made)
    if fault is Fault.MISSING_KEY:
        events = [event for packet in made for event in UnkeyedEvents.decode(packet).events]
        assert [event.offset for event in events] == list(range(20))
    else:
        assert sum(len(OutputRecords.decode(packet).records) for packet in made) == 20


def test_tasks_with_the_same_records_share_the_key_groups() -> None:
    """Each packs for its own, and one of them tells of the records: together they make what a task
    for all of them makes."""
    letter = DeadLetter(Coordinates("t", 0, 7), "condition_failed", "", b"k", b"v")

    def made(key_groups: range) -> list[dict[str, Any]]:
        events = [rows([10, 20, 30, 40]), rows([50], Fault.MISSING_KEY)]
        made = run(packer(AsTheyAre([], [letter])), events, key_groups=key_groups)
        found = [row for batch in made for row in batch.to_pylist()]
        assert {group_of(row["label"]) for row in found} <= set(key_groups)
        return [row for row in found if row["kind"] != PacketKind.REPORT]

    def ordered(found: list[dict[str, Any]]) -> list[tuple[int, int, bytes]]:
        # Dead letters tell when they were made.
        return sorted(
            (label, kind, b"" if kind == PacketKind.RECORDS else packet)
            for label, kind, packet in (row.values() for row in found)
        )

    alone = made(range(GROUPS))
    assert len(alone) > 2 * GROUPS
    assert ordered(made(range(0, GROUPS, 2)) + made(range(1, GROUPS, 2))) == ordered(alone)
    assert made(range(5, GROUPS, 6)) == [], "more state partitions than key groups"


def test_one_of_them_reports() -> None:
    """The others tell of their process alone, and of their time."""
    process = ProcessMemory("h", 7, is_jvm=False, bytes=2)

    def report(key_groups: range) -> Report:
        made = rows_of_task(
            packer(AsTheyAre()), ENCODER, [rows([10, 20])], _TOLD, key_groups, [process]
        )
        (packet,) = packets_of(made, PacketKind.REPORT)
        return Report.decode(packet)

    first, other = report(range(0, GROUPS, 2)), report(range(1, GROUPS, 2))
    assert first.counts[Count.RELEVANT_EVENTS,] == 2
    assert {what for what, *_ in other.counts} == {Count.BUSY_US}
    assert first.processes == other.processes == (process,)


def test_null_is_a_key_to_some_rules() -> None:
    """An event that is without key to others only is told of as such, and goes to the group of
    NULL; late, it is told of once."""
    batch = rows([5, 5], Fault.MISSING_KEY)
    groups = pa.array([2, None], pa.int32())
    batch = batch.set_column(batch.schema.get_field_index("group_0"), "group_0", groups)
    made = list(run(packer(AsTheyAre()), [batch]))
    (events,) = map(rows_of, packets_of(iter(made), PacketKind.EVENTS))
    assert events.select(["key_0", "offset", "first"]).to_pylist() == [
        {"key_0": None, "offset": 0, "first": False}
    ]
    (unkeyed,) = map(UnkeyedEvents.decode, packets_of(iter(made), PacketKind.UNKEYED))
    assert [(each.offset, each.detail) for each in unkeyed.events] == [
        (0, "a key is null: k"), (1, "a key is null: k"),
    ]  # fmt: skip


def test_conditions_that_fail_count_for_their_rules() -> None:
    """By version, for the circuit breaker."""
    decoder = AsTheyAre()
    decoder.failures = [
        DeadLetter(
            Coordinates("t", 0, 0), "condition_failed", "", rule_id="r", rule_version=version
        )
        for version in (1, 2, 2)
    ]
    made = packets_of(run(packer(decoder), [rows([1])]), PacketKind.REPORT)
    counts: Counts = sum((Report.decode(packet).counts for packet in made), Counter())
    assert counts[Count.DEAD_LETTERS, "condition_failed"] == 3
    assert [counts[Count.RULE_DEAD_LETTERS, "r", v, "condition_failed"] for v in "12"] == [1, 2]


def of_ids(*ids: int) -> pa.RecordBatch:
    """Records of schema ids that the plan does not know."""
    table = rows([1] * len(ids), Fault.UNKNOWN_SCHEMA)
    at = table.schema.get_field_index("value")
    return table.set_column(at, "value", pa.array([frame(each, b"") for each in ids], pa.binary()))


def letters(made: Iterator[pa.RecordBatch]) -> list[str]:
    """What dead letters say."""
    schema = fastavro.parse_schema(json.loads(schema_text("dead-letter")))
    details = []
    for packet in packets_of(made, PacketKind.RECORDS):
        for _, _, value, _ in OutputRecords.decode(packet).records:
            assert value is not None
            letter: Any = fastavro.schemaless_reader(BytesIO(value[5:]), schema, None)
            details.append(letter["detail"])
    return details


def test_ids_without_schema_are_dead_letters_and_end_nothing() -> None:
    """The registry is asked for each of them once, and for a bounded number."""
    asked = lookup()
    told = letters(run(packer(AsTheyAre(), asked), [of_ids(5, 6, 5)]))
    no_schema = "the registry has no schema with id"
    assert told == [f"{no_schema} 5", f"{no_schema} 6", f"{no_schema} 5"]
    assert asked.asked == [5, 6]
    many = range(1, MOST_ASKED + 101)
    told = letters(run(packer(AsTheyAre(), asked), [of_ids(*many)]))
    assert [f"{no_schema} {n}" in told for n in many].count(True) == MOST_ASKED
    assert sum("the registry was not asked for it" in each for each in told) == 100


def test_an_id_with_a_schema_ends_the_batch() -> None:
    """The plan must be built again for it; what the driver found out before counts for 30 s."""
    told = TaskProperties(100_000, None)
    unknown: dict[SchemaId, int] = {7: 70_001, 8: 70_000}
    with pytest.raises(NewSchemasError) as raised:
        list(run(packer(AsTheyAre(), lookup(6, 7, 8), unknown), [of_ids(5, 6, 7, 8)], told))
    assert schemas_in(str(raised.value)) == ("6", "8")


def test_a_batch_that_is_there_in_part_learns_no_ids() -> None:
    """What it did not know then is not known now, though the registry has it by now."""
    told = TaskProperties(0, None, schemas="1-2")
    asked = lookup(6)
    assert letters(run(packer(AsTheyAre(), asked), [of_ids(6)], told)) == [
        "the registry has no schema with id 6"
    ]
    assert asked.asked == []
    known = ResolvedSchemas((), unreadable=dict.fromkeys((1, 2, 6), "no"), lookup=asked)
    of_task = known.reader([], ColumnVectors()).of_task(0, "1-2")
    assert of_task.layouts.ids.tolist() == [1, 2]
