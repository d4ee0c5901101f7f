"""How long ``spark-cep run`` takes from the command to its first committed batch, by phase.

A topic is filled; the command is started on an empty checkpoint, stopped, and started again where
it stopped, with records waiting each time. The phases are the service's own (its log event
``started``); seconds from outside and processor time of all its processes stand next to them, since
a machine that is busy stretches the former alone. Reads ``/proc``, so Linux alone.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.command import Command
from bench.events import logins
from bench.rules import write_rules
from bench.soak.sampling import members
from bench.testbed import TestBed
from examples.embedded.process import free_ports, tail

_MOST_SECONDS = 300.0
_TICKS = os.sysconf("SC_CLK_TCK")
_WITHIN_MS = 60_000
#: Small enough that a restart has records, too.
_BATCH = 20_000
#: Seconds from the command to the first committed batch, on two cores.
AIMS = {"first start": 10.0, "restart": 6.0}


def start(bed: TestBed, events: int, runs: int) -> dict[str, Any]:
    """``runs`` first starts, each followed by a restart."""
    topic = bed.filled("start", logins(events), events)
    rules = write_rules(bed.folder / "rules" / "start", "fails", _WITHIN_MS)
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in AIMS}
    for _ in range(runs):
        run = bed.next_run("start")
        settings = bed.settings(run, topic.name, rules, batch=None)
        settings["trigger"] = {"mode": "continuous"}
        settings["source"] = {"max_offsets_per_trigger": _BATCH}
        folder = bed.folder / run
        folder.mkdir()
        for kind in AIMS:
            found[kind].append(_started(folder, settings))
            bed.say(f"{kind}: {json.dumps(found[kind][-1])}")
    return {"starts": {kind: _median(each) | {"aim": AIMS[kind]} for kind, each in found.items()}}


def _median(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    def middle(part: str) -> dict[str, float]:
        names = {name: None for each in found for name in each[part]}
        return {
            name: round(statistics.median(each[part].get(name, 0.0) for each in found), 2)
            for name in names
        }

    return {
        "seconds": round(statistics.median(each["seconds"] for each in found), 2),
        "phases": middle("phases"),
        "meanwhile": middle("meanwhile"),
        "processor": middle("processor"),
    }


def _started(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Start the command, wait for its first committed batch, stop it."""
    document = {
        **settings,
        "observability": {
            "metrics_host": "127.0.0.1", "metrics_port": free_ports(1)[0], "log_format": "json",
        },
    }  # fmt: skip
    command = Command(folder, document)
    command.log.unlink(missing_ok=True)
    began = time.monotonic()
    command.start(lambda: _event(command.log) is not None, within=_MOST_SECONDS)
    seconds = time.monotonic() - began
    told, pid = _event(command.log), command.pid
    if told is None or pid is None:
        raise RuntimeError(f"it ended by itself:\n{tail(command.log, 20)}")
    processor = _processor(pid)
    command.terminate(_MOST_SECONDS)
    return {
        "seconds": round(seconds, 2),
        "phases": told["phases"],
        "meanwhile": told["meanwhile"],
        "processor": processor,
    }


def _event(log: Path) -> dict[str, Any] | None:
    for line in log.read_text("utf-8", errors="replace").splitlines():
        if '"event": "started"' in line:
            return dict(json.loads(line))
    return None


def _processor(leader: int) -> dict[str, float]:
    """Seconds of processor time by kind of process, those that ended included."""
    found: Counter[str] = Counter()
    for entry, kind in members(leader):
        with suppress(OSError, IndexError, ValueError):
            fields = (entry / "stat").read_text("utf-8").rpartition(")")[2].split()
            found[kind] += sum(map(int, fields[11:15]))
    return {kind: round(ticks / _TICKS, 2) for kind, ticks in found.items()}
