"""Rescales that are killed: a stopped job gets another number of state partitions, by the command,
which dies when a durable step of it is done. It is run again, to its end; then the job goes on.

Each kill is at the next step of :data:`STEPS`, and all are tried before the first comes again. The
command goes on writing until it is dead, so what it wrote behind the step is removed: a rescale
only adds files, so the checkpoint is then what a kill right behind the step leaves. ``a batch left
undone`` is the job's own, which the rescale repeats first: it is killed while it does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.e2e.command import Command
from tests.e2e.scenario import Scenario
from tests.faults.trial import Job, Score, compare
from tests.faults.workload import Content, Workload

NAME = "rescale killed"
_SECONDS = 300.0
#: Up to 60 key groups.
_PARTITIONS = (2, 3, 4, 5)
_LOOK_EVERY_SECONDS = 0.001
_UNDONE = "a batch left undone"

#: The files that there are more than before, the oldest first, relative to the checkpoint.
New = list[str]


def _plan(new: New) -> New:
    """The files that are new up to the plan of the batch with which the state is moved."""
    return _up_to(new, lambda name: name.startswith("offsets/"))


def _state(share: float) -> Callable[[New, int], New]:
    """Those up to the state of a share of the partitions, and of one at least."""

    def written(new: New, partitions: int) -> New:
        wanted = max(1, round(share * partitions))
        order = list(dict.fromkeys(filter(None, map(_partition, new))))
        if len(order) < wanted:
            return []
        kept = set(order[:wanted])
        return [
            name
            for name in new
            if not name.startswith("commits/") and (_partition(name) or order[0]) in kept
        ]

    return written


def _commit(new: New) -> New:
    return _up_to(new, lambda name: name.startswith("commits/"))


#: By what is durable: the files of it, nothing before they are there.
STEPS: dict[str, Callable[[New, int], New]] = {
    _UNDONE: lambda new, _: new,
    "the plan": lambda new, _: _plan(new),
    "the state of one partition": _state(0),
    "the state of half of the partitions": _state(0.5),
    "the state of all partitions": _state(1),
    "the commit": lambda new, _: _commit(new),
}


def killed(scenario: Scenario, sent: Workload, calm: Content, kills: int, random: Random) -> Score:
    """One run with so many kills, and the comparison."""
    began = time.monotonic()
    job = Job.of(scenario, NAME, random)
    score = Score(NAME, ends=[])
    command = job.start()
    try:
        while score.faults < kills:
            step = list(STEPS)[score.faults % len(STEPS)]
            _some_batches(command, random)
            score.starts += 1
            if step == _UNDONE:
                command.kill()
            elif command.ended(0) is None:
                code, _ = command.terminate()
                assert code == 0, (code, command.end_of_log())
            wanted = random.choice([n for n in _PARTITIONS if n != job.state_partitions])
            command = job.rescale(wanted)
            if _dies_behind(command, job.checkpoint, step, wanted):
                score.kinds[step] += 1
                command = job.rescale(wanted)
                code = command.wait(_SECONDS)
                assert code == 0, (code, command.end_of_log())
            # The job was killed between two batches, so that there was none to repeat.
            score.faults += 1
            job.state_partitions = wanted
            command = job.start()
        code = command.wait(_SECONDS * 2)
        score.starts += 1
        assert code == 0, (code, command.end_of_log())
    finally:
        command.kill()
    missed = set(list(STEPS)[:kills]) - score.kinds.keys() - {_UNDONE}
    assert not missed, f"no kill at {missed}"
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


def _dies_behind(command: Command, checkpoint: Path, step: str, partitions: int) -> bool:
    """Kill it when the step is done, and remove what came behind it; False when it came to its end
    without it."""
    before, done = _files(checkpoint), STEPS[step]
    while not done(_new(checkpoint, before), partitions):
        code = command.ended(_LOOK_EVERY_SECONDS)
        if code is not None:
            assert (code, step) == (0, _UNDONE), (code, step, command.end_of_log())
            return False
    command.kill()
    new = _new(checkpoint, before)
    for name in set(new) - set(done(new, partitions)):
        file = checkpoint / name
        file.unlink()
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return True


def _up_to(new: New, last: Callable[[str], bool]) -> New:
    """The files up to the first that is the ``last``; nothing before it is there."""
    return next((new[: place + 1] for place, name in enumerate(new) if last(name)), [])


def _partition(name: str) -> str | None:
    """The state partition that a file belongs to."""
    parts = name.split("/")
    return parts[2] if parts[0] == "state" and parts[2].isdigit() else None


def _new(checkpoint: Path, before: set[str]) -> New:
    return sorted(_files(checkpoint) - before, key=lambda name: _time_of(checkpoint / name))


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
