"""Executors of a cluster are killed while rules change.

The job runs on a Spark standalone cluster of this machine with four executors, each a process of
its own, and more state partitions than executors. One of them after the other gets SIGKILL at a
random time; the driver goes on, and the cluster starts another executor. In the end the driver is
killed, too. What is compared is told in :mod:`tests.faults.rule_changes`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from tests.e2e.command import Command
from tests.e2e.scenario import Scenario
from tests.faults.rule_changes import SECONDS, ChangingJob, run
from tests.faults.trial import Score
from tests.faults.workload import Workload
from tests.standalone_cluster import EXECUTOR_CONF, StandaloneCluster

NAME = "executor, rules change"
EXECUTORS, PARTITIONS = 4, (8, 32)
_SECONDS_BEFORE_KILL = 4.0


@dataclass
class ClusterJob(ChangingJob):
    """A job whose rules change, on the executors of a cluster; ``spark`` are its settings of that
    section."""

    spark: dict[str, Any] = field(default_factory=dict)

    def document(self, **sections: dict[str, Any]) -> dict[str, Any]:
        """Its settings; ``sections`` take the place of some."""
        document = super().document(**sections)
        document["spark"] |= self.spark
        document["spark"]["conf"] |= EXECUTOR_CONF
        return document


def killed(
    scenario: Scenario,
    sent: Workload,
    cluster: StandaloneCluster,
    partitions: int,
    kills: int,
    random: Random,
) -> Score:
    """One run with this many kills of executors, or fewer if the input ends before, and one of the
    driver; and the comparisons."""
    name = f"executors-{partitions}-{random.randrange(10**6)}"
    job = ClusterJob(scenario, name, state_partitions=partitions, spark=cluster.section())

    def harm(command: Command) -> int:
        done = 0
        while done < kills and job.records_done() < sent.records:
            _wait_for_a_batch(command, job, cluster)
            time.sleep(random.uniform(0, _SECONDS_BEFORE_KILL))
            random.choice(cluster.executors()).kill()
            done += 1
        _wait_for_a_batch(command, job, cluster)
        command.kill()
        return done + 1

    started = partial(Command, job.folder, job.document())
    fault = f"{NAME}, {partitions} state partitions"
    return run(scenario, job, sent, [(started, harm)], fault, None)


def _wait_for_a_batch(command: Command, job: ClusterJob, cluster: StandaloneCluster) -> None:
    """Wait until another batch is done, and all executors run."""
    before = job.last_batch()
    command.wait_for(
        lambda: job.last_batch() > before and len(cluster.executors()) == EXECUTORS, SECONDS
    )
