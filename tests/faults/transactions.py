"""Transactions that outlive their time-out: a worker is stopped when the brokers have the records
of its transaction, until they have ended that by themselves, and goes on then.

What it wrote must not be seen, its commit must fail with an error that names the setting, and the
batch must be written by another attempt.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random

from tests.e2e.command import Command
from tests.e2e.scenario import Scenario
from tests.faults import kill_points
from tests.faults.trial import Job

NAME = "transaction outlives its time-out"
#: Of a transaction, and how often brokers look for those that took longer.
SECONDS, LOOK_EVERY_SECONDS = 5, 1
#: A broker's settings.
BROKER = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(LOOK_EVERY_SECONDS * 1000)
}
#: Batches write something only now and then.
_FOUND_WITHIN_SECONDS = 20.0
_TOLD_WITHIN_SECONDS = 60.0
_FLAG = "hold"
_TOLD = f"than outputs.transaction_timeout ({SECONDS} seconds)"


def job(scenario: Scenario, name: str, random: Random) -> Job:
    """A job with transactions as short as that, whose workers can be stopped in one."""
    made = Job.of(scenario, name, random, transaction_seconds=SECONDS)
    made.program = kill_points.program(kill_points.HELD, 0, made.folder / _FLAG)
    return made


def hold(command: Command, _random: Random) -> bool:
    """Stop a worker in its next transaction until brokers have ended that; False when there is
    none."""
    flag = command.log.parent / _FLAG
    flag.touch()
    held = _held(command)
    if held is None:
        flag.unlink(missing_ok=True)
        return False
    size = command.log.stat().st_size
    time.sleep(SECONDS + 3 * LOOK_EVERY_SECONDS)
    os.kill(held, signal.SIGCONT)
    _wait_until_told(command, size)
    return True


def _held(command: Command) -> int | None:
    """The process that was stopped, once there is one; None when there is none for long."""
    deadline = time.monotonic() + _FOUND_WITHIN_SECONDS
    while command.ended(0.05) is None and time.monotonic() < deadline:
        for pid in command.processes():
            if _is_stopped(pid):
                return pid
    return None


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def _wait_until_told(command: Command, size: int) -> None:
    """Until the log, behind ``size``, names the setting."""
    deadline = time.monotonic() + _TOLD_WITHIN_SECONDS
    while True:
        with command.log.open("rb") as log:
            log.seek(size)
            if _TOLD.encode() in log.read():
                return
        assert time.monotonic() < deadline, f"not told of the setting: {command.end_of_log()}"
        time.sleep(0.2)
