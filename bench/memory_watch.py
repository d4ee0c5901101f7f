"""The memory of a side's processes."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from bench.side import Side
from bench.soak.sampling import members


@dataclass
class MemoryWatch:
    """The most memory of a side's processes while ``with`` lasts, by kind and of ``all``, in MiB.
    A page that several processes share counts in parts, so the sum is what is taken. To look takes
    the kernel 30 ms for each GiB."""

    side: Side
    every_seconds: float = 0.5
    peak: dict[str, int] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self.every_seconds):
            taken = proportional(self.side.pid)
            for kind, size in (taken | {"all": sum(taken.values())}).items():
                self.peak[kind] = max(size, self.peak.get(kind, 0))


def proportional(driver: int) -> dict[str, int]:
    """MiB by kind of process, each page divided among those that share it."""
    sizes: Counter[str] = Counter()
    for entry, kind in members(driver):
        with suppress(OSError, IndexError, ValueError):
            sizes[kind] += share(entry) >> 10
    return dict(sizes)


def share(entry: Path) -> int:
    """KiB of the process below ``/proc``, each page divided among those that share it."""
    told = (entry / "smaps_rollup").read_text("utf-8")
    return int(told.split("\nPss:")[1].split()[0])
