"""A replay on a Spark master, for more than one core: a batch job of production's two stages.

Each task of the first stage merges the recordings, which takes little time, and decodes its share
of the batches. Packets go to the tasks of the second stage by key group; there the batch runner
matches what its key groups get, batch by batch. So the results are those of one process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from spark_cep.backtest.replay import OpenMatches, Replay, ReplayedBatch
from spark_cep.backtest.tallies import tallies_of
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.errors import StartError
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import DeadLetter
from spark_cep.pipeline.decode.decoder import LAST_TIME
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions
from spark_cep.pipeline.decode.pack import Packed
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.match.watermark import BEGINNING
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.packets import EventTimes
from spark_cep.pipeline.wire.reports import Report
from spark_cep.pipeline.wire.task_properties import TaskProperties
from spark_cep.recorded.events import AtEnd, RecordedEvents
from spark_cep.rules.plans import plan_of
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.runner.runner import Runner

if TYPE_CHECKING:
    from pyspark import SparkContext

#: Number of a batch, key group, place among those of both. The beginning of a batch comes first.
_Key = tuple[int, int, int]
_BEGINS = -1
#: Shares of the state for each task, which keys are spread over.
_GROUPS_PER_TASK = 2


@dataclass(frozen=True)
class _Begins:
    """The beginning of a batch, for one task. ``records``, ``letters`` and ``read`` are told to one
    task alone."""

    watermark: int
    times: EventTimes
    records: int = 0
    letters: tuple[DeadLetter, ...] = ()
    read: int = 0


@dataclass(frozen=True)
class _Job:
    """The whole job, as tasks need it. ``plan``: as :func:`spark_cep.rules.plans.plan_of` reads
    it; ``keeps_results``: results are wanted, not only counted."""

    events: RecordedEvents
    plan: str
    settings: RunSettings
    at_end: AtEnd
    tasks: int
    keeps_results: bool

    @property
    def inputs(self) -> Packing:
        """The record types."""
        return self.events.inputs(self.settings.key_groups)

    def packed(self, shares: Iterable[int]) -> Iterator[tuple[_Key, Any]]:
        """The first stage: batches of these shares to packets, by batch and key group."""
        packer = self.inputs.packer(plan_of(self.plan))
        for share in shares:
            before = BEGINNING
            for number, each in enumerate(self.events.batches(self.settings, self.at_end)):
                assert each.batch.watermark is not None
                if number % self.tasks == share:
                    letters, place = [*each.letters], 0
                    properties = TaskProperties(LAST_TIME, before)
                    for packets, more in packer.pack(each.batch.records, properties):
                        letters += more
                        for group, kind, packet in packets:
                            yield (number, group, place), (kind, packet)
                            place += 1
                    for task in range(self.tasks):
                        begins = _Begins(each.batch.watermark, packer.times)
                        if task == share:
                            begins = _Begins(
                                each.batch.watermark, packer.times, each.records, tuple(letters),
                                each.read,
                            )  # fmt: skip
                        yield (number, task, _BEGINS), begins
                before = each.batch.watermark

    def matched(self, packets: Iterable[tuple[_Key, Any]]) -> Iterator[ReplayedBatch | OpenMatches]:
        """The second stage: the packets of some key groups, batch by batch, to results."""
        inputs = _PacketInputs(self.inputs)
        runner = Runner(plan_of(self.plan), inputs, self.settings, columns=True)
        live: Mapping[tuple[str, int], int] = {}
        for _, several in groupby(packets, key=lambda each: each[0][0]):
            mine = [*several]
            (begins,) = (each for (_, _, place), each in mine if place == _BEGINS)
            inputs.packets = [
                (group, *packet) for (_, group, place), packet in mine if place != _BEGINS
            ]
            inputs.times = begins.times
            results = runner.apply(Batch(watermark=begins.watermark))
            live = results.live
            letters = [*begins.letters, *results.outputs.dead_letters]
            tallies = tallies_of(results.outputs.results)
            # Columns have the plans of rules with them, which need not travel.
            kept = results.outputs.as_objects() if self.keeps_results else Outputs()
            results.outputs = replace(kept, counts=results.outputs.counts)
            yield ReplayedBatch(results, letters, begins.records, begins.read, tallies)
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
        return self.of.options

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


class SparkReplay:
    """A replay of the rules of ``replay`` over its events, on Spark."""

    def __init__(self, replay: Replay, spark: SparkContext, *, keeps_results: bool) -> None:
        self._replay, self._spark, self._keeps_results = replay, spark, keeps_results
        self._open = OpenMatches()

    def run(self, at_end: AtEnd = "wait") -> Iterator[ReplayedBatch]:
        """The results of each task, batch by batch."""
        tasks = self._spark.defaultParallelism
        settings = replace(self._replay.settings, key_groups=tasks * _GROUPS_PER_TASK)
        job = _Job(
            self._replay.events.snapshot(), self._replay.plan_text, settings, at_end, tasks,
            self._keeps_results,
        )  # fmt: skip
        packets = self._spark.parallelize(range(tasks), tasks).mapPartitions(job.packed)
        by_group: Any = packets.repartitionAndSortWithinPartitions(
            tasks, lambda key: key[1] % tasks
        )
        for found in by_group.mapPartitions(job.matched).toLocalIterator():
            if isinstance(found, OpenMatches):
                self._open.add(found)
            else:
                yield found

    def open_matches(self) -> OpenMatches:
        """The partial matches that are open at the end."""
        return self._open


@contextmanager
def spark_context(master: str) -> Iterator[SparkContext]:
    """Spark at ``master``, until the block ends. Raises StartError where it does not start."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("spark-cep backtest")
    builder = builder.config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    try:
        session = builder.getOrCreate()
    except Exception as error:  # noqa: BLE001  Spark raises all kinds
        raise StartError(f"Spark cannot start with --master {master!r}: {error}") from None
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session.sparkContext
    finally:
        session.stop()
