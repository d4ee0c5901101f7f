"""One disturbed run of the real command over a workload, and what it wrote."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from examples.embedded import EmbeddedBroker
from tests.conftest import CLASSES
from tests.e2e.command import Command
from tests.e2e.outputs import Outputs
from tests.e2e.scenario import Scenario
from tests.faults.workload import BATCH, DISORDER, Comparison, Content, Workload, content, whole

_SECONDS = 600.0
#: Shorter than any pause below, so that pauses outlast them.
TRANSACTION_SECONDS = 20
_PAUSE_SECONDS = 30.0


@dataclass
class Job:
    """The command on a workload, with output topics and a checkpoint of its own."""

    scenario: Scenario
    name: str

    def __post_init__(self) -> None:
        self.folder = self.scenario.folder / self.name
        self.folder.mkdir()
        self._topics = {kind: f"{self.scenario.topic(kind)}-{self.name}" for kind in Outputs.KINDS}

    def start(self) -> Command:
        """Start it, from its checkpoint if there is one; it ends with the input."""
        return Command(self.folder, self._document())

    def outputs(self) -> Outputs:
        """What is committed in its topics."""
        return self.scenario.outputs(**self._topics)

    def _document(self) -> dict[str, Any]:
        return self.scenario.document(
            outputs={
                "topics": self._topics,
                "create_topics": {"partitions": 2, "replication": 1},
                "transactional_id_prefix": f"{self.scenario.topic(self.name)}",
                "transaction_timeout": f"{TRANSACTION_SECONDS} seconds",
            },
            source={"max_offsets_per_trigger": BATCH},
            time={"allowed_disorder": f"{round(DISORDER)} seconds"},
            state={
                "checkpoint": str(self.folder / "checkpoint"),
                "state_partitions": 2,
                "key_groups": 4,
                "bucket_size": "2 KiB",
            },
            spark={
                "master": "local[2,4]",
                "classes_folder": str(CLASSES),
                "conf": {
                    "spark.driver.memory": "1g",
                    "spark.sql.streaming.stateStore.minDeltasForSnapshot": 3,
                    "spark.sql.streaming.stateStore.maintenanceInterval": "2s",
                    "spark.local.dir": str(self.folder / "scratch"),
                    "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
                },
            },
            observability={"metrics_port": 0, "log_level": "info", "log_format": "json"},
        )


@dataclass
class Score:
    """What happened in one disturbed run. ``ends``: exit codes that were not asked for."""

    fault: str
    faults: int = 0
    starts: int = 0
    ends: list[int] | None = None
    comparison: Comparison | None = None
    undisturbed: Comparison | None = None
    seconds: float = 0.0
    #: Rule sets that batches ran under.
    changes: int = 1
    #: How many of them had rules of some kind.
    kinds: Counter[str] = field(default_factory=Counter)


#: Does harm to a running command; returns False when there was nothing to harm.
Fault = Callable[[Command, Random], bool]


def kill_driver(command: Command, _random: Random) -> bool:
    """SIGKILL to the command and its JVM; Spark's workers notice and end."""
    command.kill()
    return True


def kill_jvm(command: Command, random: Random) -> bool:
    """SIGKILL to Spark's JVM alone."""
    return _kill_one(command.processes(b"org.apache.spark.deploy.SparkSubmit"), random)


def kill_worker(command: Command, random: Random) -> bool:
    """SIGKILL to one of Spark's Python processes, the one that starts the others included."""
    found = command.python_processes(b"spark_cep.pipeline.spark", b"pyspark")
    return _kill_one(found + command.processes(b"spark-cep: fork server"), random)


def terminate(command: Command, _random: Random) -> bool:
    """SIGTERM; it must end in good order."""
    code, _ = command.terminate()
    assert code == 0, f"exit code {code} after SIGTERM: {command.end_of_log()}"
    return True


def broker_fault(broker: EmbeddedBroker, kind: str) -> Fault:
    """Kill, stop or freeze the broker for a while."""

    def fault(_command: Command, random: Random) -> bool:
        if kind == "broker pause":
            broker.pause()
            time.sleep(_PAUSE_SECONDS)
            broker.resume()
            return True
        broker.kill() if kind == "broker kill" else broker.stop()
        time.sleep(random.uniform(0, 5))
        broker.start()
        return True

    return fault


def undisturbed(scenario: Scenario) -> Content:
    """What the command writes when nothing happens."""
    job = Job(scenario, "undisturbed")
    code = job.start().wait(_SECONDS)
    assert code == 0, f"exit code {code}"
    return whole(job.outputs())


def disturbed(
    scenario: Scenario,
    workload: Workload,
    calm: Content,
    name: str,
    fault: Fault,
    most: int,
    pause: tuple[float, float],
    random: Random,
) -> Score:
    """Run to the end of the input with at most ``most`` faults, each a random time (within
    ``pause``, in seconds) after the one before, or after the first batch of a start; a command that
    ended is started again. Of eight faults, one may come while the command is still starting and
    one while its first batch runs, which is the one that a kill had cut off."""
    job = Job(scenario, f"{name.replace(' ', '-')}-{random.randrange(10**6)}")
    score = Score(name, ends=[])
    began = time.monotonic()
    log_size = 0
    command = job.start()
    score.starts = 1
    try:
        while True:
            assert time.monotonic() < began + _SECONDS * 4, command.end_of_log()
            harm = score.faults < most
            if harm:
                awaited = random.choice([None, "query_started", *["batch_done"] * 6])
                _wait_for(awaited, command, log_size)
            code = command.ended(random.uniform(*pause) if harm else _SECONDS)
            if code is None:
                assert harm, f"it does not end: {command.end_of_log()}"
                if fault(command, random):
                    score.faults += 1
                code = command.ended(0)
                if code is None:
                    continue
                asked = name in ("driver", "restart")
            else:
                asked = False
                if code == 0:
                    break
            if not asked:
                assert score.ends is not None
                score.ends.append(code)
            log_size = command.log.stat().st_size
            command = job.start()
            score.starts += 1
    finally:
        command.kill()
    found = job.outputs()
    score.comparison = Comparison.of(content(found), workload.expected)
    score.undisturbed = Comparison.of(whole(found), calm)
    score.seconds = time.monotonic() - began
    return score


def _wait_for(event: str | None, command: Command, log_size: int) -> None:
    """Until the command has logged the event, or has ended. ``log_size``: of the log at its
    start."""
    deadline = time.monotonic() + _SECONDS
    while event is not None and command.ended(0.2) is None:
        with command.log.open("rb") as log:
            log.seek(log_size)
            if f'"{event}"'.encode() in log.read():
                return
        assert time.monotonic() < deadline, command.end_of_log()


def _kill_one(found: list[int], random: Random) -> bool:
    if not found:
        return False
    with suppress(ProcessLookupError):
        os.kill(random.choice(sorted(found)), signal.SIGKILL)
    return True
