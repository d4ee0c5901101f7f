"""``python -m tests.hostile``: the long run; prints what was sent and written. It fails if
anything differs from the core, the job ends, or its memory grows."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.soak.sampling import processes, totals
from examples.embedded import EmbeddedBroker, EmbeddedRegistry
from examples.embedded.process import free_ports
from tests.conftest import JARS
from tests.e2e.command import Command
from tests.e2e.scenario import Scenario
from tests.hostile.stream import HostileStream, Place
from tests.kafka_access import KafkaAccess

#: A round with the key of many partial matches, or with the one of many events, of so many.
_CROWD_EVERY = 10
#: New schemas in a round.
_SCHEMAS = 50
_MOST_SECONDS = 900.0
#: The largest sum of all processes' memory in the last third of the time, by that of the second.
_MOST_GROWTH = 1.15


def main(
    minutes: Annotated[float, typer.Option(help="How long rounds are sent.", min=0.5)] = 30,
    events: Annotated[int, typer.Option(help="Sound events of a round.", min=300)] = 4_000,
    crowd: Annotated[int, typer.Option(help="Partial matches of one key.")] = 200_000,
    long: Annotated[int, typer.Option(help="Events of one key in a match.")] = 100_000,
    schemas: Annotated[int, typer.Option(help="Mutated schemas.")] = 1_000,
    seed: Annotated[int, typer.Option(help="Of everything random; 0: from the clock.")] = 0,
) -> None:
    """Send everything at once that a writer could do, and compare what the job made of it."""
    seed = seed or time.time_ns() % 10**6
    console = Console(width=110, highlight=False)
    console.print(f"seed {seed}")
    with (
        tempfile.TemporaryDirectory(prefix="spark-cep-hostile-") as folder,
        EmbeddedBroker(Path(folder) / "broker", JARS) as broker,
        EmbeddedRegistry(Path(folder) / "registry", JARS) as registry,
    ):
        access = KafkaAccess(broker.bootstrap)
        scenario = Scenario(access, registry.url, None, Path(folder) / "scenario")
        stream = HostileStream(scenario, events, crowd, long, seed)
        port = free_ports(1)[0]
        command = Command(scenario.folder, _document(scenario, port))
        memory: list[float] = []
        until = time.monotonic() + minutes * 60
        try:
            while time.monotonic() < until:
                kind = stream.rounds % _CROWD_EVERY
                fresh = min(_SCHEMAS, schemas - stream.mutated.registered)
                stream.send(crowd=kind == 1, long=kind == 6, schemas=fresh)
                seconds = _worked_off(command, port, stream.records, memory)
                console.print(
                    f"round {stream.rounds}: {stream.records:,} records sent, worked off"
                    f" {seconds:.1f} s after the last one, {memory[-1]:,.0f} MiB"
                )
            code, _ = command.terminate()
        finally:
            command.kill()
        counts = stream.compare()
    console.print(
        {
            "sound": stream.sound,
            **counts,
            "reasons": dict(Counter(stream.broken.values())),
            "of rules": dict(_by_reason(stream.letters)),
            "mutated schemas": stream.mutated.registered,
            "the registry refused": stream.mutated.refused,
        }
    )
    growth = _growth(memory)
    console.print(f"as the core says; exit code {code}; memory grew by a factor of {growth:.2f}")
    sys.exit(code != 0 or growth > _MOST_GROWTH)


def _document(scenario: Scenario, port: int) -> dict[str, object]:
    return scenario.document(
        trigger={"mode": "continuous", "latency": "0 ms"},
        # Both partitions have records in each round.
        time={"partition_idle_after": "1 hour"},
        state={"bucket_size": "64 KiB", "state_partitions": 2},
        observability={
            "metrics_host": "127.0.0.1",
            "metrics_port": port,
            "log_level": "info",
            "log_format": "json",
        },
    )


def _by_reason(letters: Counter[tuple[Place, str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for (_, reason), count in letters.items():
        counts[reason] += count
    return counts


def _worked_off(command: Command, port: int, records: int, memory: list[float]) -> float:
    """Wait until the job has read so many records; its memory meanwhile, in MiB, is added."""
    began = time.monotonic()
    while True:
        if command.ended(0.5) is not None:
            raise RuntimeError(f"the job ended:\n{command.end_of_log()}")
        try:
            read = totals(port)["spark_cep_records_consumed_total"]
        except OSError:
            read = 0
        figures = processes(command.processes()[0])
        memory.append(sum(each for name, each in figures.items() if name.endswith("_memory_mib")))
        if read >= records:
            return time.monotonic() - began
        if time.monotonic() - began > _MOST_SECONDS:
            raise RuntimeError(f"{read:,} of {records:,} records in {_MOST_SECONDS:.0f} s")


def _growth(memory: list[float]) -> float:
    third = len(memory) // 3
    return max(memory[-third:]) / max(memory[third:-third]) if third else 1.0


if __name__ == "__main__":
    typer.run(main)
