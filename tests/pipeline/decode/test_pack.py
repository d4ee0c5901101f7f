"""Packets of bounded size, however large records are, and a bounded number of bytes that wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from service.codecs.outputs import OutputEncoder, OutputSchemaIds, OutputTopics
from service.model import Coordinates, DeadLetter
from service.pipeline.decode.pack import _BYTES_WAITING, Packer
from service.pipeline.decode.record_faults import Fault
from service.pipeline.decode.tallies import Tally
from service.pipeline.wire.event_packets import (
    TYPE_COLUMN,
    PackedPartitioning,
    rows_of,
    sizes_of,
    word,
)
from service.pipeline.wire.fragments import whole
from service.pipeline.wire.packets import (
    BYTES_PER_PACKET,
    OutputRecords,
    PacketKind,
    UnkeyedEvents,
)
from service.pipeline.wire.task_properties import TaskProperties

MIB = 2**20
GROUPS = 3
ENCODER = OutputEncoder(OutputTopics("m", "t", "l", "d"), OutputSchemaIds(1, 2, 3), largest=9 * MIB)


@dataclass
class AsTheyAre:
    """Rows that are decoded already; counts the bytes that were read."""

    size: int = field(default=0)
    failures: list[DeadLetter] = field(default_factory=list)

    def read(
        self, batches: Sequence[pa.RecordBatch], latest: int | None, late_until: int | None
    ) -> tuple[list[Tally], pa.RecordBatch, list[DeadLetter]]:
        """See :class:`service.pipeline.decode.decoder.Decoder`."""
        assert latest is None
        (table,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
        self.size += table.nbytes
        return [], table, self.failures


class OutsideSpark(Packer):
    """A packer that no task tells anything."""

    @staticmethod
    def _told() -> TaskProperties:
        return TaskProperties(0, None)


def packer(decoder: Any) -> Packer:
    """For one partitioning."""
    return OutsideSpark(
        (PackedPartitioning(0, 1, 0, keeps_payload=True),), GROUPS, {}, frozenset(), {}, ENCODER,
        ("ts",), (("k",),), None, decoder,
    )  # fmt: skip


def rows(sizes: Sequence[int], fault: Fault = Fault.NONE) -> pa.RecordBatch:
    """Events with values of these sizes, for group after group."""
    count = len(sizes)
    missing = fault == Fault.MISSING_KEY
    columns = {
        "key_0": pa.array([None if missing else "k"] * count, pa.string()),
        "group_0": pa.array([None if missing else n % GROUPS for n in range(count)], pa.int32()),
        "time": pa.array(range(count), pa.int64()),
        "topic": pa.array(["t"] * count),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
        TYPE_COLUMN: pa.array([0] * count, pa.int32()),
        "record_key": pa.array([b"k"] * count),
        "value": pa.array(map(bytes, sizes), pa.binary()),
        "headers": pa.nulls(count, pa.string()),
        "fault": pa.array([int(fault)] * count, pa.int32()),
        word(0, 0): pa.array([1] * count, pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


def packets_of(made: Iterator[pa.RecordBatch], kind: int) -> list[bytes]:
    """The packets of a kind."""
    rows = ((row["kind"], row["packet"]) for batch in made for row in batch.to_pylist())
    return [packet for of, packet in whole(rows) if of == kind]


def test_packets_end_with_the_row_that_fills_them() -> None:
    """Small events in a row of large ones do not make them larger, and all arrive."""
    sizes = [100, 5 * MIB, 2_000, 300_000, 300_000, 50] * 4
    made = packets_of(packer(AsTheyAre())(iter([rows(sizes)])), PacketKind.EVENTS)
    found = [rows_of(packet) for packet in made]
    assert sorted(n for each in found for n in each.column("offset").to_pylist()) == list(range(24))
    for each in found:
        assert sizes_of(each)[:-1].sum() <= BYTES_PER_PACKET


def test_what_waits_is_bounded() -> None:
    """Packets leave when 16 MiB wait, not at the end: whatever a task reads, it holds no more."""
    records = AsTheyAre()
    packed = 0
    for batch in packer(records)(rows([100_000] * 60) for _ in range(40)):
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
    made = packets_of(packer(decoder)(iter([rows(sizes, fault)])), kind)
    assert all(len(packet) <= BYTES_PER_PACKET + 300_000 for packet in made)
    if fault is Fault.MISSING_KEY:
        events = [event for packet in made for event in UnkeyedEvents.decode(packet).events]
        assert [event.offset for event in events] == list(range(20))
    else:
        assert sum(len(OutputRecords.decode(packet).records) for packet in made) == 20
