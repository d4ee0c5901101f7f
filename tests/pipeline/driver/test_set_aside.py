"""A batch whose rules were set aside: which ones run in place of those."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pipeline.driver.checkpoint.partly_written import PartlyWritten
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules, digest
from spark_cep.pipeline.driver.rules.rules_at_start import _without_crashing
from spark_cep.rules.overrides import Override, Overrides, PlacedOverride
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import RuleSet
from tests.pipeline.driver.test_drained_rules import Log, rules

_OVERRIDES = Overrides(end=5)


def carrying(runs: int, *carried: int) -> RuleSet:
    """A version that runs, and those that it carries over."""
    return replace(rules(runs), carried=tuple(rules(each).loaded[0] for each in carried))


def one(version: int) -> LoadedRule:
    """A version."""
    return rules(version).loaded[0]


def substitute(before: RuleSet, after: RuleSet, *, written: bool) -> LoggedRules:
    """For batch 9, after three runs that failed in it, with a part of it ``written`` or not."""
    log: Any = Log()
    log.of = lambda batch: LoggedRules(4, 7, before)
    begun = PartlyWritten(9, "") if written else None
    found = _without_crashing(log, LoggedRules(9, 8, after, attempts=3), 9, begun, _OVERRIDES)
    assert log.written == [found]
    assert (found.batch, found.number, found.attempts) == (9, 8, 0)
    return found


CHANGES = [
    (rules(2, 1), rules(3, 1, 2)),
    (carrying(2, 1), carrying(3, 2, 1)),
    (rules(2), rules(3)),
]


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_the_version_before_runs(before: RuleSet, after: RuleSet) -> None:
    """And what drained or moved to that."""
    assert substitute(before, after, written=False).rules == before


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_no_version_runs_in_a_batch_that_is_written_in_part(
    before: RuleSet, after: RuleSet
) -> None:
    """That part lacks the output of the old version, so neither it nor what drains or moves goes
    on. It is there, and runs once somebody resumes it; another version does, too."""
    found = substitute(before, after, written=True)
    assert (found.rules.loaded, found.rules.running) == (before.loaded, ())
    assert (found.rules.draining, found.rules.carried, dict(found.since)) == ((), (), {})
    (problem,) = found.against(one(3))
    assert "failed 3 times; a part of what it gave in that batch may be in the" in problem.message
    paused = found.rules.paused
    assert "version 3 is set aside: batch 9" in paused["a"].reason
    assert _OVERRIDES.pauses(paused) == paused
    assert rules(4).pausing(paused).paused == {}
    resumed = Overrides({"a": PlacedOverride(Override(), 5, "overrides/0/5")}, end=6)
    assert resumed.pauses(paused) == {}


def test_after_batches_without_an_event() -> None:
    """The set that follows is another one, from the batch that failed on."""
    log: Any = Log()
    log.of = lambda batch: LoggedRules(4, 7, rules(2)) if batch < 8 else None
    after = LoggedRules(8, 8, rules(3), attempts=3, starts={8: {"t": {0: 5}}})
    assert [after.is_first(batch, {"t": {0: 5}}) for batch in (8, 9)] == [True, True]
    assert [after.is_first(batch, {"t": {0: 6}}) for batch in (8, 9)] == [True, False]
    found = _without_crashing(log, after, 9, None, _OVERRIDES)
    assert log.written == [found]
    assert (found.batch, found.number, found.attempts, found.rules) == (9, 9, 0, rules(2))
    assert found.against(one(3))
    assert found.starts[9] == {"t": {0: 5}}


def test_a_rule_that_nothing_ran_in_place_of() -> None:
    """It is left out."""
    found = substitute(RuleSet(), rules(1), written=True)
    assert (found.rules, list(found.set_aside)) == (RuleSet(), [digest(one(1))])


def test_a_rule_that_was_resumed() -> None:
    """It is paused again, or the next batch would have it once more."""
    paused = rules(1).pausing({"a": Pause("noisy", "anna")})
    found = substitute(paused, rules(1), written=False)
    pauses = found.rules.paused
    assert found.rules.running == ()
    assert (
        Overrides({"a": PlacedOverride(Override(), 4, "overrides/0/4")}, end=5).pauses(pauses)
        == pauses
    )
