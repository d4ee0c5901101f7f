"""An event is late for all rules or for none, whatever their keys, and wherever its groups are.

Decoded rows go through the real packer, a task for each Kafka partition, and through several key
groups, each with state and clock of its own, as in the job.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.codecs.output.avro_results import AvroResults
from spark_cep.codecs.output.outputs import OutputEncoder, OutputTopics
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.errors import StateError
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.model import Coordinates
from spark_cep.packing import pack, unpack
from spark_cep.pipeline.decode.decoder import Decoded
from spark_cep.pipeline.decode.pack import Packer
from spark_cep.pipeline.decode.tallies import tallies
from spark_cep.pipeline.match.batch_input import BatchInput
from spark_cep.pipeline.match.key_group import KeyGroup
from spark_cep.pipeline.match.options import MatchOptions
from spark_cep.pipeline.match.watermark import BEGINNING, Policy
from spark_cep.pipeline.state.key_group_labels import group_of
from spark_cep.pipeline.tasks.pack_batch import rows_of_task
from spark_cep.pipeline.wire.event_packets import (
    TOPIC,
    TYPE_COLUMN,
    PackedPartitioning,
    conditions_column,
)
from spark_cep.pipeline.wire.task_properties import TaskProperties
from tests.matcher.runs import TYPES
from tests.pipeline.match.test_key_group import (
    TYPE_NAMES,
    arrow_type,
    findings,
    plan_of,
    without_payload,
)
from tests.reference.local import EventReader, LocalJob, Record

GROUPS = 3
DISORDER = 2
RULE = """
id: {0}
key: {1}
within: 9 ms
pattern:
  - {{step: a, where: "name = 'a'"}}
  - {{step: b, after: {2}, where: "name = 'b'"}}
"""
PLAN = plan_of(
    RULE.format("one", "key", "followed_by"),
    RULE.format("two", "[key, name]", "followed_by_any"),
    RULE.format("three", "name", "followed_by"),
    RULE.format("strict", "key", "next"),
    RULE.format("all", "[]", "followed_by").replace("key: []\n", ""),
)
ENCODER = OutputEncoder(OutputTopics("m", "t", "l", "d", "s", "r"), AvroResults(1, 2, 3, 4))


class Arrival(NamedTuple):
    """One record. ``name`` ``x`` is of no use to any rule."""

    partition: int
    time: int
    key: str | None
    name: str | None


ARRIVALS = st.builds(
    Arrival,
    st.integers(0, 2),
    st.integers(0, 40),
    st.sampled_from(["k", "l", "m", None]),
    st.sampled_from(["a", "b", "x", None]),
)


@dataclass(frozen=True)
class AsDecoded:
    """Stands for the decoder: its batches are rows already. Those that cannot be late leave their
    record's bytes behind."""

    reader: Any = field(
        default_factory=lambda: ResolvedSchemas(()).reader([], ColumnVectors()), repr=False
    )

    def read(self, rows: pa.RecordBatch, latest: int | None, late_until: int | None) -> Decoded:
        """What all rows count, and those that are carried."""
        fault, time, size = (rows.column(each).to_numpy() for each in ("fault", "time", "size"))
        found = tallies("t", rows.column("partition")[0].as_py(), fault, time, time, size)
        carried = rows.filter(rows.column("carried")).drop_columns(["carried"])
        if late_until is not None:
            timely = pc.fill_null(pc.greater(carried.column("time"), late_until), fill_value=False)
            judged = pc.greater(carried.column("fault"), int(Fault.NOT_READ))
            bare = pc.and_not(timely, judged)
            for name in ("record_key", "value", "headers"):
                column = carried.column(name)
                left = pc.if_else(bare, pa.scalar(None, column.type), column)
                carried = carried.set_column(carried.schema.get_field_index(name), name, left)
        return Decoded(found, carried, [])


