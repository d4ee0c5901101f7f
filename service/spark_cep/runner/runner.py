"""The batch runner: decode stage and match stage in one process, one batch after the other.

A batch goes the way that it goes in the job: :class:`~spark_cep.pipeline.decode.pack.Packer` makes
packets for key groups of its records, and each key group reads its state, applies its packets, and
writes its state. So matches have the ids that the job gives them, whatever the number of key
groups, however records are cut into batches, and wherever a run goes on from a snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.event_times import LAST_TIME
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.matcher.keys_state import chosen
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions
from spark_cep.pipeline.decode.pack import Packed
from spark_cep.pipeline.match.batch_input import BatchInput
from spark_cep.pipeline.match.group_matcher import GroupMatcher, MakeMatcher
from spark_cep.pipeline.match.key_group import KeyGroup
from spark_cep.pipeline.match.options import MatchOptions
from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.packets import EventTimes
from spark_cep.pipeline.wire.reports import Count, Report
from spark_cep.pipeline.wire.task_properties import TaskProperties
from spark_cep.runner.batch import Batch, BatchResults, RunSettings
from spark_cep.runner.state import RunState


class Packs(Protocol):
    """Packs records: :class:`~spark_cep.pipeline.decode.pack.Packer`."""

    def pack(self, read: Iterable[KafkaRecords], properties: TaskProperties) -> Iterator[Packed]:
        """Packets and dead letters of one batch's records."""

    @property
    def times(self) -> EventTimes:
        """The largest event time of each partition of the records."""

    def report(self) -> Report:
        """The counts of the records."""


class Inputs(Protocol):
    """The record types that are read, and what reads them:
    :class:`~spark_cep.pipeline.decode.packing.Packing` for records of a format."""

    @property
    def options(self) -> DecodeOptions:
        """The options of decoding."""

    @property
    def types(self) -> RecordTypes:
        """The record types, as far as they are known."""

    @property
    def type_names(self) -> tuple[str | None, ...]:
        """Their names by number."""

    def packer(self, plan: RuleSetPlan) -> Packs:
        """The packer for the rules of ``plan``."""


