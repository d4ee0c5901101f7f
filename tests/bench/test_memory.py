"""The watch on a side's memory."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from bench.memory_watch import MemoryWatch
from bench.side import Side

HOLDS = """\
import json, sys, time
held = bytearray(64 << 20)
print(json.dumps({"ready": True}), flush=True)
sys.stdin.read()
"""


def test_the_watch_sees_the_most_that_a_side_took(tmp_path: Path) -> None:
    """64 MiB and an interpreter here."""
    with Side("holds", [sys.executable, "-c", HOLDS], tmp_path / "log") as side:
        watch = MemoryWatch(side)
        with watch:
            for _ in range(100):
                if watch.peak:
                    break
                time.sleep(0.05)
    assert 64 < watch.peak["driver"] < 200
    assert watch.peak["all"] >= watch.peak["driver"]
