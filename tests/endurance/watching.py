"""What can be seen of a job from outside while its rules change: when each batch was committed,
what ``/rules`` lists, what the status topic says."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

_LOOK_SECONDS = 0.1
#: A version of a rule, or what is wrong of it.
Version = tuple[str | None, int | None]
#: When each state began, in seconds since 1970; ``gone`` for none.
States = dict[Version, list[tuple[float, str]]]


@dataclass(eq=False)
class Watcher(threading.Thread):
    """Looks at checkpoint, ``/rules`` and status topic until told to end."""

    checkpoint: Path
    port: int
    bootstrap: str
    status_topic: str
    #: When Spark has committed each batch.
    commits: dict[int, float] = field(default_factory=dict)
    listed: States = field(default_factory=lambda: defaultdict(list))
    told: States = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        super().__init__(name="watcher", daemon=True)
        self._ended = threading.Event()

    def run(self) -> None:
        """Look."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "endurance-status",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([self.status_topic])
        try:
            while not self._ended.wait(_LOOK_SECONDS):
                self._look_at_commits()
                with suppress(OSError):
                    self._look_at_rules()
                for message in consumer.consume(1_000, 0):
                    if message.error() is None:
                        self._take(message.key(), message.value(), message.timestamp()[1] / 1000)
        finally:
            consumer.close()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()
        self.join()

    def _look_at_commits(self) -> None:
        with suppress(OSError):
            for file in (self.checkpoint / "commits").iterdir():
                if file.name.isdigit() and int(file.name) not in self.commits:
                    self.commits[int(file.name)] = file.stat().st_mtime

    def _look_at_rules(self) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/rules", timeout=5) as answer:
            rows: list[dict[str, Any]] = json.load(answer)["rules"]
        now = time.time()
        states = {(row["id"], row.get("version")): row["state"] for row in rows}
        for version, state in states.items():
            _note(self.listed, version, now, state)
        for version in self.listed.keys() - states.keys():
            _note(self.listed, version, now, "gone")

    def _take(self, key: bytes | None, value: bytes | None, when: float) -> None:
        named = json.loads(key or b"[]")
        if value is None:
            rejected = len(named) == 4
            _note(self.told, (named[-1], None) if rejected else tuple(named[1:]), when, "gone")
        else:
            record = json.loads(value)
            version = record.get("rule_id"), record.get("rule_version")
            _note(self.told, version, when, record["state"])


def _note(states: States, version: Version, when: float, state: str) -> None:
    known = states[version]
    if not known or known[-1][1] != state:
        known.append((when, state))


def first(states: States, version: Version, state: str, since: float) -> float | None:
    """When the version was first in the state at that time or later."""
    return next((at for at, what in states.get(version, ()) if what == state and at >= since), None)