class Runner:
    """Runs rules over batches of records.

    Args:
        plan: The rules, compiled for the types of ``inputs``.
        inputs: What reads records; for as many key groups as ``settings`` say.
        settings: The settings of the job that it stands for.
        state: What :meth:`snapshot` gave, to go on from.
        columns: Whether matches and timeouts stay columns
            (:attr:`~spark_cep.matcher.findings.outputs.Outputs.results`).
        matcher: What makes the matchers of rules.

    A batch that raises is not applied, or in part: go on with a new runner from a snapshot.

    Raises:
        ValueError: ``inputs`` or ``state`` are for another number of key groups.
    """

    def __init__(
        self,
        plan: RuleSetPlan,
        inputs: Inputs,
        settings: RunSettings | None = None,
        state: RunState | None = None,
        *,
        columns: bool = False,
        matcher: MakeMatcher = KeysMatcher,
    ) -> None:
        self._settings = settings or RunSettings()
        self._columns, self._make = columns, matcher
        count = self._settings.key_groups
        self._state = RunState.empty(count) if state is None else state.copy()
        for what, number in (
            ("the inputs are", inputs.options.key_groups),
            ("the state is", len(self._state.groups)),
        ):
            if number != count:
                raise ValueError(f"{what} for {number} key groups, the settings say {count}")
        self.use(plan, inputs)
        #: The watermark, in milliseconds.
        self.watermark = self._group(0).clock.watermark if self._state.batches else BEGINNING

    def use(self, plan: RuleSetPlan, inputs: Inputs) -> None:
        """Run the next batches with other rules, or with inputs that know more record types or
        schemas; what is remembered goes on, as in the job."""
        settings = self._settings
        self._packer = inputs.packer(plan)
        options = MatchOptions(
            settings.key_groups,
            settings.bucket_size,
            settings.watermark,
            settings.allowed_disorder_ms,
            settings.late_events != "drop",
            inputs.type_names,
            inputs.types,
        )
        self._matcher = GroupMatcher(plan, options, self._make)

    def run(self, batches: Iterable[Batch]) -> Iterator[BatchResults]:
        """Apply batches in order; the results of each, once it is applied."""
        for batch in batches:
            yield self.apply(batch)

    def apply(self, batch: Batch) -> BatchResults:
        """Apply one batch. Raises NewSchemasError, before anything is applied, for records whose
        schema ``inputs`` must learn first (:meth:`use`)."""
        results = BatchResults()
        state, settings = self._state, self._settings
        before = self.watermark
        if batch.control.lower_bound is not None:
            before = max(before, batch.control.lower_bound)
        groups = [BatchInput(control=batch.control) for _ in range(settings.key_groups)]
        planned_at = LAST_TIME if batch.planned_at is None else batch.planned_at
        properties = TaskProperties(planned_at, before)
        for packets, letters in self._packer.pack(batch.records, properties):
            for to, kind, packet in packets:
                groups[to].take(kind, packet)
            results.outputs.dead_letters += letters
        late: Counter[str] = Counter()
        processing: Counter[str] = Counter()
        live: Counter[tuple[str, int]] = Counter()
        gone: Counter[tuple[str, int]] = Counter()
        written = str(state.batches + 1)
        for number, taken in enumerate(groups):
            if batch.watermark is None:
                taken.times.append(self._packer.times)
            self._matcher.open(state.groups[number])
            group = self._matcher.begin(number, taken, state.written)
            if batch.watermark is not None:
                read = [time for _, _, time in self._packer.times.partitions if time is not None]
                group.clock.reach(batch.watermark, max(read, default=BEGINNING))
            for outputs in self._matcher.run(group, taken):
                results.outputs.add(outputs if self._columns else outputs.as_objects())
            self._matcher.end(group, written)
            results.late += group.late_events()
            late += group.late
            processing.update(group.processing)
            live.update(group.live())
            for rule, version, partial_matches in group.gone:
                gone[rule, version] += partial_matches
            taken.close()
            results.watermark = group.clock.watermark
        state.batches += 1
        self.watermark = results.watermark
        results.counts = self._packer.report().counts
        for topic, count in late.items():
            results.counts[Count.LATE_EVENTS, topic] += count
        for rule, spent in processing.items():
            results.counts[Count.PROCESSING_NS, rule] = round(spent)
        results.late_counts, results.live = late, live
        results.gone = [(*rule, count) for rule, count in gone.items()]
        return results

    def snapshot(self) -> RunState:
        """The state as it is now, to go on from."""
        return self._state.copy()

    def partial_matches(self) -> Iterator[PartialMatch]:
        """The live partial matches, key group by key group."""
        for number in range(self._settings.key_groups if self._state.batches else 0):
            group = self._group(number)
            for matcher, keys in group.states(self._matcher.load):
                yield from matcher.live(keys, group.names)

    def oldest(self, count: int) -> Iterator[PartialMatch]:
        """The live partial matches of the keys that remember the oldest events, ``count`` of each
        key group: among them are the ``count`` that began first."""
        for number in range(self._settings.key_groups if self._state.batches else 0):
            group = self._group(number)
            for matcher, keys in group.states(self._matcher.load):
                first = np.full(len(keys.keys), END)
                np.minimum.at(first, keys.event_key, keys.events.time)
                wanted = np.zeros(len(first), bool)
                wanted[np.argsort(first, kind="stable")[:count]] = True
                yield from matcher.live(chosen(keys, wanted), group.names)

    def _group(self, number: int) -> KeyGroup:
        """A key group as it is stored."""
        self._matcher.open(self._state.groups[number])
        return self._matcher.stored(number, self._state.written)
