"""Which rules a batch has, when they are written down, and who is told."""

from __future__ import annotations

from typing import Any

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.errors import KafkaUnavailableError, StateError
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules, CompiledRules
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules
from spark_cep.rules.overrides import Override, Overrides, PlacedOverride
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import RuleSet, assemble
from spark_cep.rules.topic_records import Offsets

_RULE = "id: {0}\nversion: {1}\nkey: k\nwithin: 1 s\npattern: [{{step: a, where: n = 1}}]\n"


def rules(**versions: int) -> RuleSet:
    """By id."""
    texts = (load_rules(_RULE.format(*each), "rules") for each in versions.items())
    return assemble(one for each in texts for one in each)


class Log:
    """A log of rule sets in memory."""

    def __init__(self) -> None:
        self.sets: list[LoggedRules] = []
        self.fails = 0

    def write(self, logged: LoggedRules) -> None:
        """As the file; ``fails``: so many times it does."""
        if self.fails:
            self.fails -= 1
            raise StateError("no storage")
        self.sets = [each for each in self.sets if each.batch != logged.batch] + [logged]

    def of(self, batch: int) -> LoggedRules | None:
        """As from the file."""
        return next((each for each in reversed(self.sets) if each.batch <= batch), None)


class Run:
    """Runs over one log; ``told``: the numbers of sets with what they followed."""

    def __init__(self) -> None:
        self.log: Any = Log()
        self.told: list[tuple[list[str], int]] = []
        self.away = False

    def begin(self, wanted: RuleSet, planned: int | None = None) -> BatchRules:
        """A start; ``planned``: the batch that is not done."""
        logged = self.log.of(10**9)
        return BatchRules(
            self.log, logged, CompiledRules.of(wanted, RecordTypes()), planned, Overrides(),
            self._decided, lambda *_: None,
        )  # fmt: skip

    def _decided(self, before: RuleSet, logged: LoggedRules, offsets: Any) -> None:
        if self.away:
            raise KafkaUnavailableError("no answer")
        assert offsets == logged.starts[logged.batch]
        self.told.append(([rule.id for rule in before.rules], logged.number))


def test_since_when_a_rule_runs() -> None:
    """Its first batch and where that began, over restarts; another version begins again, and so
    does a rule that was paused."""
    run = Run()
    job = run.begin(rules(a=1, b=1))
    job.of(0, lambda: {"t": {0: 5}})
    job.of(1, dict)
    job.want(rules(a=1, b=2, c=1), Overrides())
    job.of(2, lambda: {"t": {0: 7}})
    job.done()
    job = run.begin(rules(a=1, b=2, c=1))
    job.of(3, dict)
    assert run.log.of(3).since == {("a", 1): 0, ("b", 2): 2, ("c", 1): 2}
    assert run.log.of(3).starts == {0: {"t": {0: 5}}, 2: {"t": {0: 7}}}
    job.pause({"a": Pause("why", "who")})
    job.of(4, lambda: {"t": {0: 9}})
    job.want(rules(a=2, b=2), Overrides())
    job.of(5, lambda: {"t": {0: 9}})
    assert run.log.of(5).since == {("b", 2): 2}
    assert sorted(run.log.of(5).rules.paused) == ["a"]
    assert run.told == [([], 1), (["a", "b"], 2), (["a", "b", "c"], 3), (["a", "b", "c"], 4)]


