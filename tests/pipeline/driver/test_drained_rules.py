"""Which rules batches have while versions drain."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import DrainTime
from spark_cep.errors import StateError
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules, CompiledRules
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules
from spark_cep.rules.overrides import Overrides
from spark_cep.rules.rule_set import DrainingVersion, RuleSet

RULE = "{{id: a, version: {0}, key: k, pattern: [{{step: a, where: n = {0}}}]}}"


class Log:
    """What was written."""

    def __init__(self) -> None:
        self.written: list[LoggedRules] = []

    def write(self, logged: LoggedRules) -> None:
        """As the job's."""
        self.written.append(logged)

    def of(self, batch: int) -> LoggedRules | None:
        """As the job's."""
        return next((each for each in reversed(self.written) if each.batch <= batch), None)


def rules(runs: int, *drain: int) -> RuleSet:
    """A version that runs, and those that drain."""
    loaded = {n: load_rules(RULE.format(n), "a.yaml")[0] for n in (runs, *drain)}
    return RuleSet(
        (loaded[runs],), draining=tuple(DrainingVersion(loaded[n], 1_000) for n in drain)
    )


def test_what_has_drained_in_all_groups_goes() -> None:
    """From the next batch on, logged; a batch that runs again has it still. One group that has not
    said so is enough to keep it."""
    log: Any = Log()
    compiled = CompiledRules.of(rules(3, 1, 2), RecordTypes())
    batches = BatchRules(log, None, compiled, None, Overrides(), lambda *_: None, lambda *_: None)
    assert batches.of(5, dict) is compiled
    prints = {plan.rule.version: plan.fingerprint for plan in compiled.plan.plans}
    batches.drained({}, 4)
    batches.drained({prints[1]: 3, prints[2]: 1}, 4)
    assert batches.wanted is compiled
    batches.drained({prints[1]: 4, prints[2]: 3}, 4)
    assert batches.wanted.rules == rules(3, 2)
    assert batches.of(5, dict) is compiled
    assert batches.of(6, dict).plan.draining == {prints[2]: DrainTime(1_000)}
    assert [(each.batch, len(each.rules.draining)) for each in log.written] == [(5, 2), (6, 1)]


def test_one_that_runs_again_stays() -> None:
    """What has drained as an old version, and is wanted again by then."""
    log: Any = Log()
    compiled = CompiledRules.of(rules(2, 1), RecordTypes())
    batches = BatchRules(log, None, compiled, None, Overrides(), lambda *_: None, lambda *_: None)
    batches.of(0, dict)
    batches.want(rules(1), Overrides())
    batches.drained(dict.fromkeys(compiled.plan.draining, 4), 4)
    assert batches.of(1, dict).rules == rules(1)


def test_what_has_drained_does_not_come_back() -> None:
    """Where the source was read before and is wanted after."""
    log: Any = Log()
    batches = BatchRules(
        log, None, CompiledRules.of(rules(2, 1), RecordTypes()), None, Overrides(), lambda *_: None,
        lambda *_: None,
    )  # fmt: skip
    batches.of(0, dict)
    batches.drained(dict.fromkeys(batches.current.plan.draining, 4), 4)
    assert batches.wanted.rules == rules(2)
    assert not batches.want(rules(2, 1), Overrides())
    assert batches.want(rules(3, 1, 2), Overrides())
    assert batches.wanted.rules == rules(3, 2)


def test_rules_follow_those_of_the_last_batch() -> None:
    """Which is told without what has drained since. Rules that were made before a batch with others
    began are not taken; a batch with the same rules changes nothing."""
    log: Any = Log()
    compiled = CompiledRules.of(rules(2, 1), RecordTypes())
    batches = BatchRules(log, None, compiled, None, Overrides(), lambda *_: None, lambda *_: None)
    before = batches.ran
    assert before == RuleSet()
    batches.of(0, dict)
    assert batches.want(rules(3), Overrides(), before) is None
    assert batches.wanted_and_ran == (compiled, rules(2, 1))
    ran = batches.ran
    batches.of(1, dict)
    assert batches.want(rules(3, 1, 2), Overrides(), ran)
    assert batches.ran is ran
    batches.drained(dict.fromkeys(compiled.plan.draining, 4), 4)
    assert (batches.ran, batches.wanted.rules) == (rules(2), rules(3, 2))
    assert batches.want(rules(4, 1, 2), Overrides(), ran) is None
    again = BatchRules(
        log, log.of(1), batches.wanted, None, Overrides(), lambda *_: None, lambda *_: None
    )
    assert again.ran == rules(2, 1)


def test_rules_that_cannot_be_written_down_have_not_run() -> None:
    """What is wanted meanwhile still follows those that have."""
    log: Any = Log()
    first = CompiledRules.of(rules(1), RecordTypes())
    batches = BatchRules(log, None, first, None, Overrides(), lambda *_: None, lambda *_: None)
    batches.of(0, dict)
    batches.want(rules(2, 1), Overrides())
    log.write = Mock(side_effect=StateError("no storage"))
    with pytest.raises(StateError):
        batches.of(1, dict)
    assert batches.ran == rules(1)
