"""Key groups that are split while a run goes on change nothing of what it finds."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from spark_cep.compiler.rule_set import compile_rules
from spark_cep.errors import StateError
from spark_cep.pipeline.decode.decoder_plan import record_types
from spark_cep.pipeline.state.entries import CHANGES
from spark_cep.pipeline.state.group_format import FORMAT, GROUP
from spark_cep.pipeline.state.key_groups import key_group
from spark_cep.pipeline.state.split_group import split_group
from spark_cep.pipeline.state.stored_group import StoredGroup
from spark_cep.runner.batch import RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.runner.state import GroupEntries, RunState
from tests.runner.test_runner import HOUR, SCHEMAS, batches, found, packing, planned, sent

_BUCKET = 1 << 10


def split(state: RunState, key_groups: int, bucket_size: int = _BUCKET) -> RunState:
    """The state with so many key groups."""
    before = len(state.groups)
    groups = state.copy().groups + [GroupEntries() for _ in range(key_groups - before)]
    for number in range(before):
        split_group(number, key_groups, bucket_size, groups.__getitem__)
    return RunState(state.batches, groups)


def settings(key_groups: int, disorder_ms: int = HOUR // 5) -> RunSettings:
    """Those of a run with many small buckets."""
    return RunSettings(allowed_disorder_ms=disorder_ms, key_groups=key_groups, bucket_size=_BUCKET)


def run(seed: int, steps: dict[int, int], change: int | None = None) -> Any:
    """What a run finds, and the live partial matches after each batch. ``steps``: by batch, the
    number of key groups from then on; ``change``: the batch before which half of the rules go."""
    records = sent(seed)
    cuts = sorted(Random(seed).sample(range(1, len(records)), 7))
    plan = planned(seed)
    groups = 1
    runner = Runner(plan, packing(groups), settings(groups))
    results = []
    for number, batch in enumerate(batches(records, cuts)):
        if number == change:
            rules = [each.rule for each in plan.plans]
            plan = compile_rules(rules[::2], record_types(SCHEMAS))
            runner.use(plan, packing(groups))
        if number in steps:
            before = sorted(map(repr, runner.partial_matches()))
            groups = steps[number]
            state = split(runner.snapshot(), groups)
            runner = Runner(plan, packing(groups), settings(groups), state)
            assert sorted(map(repr, runner.partial_matches())) == before
        results.append(runner.apply(batch))
    return found(results), [
        {rule: count for rule, count in each.live.items() if count} for each in results
    ]


@pytest.mark.parametrize("change", [None, 3, 4])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_a_split_changes_nothing(seed: int, change: int | None) -> None:
    """With events that wait, buckets with changes, and others written under rules before; one split
    after the other, and of one group into many. Live partial matches are counted as before."""
    whole = run(seed, {}, change)
    assert any(whole[0].values())
    assert run(seed, {2: 2, 4: 6, 5: 6, 6: 12}, change) == whole
    assert run(seed, {4: 16}, change) == whole


@pytest.mark.slow
def test_each_group_has_its_own_keys_alone() -> None:
    """In as few buckets as the size asks for; nothing else is left."""
    runner = Runner(planned(1), packing(1), settings(1))
    for batch in batches(sent(1), (200, 300))[:2]:
        runner.apply(batch)
    state = runner.snapshot()
    stored = StoredGroup(state.groups[0].by_name[GROUP])
    divided = split(state, 4, 64 << 10)
    every: list[str | None] = []
    for number, group in enumerate(divided.groups):
        part = StoredGroup(group.by_name[GROUP])
        assert part.layout == {"format": FORMAT, "key_groups": 4}
        assert part.buckets <= stored.buckets
        keys = list(keys_of(group))
        assert {key_group(key, 4) for key in keys} <= {number}
        every += keys
    assert sorted(map(str, every)) == sorted(map(str, keys_of(state.groups[0])))
    assert len(every) > 4
    assert {len(group.by_name) for group in divided.groups} != {len(state.groups[0].by_name)}


def keys_of(group: GroupEntries) -> Iterator[str | None]:
    """The keys of the partial matches that a group holds, each as often as it has some."""
    stored = StoredGroup(group.by_name[GROUP])
    values = {
        name: stored.check(0, name, value) for name, value in group.by_name.items() if name != GROUP
    }
    for name, value in values.items():
        if not name.endswith(CHANGES):
            yield from (key for key, _ in stored.of_all_keys(value, values.get(name + CHANGES)))


def test_a_group_that_is_not_there() -> None:
    """Is told."""
    with pytest.raises(StateError, match="there is nothing of key group 0"):
        split(RunState.empty(1), 2)
