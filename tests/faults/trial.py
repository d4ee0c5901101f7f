"""One disturbed run of the real command over a workload, and what it wrote."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Self

from examples.embedded import EmbeddedBroker
from spark_cep.cli.exit_codes import ExitCode
from tests.e2e.command import PROGRAM, Command
from tests.e2e.outputs import Outputs
from tests.e2e.scenario import Scenario
from tests.faults.workload import BATCH, DISORDER, Comparison, Content, Workload, content, whole

_SECONDS = 600.0
#: Shorter than any pause below, so that pauses outlast them.
TRANSACTION_SECONDS = 20
_PAUSE_SECONDS = 30.0


@dataclass
class Job:
    """The command on a workload, with output topics and a checkpoint of its own. ``program``: what
    Python runs in its place. ``reading_tasks``: with more than one, batches have two stages."""

    scenario: Scenario
    name: str
    state_partitions: int = 2
    transaction_seconds: int = TRANSACTION_SECONDS
    reading_tasks: int = 1
    program: Sequence[str] = PROGRAM

    @classmethod
    def of(cls, scenario: Scenario, fault: str, random: Random, **more: Any) -> Self:
        """A job for one run with faults of a kind, under a name that no other one has."""
        name = "".join(letter if letter.isalnum() else "-" for letter in fault)
        name = f"{name}-{random.randrange(10**6)}"
        return cls(scenario, name, reading_tasks=random.choice((1, 2)), **more)

    def __post_init__(self) -> None:
        self.folder = self.scenario.folder / self.name
        self.folder.mkdir()
        self._topics = {kind: f"{self.scenario.topic(kind)}-{self.name}" for kind in Outputs.KINDS}

    def start(self) -> Command:
        """Start it, from its checkpoint if there is one; it ends with the input."""
        return Command(self.folder, self._document(), self.program)

    def rescale(self, partitions: int) -> Command:
        """Start the command that gives the stopped job so many state partitions."""
        words = ("rescale", "--partitions", str(partitions))
        return Command(self.folder, self._document(), words=words)

    @property
    def checkpoint(self) -> Path:
        """The folder."""
        return self.folder / "checkpoint"

    def outputs(self) -> Outputs:
        """What is committed in its topics."""
        return self.scenario.outputs(**self._topics)

    def _document(self) -> dict[str, Any]:
        return self.scenario.document(
            outputs={
                "topics": self._topics,
                "create_topics": {
                    "partitions": 2,
                    "replication": self.scenario.kafka.replication,
                },
                "transactional_id_prefix": f"{self.scenario.topic(self.name)}",
                "transaction_timeout": f"{self.transaction_seconds} seconds",
            },
            source={"max_offsets_per_trigger": BATCH, "min_partitions": self.reading_tasks},
            time={"allowed_disorder": f"{round(DISORDER)} seconds"},
            state={
                "checkpoint": str(self.checkpoint),
                "state_partitions": self.state_partitions,
                "bucket_size": "2 KiB",
            },
            spark={
                "master": "local[2,4]",
                # No spark.local.dir: below this folder the path of a socket would be too long, and
                # there would be no server that Python processes are forked from.
                "conf": {
                    "spark.driver.memory": "1g",
                    "spark.sql.streaming.stateStore.minDeltasForSnapshot": 3,
                    "spark.sql.streaming.stateStore.maintenanceInterval": "2s",
                    "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
                },
            },
            observability={"metrics_port": 0, "log_level": "info", "log_format": "json"},
        )


@dataclass
class Score:
    """What happened in one disturbed run. ``ends``: how the command ended where that was not asked
    for, with an exit code or by a signal."""

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


def kill_python(kind: str) -> Fault:
    """SIGKILL to one of Spark's Python processes: a worker, the daemon that workers are forked
    from, the one that writes their output, the one that plans the input, or the server that all are
    forked from."""

    def fault(command: Command, random: Random) -> bool:
        daemons = command.python_processes(b"spark_cep.pipeline.spark.forking.worker_daemon")
        match kind:
            case "worker":
                found = [pid for pid in daemons if _parent(pid) in daemons]
            case "daemon":
                found = [pid for pid in daemons if _parent(pid) not in daemons]
            case "planner":
                found = command.python_processes(b"pyspark.sql.streaming.python_streaming_source")
            case "fork server" | "delivery":
                found = command.processes(f"spark-cep: {kind}".encode())
            case _:
                raise ValueError(kind)
        return _kill_one(found, random)

    return fault


#: The processes of :func:`kill_python`.
PYTHON = ("worker", "daemon", "delivery", "planner", "fork server")


def tell_all(number: signal.Signals, *, again: bool = False) -> Fault:
    """A signal to each process of the job, as systemd, ``timeout`` and terminals send it: it must
    end in good order, and leave nothing behind. ``again``: the same once more after a while, which
    ends what has not ended yet."""

    def fault(command: Command, random: Random) -> bool:
        deadline = time.monotonic() + _SECONDS
        while command.ended(0.05) is None and not command.hears_signals():
            assert time.monotonic() < deadline, command.end_of_log()
        if command.ended(0) is not None:
            return False
        command.signal_all(number)
        allowed = {int(ExitCode.DONE)}
        if again and command.ended(random.uniform(0.4, 3)) is None:
            command.signal_all(number)
            allowed.add(int(ExitCode.ENDED_AT_ONCE))
        code = command.wait()
        assert code in allowed, f"exit code {code} after {number.name}: {command.end_of_log()}"
        command.wait_until_alone()
        return True

    return fault


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


#: The kinds whose faults end the command, or tell it to end.
ENDED_BY_THE_FAULT = ("driver", "restart", "all told SIGTERM", "all told SIGINT", "all told twice")


def undisturbed(scenario: Scenario) -> Content:
    """What the command writes when nothing happens."""
    job = Job(scenario, "undisturbed")
    code = job.start().wait(_SECONDS)
    assert code == 0, f"exit code {code}"
    return whole(job.outputs())


def disturbed(
    job: Job,
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
                asked = name in ENDED_BY_THE_FAULT
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
    compare(score, job, workload, calm)
    score.seconds = time.monotonic() - began
    return score


def compare(score: Score, job: Job, workload: Workload, calm: Content) -> None:
    """Compare what the job wrote with the matcher's and with an undisturbed run's."""
    found = job.outputs()
    score.comparison = Comparison.of(content(found), workload.expected)
    score.undisturbed = Comparison.of(whole(found), calm)


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


def _parent(pid: int) -> int:
    """The process that started this one; 0 where it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])
    return 0


def _kill_one(found: list[int], random: Random) -> bool:
    if not found:
        return False
    with suppress(ProcessLookupError):
        os.kill(random.choice(sorted(found)), signal.SIGKILL)
    return True
