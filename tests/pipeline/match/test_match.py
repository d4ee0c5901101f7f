"""The processor of a key group: packets in, packets out, state between batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from spark_cep.codecs.output.avro_results import AvroResults
from spark_cep.codecs.output.outputs import LARGEST_RECORD, OutputEncoder, OutputTopics
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, RuleSetPlan, compile_rules
from spark_cep.errors import StateError
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from spark_cep.pipeline.librdkafka.messages import Messages
from spark_cep.pipeline.match.key_group import KeyGroup
from spark_cep.pipeline.match.match import MatchProcessor
from spark_cep.pipeline.match.options import MatchOptions
from spark_cep.pipeline.state.group_format import GROUP
from spark_cep.pipeline.wire.control import ControlRecord
from spark_cep.pipeline.wire.event_packets import TOPIC, PackedPartitioning, packet_of
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import (
    EventTimes,
    OutputRecords,
    PartitionTime,
    ResultColumns,
    Unkeyed,
    UnkeyedEvents,
)
from spark_cep.pipeline.wire.reports import Count, EventTime, Report
from spark_cep.runner.state import GroupEntries
from tests.matcher.runs import END_OF_TIME, TYPES
from tests.pipeline.librdkafka.records import records_of
from tests.reference.local import LocalJob, Record
from tests.sql_rules import sql_rule

RULE = """
id: ab
key: key
within: 10 ms
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b'"}
"""
PLAN = compile_rules(loaded.rule for loaded in load_rules(RULE, "ab.yaml"))
ENCODER = OutputEncoder(OutputTopics("m", "t", "l", "d", "s", "r"), AvroResults(1, 2, 3, 4))


class Group:
    """Key group 0 over several batches, by default each with a processor of its own."""

    def __init__(self, plan: RuleSetPlan = PLAN) -> None:
        self.plan = plan
        self.state = GroupEntries()
        self.batches = 0
        self.processor = self.new_processor()

    def new_processor(self) -> MatchProcessor:
        """As at a start of the query."""
        options = MatchOptions(1, 1_000, "partition_minimum", 0, True, ("Event", "Other"), TYPES)
        processor = MatchProcessor(self.plan, ENCODER, options)
        processor.open(self.state)
        return processor

    def batch(self, *packets: tuple[int, bytes]) -> tuple[list[tuple[int, bytes]], Report]:
        """What comes out, and the group's own report, which is the last."""
        before, now = str(self.batches or ""), str(self.batches + 1)
        out = list(self.processor.process(0, packets, now, before))
        assert out[-1][0] == PacketKind.REPORT
        self.batches += 1
        return out[:-1], Report.decode(out[-1][1])


def events(*named: tuple[str, int]) -> tuple[int, bytes]:
    """Events of one key: name and time, which is also the offset."""
    (part,) = PLAN.partitionings
    rows = [
        [
            "k", time, "t", 0, time, 0, b"rk", b"v", None, True, _bits(part, name),
            *({"key": "k", "name": name, "price": 1}[slot.path[0]] for slot in part.slots),
        ]
        for name, time in named
    ]  # fmt: skip
    kinds = [
        pa.string(), pa.int64(), TOPIC, pa.int32(), pa.int64(), pa.int32(), pa.binary(),
        pa.binary(), pa.string(), pa.bool_(), pa.int64(),
        *(pa.string() for _ in part.slots),
    ]  # fmt: skip
    schema = pa.schema(list(zip(PackedPartitioning.of(0, part).columns, kinds, strict=True)))
    batch = pa.RecordBatch.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema
    )
    return PacketKind.EVENTS, packet_of(batch)


def _bits(part: Partitioning, name: str) -> int:
    """The conditions that are true for an event of this name; one without expression always is."""
    true = (None, f"name = '{name}'")
    texts = [each.expression and each.expression.text for each in part.conditions]
    return sum(1 << number for number, text in enumerate(texts) if text in true)


def times(time: int) -> tuple[int, bytes]:
    """The newest event time of the only partition."""
    return PacketKind.EVENT_TIMES, EventTimes((PartitionTime("t", 0, time),)).encode()


@pytest.fixture
def group() -> Group:
    """An empty one."""
    return Group()


def test_a_match_over_two_batches(group: Group) -> None:
    """It leaves as columns, and the report says what was done, what lives and what time it is."""
    out, report = group.batch(events(("a", 5)), times(6))
    assert (out, report.live) == ([], {("ab", 1): 1})
    assert report.time == EventTime(5, {("t", 0): 6})
    group.processor = group.new_processor()
    out, report = group.batch(events(("b", 8)), times(9))
    ((kind, packet),) = out
    assert kind == PacketKind.RESULTS
    results = ResultColumns.decode(packet)
    assert (results.topic, results.keys.values(), len(results.rule)) == ("m", [b"k"], 1)
    assert report.counts[Count.MATCHED, "ab"] == 1
    assert sum(count for _, count in report.match_times) == 1
    assert all(what.labels[0] in {"rule", "stage"} for what, *_ in report.counts)


