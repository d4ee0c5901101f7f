"""Spark's Python processes behave as if each had been started by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.pipeline.spark.fork_server import ForkServer

_MODULE = """
import json, os, sys
import service.pipeline.spark.preloading as preloading

print(json.dumps({
    "module": __name__, "arguments": sys.argv[1:], "folder": os.getcwd(), "input": sys.stdin.read(),
    "environment": {name: os.environ.get(name) for name in ("GIVEN", "LEFT_OUT")},
    "loaded": preloading.load.cache_info().currsize,
}))
print("problem", file=sys.stderr)
sys.exit(7)
"""
_SLEEPS = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """One for all tests, started with a variable that callers do not have."""
    folder = tmp_path_factory.mktemp("fork")
    os.environ["LEFT_OUT"] = "of the driver"
    server = ForkServer(folder)
    server.start(2)
    del os.environ["LEFT_OUT"]
    yield server
    server.close()


def _modules(folder: Path) -> dict[str, str]:
    (folder / "asked.py").write_text(_MODULE)
    (folder / "sleeps.py").write_text(_SLEEPS)
    (folder / "raises.py").write_text("raise ValueError('seen')\n")
    return {**os.environ, "PYTHONPATH": str(folder), "GIVEN": "of the caller"}


@contextmanager
def _asleep(
    server: ForkServer, environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that sleeps: the one that was started, and the id of the one that was forked."""
    command = [str(server.interpreter), "-m", "sleeps"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as caller:
        assert caller.stdout is not None
        yield caller, int(caller.stdout.readline())


def test_a_module_runs_as_if_started_by_itself(server: ForkServer, tmp_path: Path) -> None:
    """Streams, exit code, arguments, environment and folder are the caller's."""
    environment = _modules(tmp_path)
    command = [str(server.interpreter), "-m", "asked", "one", "two words"]
    for _ in range(2):
        found = subprocess.run(
            command, input="told", capture_output=True, text=True, env=environment, cwd=tmp_path,
            check=False,
        )  # fmt: skip
        assert found.returncode == 7
        assert found.stderr == "problem\n"
        assert json.loads(found.stdout) == {
            "module": "__main__",
            "arguments": ["one", "two words"],
            "folder": str(tmp_path),
            "input": "told",
            "environment": {"GIVEN": "of the caller", "LEFT_OUT": None},
            "loaded": 1,
        }


def test_what_is_no_module_is_a_plain_interpreter(server: ForkServer) -> None:
    """Spark asks an interpreter for its version."""
    command = [str(server.interpreter), "-c", "import sys; print(sys.version_info[:2])"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == f"{sys.version_info[:2]}\n"


def test_the_folder_of_the_start_is_no_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is called as a package is not that package."""
    (tmp_path / "pandas.py").write_text("raise SystemExit('not the library')")
    (tmp_path / "modules").mkdir()
    environment = _modules(tmp_path / "modules")
    monkeypatch.chdir(tmp_path)
    server = ForkServer(tmp_path)
    server.start(2)
    try:
        found = subprocess.run(
            [str(server.interpreter), "-m", "asked"], input="", capture_output=True, text=True,
            env=environment, check=False,
        )  # fmt: skip
    finally:
        server.close()
    assert json.loads(found.stdout)["loaded"] == 1


def test_a_failure_leaves_its_trace(server: ForkServer, tmp_path: Path) -> None:
    """On the caller's standard error, and as the exit code."""
    command = [str(server.interpreter), "-m", "raises"]
    found = subprocess.run(
        command, capture_output=True, text=True, env=_modules(tmp_path), check=False
    )
    assert found.returncode == 1
    assert found.stderr.endswith("ValueError: seen\n")


def test_a_process_ends_with_the_one_that_stands_for_it(server: ForkServer, tmp_path: Path) -> None:
    """Spark kills what it has started, and knows nothing of the other."""
    with _asleep(server, _modules(tmp_path)) as (caller, forked):
        assert forked != caller.pid
        caller.kill()
    _wait_until_gone(forked)


def test_a_killed_process_is_told(server: ForkServer, tmp_path: Path) -> None:
    """As a shell tells of it."""
    with _asleep(server, _modules(tmp_path)) as (caller, forked):
        os.kill(forked, signal.SIGKILL)
        assert caller.wait(30) == 128 + signal.SIGKILL


def test_without_a_server_modules_run_all_the_same(tmp_path: Path) -> None:
    """One that has ended, or could not start, costs time alone; what it has forked goes on."""
    environment = _modules(tmp_path)
    server = ForkServer(tmp_path)
    server.start(2)
    with _asleep(server, environment) as (caller, forked):
        server.close()
        assert caller.wait(30) == 1
    os.kill(forked, signal.SIGKILL)
    command = [str(server.interpreter), "-m", "raises"]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert found.stderr.endswith("ValueError: seen\n")


def _wait_until_gone(process: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError(f"process {process} still runs")
