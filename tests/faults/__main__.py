"""``python -m tests.faults``: the long run; prints the table, and fails if anything differs."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from examples.embedded import EmbeddedBroker, EmbeddedRegistry
from tests.conftest import JARS
from tests.e2e.scenario import Scenario
from tests.faults import rule_changes as changing
from tests.faults import trial, workload
from tests.faults.kill_points import POINTS
from tests.kafka_access import KafkaAccess

_KILLS_TO_A_RUN = 20


def main(
    kills: Annotated[int, typer.Option(help="SIGKILLs of the driver, JVM included.")] = 50,
    others: Annotated[int, typer.Option(help="Faults of each other kind.")] = 5,
    rule_changes: Annotated[
        int, typer.Option(help="SIGKILLs of the driver while rules change, 20 to a run.")
    ] = 20,
    at_points: Annotated[
        int, typer.Option(help="SIGKILLs at each point of a batch, while rules change.")
    ] = 0,
    records: Annotated[int, typer.Option(help="Records in the stream.")] = 30_000,
    seed: Annotated[int, typer.Option(help="Of everything random; 0: from the clock.")] = 0,
    only: Annotated[str, typer.Option(help="Only the kind whose name begins so.")] = "",
) -> None:
    """Disturb the job in every way, and compare what it wrote with an undisturbed run and with
    the matcher without Spark."""
    seed = seed or time.time_ns() % 10**6
    random = Random(seed)
    console = Console(width=110, highlight=False)
    console.print(f"seed {seed}")
    scores = []
    with (
        tempfile.TemporaryDirectory(prefix="spark-cep-faults-") as folder,
        EmbeddedBroker(Path(folder) / "broker", JARS) as broker,
        EmbeddedRegistry(Path(folder) / "registry", JARS) as registry,
    ):
        scenario = Scenario(
            KafkaAccess(broker.bootstrap), registry.url, None, Path(folder) / "scenario"
        )
        sent = workload.send(scenario, records, seed)
        calm = trial.undisturbed(scenario)
        kinds: list[tuple[str, trial.Fault, int, tuple[float, float]]] = [
            ("driver", trial.kill_driver, kills, (0.0, 6.0)),
            ("jvm", trial.kill_jvm, others, (0.0, 6.0)),
            ("python worker", trial.kill_worker, others, (0.0, 6.0)),
            ("restart", trial.terminate, others, (0.0, 6.0)),
            *(
                (kind, trial.broker_fault(broker, kind), others, (0.0, 8.0))
                for kind in ("broker kill", "broker stop", "broker pause")
            ),
        ]
        for name, fault, wanted, pause in kinds:
            left = wanted if name.startswith(only) else 0
            while left > 0:
                score = trial.disturbed(scenario, sent, calm, name, fault, left, pause, random)
                left -= score.faults
                scores.append(score)
                console.print(score)
        if "driver, rules change".startswith(only):
            for first in range(0, rule_changes, _KILLS_TO_A_RUN):
                most = min(_KILLS_TO_A_RUN, rule_changes - first)
                scores.append(changing.killed(scenario, sent, most, random, None))
                console.print(scores[-1])
        for point in POINTS:
            if at_points and point.startswith(only):
                scores.append(changing.killed_at(scenario, sent, point, at_points, random, None))
                console.print(scores[-1])
    console.print(_table(scores))
    if not all(s.comparison and s.comparison.equal for s in scores):
        sys.exit(1)
    if not all(s.undisturbed and s.undisturbed.equal for s in scores):
        sys.exit(1)


def _table(scores: list[trial.Score]) -> Table:
    table = Table()
    for column in (
        "fault",
        "runs",
        "faults",
        "starts",
        "rule sets",
        "compared",
        "lost",
        "twice",
        "wrong",
    ):
        table.add_column(column, justify="left" if column == "fault" else "right")
    for fault in dict.fromkeys(score.fault for score in scores):
        own = [score for score in scores if score.fault == fault]
        both = [c for s in own for c in (s.comparison, s.undisturbed) if c is not None]
        table.add_row(
            fault,
            *map(
                str,
                (
                    len(own),
                    sum(s.faults for s in own),
                    sum(s.starts for s in own),
                    sum(s.changes for s in own),
                    sum(c.compared for c in both),
                    sum(c.lost for c in both),
                    sum(c.twice for c in both),
                    sum(c.wrong for c in both),
                ),
            ),
        )
    return table


if __name__ == "__main__":
    typer.run(main)
