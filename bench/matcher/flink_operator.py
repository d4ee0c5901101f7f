"""Builds and starts ``bench/matcher/flink``: Flink's own CEP operator over a file of events.

Maven is asked only when the sources changed. Without Maven, Java or network,
:class:`FlinkUnavailableError` says why.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.matcher.stream import Stream
from service.errors import StartError
from service.pipeline.jars import find_java

_PROJECT = Path(__file__).parent / "flink"
_BUILD_SECONDS = 900
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


class FlinkUnavailableError(Exception):
    """Flink cannot be measured here; the message is the reason."""


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

    java: Path
    folder: Path
    version: str

    def run(self, pattern: str, file: Path) -> FlinkAnswer:
        """Time ``pattern`` over the events in ``file``."""
        command = [
            str(self.java),
            *_JVM,
            *("-cp", f"{self.folder / 'classes'}:{self.folder / 'lib'}/*"),
            *("bench.CepOperatorBenchmark", pattern, str(file)),
        ]
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_RUN_SECONDS
        )
        if answer.returncode != 0:
            raise FlinkFailedError(f"Flink failed on {pattern}:\n{answer.stderr.strip()}")
        found: dict[str, Any] = json.loads(answer.stdout)
        return FlinkAnswer(**found)


def build(folder: Path) -> FlinkOperator:
    """Compile the program and fetch its jars into ``folder``, unless that was done."""
    try:
        java = find_java()
    except StartError as error:
        raise FlinkUnavailableError(str(error)) from error
    pom = (_PROJECT / "pom.xml").read_text("utf-8")
    found = re.search(r"<flink\.version>(.+?)</flink\.version>", pom)
    if found is None:
        raise ValueError(f"{_PROJECT.name}/pom.xml does not tell Flink's version")
    stamp = folder / "built"
    state = _fingerprint()
    if not stamp.exists() or stamp.read_text("ascii") != state:
        shutil.rmtree(folder, ignore_errors=True)
        _maven(folder)
        stamp.write_text(state, "ascii")
    return FlinkOperator(java, folder, found.group(1))


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


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted([_PROJECT / "pom.xml", *_PROJECT.rglob("*.java")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _maven(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise FlinkUnavailableError("Maven (mvn) was not found")
    command = [
        *(maven, "--quiet", "--batch-mode", "--file", str(_PROJECT / "pom.xml")),
        f"-Doutput={folder}",
        f"-Dmaven.repo.local={folder.parent / 'maven'}",
        *("compile", "dependency:copy-dependencies"),
    ]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_BUILD_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise FlinkUnavailableError(f"Maven took longer than {_BUILD_SECONDS} s") from error
    if answer.returncode != 0:
        lines = [line for line in answer.stdout.splitlines() if "ERROR" in line]
        said = lines[0].partition("ERROR] ")[2] if lines else f"exit code {answer.returncode}"
        raise FlinkUnavailableError(f"Maven could not build its side: {said}")