def test_what_versions_mean_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rules that are gone and versions that were replaced, also over a restart; only as many as
    there is room for, those that were there last."""
    run = Run()
    job = run.begin(rules(a=1, b=1))
    assert job.fingerprints == {}
    job.of(0, dict)
    job.want(rules(a=2), Overrides())
    job.of(1, dict)
    assert list(job.fingerprints) == [("a", 1), ("b", 1), ("a", 2)]
    assert job.fingerprints == run.log.of(1).fingerprints
    assert len({*job.fingerprints.values()}) == 3
    monkeypatch.setattr("spark_cep.pipeline.driver.rules.rule_log.MOST_FINGERPRINTS", 3)
    job = run.begin(rules(b=1, c=1))
    job.of(2, dict)
    assert list(job.fingerprints) == [("a", 2), ("b", 1), ("c", 1)]


def test_a_set_is_told_before_its_batch() -> None:
    """Where nobody takes the news the batch does not run; a later attempt, and a later run, tells
    it again; attempts of one run count once."""
    run = Run()
    run.away = True
    job = run.begin(rules(a=1))
    for _ in range(3):
        with pytest.raises(KafkaUnavailableError):
            job.of(0, dict)
    assert run.log.of(0).attempts == 1
    job = run.begin(rules(a=1), planned=0)
    with pytest.raises(KafkaUnavailableError):
        job.of(0, dict)
    assert run.log.of(0).attempts == 2
    job.not_at_fault()
    assert run.log.of(0).attempts == 1
    run.away = False
    job.of(0, dict)
    job.of(0, dict)
    assert run.told == [([], 1)]


def test_batches_without_events_prove_nothing() -> None:
    """A run that begins the first batch with events again is one more attempt, until one is
    done."""
    run = Run()
    start: Offsets = {"t": {0: 5}}
    job = run.begin(rules(a=1))
    for batch in (0, 1):
        job.of(batch, lambda: start)
        job.done()
    job = run.begin(rules(a=1), planned=1)
    job.of(1, lambda: start)
    assert (run.log.of(1).attempts, run.told) == (2, [([], 1)])
    job.done()
    job = run.begin(rules(a=1), planned=2)
    job.of(2, lambda: {"t": {0: 6}})
    assert run.log.of(2).attempts == 2


def test_nothing_runs_under_rules_that_are_not_in_the_log() -> None:
    """Where they could not be written and the query begins again in the same process. So it is
    with the count of attempts, without which nobody is told."""
    run = Run()
    job = run.begin(rules(a=1))
    job.of(0, dict)
    job.want(rules(a=1, b=1), Overrides())
    run.log.fails = 1
    with pytest.raises(StateError):
        job.of(1, dict)
    assert run.told == [([], 1)]
    job.of(1, dict)
    assert (run.log.of(1).rules, run.log.of(1).attempts) == (rules(a=1, b=1), 1)
    job = run.begin(rules(a=1, b=1), planned=1)
    run.log.fails = 1
    with pytest.raises(StateError):
        job.of(1, dict)
    job.of(1, dict)
    assert run.log.of(1).attempts == 2
    assert run.told == [([], 1), (["a"], 2), (["a"], 2)]


def test_what_is_wanted_keeps_pauses() -> None:
    """But for those of another version, and those that somebody has resumed since."""
    job = Run().begin(rules(a=1, b=1))
    assert job.pause({"a": Pause("why", "breaker", 1), "b": Pause("why", "anna")})
    assert not job.pause({"a": Pause("again", "breaker", 1)})
    assert not job.want(rules(a=1, b=1), Overrides())
    assert job.want(rules(a=2, b=2), Overrides())
    assert list(job.wanted.rules.paused) == ["b"]
    early, late = (
        Overrides({"b": PlacedOverride(Override(), at, "place")}, end=at + 1) for at in (-1, 0)
    )
    assert not job.want(rules(a=2, b=2), early)
    assert job.want(rules(a=2, b=2), late)
    assert job.wanted.rules.paused == {}


def test_a_pause_ends_in_a_topic_that_was_made_again() -> None:
    """Whose offsets begin again; without a record of the rule it stays."""
    job = Run().begin(rules(a=1))
    job.want(rules(a=1), Overrides(end=500, topic="one"))
    job.pause({"a": Pause("why", "breaker", 1)})
    early = {"a": PlacedOverride(Override(), 3, "overrides/0/3")}
    assert not job.want(rules(a=1), Overrides(early, end=500, topic="one"))
    assert not job.want(rules(a=1), Overrides(end=4, topic="two"))
    assert job.want(rules(a=1), Overrides(early, end=4, topic="two"))
    assert job.wanted.rules.paused == {}