def test_state_of_another_batch_is_refused(group: Group) -> None:
    """Of an older one, of one that was planned otherwise, and none where each batch leaves some."""
    group.batch(events(("a", 5)), times(6))
    older = dict(group.state.by_name)
    group.batch(events(("a", 6)), times(7))
    newer = dict(group.state.by_name)
    for entries in (older, {}, {**newer, GROUP: older[GROUP]}):
        group.state.by_name = dict(entries)
        with pytest.raises(StateError, match=r"key group 0.* restore the checkpoint from a copy"):
            group.batch(times(8))
    # The state of the group is the newest, an entry that it has is older.
    group.state.by_name = {**older, GROUP: newer[GROUP]}
    with pytest.raises(StateError, match=r"entry \S+ of key group 0 is not what was written last"):
        group.batch(events(("b", 7)), times(8))


def test_what_is_for_others_is_passed_on(group: Group) -> None:
    """Dead letters and reports of decoding tasks, as they are."""
    records = (PacketKind.RECORDS, OutputRecords((("d", None, b"v", []),)).encode())
    report = (PacketKind.REPORT, Report(Counter({(Count.RECORDS, "t"): 1})).encode())
    out, own = group.batch(records, report, times(3))
    assert out == [records, report]
    assert (Count.RECORDS, "t") not in own.counts


def test_late_events_and_those_without_key(group: Group) -> None:
    """Late ones leave as they came; one that is not late and has no key is a dead letter."""
    group.batch(times(10))
    on_time = Unkeyed("t", 0, 12, 12, None, b"v", None, "a key is null: key", used=True)
    late = on_time._replace(time=9, offset=9)
    unkeyed = (PacketKind.UNKEYED, UnkeyedEvents((on_time, late)).encode())
    out, report = group.batch(unkeyed, events(("a", 4)), times(13))
    assert {kind for kind, _ in out} == {PacketKind.RECORDS}
    topics = [record[0] for _, packet in out for record in OutputRecords.decode(packet).records]
    assert sorted(topics) == ["d", "l", "l"]
    assert report.counts[Count.DEAD_LETTERS, "missing_key"] == 1
    assert report.counts[Count.PARTLY_USED,] == 1
    assert report.counts[Count.LATE_EVENTS, "t"] == 2


@pytest.mark.parametrize(("shadow", "topic"), [(False, "r"), (True, "s")])
def test_rows_of_matches(shadow: bool, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They leave as columns, in their order, and are counted by rule; one that is too large is
    counted, and there is a dead letter in its place."""
    record = RecordType({"ts": BIGINT, "text": STRING})
    statement = (
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n ALL ROWS PER MATCH"
        " WITH UNMATCHED ROWS PATTERN (A B) DEFINE A AS text = 'a')"
    )
    rule = replace(sql_rule(statement, record), shadow=shadow)
    types = RecordTypes((("t", "Event", record),))
    plan = compile_rules([rule], types)
    job = LocalJob(plan, types, columns=True)
    texts = ["a", "b", "x" * LARGEST_RECORD, "c"]
    job.advance(
        [
            Record(Coordinates("t", 0, n), n, {"ts": n, "text": text}, "t")
            for n, text in enumerate(texts)
        ],
        END_OF_TIME,
    )
    monkeypatch.setattr(KeyGroup, "run", lambda *_: iter([job.outputs]))
    out, report = Group(plan).batch(times(6))
    assert [kind for kind, _ in out] == [PacketKind.RESULTS, PacketKind.RECORDS]
    (letter,) = OutputRecords.decode(out[1][1]).records
    assert (letter[0], dict(letter[3])["spark-cep-kind"]) == ("d", b"dead-letter")
    records = records_of(Messages.of_results(ResultColumns.decode(out[0][1])))
    assert [record[0] for record in records] == [topic] * 3
    assert len({record[2] for record in records}) == 3
    assert [[name for name, _ in record[3]][3:] for record in records] == [
        ["spark-cep-match-id"], ["spark-cep-match-id"], [],
    ]  # fmt: skip
    assert {dict(record[3])["spark-cep-kind"] for record in records} == {b"match-row"}
    assert report.counts[Count.MATCH_ROWS, "q"] == 4
    assert report.counts[Count.RULE_DEAD_LETTERS, "q", "1", "output_too_large"] == 1


def test_control_records(group: Group) -> None:
    """A lower bound decides deadlines without events."""
    group.batch(events(("a", 5)), times(6))
    record = ControlRecord((), 40)
    _, report = group.batch((PacketKind.CONTROL, record.encode()))
    assert report.time is not None
    assert report.time.watermark == 40
