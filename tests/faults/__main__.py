"""``python -m tests.faults``: the long run; prints the table, and fails if anything differs."""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated

import typer
from rich.console import Console

from examples.embedded import EmbeddedBroker, EmbeddedCluster, EmbeddedRegistry
from tests.conftest import JARS
from tests.e2e.scenario import Scenario
from tests.faults import cluster as clusters
from tests.faults import executors, rescales, transactions, trial, workload
from tests.faults import rule_changes as changing
from tests.faults.kill_points import POINTS
from tests.faults.table import table, what_is_wrong
from tests.faults.trial import Fault, Job, Score
from tests.kafka_access import KafkaAccess
from tests.standalone_cluster import standalone_cluster

_KILLS_TO_A_RUN = 20
_CHANGES = "driver, rules change"
_OF_PROCESSES: dict[str, Fault] = {
    "jvm": trial.kill_jvm,
    **{f"python {kind}": trial.kill_python(kind) for kind in trial.PYTHON},
    "restart": trial.terminate,
    "all told SIGTERM": trial.tell_all(signal.SIGTERM),
    "all told SIGINT": trial.tell_all(signal.SIGINT),
    "all told twice": trial.tell_all(signal.SIGTERM, again=True),
}
_OF_BROKER = ("broker kill", "broker stop", "broker pause")
#: A fault comes so many seconds after another, at random.
_PAUSE, _PAUSE_OF_BROKERS = (0.0, 6.0), (0.0, 8.0)


@dataclass
class _Suite:
    """Runs on one workload, of the kinds whose names begin with ``only``; what is wrong of one
    ends all."""

    only: str
    random: Random
    console: Console
    scores: list[Score]
    scenario: Scenario
    sent: workload.Workload
    calm: workload.Content

    def disturb(
        self,
        name: str,
        fault: Fault,
        wanted: int,
        pause: tuple[float, float] = _PAUSE,
        job: Callable[[Scenario, str, Random], Job] = Job.of,
    ) -> None:
        """As many runs as it takes for so many faults."""
        while wanted > 0 and name.startswith(self.only):
            made = job(self.scenario, name, self.random)
            score = trial.disturbed(
                made, self.sent, self.calm, name, fault, wanted, pause, self.random
            )
            self.add(score)
            if not score.faults:
                break
            wanted -= score.faults

    def add(self, score: Score) -> None:
        """Another run has ended."""
        self.scores.append(score)
        self.console.print(score)


def main(
    kills: Annotated[int, typer.Option(help="SIGKILLs of the driver, JVM included.")] = 50,
    others: Annotated[
        int,
        typer.Option(
            help="Faults of each other kind: processes, signals, the broker, transactions."
        ),
    ] = 5,
    rule_changes: Annotated[
        int, typer.Option(help="SIGKILLs of the driver while rules change, 20 to a run.")
    ] = 20,
    at_points: Annotated[
        int, typer.Option(help="SIGKILLs at each point of a batch, while rules change.")
    ] = 0,
    rescale: Annotated[int, typer.Option(help="SIGKILLs of `spark-cep rescale`.")] = 12,
    executor: Annotated[
        int,
        typer.Option(
            help="SIGKILLs of one of four executors while rules change, for 8 and for 32 state"
            " partitions."
        ),
    ] = 6,
    cluster: Annotated[
        int, typer.Option(help="Faults of each kind on a cluster of three brokers.")
    ] = 3,
    records: Annotated[int, typer.Option(help="Records in the stream.")] = 30_000,
    seed: Annotated[int, typer.Option(help="Of everything random; 0: from the clock.")] = 0,
    only: Annotated[str, typer.Option(help="Only the kind whose name begins so.")] = "",
) -> None:
    """Disturb the job in every way, and compare what it wrote with an undisturbed run and with
    the matcher without Spark."""
    seed = seed or time.time_ns() % 10**6
    random, scores = Random(seed), list[Score]()
    console = Console(width=110, highlight=False)
    console.print(f"seed {seed}")

    def suite(name: str, kafka: KafkaAccess) -> _Suite:
        scenario = Scenario(kafka, registry.url, None, Path(folder) / name)
        sent = workload.send(scenario, records, seed)
        calm = trial.undisturbed(scenario)
        return _Suite(only, random, console, scores, scenario, sent, calm)

    with (
        tempfile.TemporaryDirectory(prefix="spark-cep-faults-") as folder,
        EmbeddedRegistry(Path(folder) / "registry", JARS) as registry,
    ):
        counts = (kills, others, rule_changes, at_points, rescale, executor)
        if any(counts) and not (only and only.startswith(clusters.NAME)):
            with EmbeddedBroker(Path(folder) / "broker", JARS, settings=transactions.BROKER) as one:
                of_one = suite("one-broker", KafkaAccess(one.bootstrap))
                _on_one_broker(of_one, one, kills, others)
                if rescale and rescales.NAME.startswith(only):
                    given = of_one.scenario, of_one.sent, of_one.calm
                    of_one.add(rescales.killed(*given, rescale, random))
                _while_rules_change(of_one, rule_changes, at_points)
                _of_executors(of_one, executor, Path(folder) / "standalone")
        if cluster and (clusters.NAME.startswith(only) or only.startswith(clusters.NAME)):
            with EmbeddedCluster(
                Path(folder) / "cluster", JARS, settings=clusters.SETTINGS
            ) as several:
                copies = len(several.brokers)
                of_three = suite("three-brokers", KafkaAccess(several.bootstrap, copies))
                for name, fault in clusters.faults(several).items():
                    of_three.disturb(name, fault, cluster, _PAUSE_OF_BROKERS)
    console.print(table(scores))
    wrong = what_is_wrong(scores)
    for line in wrong:
        console.print(line)
    sys.exit(bool(wrong))


def _on_one_broker(suite: _Suite, broker: EmbeddedBroker, kills: int, others: int) -> None:
    suite.disturb("driver", trial.kill_driver, kills)
    for name, fault in _OF_PROCESSES.items():
        suite.disturb(name, fault, others)
    for name in _OF_BROKER:
        suite.disturb(name, trial.broker_fault(broker, name), others, _PAUSE_OF_BROKERS)
    suite.disturb(transactions.NAME, transactions.hold, others, _PAUSE, transactions.job)


def _while_rules_change(suite: _Suite, kills: int, at_points: int) -> None:
    given = suite.scenario, suite.sent
    if _CHANGES.startswith(suite.only):
        for first in range(0, kills, _KILLS_TO_A_RUN):
            most = min(_KILLS_TO_A_RUN, kills - first)
            suite.add(changing.killed(*given, most, suite.random, None))
    for point in POINTS:
        if at_points and point.startswith(suite.only):
            suite.add(changing.killed_at(*given, point, at_points, suite.random, None))


def _of_executors(suite: _Suite, kills: int, folder: Path) -> None:
    if not (kills and executors.NAME.startswith(suite.only)):
        return
    for partitions in executors.PARTITIONS:
        place = folder / str(partitions)
        with standalone_cluster(place, executors.EXECUTORS) as started:
            given = suite.scenario, suite.sent, started, partitions, kills, suite.random
            suite.add(executors.killed(*given))


if __name__ == "__main__":
    typer.run(main)
