"""The matcher between packets and state: what the stateful operator does with a key group.

The thin adapter between :class:`spark_cep.pipeline.match.match_operator.MatchOperator` and
:class:`spark_cep.pipeline.match.key_group.KeyGroup`. The state of a key group carries a checksum,
names the batch that wrote it, and has the checksums of its entries: what is damaged, or of another
batch than the one before, is refused, never decoded.

All deadlines up to the batch's watermark are decided in the batch: they need no later event of
their key. Output leaves in packets while the group is still at work, so that what is found is
never all in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import ValueState

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.output.outputs import OutputEncoder, OutputRecord
from spark_cep.codecs.output.result_columns import EncodedResults
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.results import ResultKind
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.model import Match, MatchRow, Timeout
from spark_cep.packing import pack, sealed, unpack, unsealed
from spark_cep.pipeline.match.key_group import KeyGroup, MatchOptions
from spark_cep.pipeline.match.latency import Ages
from spark_cep.pipeline.match.spool import Spool
from spark_cep.pipeline.spark.memory import memory_of_task
from spark_cep.pipeline.state.group_format import WRITTEN_IN, check_written
from spark_cep.pipeline.state.pipelined_map import PipelinedMap
from spark_cep.pipeline.wire.control import ControlRecord
from spark_cep.pipeline.wire.event_packets import rows_of
from spark_cep.pipeline.wire.fragments import fragments, whole
from spark_cep.pipeline.wire.packets import (
    EventTimes,
    PacketKind,
    RecordPackets,
    ResultColumns,
    Unkeyed,
    UnkeyedEvents,
)
from spark_cep.pipeline.wire.reports import (
    Count,
    Counts,
    EventTime,
    GoneRule,
    Report,
    count_dead_letter,
)
from spark_cep.rules.plans import plan_of

#: Of what the matcher counts of a rule: the first only serves to share out time, and failures are
#: dead letters.
_NOT_REPORTED = frozenset({"tested", "failed"})
#: Bytes of entries that wait to be written together.
_MOST_UNWRITTEN = 1 << 20
#: Kind and content.
Row = tuple[int, bytes]


@dataclass
class _Input:
    """What one batch brings to a key group."""

    events: Spool[tuple[int, pa.RecordBatch]] = field(
        default_factory=lambda: Spool(lambda number, packet: [(number, rows_of(packet))])
    )
    unkeyed: Spool[Unkeyed] = field(
        default_factory=lambda: Spool(lambda _, packet: UnkeyedEvents.decode(packet).events)
    )
    times: list[EventTimes] = field(default_factory=list)
    control: ControlRecord = field(default_factory=ControlRecord)

    def take(self, kind: int, packet: bytes) -> bool:
        """Take in one of the group's packets; False for what is not its own, but goes on to writers
        and driver."""
        if kind >= PacketKind.EVENTS:
            self.events.add(kind - PacketKind.EVENTS, packet)
            return True
        match PacketKind(kind):
            case PacketKind.EVENT_TIMES:
                self.times.append(EventTimes.decode(packet))
            case PacketKind.CONTROL:
                self.control = ControlRecord.decode(packet)
            case PacketKind.UNKEYED:
                self.unkeyed.add(0, packet)
            case _:
                return False
        return True

    def close(self) -> None:
        """Let go of all packets."""
        self.events.close()
        self.unkeyed.close()


@dataclass(frozen=True)
class Matching:
    """What matchers of any rules have in common; picklable."""

    encoder: OutputEncoder
    options: MatchOptions

    def processor(self, rules: str) -> MatchProcessor:
        """The matcher of a batch with these rules (:func:`spark_cep.rules.plans.encoded`)."""
        return MatchProcessor(plan_of(rules), self.encoder, self.options)


class MatchProcessor:
    """Applies all partitionings of a rule set to the packets of one key group at a time."""

    def __init__(self, plan: RuleSetPlan, encoder: OutputEncoder, options: MatchOptions) -> None:
        self._plan = plan
        self._encoder = encoder
        self._options = options
        self._matchers = [
            KeysMatcher(part, options.types, columns=True) for part in plan.partitionings
        ]
        rules = (each.rule for each in plan.plans)
        self._shadow = frozenset((rule.id, rule.version) for rule in rules if rule.shadow)
        self._read_ns = self._write_ns = 0
        self._unwritten: list[tuple[str, bytes | None]] = []
        self._unwritten_bytes = 0
        self._told_of_process = False

    def open(self, group: ValueState, entries: PipelinedMap) -> None:
        """Use this state, which is that of the key group that is at work."""
        self._group_state = group
        self._entry_state = entries

    def _group(self, number: int, batch: _Input, offsets_before: str) -> KeyGroup:
        """The key group as the batch finds it."""
        began = perf_counter_ns()
        value = self._group_state.get()
        self._read_ns += perf_counter_ns() - began
        stored = None if value is None else unpack(unsealed(bytes(value[0])))
        check_written(stored, number, offsets_before, self._options.key_groups)
        group = KeyGroup(number, self._plan, self._options, self._matchers, stored)
        # Partitions to wait for, before what was read of them.
        group.clock.control(batch.control)
        for times in batch.times:
            group.clock.read(times.partitions)
        return group

    def process(
        self, number: int, rows: Iterator[Row], offsets: str, offsets_before: str
    ) -> Iterator[Row]:
        """The packets of key group ``number`` in one batch in, output packets out. ``offsets``:
        digests of the batch and of the one before. StateError when the state is not that of the
        batch before."""
        self._read_ns = self._write_ns = matching = encoding = 0
        asked = perf_counter_ns()
        batch = _Input()
        for kind, packet in whole(rows):
            if not batch.take(kind, packet):
                yield from _rows(kind, packet)
        waited = perf_counter_ns() - asked
        group = self._group(number, batch, offsets_before)
        records = RecordPackets()
        counts: Counts = Counter()
        self._unwritten, self._unwritten_bytes = [], 0
        ages = Ages()
        before = self._read_ns
        began = perf_counter_ns()
        for outputs in group.run(batch.events, batch.unkeyed, self._load, self._store):
            matched = perf_counter_ns()
            matching += matched - began
            began = matched
            for result in self._encode(outputs, records, counts):
                encoding += perf_counter_ns() - began
                yield result
                began = perf_counter_ns()
            ages.add(match.time for match in outputs.matches)
            for found in outputs.results:
                if found.kind is ResultKind.MATCH:
                    ages.add(found.time.tolist())
            encoded = perf_counter_ns()
            encoding += encoded - began
            began = encoded
        self._write()
        matching += perf_counter_ns() - began
        matching -= self._read_ns - before + self._write_ns
        began = perf_counter_ns()
        packed = sealed(pack({**group.packed(), WRITTEN_IN: offsets}))
        stored = perf_counter_ns()
        matching += stored - began
        self._group_state.update((packed,))
        self._write_ns += perf_counter_ns() - stored
        for topic, count in group.late.items():
            counts[Count.LATE_EVENTS, topic] += count
        for event in group.late_events():
            yield from self._add(self._encoder.late(event), records, counts)
        yield from _records(records.rest())
        batch.close()
        for stage, spent in (
            ("shuffle", waited),
            ("state_read", self._read_ns),
            ("match", matching),
            ("encode", encoding),
            ("state_write", self._write_ns),
        ):
            counts[Count.BUSY_US, stage] = spent // 1000
        for rule, spent in group.processing.items():
            counts[Count.PROCESSING_NS, rule] = round(spent)
        # One key group tells of time for all, and of a task's process once.
        clock = group.clock
        report = Report(
            counts=counts,
            processes=() if self._told_of_process else tuple(memory_of_task()),
            live=group.live(),
            gone=tuple(GoneRule(*rule) for rule in group.gone),
            match_times=ages.times(),
            time=EventTime(clock.watermark, clock.maxima) if group.number == 0 else None,
            drained=tuple(group.drained()),
        )
        self._told_of_process = True
        yield from _rows(PacketKind.REPORT, report.encode())

    def _encode(self, outputs: Outputs, records: RecordPackets, counts: Counts) -> Iterator[Row]:
        """What is found as packets; a part of it stays in ``records``."""
        encoder = self._encoder
        for (rule, what), number in outputs.counts.items():
            if what not in _NOT_REPORTED:
                counts[Count(what), rule] += number
        for found in outputs.results:
            encoded, replaced = encoder.results(found)
            live, shadow = encoded.split(self._shadow) if self._shadow else (encoded, None)
            yield from self._columns(live)
            if shadow is not None:
                yield from self._columns(shadow, shadow=True)
            for version, record in replaced:
                yield from self._add(record, records, counts, version)
        for match in outputs.matches:
            record = encoder.match(match, shadow=self._is_shadow(match))
            version = match.rule_id, match.rule_version
            yield from self._add(record, records, counts, version)
        for row in outputs.rows:
            counts[Count.MATCH_ROWS, row.rule_id] += 1
            record = encoder.row(row, shadow=self._is_shadow(row))
            version = row.rule_id, row.rule_version
            yield from self._add(record, records, counts, version)
        for timeout in outputs.timeouts:
            record = encoder.timeout(timeout, shadow=self._is_shadow(timeout))
            version = timeout.rule_id, timeout.rule_version
            yield from self._add(record, records, counts, version)
        for letter in outputs.dead_letters:
            count_dead_letter(counts, letter.reason, letter.rule_id, letter.rule_version)
            yield from _records(records.add(encoder.dead_letter(letter)))

    def _is_shadow(self, result: Match | MatchRow | Timeout) -> bool:
        return (result.rule_id, result.rule_version) in self._shadow

    def _columns(self, encoded: EncodedResults, *, shadow: bool = False) -> Iterator[Row]:
        if not len(encoded.rule):
            return
        columns = ResultColumns(
            self._encoder.result_topic(encoded.kind, shadow=shadow),
            self._encoder.result_headers(encoded),
            encoded.rule,
            encoded.key,
            encoded.keys,
            encoded.ids,
            encoded.values,
        )
        yield from _rows(PacketKind.RESULTS, columns.encode())

    def _add(
        self,
        record: OutputRecord,
        records: RecordPackets,
        counts: Counts,
        rule: tuple[str, int] | tuple[()] = (),
    ) -> Iterator[Row]:
        if self._encoder.is_dead_letter(record):
            count_dead_letter(counts, Reason.OUTPUT_TOO_LARGE.value, *rule)
        return _records(records.add(record))

    def _load(self, names: Sequence[str]) -> list[bytes | None]:
        self._write()
        began = perf_counter_ns()
        found = self._entry_state.get(names)
        self._read_ns += perf_counter_ns() - began
        return found

    def _store(self, name: str, value: bytes | None) -> None:
        self._unwritten.append((name, value))
        self._unwritten_bytes += 0 if value is None else len(value)
        if self._unwritten_bytes >= _MOST_UNWRITTEN:
            self._write()

    def _write(self) -> None:
        began = perf_counter_ns()
        self._entry_state.put(self._unwritten)
        self._unwritten, self._unwritten_bytes = [], 0
        self._write_ns += perf_counter_ns() - began


def _rows(kind: int, packet: bytes) -> Iterator[Row]:
    for of, content in fragments(kind, packet):
        yield int(of), content


def _records(packets: Iterable[bytes]) -> Iterator[Row]:
    for packet in packets:
        yield from _rows(PacketKind.RECORDS, packet)
