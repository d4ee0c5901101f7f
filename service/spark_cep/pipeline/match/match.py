"""The match stage between packets in and packets out: what a task does with a key group.

All deadlines up to the batch's watermark are decided in the batch: they need no later event of
their key. Output leaves in packets while the group is still at work, so that what is found is
never all in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter_ns

from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.output.outputs import OutputEncoder, OutputRecord
from spark_cep.codecs.output.result_columns import EncodedResults
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.result_rows import ResultRows
from spark_cep.matcher.findings.results import ResultKind, Results
from spark_cep.pipeline.match.batch_input import BatchInput
from spark_cep.pipeline.match.group_matcher import GroupMatcher
from spark_cep.pipeline.match.latency import Ages
from spark_cep.pipeline.match.options import MatchOptions
from spark_cep.pipeline.state.entries import EntryMap
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import RecordPackets, ResultColumns
from spark_cep.pipeline.wire.reports import (
    Count,
    Counts,
    EventTime,
    GoneRule,
    ProcessMemory,
    Report,
    count_dead_letter,
)
from spark_cep.rules.plans import plan_of

#: A packet with its kind.
_Packet = tuple[int, bytes]
#: Of what the matcher counts of a rule: the first only serves to share out time, and failures are
#: dead letters.
_NOT_REPORTED = frozenset({"tested", "failed"})


@dataclass(frozen=True)
class Matching:
    """The part that matchers of any rules share; it can be pickled."""

    encoder: OutputEncoder
    options: MatchOptions

    def processor(self, rules: str) -> MatchProcessor:
        """The matcher of a batch with these rules (:func:`spark_cep.rules.plans.encoded`)."""
        return MatchProcessor(plan_of(rules), self.encoder, self.options)


class MatchProcessor:
    """Applies all partitionings of a rule set to the packets of one key group at a time."""

    def __init__(self, plan: RuleSetPlan, encoder: OutputEncoder, options: MatchOptions) -> None:
        self._encoder = encoder
        self.groups = GroupMatcher(plan, options)
        rules = (each.rule for each in plan.plans)
        self._shadow = frozenset((rule.id, rule.version) for rule in rules if rule.shadow)

    def open(self, entries: EntryMap) -> None:
        """Use this state, which is that of the key group that is at work."""
        self.groups.open(entries)

    def process(
        self,
        number: int,
        packets: Iterable[_Packet],
        offsets: str,
        offsets_before: str,
        processes: Callable[[], Iterable[ProcessMemory]] = tuple,
    ) -> Iterator[_Packet]:
        """The packets, with their kinds, of key group ``number`` in one batch in, output packets
        out. ``offsets``: digests of the batch and of the one before; ``processes``: memory, for the
        report. StateError when the state is not that of the batch before."""
        matching = encoding = 0
        groups = self.groups
        asked = perf_counter_ns()
        batch = BatchInput()
        for kind, packet in packets:
            if not batch.take(kind, packet):
                yield kind, packet
        waited = perf_counter_ns() - asked
        group = groups.begin(number, batch, offsets_before)
        records = RecordPackets()
        counts: Counts = Counter()
        ages = Ages()
        before = groups.read_ns
        began = perf_counter_ns()
        for outputs in groups.run(group, batch):
            matched = perf_counter_ns()
            matching += matched - began
            began = matched
            for result in self._encode(outputs, records, counts):
                encoding += perf_counter_ns() - began
                yield result
                began = perf_counter_ns()
            for found in outputs.results:
                if isinstance(found, Results) and found.kind is ResultKind.MATCH:
                    ages.add(found.time.tolist())
            encoded = perf_counter_ns()
            encoding += encoded - began
            began = encoded
        groups.end(group, offsets)
        matching += perf_counter_ns() - began
        matching -= groups.read_ns - before + groups.write_ns
        for topic, count in group.late.items():
            counts[Count.LATE_EVENTS, topic] += count
        if group.partly_used:
            counts[Count.PARTLY_USED,] += group.partly_used
        for event in group.late_events():
            yield from self._add(self._encoder.late(event), records, counts)
        yield from _records(records.rest())
        batch.close()
        for stage, spent in (
            ("shuffle", waited),
            ("state_read", groups.read_ns),
            ("match", matching),
            ("encode", encoding),
            ("state_write", groups.write_ns),
        ):
            counts[Count.BUSY_US, stage] = spent // 1000
        for rule, spent in group.processing.items():
            counts[Count.PROCESSING_NS, rule] = round(spent)
        # One key group tells of time for all.
        clock = group.clock
        report = Report(
            counts=counts,
            processes=tuple(processes()),
            live=group.live(),
            gone=tuple(GoneRule(*rule) for rule in group.gone),
            ended=tuple(GoneRule(*rule, count) for rule, count in group.ended.items()),
            match_times=ages.times(),
            time=EventTime(clock.watermark, clock.maxima) if group.number == 0 else None,
            drained=tuple(group.drained()),
            waiting=group.events_waiting,
            beginning=group.beginning() if group.number == 0 else {},
        )
        yield PacketKind.REPORT, report.encode()

    def _encode(
        self, outputs: Outputs, records: RecordPackets, counts: Counts
    ) -> Iterator[_Packet]:
        """Yield findings as packets; a part of them stays in ``records``."""
        encoder = self._encoder
        for (rule, what), number in outputs.counts.items():
            if what not in _NOT_REPORTED:
                counts[Count(what), rule] += number
        for found in outputs.results:
            if isinstance(found, ResultRows):
                counts[Count.MATCH_ROWS, found.plan.rule.id] += len(found)
            encoded, replaced = encoder.results(found)
            live, shadow = encoded.split(self._shadow) if self._shadow else (encoded, None)
            yield from self._columns(live)
            if shadow is not None:
                yield from self._columns(shadow, shadow=True)
            for version, record in replaced:
                yield from self._add(record, records, counts, version)
        for letter in outputs.dead_letters:
            count_dead_letter(counts, letter.reason, letter.rule_id, letter.rule_version)
            yield from _records(records.add(encoder.dead_letter(letter)))

    def _columns(self, encoded: EncodedResults, *, shadow: bool = False) -> Iterator[_Packet]:
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
        yield PacketKind.RESULTS, columns.encode()

    def _add(
        self,
        record: OutputRecord,
        records: RecordPackets,
        counts: Counts,
        rule: tuple[str, int] | tuple[()] = (),
    ) -> Iterator[_Packet]:
        if self._encoder.is_dead_letter(record):
            count_dead_letter(counts, Reason.OUTPUT_TOO_LARGE.value, *rule)
        return _records(records.add(record))


def _records(packets: Iterable[bytes]) -> Iterator[_Packet]:
    for packet in packets:
        yield PacketKind.RECORDS, packet
