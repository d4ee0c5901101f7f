"""The matcher between packets and state: what the stateful operator does with a key group.

The thin adapter between :class:`service.pipeline.match_operator.MatchOperator` and
:class:`service.pipeline.key_group.KeyGroup`. Each value of the state carries a checksum: what is
not as it was written is refused, never decoded.

All deadlines up to the batch's watermark are decided in the batch: they need no later event of
their key. Output leaves in packets while the group is still at work, so that what is found is
never all in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import ValueState

from service.codecs.dead_letters import Reason
from service.codecs.outputs import OutputEncoder, OutputRecord
from service.compiler.rule_set import RuleSetPlan
from service.matcher.columnar.results import ResultKind
from service.matcher.engines import PartitioningMatcher
from service.matcher.outputs import Outputs
from service.packing import pack, sealed, unpack, unsealed
from service.pipeline.key_group import KeyGroup, MatchOptions
from service.pipeline.latency import Ages
from service.pipeline.memory import memory_of_task
from service.pipeline.pack import BYTES_PER_PACKET, Kind, Unkeyed, rows_of
from service.pipeline.pipelined_map import PipelinedMap
from service.pipeline.sink import packed_results
from service.pipeline.watermark import ClockStatement

_RECORDS_PER_PACKET = 1_000
#: Bytes of slots that wait to be written together.
_MOST_UNWRITTEN = 1 << 20


@dataclass
class _Given:
    """What one batch brings to a key group."""

    events: list[tuple[int, pa.RecordBatch]] = field(default_factory=list)
    unkeyed: list[Unkeyed] = field(default_factory=list)
    maxima: list[Any] = field(default_factory=list)
    statement: ClockStatement = field(default_factory=ClockStatement)
    records: list[Any] = field(default_factory=list)
    arrivals: list[Any] = field(default_factory=list)
    processes: list[Any] = field(default_factory=list)
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)

    @classmethod
    def of(cls, rows: Iterator[Row]) -> _Given:
        """Read the group's packets."""
        given = cls()
        for row in rows:
            kind, packet = row[1], bytes(row[2])
            if kind >= Kind.EVENTS:
                given.events.append((kind - Kind.EVENTS, rows_of(packet)))
            elif kind == Kind.MAXIMA:
                given.maxima.append(unpack(packet))
            elif kind == Kind.CLOCK:
                given.statement = ClockStatement.from_json(unpack(packet))
            elif kind == Kind.UNKEYED:
                given.unkeyed += [Unkeyed(*fields) for fields in unpack(packet)]
            elif kind == Kind.RECORDS:
                given.records.extend(unpack(packet))
            elif kind == Kind.ARRIVALS:
                given.arrivals += unpack(packet)
            elif kind == Kind.PROCESS:
                given.processes.append(unpack(packet))
            else:
                for *what, count in unpack(packet):
                    given.counts[tuple(what)] += count
        return given


