"""The batch runner: batching, key groups and restarts change nothing; its ids are the job's."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas, WriterSchema
from spark_cep.compiler.rule_set import RuleSetPlan, compile_rules
from spark_cep.event_times import KAFKA_TIMESTAMP
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.row_pattern.matcher import RowPatternLoopRun
from spark_cep.matcher.steps.matcher import StepLoopRun
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, record_types
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.match import partitioning_batch
from spark_cep.pipeline.match.watermark import END
from spark_cep.pipeline.state.group_format import GROUP
from spark_cep.pipeline.state.stored_group import StoredGroup
from spark_cep.pipeline.wire.control import ControlRecord
from spark_cep.pipeline.wire.new_schemas import NewSchemasError
from spark_cep.runner.batch import Batch, BatchResults, RunSettings
from spark_cep.runner.runner import Runner
from tests.pipeline.decode import schemas
from tests.pipeline.decode.lookups import lookup
from tests.pipeline.decode.reference import Kafka, kafka_records
from tests.testkit.test_as_the_job import START_MS, encoded, some_events, some_rules

READER = schemas.reader()
SCHEMAS = ResolvedSchemas(
    (EventType(0, "t", "t.Event", READER, ("t",), KAFKA_TIMESTAMP, "auto"),),
    {1: (WriterSchema(1, READER, None, 0),)},
    # The registry knows id 7, too.
    lookup=lookup(7),
)
HOUR = 3_600_000


def packing(key_groups: int) -> Packing:
    """The schemas, as the job has them."""
    return Packing(SCHEMAS, DecodeOptions(key_groups, None, keep_all=False))


def planned(seed: int) -> RuleSetPlan:
    """Rules with look-backs, keys and measures of all kinds, and in SQL."""
    rules = load_rules(some_rules(Random(seed), both=False), "rules.yaml")
    return compile_rules((each.rule for each in rules), record_types(SCHEMAS))


def sent(seed: int) -> list[Kafka]:
    """Records in the order of their times, but for some, in three partitions."""
    random = Random(seed)
    events = some_events(random, {"t.Event": READER})
    events.sort(key=lambda event: event.after_ms + random.randrange(HOUR // 10))
    return [
        Kafka("t", n % 3, n, START_MS + event.after_ms, b"k", encoded(1, READER, event.values))
        for n, event in enumerate(events)
    ]


def batches(records: Sequence[Kafka], cuts: Sequence[int]) -> list[Batch]:
    """The records cut into batches, and one that ends all."""
    ends = [0, *cuts, len(records)]
    made = [
        Batch(kafka_records(sorted(records[a:b], key=lambda one: one.partition)))
        for a, b in pairwise(ends)
    ]
    return [*made, Batch(control=ControlRecord(lower_bound=END))]


def found(results: Sequence[BatchResults]) -> Any:
    """All that batches gave, in an order that does not depend on them."""
    all_of = Outputs()
    for each in results:
        all_of.add(each.outputs)
    return {
        "matches": sorted(map(repr, all_of.matches)),
        "rows": sorted(map(repr, all_of.rows)),
        "timeouts": sorted(map(repr, all_of.timeouts)),
        "dead letters": sorted(map(repr, all_of.dead_letters)),
        "late": sorted(repr(late.at) for each in results for late in each.late),
    }


def run(
    plan: RuleSetPlan,
    batches: Sequence[Batch],
    settings: RunSettings,
    after: Callable[[Runner], Runner] = lambda runner: runner,
) -> Any:
    """What a run finds; ``after`` each batch."""
    runner = Runner(plan, packing(settings.key_groups), settings)
    results = []
    for batch in batches:
        results.append(runner.apply(batch))
        runner = after(runner)
    return found(results)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_cuts_key_groups_and_restarts_change_nothing(seed: int) -> None:
    """With events within the allowed disorder."""
    plan, records = planned(seed), sent(seed)
    settings = RunSettings(allowed_disorder_ms=HOUR // 5)
    whole = run(plan, batches(records, ()), settings)
    assert len(whole["matches"]) > 5
    cuts = sorted(Random(seed).sample(range(1, len(records)), 7))

    def restarted(runner: Runner) -> Runner:
        return Runner(plan, packing(16), settings, runner.snapshot())

    cut = batches(records, cuts)
    assert run(plan, cut, settings) == whole
    assert run(plan, cut, settings, restarted) == whole
    one_group = RunSettings(allowed_disorder_ms=HOUR // 5, key_groups=1)
    assert run(plan, cut, one_group) == whole


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_portions_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With buckets of which a batch has as many at once as its events need."""
    plan, records = planned(seed), sent(seed)
    settings = RunSettings(allowed_disorder_ms=HOUR // 5, key_groups=1)
    cut = batches(records, sorted(Random(seed).sample(range(1, len(records)), 7)))
    whole = [found([each]) for each in Runner(plan, packing(1), settings).run(cut)]
    runner, buckets = Runner(plan, packing(1), settings), []
    for number, batch in enumerate(cut):
        # Smaller from batch to batch, so that those which hold something are split, too.
        monkeypatch.setattr(partitioning_batch, "PORTION", 8_000 >> number)
        assert found([runner.apply(batch)]) == whole[number]
        buckets.append(StoredGroup(runner.snapshot().groups[0].by_name[GROUP]).buckets)
    assert len(set(buckets)) > 2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_nothing_waits_for_a_collection(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of cycles of objects: a task of the job has none."""
    runs: list[weakref.ref[Any]] = []
    for kind in (StepLoopRun, RowPatternLoopRun):
        monkeypatch.setattr(kind, "__init__", _noting(kind.__init__, runs))
    runner = Runner(planned(seed), packing(16))
    gc.disable()
    try:
        for batch in batches(sent(seed), (20,)):
            runner.apply(batch)
        assert len(runs) > 10
        assert {each() for each in runs} == {None}
    finally:
        gc.enable()


def _noting(initialize: Callable[..., None], made: list[weakref.ref[Any]]) -> Callable[..., None]:
    def noted(self: Any, *arguments: Any, **options: Any) -> None:
        made.append(weakref.ref(self))
        initialize(self, *arguments, **options)

    return noted


def test_a_snapshot_is_not_changed_by_what_follows() -> None:
    """Two runs that go on from it find the same."""
    plan, made = planned(1), batches(sent(1), (20,))
    settings = RunSettings(allowed_disorder_ms=HOUR)
    runner = Runner(plan, packing(16), settings)
    runner.apply(made[0])
    snapshot = runner.snapshot()
    first = [*runner.run(made[1:])]
    again = [*Runner(plan, packing(16), settings, snapshot).run(made[1:])]
    assert found(first) == found(again)
    assert first[-1].watermark == again[-1].watermark == END


def test_late_events_have_their_record() -> None:
    """Late is what comes behind the watermark of the batch before, or of the control record."""
    plan = compile_rules(
        [load_rules("{id: r, pattern: [{step: a, where: 'true'}]}", "r")[0].rule],
        record_types(SCHEMAS),
    )
    value = encoded(1, READER, some_events(Random(0), {"t.Event": READER})[0].values)

    def of(offset: int, time: int) -> list[Any]:
        return kafka_records([Kafka("t", 0, offset, time, b"key", value)])

    runner = Runner(plan, packing(16))
    first, late, bound, told = runner.run(
        [
            Batch(of(0, 1_000)),
            Batch(of(1, 999)),
            Batch(of(2, 1_500), ControlRecord(lower_bound=2_000)),
            Batch(of(3, 2_001), watermark=5_000),
        ]
    )
    assert [len(each.late) for each in (first, late, bound, told)] == [0, 1, 1, 0]
    assert late.late[0].record_key == b"key"
    assert late.late[0].record_value == value
    assert late.late_counts == {"t": 1}
    assert [match.time for match in told.outputs.matches] == [2_001]
    assert runner.watermark == 5_000


def test_records_that_cannot_be_read_are_dead_letters() -> None:
    """With their reason and bytes; a schema that the registry has is to be learnt first."""
    plan = planned(0)
    runner = Runner(plan, packing(16))
    unframed = Kafka("t", 0, 0, 5, None, b"x")
    (letter,) = runner.apply(Batch(kafka_records([unframed]))).outputs.dead_letters
    assert (letter.reason, letter.record_value) == ("not_framed", b"x")
    unknown = Kafka("t", 0, 1, 5, None, b"\0\0\0\0\x07")
    before = runner.snapshot()
    with pytest.raises(NewSchemasError):
        runner.apply(Batch(kafka_records([unknown])))
    assert runner.snapshot() == before


def test_rules_change_between_batches() -> None:
    """What is remembered of rules that stay goes on; partial matches of others are gone."""
    plan, made = planned(2), batches(sent(2), (30,))
    settings = RunSettings(allowed_disorder_ms=HOUR)
    runner = Runner(plan, packing(16), settings)
    live = runner.apply(made[0]).live
    assert live.total() == len(list(runner.partial_matches()))  # type: ignore[attr-defined]
    runner.use(compile_rules(()), packing(16))
    results = runner.apply(made[1])
    assert not results.outputs.matches
    assert sum(count for _, _, count in results.gone) == live.total()  # type: ignore[attr-defined]


def test_key_groups_must_agree() -> None:
    """Of inputs, settings and state."""
    with pytest.raises(ValueError, match="the inputs are for 4 key groups, the settings say 16"):
        Runner(planned(0), packing(4))
