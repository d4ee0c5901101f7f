"""The second stage: packets of the first one, in the order of one process, to results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

from spark_cep.backtest.replay import OpenMatches, ReplayedBatch, make_ready
from spark_cep.backtest.stages.reading import Letters, Packet, PiecePlace, PieceSummary, Reading
from spark_cep.backtest.tallies import tallies_of
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import DeadLetter
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions
from spark_cep.pipeline.decode.pack import Packed
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.packets import EventTimes, PartitionTime
from spark_cep.pipeline.wire.reports import Report
from spark_cep.pipeline.wire.task_properties import TaskProperties
from spark_cep.recorded.merging import AtEnd, MergedBatch, Piece, PieceQueue, merged
from spark_cep.rules.plans import plan_of
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.runner.runner import Runner


class BatchPlan(NamedTuple):
    """A batch of the second stage."""

    watermark: int
    newest: int
    rows: int
    read: int

    @classmethod
    def of(cls, batch: MergedBatch[PiecePlace]) -> BatchPlan:
        """The batch without its pieces."""
        return cls(batch.watermark, batch.newest, batch.rows, batch.read)


#: Number of a batch, task, place of the piece, number in it.
_Key = tuple[int, int, PiecePlace, int]


@dataclass(frozen=True)
class MatchStage:
    """The second stage, as its tasks need it. ``batch_of``: the number of the batch of each piece;
    ``keeps_results``: results are wanted, not only counted."""

    inputs: Packing
    plan: str
    settings: RunSettings
    tasks: int
    batches: Sequence[BatchPlan]
    batch_of: Mapping[PiecePlace, int]
    keeps_results: bool

    def keyed(
        self, found: Iterable[Packet | Letters | PieceSummary]
    ) -> Iterator[tuple[_Key, Packet | Letters]]:
        """Packets and dead letters by the batch and task that they are for."""
        for each in found:
            if isinstance(each, Packet):
                yield (self.batch_of[each.place], each.task, each.place, each.number), each
            elif isinstance(each, Letters):
                batch = self.batch_of[each.place]
                yield (batch, batch % self.tasks, each.place, -1), each

    def matched(
        self, task: int, packets: Iterable[tuple[_Key, Packet | Letters]]
    ) -> Iterator[ReplayedBatch | OpenMatches]:
        """The packets of a task, batch by batch, to results. Each batch is counted by one task."""
        plan = plan_of(self.plan)
        make_ready(plan)
        inputs = _PacketInputs(self.inputs)
        runner = Runner(plan, inputs, replace(self.settings, key_groups=1), columns=True)
        live: Mapping[tuple[str, int], int] = {}
        by_batch = groupby(packets, key=lambda each: each[0][0])
        waiting = next(by_batch, None)
        for number, batch in enumerate(self.batches):
            letters: list[DeadLetter] = []
            inputs.packets = []
            if waiting is not None and waiting[0] == number:
                for _, each in waiting[1]:
                    if isinstance(each, Letters):
                        letters += each.letters
                    else:
                        inputs.packets.append((0, each.kind, each.packet))
                waiting = next(by_batch, None)
            inputs.times = EventTimes((PartitionTime("", 0, batch.newest),))
            results = runner.apply(Batch(watermark=batch.watermark))
            live = results.live
            letters += results.outputs.dead_letters
            tallies = tallies_of(results.outputs.results)
            # Columns have the plans of rules with them, which need not travel.
            kept = results.outputs.as_objects() if self.keeps_results else Outputs()
            results.outputs = replace(kept, counts=results.outputs.counts)
            rows = batch.rows if number % self.tasks == task else 0
            yield ReplayedBatch(results, letters, rows, batch.read, tallies)
        yield OpenMatches.of(runner, live)


@dataclass
class _PacketInputs:
    """Packets of a batch in the place of its records: the inputs of a runner, and their packer."""

    of: Packing
    packets: list[tuple[int, int, bytes]] = field(default_factory=list)
    times: EventTimes = field(default_factory=lambda: EventTimes(()))

    @property
    def options(self) -> DecodeOptions:
        """See :class:`~spark_cep.runner.runner.Inputs`."""
        return replace(self.of.options, key_groups=1)

    @property
    def types(self) -> RecordTypes:
        """See :class:`~spark_cep.runner.runner.Inputs`."""
        return self.of.types

    @property
    def type_names(self) -> tuple[str | None, ...]:
        """See :class:`~spark_cep.runner.runner.Inputs`."""
        return self.of.type_names

    def packer(self, plan: RuleSetPlan) -> _PacketInputs:  # noqa: ARG002  packed already
        """See :class:`~spark_cep.runner.runner.Inputs`."""
        return self

    def pack(
        self,
        read: Iterable[KafkaRecords],  # noqa: ARG002  packed already
        properties: TaskProperties,  # noqa: ARG002
    ) -> Iterator[Packed]:
        """Yield the packets of the batch."""
        yield Packed(self.packets, [])

    def report(self) -> Report:
        """Return no counts: the first stage has them."""
        return Report()


def matching_of(
    reading: Reading,
    summaries: Iterable[PieceSummary],
    at_end: AtEnd,
    tasks: int,
    keeps_results: bool,
) -> MatchStage:
    """The second stage for all pieces of the first, merged as one process would."""
    by_recording: defaultdict[int, list[PieceSummary]] = defaultdict(list)
    for each in summaries:
        by_recording[each.place.recording].append(each)
    queues = []
    for number, recording in enumerate(reading.events.recordings):
        mine = sorted(by_recording[number], key=lambda each: each.place)
        pieces = (Piece(each.facts, each.place) for each in mine)
        first = mine[0].facts.least if mine else None
        queues.append(PieceQueue(pieces, recording.size, first))
    batches: list[BatchPlan] = []
    batch_of: dict[PiecePlace, int] = {}
    for batch in merged(queues, reading.settings, at_end):
        batch_of.update((piece.content, len(batches)) for piece in batch.pieces)
        batches.append(BatchPlan.of(batch))
    inputs = reading.events.inputs(reading.settings.key_groups)
    return MatchStage(
        inputs, reading.plan, reading.settings, tasks, batches, batch_of, keeps_results
    )
