"""``bench/history.csv``: the ratios of each version, so that a loss is seen."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HISTORY = Path(__file__).with_name("history.csv")
COLUMNS = ("version", "commit", "date", "benchmark", "ratio_of", "events", "runs", "ratio")


def append(
    file: Path, benchmark: str, facts: Mapping[str, Any], ratios: Iterable[Mapping[str, Any]],
    runs: int,
) -> None:  # fmt: skip
    """Add a line for each ratio; the first one makes the file."""
    new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for ratio in ratios:
            about = [facts[name] for name in ("version", "commit", "date")]
            writer.writerow(
                [*about, benchmark, ratio["name"], ratio["events"], runs, ratio["ratio"]]
            )


def read(file: Path) -> list[dict[str, str]]:
    """All lines."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))
