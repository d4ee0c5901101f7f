"""Figures for people (a table that can go into Markdown as it is) and for programs (JSON)."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from bench.machine import java_version, processor
from bench.matcher.flink_operator import FlinkOperator
from bench.matcher.measurement import FLINK, Comparison, Measured


def table(comparisons: Sequence[Comparison]) -> str:
    """One row a stream: what was found, events per second of each side, and their ratios."""
    sides = [side.side for side in comparisons[0].sides]
    ours = [side for side in sides if side != FLINK]
    ratios = [f"{side} / {FLINK}" for side in ours] if FLINK in sides else []
    head = ["rule", "events", "keys", "matches", "timeouts", *sides, *ratios]
    rows = [head]
    for one in comparisons:
        rates = {side.side: one.events / side.median_seconds for side in one.sides}
        rows.append(
            [
                one.scenario.about,
                *(f"{number:,}" for number in (one.events, one.keys, *one.counts)),
                *(f"{round(rate, -2):,.0f}" for rate in rates.values()),
                *(f"{rates[side] / rates[FLINK]:.2f}" for side in ours if ratios),
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(_pad(cell, width, n) for n, (cell, width) in enumerate(cells)) + " |"
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    rule = " | ".join(
        "-" * width if n == 0 else "-" * (width - 1) + ":" for n, width in enumerate(widths)
    )
    return "\n".join([lines[0], f"| {rule} |", *lines[1:]])


def repetitions(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """A line for each stream in which a side emitted something more than once."""
    for one in comparisons:
        for side in one.sides:
            if any(side.repeated):
                yield (
                    f"{one.scenario.about}, {one.keys:,} keys: {side.side} emitted"
                    f" {side.repeated.matches:,} matches and {side.repeated.timeouts:,} timeouts"
                    " again; they are not counted"
                )


def json_lines(comparisons: Sequence[Comparison], facts: dict[str, Any]) -> str:
    """One JSON object a line for each side of each stream."""
    return "".join(
        json.dumps(_result(one, side) | facts) + "\n" for one in comparisons for side in one.sides
    )


def circumstances(flink: FlinkOperator | None) -> dict[str, Any]:
    """When, on what, and with which versions."""
    facts: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    if flink is not None:
        facts |= {"java": java_version(flink.java), "flink": flink.version}
    return facts


def _result(one: Comparison, side: Measured) -> dict[str, Any]:
    return {
        "rule": one.scenario.name,
        "side": side.side,
        "events": one.events,
        "keys": one.keys,
        "matches": side.counts.matches,
        "timeouts": side.counts.timeouts,
        "repeated_matches": side.repeated.matches,
        "repeated_timeouts": side.repeated.timeouts,
        "processor_seconds": [round(run.processor, 4) for run in side.runs],
        "passed_seconds": [round(run.passed, 4) for run in side.runs],
        "events_per_second": round(one.events / side.median_seconds),
    }


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)
