"""The peer: Flink CEP over the same topics, ``bench/flink``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.flink_program import FlinkProgram, build
from bench.side import Side

_PROJECT = Path(__file__).parent / "flink"
_JVM = (
    "-Xmx4g",
    "-XX:-UsePerfData",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)


def build_peer(folder: Path) -> FlinkProgram:
    """Compile the peer into ``folder`` unless that was done; FlinkUnavailableError where it cannot
    be."""
    return build(_PROJECT, folder)


def start_peer(program: FlinkProgram, log: Path, cores: Sequence[int]) -> Side:
    """The peer in a JVM of its own, on ``cores``."""
    return Side("Flink", program.command(_JVM, "bench.job.CepJob"), log, cores=cores)
