"""A real Prometheus with the chart's alerts sixty times as quick: minutes are seconds."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from examples.embedded.process import free_ports
from tests.chart.files import ALERTS, tool
from tests.chart.test_dashboard_colours import COLOURED, when_green
from tests.e2e.stream import BEGIN, Stream

QUICKER = 60
#: About the machine: its disk and its speed.
OF_THE_MACHINE = {"SparkCepCheckpointDiskFull", "SparkCepBatchesSlow", "SparkCepDecisionsSlow"}
#: Bounds in seconds, and those that a small job in a minute does not come to.
BOUNDS = {
    "[1h])\n          ) > 3": "[1h])\n          ) > 0",
    "batch_running_seconds) > 240": "batch_running_seconds) > 4",
    "timestamp_seconds) > 0) > 600": "timestamp_seconds) > 0) > 10",
    "[5m:1m]) > 10000": "[5m:1m]) > 1000",
    "lag_seconds[5m])) > 900": "lag_seconds[5m])) > 15",
    "batch_duration_seconds_bucket[15m]))) > 20": "batch_duration_seconds_bucket[15m]))) > 1.5",
    "latency_seconds_bucket[15m]))) > 60": "latency_seconds_bucket[15m]))) > 2",
    "timestamp_seconds[10m])) < 5": "timestamp_seconds[10m])) < 0.1",
    "spark_cep_state_bytes) > 1e9": "spark_cep_state_bytes) > 5e6",
    "[6h:5m], 86400)": "[6h:5m], 1440)",
}


def quick(text: str, *, bounds: bool) -> str:
    """Alerts with all their durations divided, and the bounds of what they compare, too."""
    for bound, lower in BOUNDS.items() if bounds else ():
        text = text.replace(bound, lower)
    text = re.sub(r"\b(\d+)m\b", r"\1s", text)
    text = re.sub(r"\b(\d+)h\b", r"\1m", text)
    return re.sub(
        r"(process_start_time_seconds < )(\d+)", lambda m: f"{m[1]}{int(m[2]) / QUICKER:g}", text
    )


class Prometheus:
    """A server that scrapes one page, each second."""

    def __init__(self, port: int) -> None:
        self._port = port

    def firing(self) -> set[str]:
        """Names of the alerts that fire."""
        alerts = self._asked("alerts")["alerts"]
        return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}

    def value(self, query: str) -> float | None:
        """Of an expression that has one value, or none."""
        result = self._asked(f"query?{urllib.parse.urlencode({'query': query})}")["result"]
        return float(result[0]["value"][1]) if result else None

    def green(self) -> set[str]:
        """Titles of the dashboard's values that are green."""
        return {
            panel["title"]
            for panel in COLOURED
            if any(self.value(query) is not None for query in when_green(panel))
        }

    def wait_until(self, condition: Callable[[], Any], seconds: float, what: str) -> None:
        """Wait until it holds, or fail with what fires."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{what}; firing: {self.firing()}"
            time.sleep(0.25)

    def _asked(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/{path}") as answer:
            return json.load(answer)["data"]


@contextmanager
def prometheus(folder: Path, *targets: int, bounds: bool = False) -> Iterator[Prometheus]:
    """One that scrapes these ports as job fraud in the namespace cep. ``bounds``:
    also what is compared is lower, and not durations alone."""
    (port,) = free_ports(1)
    folder.mkdir()
    names = {"NAMESPACE": "cep", "JOB": "fraud", "CLAIM": "checkpoint"}
    for path in ALERTS:
        text = quick(path.read_text("utf-8"), bounds=bounds)
        for name, value in names.items():
            text = text.replace(name, value)
        (folder / path.name).write_text(text, "utf-8")
    labels = {"job": "fraud", "namespace": "cep"}
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [path.name for path in ALERTS],
        "scrape_configs": [
            {
                "job_name": "fraud",
                "static_configs": [
                    {"targets": [f"127.0.0.1:{target}" for target in targets], "labels": labels}
                ],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings), "utf-8")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        server = Prometheus(port)
        deadline = time.monotonic() + 30
        while True:
            try:
                server.firing()
                break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text("utf-8")
                assert time.monotonic() < deadline, (folder / "log").read_text("utf-8")
                time.sleep(0.1)
        yield server
    finally:
        process.kill()
        process.wait()


@contextmanager
def repeating(act: Callable[[threading.Event], object]) -> Iterator[None]:
    """``act`` again and again in a thread, until the block is left. It gets the event that says
    so, to wait with."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            act(over)

    thread = threading.Thread(target=work, name="repeating")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def sending(stream: Stream) -> Iterator[threading.Event]:
    """A good event twenty times a second, and while the event is set, a broken one beside each."""
    poison = threading.Event()

    def send(over: threading.Event) -> None:
        broken = [stream.broken()] if poison.is_set() else []
        stream.send(("k", "x", time.time() - BEGIN / 1000), *broken)
        over.wait(0.05)

    with repeating(send):
        yield poison