class MatchProcessor:
    """Applies all partitionings of a rule set to the packets of one key group at a time."""

    def __init__(self, plan: RuleSetPlan, encoder: OutputEncoder, options: MatchOptions) -> None:
        self._plan = plan
        self._encoder = encoder
        self._options = options
        #: Plan and matchers without the paused plans, by their fingerprints.
        self._active: dict[tuple[str, ...], tuple[RuleSetPlan, list[PartitioningMatcher]]] = {}
        self._read_ns = self._write_ns = 0
        self._unwritten: list[tuple[str, bytes | None]] = []
        self._unwritten_bytes = 0
        self._told_of_process = False

    def open(self, group: ValueState, slots: PipelinedMap) -> None:
        """Use this state, which is that of the key group that is at work."""
        self._group_state = group
        self._slot_state = slots

    def _active_without(
        self, paused: tuple[str, ...]
    ) -> tuple[RuleSetPlan, list[PartitioningMatcher]]:
        """Plan and matchers, built once per task for each set of paused plans. Bits and columns
        keep their numbers."""
        if paused not in self._active:
            plan = self._plan.without(paused)
            matchers = [
                PartitioningMatcher(p, self._options.types, columns=True)
                for p in plan.partitionings
            ]
            self._active[paused] = (plan, matchers)
        return self._active[paused]

    def _group(self, number: int, given: _Given) -> KeyGroup:
        """The key group as the batch finds it."""
        began = perf_counter_ns()
        value = self._group_state.get()
        self._read_ns += perf_counter_ns() - began
        stored = None if value is None else unpack(unsealed(bytes(value[0])))
        paused = given.statement.paused
        if paused is None:
            paused = () if stored is None else tuple(stored.get("paused", ()))
        plan, matchers = self._active_without(paused)
        group = KeyGroup(number, plan, self._options, matchers, paused)
        if stored is not None:
            group.restore(stored)
        # Partitions to wait for, before what was read of them.
        group.clock.state(given.statement)
        for maxima in given.maxima:
            group.clock.read(maxima)
        return group

    def process(self, number: int, rows: Iterator[Row]) -> Iterator[Row]:
        """The packets of key group ``number`` in one batch in, output packets out."""
        self._read_ns = self._write_ns = matching = encoding = 0
        asked = perf_counter_ns()
        given = _Given.of(rows)
        waited = perf_counter_ns() - asked
        group = self._group(number, given)
        records, counts = given.records, given.counts
        self._unwritten, self._unwritten_bytes = [], 0
        ages = Ages()
        before = self._read_ns
        began = perf_counter_ns()
        for outputs in group.run(given.events, given.unkeyed, self._load, self._store):
            matched = perf_counter_ns()
            results = self._encode(outputs, records, counts)
            ages.add(match.time for match in outputs.matches)
            for found in outputs.results:
                if found.kind is ResultKind.MATCH:
                    ages.add(found.time.tolist())
            encoded = perf_counter_ns()
            matching += matched - began
            encoding += encoded - matched
            yield from results
            if len(records) >= _RECORDS_PER_PACKET:
                yield from _packets(records)
                records = []
            began = perf_counter_ns()
        self._write()
        matching += perf_counter_ns() - began
        matching -= self._read_ns - before + self._write_ns
        began = perf_counter_ns()
        packed = sealed(pack(group.packed()))
        stored = perf_counter_ns()
        matching += stored - began
        self._group_state.update((packed,))
        self._write_ns += perf_counter_ns() - stored
        for topic, count in group.late.items():
            counts["late", topic] += count
        for event in group.late_events() if self._options.emit_late else ():
            self._add(self._encoder.late(event), records, counts)
            if len(records) >= _RECORDS_PER_PACKET:
                yield from _packets(records)
                records = []
        yield from _packets(records)
        for stage, spent in (
            ("shuffle", waited),
            ("state_read", self._read_ns),
            ("match", matching),
            ("encode", encoding),
            ("state_write", self._write_ns),
        ):
            counts["busy_us", stage] = spent // 1000
        for rule, spent in group.processing.items():
            counts["processing_ns", rule] = round(spent)
        if not self._told_of_process:
            self._told_of_process = True
            given.processes.append(memory_of_task())
        report = {
            "group": group.number,
            "counts": [[*what, count] for what, count in counts.items()],
            "live": group.live(),
            "gone": group.gone,
            "clock": group.clock.packed() if group.number == 0 else None,
            "arrivals": given.arrivals,
            "processes": given.processes,
            "match_times": ages.times(),
        }
        yield Row(kind=int(Kind.COUNTS), packet=pack(report))

    def _encode(
        self, outputs: Outputs, records: list[Any], counts: Counter[tuple[str, ...]]
    ) -> list[Row]:
        """Add what is found to ``records``; what is columns comes back as packets."""
        encoder = self._encoder
        for (rule, what), number in outputs.counts.items():
            counts["rule", what, rule] += number
        packets: list[Row] = []
        for found in outputs.results:
            encoded, replaced = encoder.results(found)
            packet = packed_results(encoder, encoded)
            packets.append(Row(kind=int(Kind.RESULTS), packet=packet))
            for rule_id, record in replaced:
                self._add(record, records, counts, rule_id)
        for match in outputs.matches:
            self._add(encoder.match(match), records, counts, match.rule_id)
        for timeout in outputs.timeouts:
            self._add(encoder.timeout(timeout), records, counts, timeout.rule_id)
        for letter in outputs.dead_letters:
            counts["dead_letters", letter.reason] += 1
            if letter.rule_id is not None:
                counts["rule_dead_letters", letter.rule_id, letter.reason] += 1
            records.append(encoder.dead_letter(letter))
        return packets

    def _add(
        self,
        record: OutputRecord,
        records: list[Any],
        counts: Counter[tuple[str, ...]],
        rule_id: str | None = None,
    ) -> None:
        records.append(record)
        if self._encoder.is_dead_letter(record):
            reason = Reason.OUTPUT_TOO_LARGE.value
            counts["dead_letters", reason] += 1
            if rule_id is not None:
                counts["rule_dead_letters", rule_id, reason] += 1

    def _load(self, names: Sequence[str]) -> list[bytes | None]:
        self._write()
        began = perf_counter_ns()
        found = self._slot_state.get(names)
        self._read_ns += perf_counter_ns() - began
        return [None if data is None else unsealed(data) for data in found]

    def _store(self, name: str, value: bytes | None) -> None:
        self._unwritten.append((name, None if value is None else sealed(value)))
        self._unwritten_bytes += 0 if value is None else len(value)
        if self._unwritten_bytes >= _MOST_UNWRITTEN:
            self._write()

    def _write(self) -> None:
        began = perf_counter_ns()
        self._slot_state.put(self._unwritten)
        self._unwritten, self._unwritten_bytes = [], 0
        self._write_ns += perf_counter_ns() - began


def _packets(records: list[Any]) -> Iterator[Row]:
    cut: list[list[Any]] = []
    size = 0
    for record in records:
        _, key, value, _ = record
        cut.append(list(record))
        size += len(key or b"") + len(value or b"")
        if len(cut) >= _RECORDS_PER_PACKET or size >= BYTES_PER_PACKET:
            yield Row(kind=int(Kind.RECORDS), packet=pack(cut))
            cut, size = [], 0
    if cut:
        yield Row(kind=int(Kind.RECORDS), packet=pack(cut))
