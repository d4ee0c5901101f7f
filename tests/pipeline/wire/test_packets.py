"""Packets: what is encoded is decoded, and the bytes of every kind are as they were.

After an intended change, ``REWRITE_GOLDEN=1 python -m pytest tests/pipeline/wire`` writes the files
in ``tests/golden/wire``; read the difference before committing it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from spark_cep.columns.vectors import Bytes
from spark_cep.errors import StateError
from spark_cep.pipeline.wire.control import ControlRecord
from spark_cep.pipeline.wire.event_packets import (
    TOPIC,
    PackedPartitioning,
    late_until,
    packet_of,
    rows_of,
    with_late_until,
)
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import (
    BYTES_PER_PACKET,
    EventTimes,
    OutputRecords,
    PartitionTime,
    Record,
    RecordPackets,
    ResultColumns,
    Unkeyed,
    UnkeyedEvents,
)
from spark_cep.pipeline.wire.reports import (
    Count,
    EventTime,
    GoneRule,
    LostRecords,
    PartitionRead,
    ProcessMemory,
    Report,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "wire"
SHAPE = PackedPartitioning(number=1, slots=2, keeps_payload=False)
ROWS = pa.RecordBatch.from_pydict(
    {
        "key_1": pa.array(["k", None]),
        "time": pa.array([5, 6], pa.int64()),
        "topic": pa.array(["t", "t"], TOPIC),
        "partition": pa.array([0, 1], pa.int32()),
        "offset": pa.array([7, 8], pa.int64()),
        "event_type": pa.array([0, 0], pa.int32()),
        "record_key": pa.array([None, b"rk"], pa.binary()),
        "value": pa.array([None, b"v"], pa.binary()),
        "headers": pa.array([None, "[]"]),
        "first": pa.array([True, False]),
        "conditions_1": pa.array([3, 1], pa.int64()),
        "slot_1_0": pa.array([1.5, None], pa.float64()),
        "slot_1_1": pa.array(["a", "b"]),
    }
)


class Sample(NamedTuple):
    """Content of one kind, its bytes, and how they are read."""

    content: Any
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def sample(content: Any) -> Sample:
    """Of a dataclass that does both itself."""
    return Sample(content, type(content).encode, type(content).decode)


SAMPLES = {
    PacketKind.EVENT_TIMES: sample(
        EventTimes((PartitionTime("t", 0, 1_700_000_000_000), PartitionTime("t", 1, None)))
    ),
    PacketKind.CONTROL: sample(ControlRecord((("t", 0), ("t", 1)), 17, 5)),
    PacketKind.RECORDS: sample(
        OutputRecords((("m", b"k", b"v", [("h", b"x"), ("n", None)]), ("l", None, None, [])))
    ),
    PacketKind.REPORT: sample(
        Report(
            Counter(
                {
                    (Count.RECORDS, "t"): 7,
                    (Count.RELEVANT_EVENTS,): 3,
                    (Count.RULE_DEAD_LETTERS, "abc", "2", "limit_reached"): 1,
                }
            ),
            (PartitionRead("t", 0, 9, 8), PartitionRead("t", 1, 9, None)),
            (ProcessMemory("host", 12, is_jvm=True, bytes=1 << 33),),
            {("abc", 2): 4},
            (GoneRule("old", 2, 5),),
            ((1_000, 2), (2_000, 1)),
            EventTime(1_000, {("t", 0): 1_500, ("t", 1): None}),
            ("f1",),
            lost=(LostRecords("t", 1, 3, 9),),
            ended=(GoneRule("abc", 2, 3),),
        )
    ),
    PacketKind.UNKEYED: sample(
        UnkeyedEvents((Unkeyed("t", 0, 5, 1_000, None, b"v", None, "a key is null: k"),))
    ),
    PacketKind.RESULTS: sample(
        ResultColumns(
            "m",
            [[("kind", b"match")]],
            np.array([0, 0]),
            np.array([0, -1]),
            *(Bytes.of(each) for each in ([b"k"], [b"i", b"j"], [b"v", b"w"])),
        )
    ),
    PacketKind.EVENTS: Sample(with_late_until(ROWS, 4), packet_of, rows_of),
}


@pytest.mark.parametrize("kind", PacketKind, ids=lambda kind: kind.name.lower())
def test_bytes_of_every_kind(kind: PacketKind) -> None:
    """They are written as in the golden file, which is read as what was written."""
    content, encode, decode = SAMPLES[kind]
    golden = GOLDEN / f"{kind.name.lower()}.bin"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_bytes(encode(content))
    assert encode(content) == golden.read_bytes()
    found = decode(golden.read_bytes())
    assert encode(found) == golden.read_bytes()
    # Arrays are equal by their bytes alone.
    assert kind is PacketKind.RESULTS or found == content


@pytest.mark.parametrize("kind", set(SAMPLES) - {PacketKind.EVENTS}, ids=lambda k: k.name.lower())
def test_other_bytes_are_refused(kind: PacketKind) -> None:
    """Half a packet is none."""
    packet = SAMPLES[kind].encode(SAMPLES[kind].content)
    with pytest.raises(StateError):
        SAMPLES[kind].decode(packet[: len(packet) // 2])


@pytest.mark.parametrize("kind", PacketKind, ids=lambda kind: kind.name.lower())
def test_one_changed_byte(kind: PacketKind) -> None:
    """It is read as another packet, or refused; nothing else happens."""
    content, encode, decode = SAMPLES[kind]
    packet, random, refused = encode(content), Random(5), 0
    for place in range(len(packet)):
        other = bytearray(packet)
        other[place] ^= 1 << random.randrange(8)
        try:
            encode(decode(bytes(other)))
        except StateError:
            refused += 1
    assert refused > 3


def test_events_say_which_have_their_bytes() -> None:
    """The time travels with the rows, and with those cut out of them."""
    told = with_late_until(ROWS, -4)
    assert late_until(rows_of(packet_of(told.slice(1)))) == -4
    assert late_until(rows_of(packet_of(ROWS))) is None
    assert ROWS.schema.names == SHAPE.columns


def test_records_are_cut_into_packets() -> None:
    """By number and by bytes; none is lost, and none is empty."""
    small: list[Record] = [("t", None, b"v", [])] * 2_001
    assert [len(OutputRecords.decode(p).records) for p in RecordPackets.of(small)] == [
        1_000,
        1_000,
        1,
    ]
    large: list[Record] = [("t", b"k", bytes(BYTES_PER_PACKET // 2), [])] * 3
    assert [len(OutputRecords.decode(p).records) for p in RecordPackets.of(large)] == [2, 1]
    assert list(RecordPackets.of([])) == []
