"""Starts ``bench/matcher/flink``: Flink's own CEP operator over a file of events."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import flink_program
from bench.flink_program import FlinkProgram, FlinkUnavailableError
from bench.matcher.stream import Stream

__all__ = [
    "FlinkAnswer",
    "FlinkFailedError",
    "FlinkOperator",
    "FlinkUnavailableError",
    "build",
    "write_stream",
]

_PROJECT = Path(__file__).parent / "flink"
_RUN_SECONDS = 900
_JVM = (
    # Collecting garbage in the same thread's time: the comparison is for one core.
    "-XX:+UseSerialGC",
    "-Xms4g",
    "-Xmx4g",
    "-XX:-UsePerfData",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)


class FlinkFailedError(Exception):
    """Flink was there, and its run failed."""


@dataclass(frozen=True, slots=True)
class FlinkAnswer:
    """One timed run. ``matches`` and ``timeouts`` are as emitted, repetitions included."""

    processor_seconds: float
    passed_seconds: float
    matches: int
    timeouts: int
    distinct_matches: int
    distinct_timeouts: int


@dataclass(frozen=True)
class FlinkOperator:
    """The program, built. Each run is a JVM of its own."""

    program: FlinkProgram

    @property
    def java(self) -> Path:
        """The JVM that runs it."""
        return self.program.java

    @property
    def version(self) -> str:
        """Flink's version."""
        return self.program.version

    def run(self, pattern: str, file: Path) -> FlinkAnswer:
        """Time ``pattern`` over the events in ``file``."""
        command = self.program.command(_JVM, "bench.CepOperatorBenchmark", pattern, str(file))
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_RUN_SECONDS
        )
        if answer.returncode != 0:
            raise FlinkFailedError(f"Flink failed on {pattern}:\n{answer.stderr.strip()}")
        found: dict[str, Any] = json.loads(answer.stdout)
        return FlinkAnswer(**found)


def build(folder: Path) -> FlinkOperator:
    """Compile the program and fetch its jars into ``folder``, unless that was done."""
    return FlinkOperator(flink_program.build(_PROJECT, folder))


def write_stream(stream: Stream, file: Path) -> None:
    """What ``EventFile.java`` reads: counts, batches, then the events column by column."""
    file.parent.mkdir(parents=True, exist_ok=True)
    letters = np.frombuffer("".join(stream.scenario.weights).encode("ascii"), np.uint8)
    with file.open("wb") as out:
        for numbers in ([len(stream), len(stream.ends)], stream.ends, stream.watermarks):
            out.write(np.array(numbers, "<i8").tobytes())
        out.write(stream.time.astype("<i8").tobytes())
        out.write(stream.amount.astype("<f8").tobytes())
        out.write(stream.key.astype("<i4").tobytes())
        out.write(letters[stream.kind].tobytes())
