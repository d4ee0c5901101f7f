"""The demo as its user runs it: a command with an exit code, that leaves nothing behind."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import typer
from rich.console import Console

from examples.demo import run as demo_run
from examples.demo.expected import expected
from examples.demo.interruption import InterruptedDemo, Interruption
from examples.demo.metrics import Progress
from examples.demo.run import Options, _keep, _remove, _verdict, commands_to_try, run
from examples.demo.screen import Screen
from examples.demo.summary import Result
from spark_cep.cli.main import app

ROOT = Path(__file__).parents[2]
JARS = ROOT / ".work" / "jars"


class Running:
    """A demo that was started; its output so far is in ``lines``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "examples.demo", "--plain", "--folder", str(folder)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def until(self, text: str) -> None:
        """Read until a line holds ``text``."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if text in line:
                return
        pytest.fail(f"no line with {text!r} in:\n{self.output}")

    def end(self) -> int:
        """Read the rest; the exit code."""
        assert self.process.stdout is not None
        self.lines += self.process.stdout
        return self.process.wait(60)

    def processes(self) -> dict[int, str]:
        """Live processes that the demo started: command line, folder or environment name its
        folder. The demo itself is not among them."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                about = [command, str((entry / "cwd").readlink())]
                about.append((entry / "environ").read_bytes().decode(errors="replace"))
                if state != "Z" and any(str(self.folder) in text for text in about):
                    found[int(entry.name)] = command
        found.pop(self.process.pid, None)
        return found


@contextmanager
def _demo(folder: Path) -> Iterator[Running]:
    running = Running(folder)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.communicate()


def _answer(demo: Running, address: str) -> str:
    """What the page answers, once it listens, while the demo runs."""
    while demo.process.poll() is None:
        try:
            return httpx.get(address, timeout=30).raise_for_status().text
        except httpx.ConnectError:
            time.sleep(0.1)
    pytest.fail(f"the demo ended before its page answered:\n{demo.output}")


def test_another_process_removes_files_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is gone when it is to be removed does not end the demo with an error."""
    folder = tmp_path / "demo"
    (folder / "tmp" / "blocks").mkdir(parents=True)
    remove = shutil.rmtree
    before: list[Path] = []

    def raced(path: Path) -> None:
        if not before:
            before.append(path)
            (folder / "tmp" / "blocks").rmdir()
            raise FileNotFoundError(path)
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", raced)
    _remove(folder)
    assert before == [folder]
    assert not folder.exists()


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@linux
@pytest.mark.kafka
@pytest.mark.spark
def test_the_demo_comes_to_its_results(tmp_path: Path) -> None:
    """Every count is as expected; then every process and file is gone."""
    with _demo(tmp_path / "demo") as demo:
        demo.until("watch it live in a browser: ")
        address = demo.lines[-1].split()[-1]
        assert "spark-cep watch" in _answer(demo, address)
        code = demo.end()
        assert code == 0, demo.output
        assert "all 43 results are as expected" in demo.output
        assert "the job stopped, exit code 0" in demo.output
        assert "newer events move it" in demo.output
        rows = {line[:36].strip(): line[36:].split() for line in demo.output.splitlines()}
        assert rows["all"] == ["536", "536", "2", "4"]
        assert rows["log-anomaly: matches"] == ["15", "15", "ok"]
        assert rows["cost-timeout: timeouts"] == ["3", "3", "ok"]
        assert rows["order-not-paid: matches"] == ["3", "3", "ok"]
        assert rows["large-order: matches"] == ["1", "1", "ok"]
        assert "start 09:02:22.200, not complete by 09:02:32.200" in demo.output
        assert "\x1b" not in demo.output
        assert demo.processes() == {}
        assert not demo.folder.exists()


@linux
@pytest.mark.kafka
@pytest.mark.spark
def test_ctrl_c_in_the_middle_stops_everything(tmp_path: Path) -> None:
    """SIGINT to the demo and to all of its children at once, while the stream runs."""
    with _demo(tmp_path / "demo") as demo:
        demo.until("wave 2/6")
        children = demo.processes()
        assert len(children) >= 4, children
        began = time.monotonic()
        for pid in [*children, demo.process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        assert demo.end() == 130, demo.output
        assert time.monotonic() - began < 20
        assert demo.processes() == {}
        assert not demo.folder.exists()


@linux
@pytest.mark.kafka
@pytest.mark.parametrize("last", ["starting a Kafka broker", "starting the job"])
def test_a_signal_during_the_start_stops_everything(tmp_path: Path, last: str) -> None:
    """Also while a server or the job is on its way up."""
    with _demo(tmp_path / "demo") as demo:
        demo.until(last)
        time.sleep(0.7)
        demo.process.send_signal(signal.SIGTERM)
        assert demo.end() == 130, demo.output
        assert demo.processes() == {}
        assert not demo.folder.exists()


@linux
@pytest.mark.kafka
def test_a_child_that_dies_is_reported(tmp_path: Path) -> None:
    """Which one, how, the end of its log, and where the files are; exit code 1."""
    with _demo(tmp_path / "demo") as demo:
        demo.until("starting the job")
        job = None
        while job is None:
            running = demo.processes().items()
            job = next((pid for pid, command in running if " run --config " in command), None)
        time.sleep(0.3)
        os.kill(job, signal.SIGKILL)
        assert demo.end() == 1, demo.output
        assert "error: the job ended with exit code -9; the end of" in demo.output
        assert f"data are in {demo.folder}" in demo.output
        assert demo.processes() == {}
        assert (demo.folder / "job" / "job.log").exists()


def _run(folder: Path) -> tuple[int, str]:
    out = StringIO()
    screen = Screen(console=Console(file=out, width=200))
    return run(Options(folder, JARS), screen, Interruption()), out.getvalue()


def test_a_folder_of_other_files_is_not_touched(tmp_path: Path) -> None:
    """The demo empties only what a demo filled."""
    (tmp_path / "letter.txt").write_text("dear")
    code, text = _run(tmp_path)
    assert code == 1
    assert "holds files that are not of a demo" in text
    assert [entry.name for entry in tmp_path.iterdir()] == ["letter.txt"]


def test_two_demos_do_not_share_a_folder(tmp_path: Path) -> None:
    """The second one says so and leaves the first one's files alone."""
    (tmp_path / "job.log").write_text("")
    with (tmp_path / ".spark-cep-demo").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, text = _run(tmp_path)
    assert code == 1
    assert "another demo is running" in text
    assert (tmp_path / "job.log").exists()


