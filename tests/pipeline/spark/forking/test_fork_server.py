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

from tests.pipeline.spark.driver_process import Driver, driver

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="counts threads in /proc"
)
_MODULE = """
import json, logging, os, sys
import spark_cep.pipeline.spark.forking.preloading as preloading

print(json.dumps({
    "module": __name__, "arguments": sys.argv[1:], "folder": os.getcwd(), "input": sys.stdin.read(),
    "environment": {name: os.environ.get(name) for name in ("GIVEN", "LEFT_OUT")},
    "loaded": preloading.load.cache_info().currsize,
}))
logging.getLogger("a.library").warning("problem")
sys.exit(7)
"""
_SLEEPS = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """One for all tests, started with a variable that callers do not have."""
    environment = {**os.environ, "LEFT_OUT": "of the driver"}
    with driver(tmp_path_factory.mktemp("fork"), environment=environment) as found:
        yield found


def _modules(folder: Path) -> dict[str, str]:
    (folder / "asked.py").write_text(_MODULE)
    (folder / "sleeps.py").write_text(_SLEEPS)
    (folder / "raises.py").write_text("raise ValueError('seen')\n")
    return {**os.environ, "PYTHONPATH": str(folder), "GIVEN": "of the caller"}


@contextmanager
def _asleep(
    server: Driver, environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that sleeps: the one that was started, and the id of the one that was forked."""
    command = [server.interpreter, "-m", "sleeps"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as caller:
        assert caller.stdout is not None
        yield caller, int(caller.stdout.readline())


@pytest.mark.slow
def test_a_module_runs_as_if_started_by_itself(server: Driver, tmp_path: Path) -> None:
    """Streams, exit code, arguments, environment and folder are the caller's."""
    environment = _modules(tmp_path)
    command = [server.interpreter, "-m", "asked", "one", "two words"]
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


def test_what_is_no_module_is_a_plain_interpreter(server: Driver) -> None:
    """Spark asks an interpreter for its version."""
    command = [server.interpreter, "-c", "import sys; print(sys.version_info[:2])"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == f"{sys.version_info[:2]}\n"


@pytest.mark.slow
def test_the_folder_of_the_start_is_no_library(tmp_path: Path) -> None:
    """A file that is called as a package is not that package."""
    start = tmp_path / "start"
    start.mkdir()
    (start / "pandas.py").write_text("raise SystemExit('not the library')")
    (tmp_path / "modules").mkdir()
    with driver(tmp_path, start=start) as server:
        found = subprocess.run(
            [server.interpreter, "-m", "asked"], input="", capture_output=True, text=True,
            env=_modules(tmp_path / "modules"), cwd=start, check=False,
        )  # fmt: skip
    assert json.loads(found.stdout)["loaded"] == 1


def test_it_shows_what_it_runs(server: Driver, tmp_path: Path) -> None:
    """Not the driver's command, with which nobody wants to kill it."""
    with _asleep(server, _modules(tmp_path)) as (caller, forked):
        assert _words(forked) == "python -m sleeps"
        assert _words(_parent(forked)) == "spark-cep: fork server"
        caller.kill()


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _words(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()


def test_java_ends_with_the_driver(server: Driver, tmp_path: Path) -> None:
    """Which closes its standard input: nothing that was forked holds it open."""
    with _asleep(server, _modules(tmp_path)) as (caller, _):
        assert server.end_java() == 0
        caller.kill()


def test_a_driver_with_threads_forks_nothing(tmp_path: Path) -> None:
    """What holds a lock in one of them would hold it for ever: modules run by themselves."""
    command = ["-m", "asked"]
    with driver(tmp_path, "threads") as found:
        done = subprocess.run(
            [found.interpreter, *command], input="", capture_output=True, text=True,
            env=_modules(tmp_path), check=False,
        )  # fmt: skip
    assert json.loads(done.stdout)["loaded"] == 0


def test_it_ends_with_the_driver(tmp_path: Path) -> None:
    """Also with one that is killed; what it has forked goes on, until Java ends it."""
    with driver(tmp_path) as found, _asleep(found, _modules(tmp_path)) as (caller, forked):
        found.process.kill()
        assert caller.wait(30) == 1
        assert _words(forked) == "python -m sleeps"
        os.kill(forked, signal.SIGKILL)


def test_a_failure_leaves_its_trace(server: Driver, tmp_path: Path) -> None:
    """On the caller's standard error, and as the exit code."""
    command = [server.interpreter, "-m", "raises"]
    found = subprocess.run(
        command, capture_output=True, text=True, env=_modules(tmp_path), check=False
    )
    assert found.returncode == 1
    assert found.stderr.endswith("ValueError: seen\n")


def test_a_process_ends_with_the_one_that_stands_for_it(server: Driver, tmp_path: Path) -> None:
    """Spark kills what it has started, and knows nothing of the other."""
    with _asleep(server, _modules(tmp_path)) as (caller, forked):
        assert forked != caller.pid
        caller.kill()
    _wait_until_gone(forked)


def test_java_alone_ends_a_process_with_sigterm(server: Driver, tmp_path: Path) -> None:
    """It closes the standard input, too. Whoever stops the job sends it to all of its processes,
    which the driver still needs."""
    command = [server.interpreter, "-m", "sleeps"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_modules(tmp_path)
    ) as caller:
        assert caller.stdin is not None
        assert caller.stdout is not None
        forked = int(caller.stdout.readline())
        for process in (_parent(forked), forked, caller.pid):
            os.kill(process, signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            caller.wait(1.5)
        assert _words(forked) == "python -m sleeps"
        caller.terminate()
        caller.stdin.close()
        assert caller.wait(30) == 128 + signal.SIGTERM
    _wait_until_gone(forked)


def test_a_killed_process_is_told(server: Driver, tmp_path: Path) -> None:
    """As a shell tells of it."""
    with _asleep(server, _modules(tmp_path)) as (caller, forked):
        os.kill(forked, signal.SIGKILL)
        assert caller.wait(30) == 128 + signal.SIGKILL


@pytest.mark.slow
def test_without_a_server_modules_run_all_the_same(tmp_path: Path) -> None:
    """One that has ended, or could not start, costs time alone; what it has forked goes on."""
    environment = _modules(tmp_path)
    with driver(tmp_path) as server:
        with _asleep(server, environment) as (caller, forked):
            server.end()
            assert caller.wait(30) == 1
        os.kill(forked, signal.SIGKILL)
    command = [server.interpreter, "-m", "raises"]
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