class Groups:
    """All key groups of a job, batch by batch."""

    def __init__(self, policy: Policy, emit_late: bool) -> None:
        self.outputs = Outputs()
        self.late: Counter[Coordinates] = Counter()
        self.late_count = 0
        self.watermarks: set[int] = set()
        #: Up to when the packer takes events for late.
        self.late_until: int | None = None
        self._options = MatchOptions(GROUPS, 1_000, policy, DISORDER, emit_late, TYPE_NAMES, TYPES)
        self._matchers = [KeysMatcher(part, TYPES) for part in PLAN.partitionings]
        self._readers = [EventReader(part, TYPES) for part in PLAN.partitionings]
        self._values: dict[int, bytes] = {}
        self._slots: list[dict[str, bytes]] = [{} for _ in range(GROUPS)]

    def advance(self, records: list[Record]) -> None:
        """One batch."""
        packets: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        for partition in sorted({record.at.partition for record in records}):
            rows = self._decoded([r for r in records if r.at.partition == partition])
            told = TaskProperties(0, self.late_until)
            for made in rows_of_task(self._packer(), ENCODER, [rows], told, range(GROUPS)):
                for row in made.to_pylist():
                    packets[group_of(row["label"])].append((row["kind"], row["packet"]))
        for number in range(GROUPS):
            self._run(number, packets[number])

    def _run(self, number: int, packets: list[tuple[int, bytes]]) -> None:
        stored = unpack(self._values[number]) if number in self._values else None
        group = KeyGroup(number, PLAN, self._options, self._matchers, stored=stored)
        batch = BatchInput()
        for kind, packet in packets:
            batch.take(kind, packet)
        for times in batch.times:
            group.clock.read(times.partitions)
        slots = self._slots[number]

        def load(names: Sequence[str]) -> list[bytes | None]:
            return [slots.get(name) for name in names]

        def store(name: str, value: bytes | None) -> None:
            slots.pop(name) if value is None else slots.update({name: value})

        for outputs in group.run(batch, load, store):
            self.outputs.add(outputs.as_objects())
        for event in group.late_events():
            assert event.record_value == b"v"
            self.late[event.at] += 1
        self.late_count += sum(group.late.values())
        self.watermarks.add(group.clock.watermark)
        self._values[number] = pack(group.packed())

    def _packer(self) -> Packer:
        return Packer(
            partitionings=tuple(
                PackedPartitioning.of(n, p) for n, p in enumerate(PLAN.partitionings)
            ),
            time_columns=("time",),
            key_texts=(("key",),),
            max_ahead_ms=None,
            decoder=AsDecoded(),  # type: ignore[arg-type]
        )

    def _decoded(self, records: list[Record]) -> pa.RecordBatch:
        """What the decoder makes of records, with those that nobody wants."""
        rows = []
        for record in records:
            missing = [
                part.key and reader.missing_key(record) is not None
                for part, reader in zip(PLAN.partitionings, self._readers, strict=True)
            ]
            bits = [reader.event(record, Outputs()).bits for reader in self._readers]
            useful = any(
                rule.plan.relevant.evaluate(
                    sum(1 << i for i, bit in enumerate(rule.bits) if mask >> bit & 1)
                )
                for part, mask in zip(PLAN.partitionings, bits, strict=True)
                for rule in part.rules
            )
            row: dict[str, Any] = {
                "topic": record.at.topic,
                "partition": record.at.partition,
                "offset": record.at.offset,
                "time": record.time,
                "kafka_time": record.time,
                "size": 1,
                "fault": int(Fault.MISSING_KEY if any(missing) else Fault.NONE),
                TYPE_COLUMN: 0,
                "record_key": b"",
                "value": b"v" if useful or any(missing) else None,
                "headers": None,
            }
            for number, (part, reader) in enumerate(
                zip(PLAN.partitionings, self._readers, strict=True)
            ):
                wanted = not missing[number] and any(True for _ in part.touched(bits[number]))
                key = reader.key(record) if wanted else None
                row[f"key_{number}"] = key
                row[f"group_{number}"] = sum(map(ord, key or "")) % GROUPS if wanted else None
                row[conditions_column(number)] = bits[number] if wanted else 0
                for place, slot in enumerate(part.slots):
                    row[f"slot_{number}_{place}"] = record.values.get(slot.path[0])
            grouped = any(row[f"group_{n}"] is not None for n in range(len(missing)))
            rows.append(row | {"carried": any(missing) or grouped})
        return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def _schema() -> pa.Schema:
    kinds: dict[str, pa.DataType] = {
        "topic": TOPIC, "partition": pa.int32(), "offset": pa.int64(), "time": pa.int64(),
        "kafka_time": pa.int64(), "size": pa.int32(), "fault": pa.int32(), TYPE_COLUMN: pa.int32(),
        "record_key": pa.binary(),
        "value": pa.binary(), "headers": pa.string(),
    }  # fmt: skip
    for number, part in enumerate(PLAN.partitionings):
        kinds |= {f"key_{number}": pa.string(), f"group_{number}": pa.int32()}
        kinds[conditions_column(number)] = pa.int64()
        slots = KeysMatcher(part, TYPES).slots
        kinds |= {f"slot_{number}_{n}": arrow_type(slot) for n, slot in enumerate(slots)}
    return pa.schema([*kinds.items(), ("carried", pa.bool_())])


