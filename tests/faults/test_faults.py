"""A short version of the long run: few kills of each kind on a small stream, and the comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from examples.embedded import EmbeddedBroker
from spark_cep.cli.exit_codes import ExitCode
from tests.conftest import JARS
from tests.e2e.scenario import Scenario
from tests.faults import kill_points, rescales, rule_changes, trial, workload
from tests.faults.table import what_is_wrong
from tests.faults.trial import Score
from tests.faults.workload import Comparison
from tests.kafka_access import KafkaAccess

SEED = 20_260_101


class Prepared(NamedTuple):
    """A stream in a broker that may be harmed, and what an undisturbed run made of it."""

    broker: EmbeddedBroker
    scenario: Scenario
    sent: workload.Workload
    calm: workload.Content


@pytest.fixture(scope="module")
def prepared(registry: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    """The undisturbed run must have written what the matcher alone finds."""
    folder = tmp_path_factory.mktemp("faults")
    with EmbeddedBroker(folder / "broker", JARS) as broker:
        scenario = Scenario(KafkaAccess(broker.bootstrap), registry, None, folder / "scenario")
        sent = workload.send(scenario, 3_000, SEED)
        yield Prepared(broker, scenario, sent, trial.undisturbed(scenario))


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["driver", "python worker", "broker kill"])
def test_a_disturbed_run_writes_what_an_undisturbed_one_does(prepared: Prepared, kind: str) -> None:
    """Nothing lost, nothing twice, nothing else: against the undisturbed run and the matcher."""
    fault = {
        "driver": trial.kill_driver,
        "python worker": trial.kill_python("worker"),
        "broker kill": trial.broker_fault(prepared.broker, "broker kill"),
    }[kind]
    # Before the input ends, however fast the machine is.
    pause = (0.0, 0.5)
    most = 2 if kind == "driver" else 1
    random = Random(SEED)
    job = trial.Job.of(prepared.scenario, kind, random)
    score = trial.disturbed(job, prepared.sent, prepared.calm, kind, fault, most, pause, random)
    assert score.faults > 0
    assert score.comparison is not None
    assert score.undisturbed is not None
    assert score.comparison.compared > 300
    assert (score.comparison.equal, score.undisturbed.equal) == (True, True), score


def test_the_comparison_finds_what_is_lost_twice_or_wrong() -> None:
    """One of each, in different kinds of output."""
    wanted = {"matches": Counter("aab"), "timeouts": Counter("xyz"), "late": Counter("l")}
    found = {"matches": Counter("aabb"), "timeouts": Counter("xy"), "late": Counter("lq")}
    comparison = Comparison.of(found, wanted)
    assert comparison == Comparison(compared=7, lost=1, twice=1, wrong=1)
    assert not comparison.equal
    assert Comparison.of(wanted, wanted).equal


def test_a_run_that_shows_nothing_is_told() -> None:
    """One without a fault, what differs, what compared nothing, and an end that nobody asked for,
    or of a kind of fault that ends no job."""
    equal, none = Comparison(5, 0, 0, 0), Comparison(0, 0, 0, 0)
    java = int(ExitCode.JAVA_ENDED)
    assert what_is_wrong([Score("jvm", 1, 2, [java], equal, equal)]) == []
    assert what_is_wrong([]) == ["no run: no kind of fault has this name"]
    assert what_is_wrong([Score("jvm", 0, 1, [], equal, equal)]) == [
        "jvm: the input ended before the first fault"
    ]
    assert what_is_wrong([Score("broker kill", 1, 2, [java], equal, equal)]) == [
        "broker kill: the command ended with [14]"
    ]
    for kind in trial.PYTHON:
        assert what_is_wrong([Score(f"python {kind}", 1, 2, [1], equal, equal)]) == [
            f"python {kind}: the command ended with [1]"
        ]
    assert what_is_wrong([Score("jvm", 1, 2, [70], Comparison(5, 1, 0, 0), none)]) == [
        "jvm: not as the matcher: Comparison(compared=5, lost=1, twice=0, wrong=0)",
        "jvm: nothing was compared with an undisturbed run",
        "jvm: the command ended with [70]",
    ]


def test_steps_of_a_rescale() -> None:
    """Each leaves what a kill right behind it leaves: no commit in front of the state, and the
    state of as many partitions as it says."""
    state = [f"state/0/{partition}/5.zip" for partition in (2, 0, 3, 1)]
    new = ["offsets/5", "state/0/_metadata/v2/5", *state, "commits/5", "behind"]
    left = {step: set(done(new, 4)) for step, done in rescales.STEPS.items()}
    plan = {"offsets/5"}
    both = {*plan, "state/0/_metadata/v2/5"}
    assert left.pop("a batch left undone") == set(new)
    assert left == {
        "the plan": plan,
        "the state of one partition": {*both, *state[:1], "behind"},
        "the state of half of the partitions": {*both, *state[:2], "behind"},
        "the state of all partitions": {*both, *state, "behind"},
        "the commit": {*both, *state, "commits/5"},
    }
    for step in left:
        assert not rescales.STEPS[step](new[:0], 4)
    assert not rescales.STEPS["the state of all partitions"](new[:5], 4)
    assert not rescales.STEPS["the commit"](new[:6], 4)


def test_kill_points_are_in_the_plan() -> None:
    """What dies stands in the place of what the plan is made of."""
    for module, dying in kill_points.OF_WORKERS.values():
        stage = dying.__bases__[0]
        assert vars(module)[stage.__name__] is stage


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_rules_change_and_the_job_is_killed(prepared: Prepared, spark: SparkSession) -> None:
    """At any time, and when rules are just written down: each batch has the rules that it had at
    first, so nothing is lost, twice, or of other rules."""
    score = rule_changes.killed(
        prepared.scenario, prepared.sent, 1, Random(SEED), spark, "after rules/N"
    )
    assert score.faults == 2
    assert score.comparison is not None
    assert score.undisturbed is not None
    assert score.changes > 3
    assert score.comparison.compared > 300
    assert score.comparison.equal, score
    assert score.undisturbed.equal, score