def test_a_signal_ends_a_wait() -> None:
    """Within a fraction of a second, and a second signal makes it urgent."""
    interruption = Interruption()
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    interruption.install()
    try:
        interruption.sleep(0.01)
        signal.raise_signal(signal.SIGTERM)
        assert not interruption.urgent
        with pytest.raises(InterruptedDemo):
            interruption.sleep(60)
        signal.raise_signal(signal.SIGINT)
        assert interruption.urgent
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_what_is_kept_can_be_tried() -> None:
    """Each command that the demo tells is one, with its options; Ctrl-C is how it ends."""
    program: Any = typer.main.get_command(app)
    told = list(commands_to_try("demo/config.yaml", "demo/rules"))
    parsed = []
    for line in told:
        words = shlex.split(line.partition(":  ")[2])
        if "spark-cep" not in words:
            continue
        name, *given = words[words.index("spark-cep") + 1 :]
        command = program.commands[name]
        if hasattr(command, "commands"):
            command, given = command.commands[given[0]], given[1:]
        with command.make_context(name, given):
            parsed.append(name)
    assert parsed == ["tail", "config", "check", "backtest", "run"]
    out, interruption = StringIO(), Interruption()
    interruption._note(signal.SIGINT, None)
    servers: Any = SimpleNamespace(
        check=lambda: None,
        broker=SimpleNamespace(bootstrap="here:1"),
        registry=SimpleNamespace(url="http://here:2"),
    )
    options = Options(Path("demo"), JARS)
    screen = Screen(console=Console(file=out, width=200))
    _keep(options, servers, Path("demo/config.yaml"), screen, interruption)
    last = "broker at here:1, registry at http://here:2; both run until Ctrl-C"
    assert last in out.getvalue()
    assert "spark-cep tail --config demo/config.yaml" in out.getvalue()


def test_why_results_are_awaited_is_told_before_the_stream(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In one line, where nothing else would say why the last events have no result yet."""
    out = StringIO()
    before: list[str] = []
    watched = Result(Counter(), Counter(), Progress(), expected(()), expected(()))

    def watch(*_: object) -> Result:
        before.extend(out.getvalue().splitlines())
        return watched

    monkeypatch.setattr(demo_run, "_watch", watch)
    servers: Any = SimpleNamespace(
        broker=SimpleNamespace(bootstrap="127.0.0.1:1"),
        registry=SimpleNamespace(url="http://127.0.0.1:2"),
    )
    pages: Any = SimpleNamespace(address="http://127.0.0.1:3")
    unused: Any = None
    screen = Screen(console=Console(file=out, width=40))
    options = Options(tmp_path, JARS)
    code = demo_run._stream(servers, unused, pages, None, unused, screen, Interruption(), options)
    assert code == 0
    assert before[-1].endswith(
        "results come when the watermark has passed their events; newer events move it, so those"
        " read last wait"
    )


def test_rules_that_a_person_changes() -> None:
    """Then nothing is compared: the demo says so, and is content."""
    waited = Result(
        Counter(logs=1), Counter(), Progress(), expected(()), expected(()), frozenset({"own"})
    )
    out = StringIO()
    assert _verdict(waited, Screen(console=Console(file=out, width=200))) == 0
    assert "rules were changed on the page (own), so nothing is compared" in out.getvalue()
    code = _verdict(replace(waited, changed=frozenset()), Screen(console=Console(file=out)))
    assert code == 1