SCHEMA = _schema()


@settings(max_examples=150, derandomize=True, database=None)
@given(
    st.lists(st.lists(ARRIVALS, min_size=1, max_size=12), min_size=1, max_size=6),
    st.sampled_from(["partition_minimum", "maximum"]),
    st.booleans(),
    st.sampled_from([None, 0, 7]),
)
@pytest.mark.slow
def test_one_verdict_for_an_event(
    batches: list[list[Arrival]], policy: Policy, emit_late: bool, beyond: int | None
) -> None:
    """Late: at or before the watermark at the start of its batch, told of once, with its bytes,
    however well the packer knows it (``beyond``: how far it is off), and used by no rule; also
    where a key is null. Otherwise a dead letter for the null key, once, and applied for the rules
    whose key is there. What is dropped is counted as what would be written."""
    groups = Groups(policy, emit_late)
    job = LocalJob(PLAN, TYPES)
    maxima: dict[int, int] = {}
    watermark, offset = BEGINNING, 0
    late: set[Coordinates] = set()
    letters: set[Coordinates] = set()
    for arrivals in batches:
        records = []
        for arrival in arrivals:
            at = Coordinates("t", arrival.partition, offset)
            values = {"key": arrival.key, "name": arrival.name, "price": 1}
            records.append(Record(at, arrival.time, values, type="Event"))
            unkeyed = arrival.key is None or arrival.name is None
            if arrival.time > watermark:
                letters |= {at} if unkeyed else set()
            elif unkeyed or arrival.name != "x":
                late.add(at)
            offset += 1
        for arrival in arrivals:
            maxima[arrival.partition] = max(maxima.get(arrival.partition, 0), arrival.time)
        newest = (max if policy == "maximum" else min)(maxima.values())
        known = beyond is not None and watermark > BEGINNING
        groups.late_until = watermark + (beyond or 0) if known else None
        watermark = max(watermark, newest - DISORDER - 1)
        groups.watermarks.clear()
        groups.advance(records)
        job.advance(records, watermark)
        assert groups.watermarks == {watermark}
    assert groups.late == (Counter(late) if emit_late else Counter())
    assert groups.late_count == len(late)
    assert Counter(letter.at for letter in groups.outputs.dead_letters) == Counter(letters)
    assert {letter.at for letter in job.outputs.dead_letters} == letters
    assert without_payload(findings(groups.outputs)) == without_payload(findings(job.outputs))


def test_a_watermark_that_the_packer_did_not_know_of_is_no_loss() -> None:
    """Late events that may lack their bytes end the batch; run again, they have them."""
    groups = Groups("maximum", emit_late=True)
    values = {"key": "k", "name": "a", "price": 1}
    at = [Coordinates("t", 0, offset) for offset in range(3)]
    groups.late_until = None
    groups.advance([Record(at[0], 20, values, type="Event")])
    late = [Record(at[1], 5, values, type="Event"), Record(at[2], 30, values, type="Event")]
    groups.late_until = 20 - DISORDER - 2
    with pytest.raises(StateError, match="the watermark is 17, and the driver took it for 16"):
        groups.advance(late)
    groups.late_until = None
    groups.advance(late)
    assert groups.late == Counter([at[1]])
