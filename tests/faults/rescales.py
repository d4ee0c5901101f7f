"""Rescales that are killed: a stopped job gets another number of state partitions, by the command,
which dies when another file of the checkpoint is there than before: the plan of its batch, a part
of the state, its commit. It is run again, to its end or to the next kill; then the job goes on.

Which file it is comes one further with each kill, until a rescale ends before its kill; then from
the beginning. So all steps are tried, those of a batch that the job left undone included.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.e2e.command import Command
from tests.e2e.scenario import Scenario
from tests.faults.trial import Job, Score, compare
from tests.faults.workload import Content, Workload

NAME = "rescale killed"
_SECONDS = 300.0
#: Of four key groups.
_PARTITIONS = (2, 3, 4)
_LOOK_EVERY_SECONDS = 0.001


class _Steps:
    """How many new files there have to be for the next kill."""

    def __init__(self) -> None:
        self.next = 0
        #: By what was there at a kill: the folder of the newest file.
        self.reached: Counter[str] = Counter()


def killed(scenario: Scenario, sent: Workload, calm: Content, kills: int, random: Random) -> Score:
    """One run with so many kills, and the comparison."""
    began = time.monotonic()
    job = Job.of(scenario, NAME, random)
    score = Score(NAME, ends=[])
    steps = _Steps()
    command = job.start()
    try:
        while score.faults < kills:
            _some_batches(command, random)
            score.starts += 1
            if random.random() < 0.5:
                command.kill()
            elif command.ended(0) is None:
                code, _ = command.terminate()
                assert code == 0, (code, command.end_of_log())
            wanted = random.choice([n for n in _PARTITIONS if n != job.state_partitions])
            while True:
                command = job.rescale(wanted)
                if not _dies_at(command, job.checkpoint, steps):
                    break
                score.faults += 1
                if score.faults == kills or random.random() < 0.5:
                    command = job.rescale(wanted)
                    code = command.wait(_SECONDS)
                    assert code == 0, (code, command.end_of_log())
                    break
            job.state_partitions = wanted
            command = job.start()
        code = command.wait(_SECONDS * 2)
        score.starts += 1
        assert code == 0, (code, command.end_of_log())
    finally:
        command.kill()
    score.kinds = steps.reached
    compare(score, job, sent, calm)
    score.seconds = time.monotonic() - began
    return score


def _some_batches(command: Command, random: Random) -> None:
    """Wait until it has done some, or has come to the end of the input."""
    wanted = _batches_done(command) + random.randint(1, 3)
    deadline = time.monotonic() + _SECONDS
    while command.ended(0.1) is None and _batches_done(command) < wanted:
        assert time.monotonic() < deadline, command.end_of_log()
    assert command.ended(0) in (None, 0), command.end_of_log()


def _batches_done(command: Command) -> int:
    # Not parsed: a line may have been cut off by a kill.
    return command.log.read_bytes().count(b'"batch_done"')


def _dies_at(command: Command, checkpoint: Path, steps: _Steps) -> bool:
    """Kill it at the next step; False when it came to its end before."""
    before = _files(checkpoint)
    while len(_files(checkpoint) - before) < max(steps.next, 1):
        code = command.ended(_LOOK_EVERY_SECONDS)
        if code is not None:
            assert code == 0, (code, command.end_of_log())
            steps.next = 0
            return False
        if steps.next == 0 and command.hears_signals():
            break
    command.kill()
    code = command.ended(0)
    if code != -signal.SIGKILL:
        assert code == 0, (code, command.end_of_log())
        steps.next = 0
        return False
    new = _files(checkpoint) - before
    newest = max(new, key=lambda name: _time_of(checkpoint / name), default=None)
    steps.reached["nothing" if newest is None else newest.partition("/")[0]] += 1
    steps.next += 1
    return True


def _files(checkpoint: Path) -> set[str]:
    """Files that are whole: neither checksums nor what gets its name later."""
    return {
        path.relative_to(checkpoint).as_posix()
        for path in checkpoint.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def _time_of(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
