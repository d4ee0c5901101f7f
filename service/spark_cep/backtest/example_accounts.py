"""Why one side of a comparison has not found what the other one has.

The events are read a second time, and those of the examples' keys are kept: their accounts are
written by the rules of the side that lacks the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow.compute as pc

from spark_cep.backtest.comparison import CompareReport, Example, RuleComparison
from spark_cep.backtest.replay import Replay
from spark_cep.compiler.rule_set import RuleSetPlan, compile_rules
from spark_cep.event_times import LAST_TIME
from spark_cep.model import Coordinates
from spark_cep.pattern.tree import Rule
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions
from spark_cep.pipeline.decode.pack import Packer
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.match.watermark import BEGINNING
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.wire.event_packets import rows_of
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.task_properties import TaskProperties
from spark_cep.recorded.merging import AtEnd
from spark_cep.runner.batch import Batch
from spark_cep.why.nearest import told_of
from spark_cep.why.run import why

#: Keys whose accounts are written, of each rule and side, and of all; events of one of them.
_MOST_OF_RULE = 2
_MOST_KEYS = 20
_MOST_EVENTS = 10_000


@dataclass
class _Asked:
    """The examples of one key that the rules of a replay do not find. ``batches``: the events of
    the key, with the watermarks of all."""

    rule: Rule
    key: str | None
    examples: list[Example]
    batches: list[Batch] = field(default_factory=list)
    events: int = 0

    def take(self, records: Sequence[KafkaRecords], watermark: int | None) -> None:
        """Keep the events of a batch, unless there are too many."""
        self.events += sum(map(len, records))
        kept = records if self.events <= _MOST_EVENTS else ()
        self.batches.append(Batch(kept, watermark=watermark))

    def answer(self, inputs: Packing, replay: Replay) -> None:
        """Give each example the reason why it is not found."""
        if self.events > _MOST_EVENTS:
            text = f"the key has more than {_MOST_EVENTS:,} events: ask `spark-cep why` of it"
            for example in self.examples:
                example.why = [text]
            return
        account = why(self.rule, self.key, inputs, self.batches, replay.settings)
        for example in self.examples:
            taken = {at for _, several in example.result.events for at in several}
            example.why = told_of(account, taken)


class _Keys:
    """Finds the records of the keys that are asked of, under the rules of one replay."""

    def __init__(self, replay: Replay, asked: Sequence[_Asked]) -> None:
        self.replay, self.asked = replay, asked
        self.inputs = Packing(replay.events.format, DecodeOptions(1, None, keep_all=True))
        rules = {each.rule.id: each.rule for each in asked}
        plan = compile_rules(rules.values(), self.inputs.types)
        self._parts = _parts(plan)
        self._packer: Packer = self.inputs.packer(plan)

    def take(self, batch: Batch) -> None:
        """Keep the records of a batch."""
        read = list(batch.records)
        found: list[set[Coordinates]] = [set() for _ in self.asked]
        for packets, _ in self._packer.pack(read, TaskProperties(LAST_TIME, BEGINNING)):
            for _, kind, packet in packets:
                if kind < PacketKind.EVENTS:
                    continue
                part = kind - PacketKind.EVENTS
                rows = rows_of(packet)
                keys = rows.column(f"key_{part}")
                for each, mine in zip(self.asked, found, strict=True):
                    if self._parts[each.rule.id] != part:
                        continue
                    if each.key is None:
                        wanted = pc.is_null(keys)
                    else:
                        wanted = pc.fill_null(pc.equal(keys, each.key), False)
                    chosen = rows.select(["topic", "partition", "offset"]).filter(wanted)
                    mine.update(Coordinates(**row) for row in chosen.to_pylist())
        for each, mine in zip(self.asked, found, strict=True):
            each.take([*_records(read, mine)], batch.watermark)


def explain(
    report: CompareReport,
    old: Replay,
    new: Replay,
    at_end: AtEnd,
    moved: Callable[[int, int, None], None],
) -> None:
    """Give examples the reasons why the other side does not find them. ``moved``: is told of
    progress."""
    sides = [
        _Keys(replay, asked)
        for replay, asked in (
            (new, [*_asked(report.rules, new, old, lambda each: each.examples_old)]),
            (old, [*_asked(report.rules, old, new, lambda each: each.examples_new)]),
        )
        if asked
    ]
    if not sides:
        return
    records = 0
    for batch in old.events.batches(old.settings, at_end):
        for side in sides:
            side.take(batch.batch)
        records += batch.records
        moved(batch.read, records, None)
    for side in sides:
        for each in side.asked:
            each.answer(side.inputs, side.replay)


def _asked(
    rules: Sequence[RuleComparison],
    lacks: Replay,
    has: Replay,
    examples: Callable[[RuleComparison], Sequence[Example]],
) -> Iterator[_Asked]:
    """The keys of examples that the rules of ``lacks`` do not find, the first ones."""
    left = _MOST_KEYS // 2
    theirs = {one.rule.id: one.rule for one in lacks.spelled.running}
    others = {one.rule.id: one.rule for one in has.spelled.running}
    for each in rules:
        if each.id not in theirs or each.id not in others:
            continue
        if _key(theirs[each.id]) != _key(others[each.id]):
            for example in examples(each):
                example.why = ["the rule has another key there"]
            continue
        by_key: dict[str | None, list[Example]] = {}
        for example in examples(each):
            by_key.setdefault(example.result.key, []).append(example)
        for key in [*by_key][: min(left, _MOST_OF_RULE)]:
            left -= 1
            yield _Asked(theirs[each.id], key, by_key[key])


def _key(rule: Rule) -> list[str]:
    return [each.canonical for each in rule.key]


def _parts(plan: RuleSetPlan) -> Mapping[str, int]:
    """The number of the partitioning of each rule."""
    return {
        rule.plan.rule.id: number
        for number, part in enumerate(plan.partitionings)
        for rule in part.rules
    }


def _records(read: Sequence[KafkaRecords], wanted: set[Coordinates]) -> Iterator[KafkaRecords]:
    """The records at these coordinates."""
    by_partition: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset in wanted:
        by_partition.setdefault((topic, partition), []).append(offset)
    for records in read:
        offsets = by_partition.get((records.topic, records.partition))
        if offsets:
            rows = np.flatnonzero(np.isin(records.offset, offsets))
            if len(rows):
                few = records.take(rows)
                # Without the bytes of all others.
                yield replace(
                    few, value=few.value.compacted(), key=few.key.compacted(),
                    headers=few.headers.compacted(),
                )  # fmt: skip
