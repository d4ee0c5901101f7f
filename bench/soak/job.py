"""The job of a soak: the command as a process of its own, killed and started again."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.command import Command
from bench.soak.stream import ALLOWED_DISORDER_MS, INPUT, TOPIC
from examples.embedded.process import free_ports

TOPICS = {
    "match": "soak.matches",
    "timeout": "soak.timeouts",
    "late": "soak.late",
    "dead_letter": "soak.dead-letters",
}
_START_SECONDS = 300.0
_STOP_SECONDS = 60.0


class SoakJob:
    """``spark-cep run``. The JVM's heap has its full size, and all its memory, from the start, so
    that what grows later is something else. ``changed``: sections of settings with what else is
    than in a soak."""

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        registry: str,
        changed: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.port = free_ports(1)[0]
        self.folders = {"checkpoint": folder / "checkpoint", "scratch": folder / "scratch"}
        self.starts = 0
        document = self._document(folder, bootstrap, registry)
        for section, values in (changed or {}).items():
            document[section] = {**document.get(section, {}), **values}
        self._child = Command(
            folder,
            document,
            {"SPARK_SUBMIT_OPTS": "-Xms1g -XX:+AlwaysPreTouch -XX:+UseSerialGC"},
        )

    def _document(self, folder: Path, bootstrap: str, registry: str) -> dict[str, Any]:
        return {
            "kafka": {"bootstrap_servers": bootstrap},
            "inputs": {INPUT: {"topics": [TOPIC], "event_time": "ts"}},
            "outputs": {
                "topics": {
                    "matches": TOPICS["match"],
                    "timeouts": TOPICS["timeout"],
                    "late": TOPICS["late"],
                    "dead_letters": TOPICS["dead_letter"],
                },
                "create_topics": {"partitions": 2, "replication": 1},
            },
            "registry": {"url": registry},
            "time": {"allowed_disorder": f"{ALLOWED_DISORDER_MS} ms"},
            "source": {"max_offsets_per_trigger": 50_000},
            "state": {
                "checkpoint": str(self.folders["checkpoint"]),
                "state_partitions": 2,
                "rocksdb_memory": "16 MiB",
            },
            "trigger": {"latency": "500 ms"},
            "spark": {
                "master": "local[2]",
                "conf": {
                    "spark.driver.memory": "1g",
                    # What is kept must be full after minutes, or it grows all the time.
                    "spark.sql.streaming.minBatchesToRetain": 20,
                    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
                    "spark.sql.warehouse.dir": str(folder / "warehouse"),
                    # Else the time that is looked at has only a few saw-teeth.
                    "spark.cleaner.periodicGC.interval": "1min",
                },
            },
            "rules": {"folder": str(folder / "rules")},
            "observability": {
                "metrics_host": "127.0.0.1",
                "metrics_port": self.port,
                "log_level": "warning",
                "log_format": "json",
            },
        }

    @property
    def pid(self) -> int | None:
        """The driver's process, where it runs."""
        return self._child.pid

    def start(self) -> None:
        """Start, and wait for the first batch."""
        self.starts += 1
        self._child.start(self._ready, within=_START_SECONDS)

    def kill(self) -> None:
        """SIGKILL to the driver and its JVM."""
        self._child.kill()

    def terminate(self) -> int | None:
        """SIGTERM to the driver; its exit code, or ``None`` when it had to be killed."""
        return self._child.terminate(_STOP_SECONDS)

    def _ready(self) -> bool:
        with suppress(OSError):
            url = f"http://127.0.0.1:{self.port}/readyz"
            with urllib.request.urlopen(url, timeout=5) as answer:
                return bool(answer.status == 200)
        return False
