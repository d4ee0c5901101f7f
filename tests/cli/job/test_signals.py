"""Signals to a real process whose work is a few lines."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import os, sys, threading, time
from spark_cep.cli.job.signals import StopSignals
from spark_cep.observability.logs import configure

# Standard output is for what is said: a log line is written in pieces.
configure(stream=sys.stderr)

def say(word):
    os.write(1, f"{{word}}\\n".encode())

signals = StopSignals(at_once=lambda: os._exit(40))
{before}
told = threading.Event()

def work():
    say("works")
    {work}

def stop():
    say("told")
    told.set()

signals.run(
    work,
    stop=stop,
    patience_seconds={patience},
    too_late=lambda: os._exit(41),
)
say("done")
"""
#: A signal has come.
HEARD = """say("begins")
while not signals._received:
    time.sleep(0.01)
time.sleep(0.4)
say("heard")"""


def _said(lines: list[str]) -> list[str]:
    """What the work and its end said."""
    return [line for line in lines if line in ("works", "told", "done")]


def _run(
    work: str, *signals: signal.Signals, patience: float = 60, before: str = ""
) -> tuple[int, list[str], str]:
    """Exit code, lines of standard output after the first, and standard error; each signal is sent
    when the program has said something more."""
    program = PROGRAM.format(work=work, patience=patience, before=before)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            for number in signals:
                process.stdout.readline()
                process.send_signal(number)
            said, errors = process.communicate(timeout=60)
        finally:
            process.kill()
        return process.returncode, _said(said.splitlines()), errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks(number: signal.Signals) -> None:
    """The work is told once, ends by itself, and so does the process."""
    assert _run("told.wait()", number)[:2] == (0, ["told", "done"])


def test_a_signal_at_any_moment() -> None:
    """The handler may interrupt the wait anywhere; here the main thread never sleeps in it."""
    before = "import spark_cep.cli.job.signals as s; s._LOOK_EVERY_SECONDS = 0"
    assert _run("told.wait()", signal.SIGTERM, before=before)[:2] == (0, ["told", "done"])


def test_the_second_signal_ends() -> None:
    """Whatever the work does, and whichever signal it is."""
    code, said, errors = _run("time.sleep(3600)", signal.SIGTERM, signal.SIGINT)
    assert (code, said) == (40, [])
    assert "Traceback" not in errors


def test_a_signal_that_comes_twice_at_once() -> None:
    """`timeout` sends its own to the process and to its group."""
    work = """say("sent")
    for _ in range(2):
        os.kill(os.getpid(), 15)
        time.sleep(0.02)
    told.wait()"""
    before = "import spark_cep.cli.job.signals as s; s._SAME_WITHIN_SECONDS = 30"
    assert _run(work, before=before)[:2] == (0, ["works", "told", "done"])


def test_patience_runs_out() -> None:
    """Work that does not listen is ended after a while."""
    code, said, _ = _run("time.sleep(3600)", signal.SIGTERM, patience=0.1)
    assert (code, said) == (41, ["told"])


def test_work_that_ends_by_itself() -> None:
    """Its end is the end, and its error is the caller's."""
    assert _run("pass")[:2] == (0, ["works", "done"])
    code, said, errors = _run("raise LookupError('gone')")
    assert (code, said) == (1, ["works"])
    assert errors.endswith("LookupError: gone\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_before_the_work_begins(number: signal.Signals) -> None:
    """The work is told as soon as it begins."""
    code, said, _ = _run("told.wait()", number, before=HEARD)
    assert (code, sorted(said)) == (0, ["done", "told", "works"])


def test_twice_before_the_work_begins() -> None:
    """The process ends."""
    before = f"{HEARD}; time.sleep(60)"
    code, said, errors = _run("told.wait()", signal.SIGTERM, signal.SIGTERM, before=before)
    assert (code, said) == (40, [])
    assert "Traceback" not in errors
