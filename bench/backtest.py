"""The speed of ``spark-cep backtest`` over files of log-ins, by format, and on Spark by cores.

The command runs as a process of its own, kept to so many cores. Every run has to find the matches
that are known of the stream.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from bench.events import KNOWN_MATCHES, SCHEMA, events
from bench.outputs import DisagreementError
from bench.rules import write_rules

_WITHIN_MS = 60_000
_TOGETHER = 100_000
_DISORDER = "1 second"
_ON_SPARK = ", Spark"


class Measured(NamedTuple):
    """The runs of one kind. ``seconds``: what the report says; ``command``: of the whole command,
    and ``processor``: of the processors for it, which is not known where it has a Java process.
    Medians."""

    kind: str
    cores: int
    records: int
    matches: int
    seconds: float
    command: float
    processor: float

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.seconds


def _avro(codec: str, file: Path, several: Iterable[dict[str, Any]]) -> None:
    with file.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(dict(SCHEMA)), several, codec=codec)


def _lines(file: Path, several: Iterable[dict[str, Any]]) -> None:
    with file.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(each) + "\n" for each in several)


def _csv(file: Path, several: Iterable[dict[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(each["name"] for each in SCHEMA["fields"])
        rows.writerows(each.values() for each in several)


def _parquet(file: Path, several: Iterable[dict[str, Any]]) -> None:
    types = {"amount": pa.float64(), "ts": pa.timestamp("ms", "UTC")}
    schema = pa.schema(
        [(each["name"], types.get(each["name"], pa.string())) for each in SCHEMA["fields"]]
    )
    with pq.ParquetWriter(file, schema) as writer:
        left = iter(several)
        while some := list(islice(left, _TOGETHER)):
            writer.write_table(pa.Table.from_pylist(some, schema))


#: By kind of file: the end of its name, and what writes one.
KINDS: dict[str, tuple[str, Callable[[Path, Iterable[dict[str, Any]]], None]]] = {
    "Avro": ("avro", partial(_avro, "null")),
    "Avro, deflate": ("deflate.avro", partial(_avro, "deflate")),
    "Parquet": ("parquet", _parquet),
    "JSON lines": ("jsonl", _lines),
    "CSV": ("csv", _csv),
}


def backtest(
    folder: Path,
    count: int,
    kinds: Sequence[str],
    runs: int,
    masters: Sequence[int],
    say: Callable[[str], None],
) -> Iterator[Measured]:
    """Measure each format on one core, and the first one on Spark with so many cores."""
    folder.mkdir(parents=True, exist_ok=True)
    rules = write_rules(folder / "rules", "fails", _WITHIN_MS)
    schema = folder / "login.avsc"
    schema.write_text(json.dumps(SCHEMA), "utf-8")
    for kind in kinds:
        suffix, write = KINDS[kind]
        say(f"{count:,} log-ins as {kind}")
        file = folder / f"logins-{count}.{suffix}"
        if not file.exists():
            write(file, events(count))
        given = ["--rules", str(rules), "--input", str(file)]
        if suffix in ("jsonl", "csv"):
            given += ["--schema", str(schema), "--event-time", "ts:millis"]
        yield _measured(kind, given, count, 1, runs)
        for cores in masters if suffix in ("avro", "jsonl") else ():
            on_spark = [*given, "--master", f"local[{cores}]"]
            yield _measured(f"{kind}{_ON_SPARK}", on_spark, count, cores, runs)


def _measured(kind: str, given: Sequence[str], count: int, cores: int, runs: int) -> Measured:
    taken: list[tuple[float, float, float]] = []
    matches = 0
    for _ in range(runs):
        began, before = perf_counter(), _processor()
        done = subprocess.run(
            [sys.executable, "-m", "spark_cep.cli.main", "backtest", *given, "--json",
             "--allowed-disorder", _DISORDER],
            stdout=subprocess.PIPE,
            check=True,
            preexec_fn=partial(os.sched_setaffinity, 0, range(cores)),
        )  # fmt: skip
        found = json.loads(done.stdout)
        taken.append((found["seconds"], perf_counter() - began, _processor() - before))
        matches = found["rules"][0]["matches"]
        if found["records"] != count or matches != KNOWN_MATCHES.get(count, matches):
            raise DisagreementError(
                f"back-test of {kind}: {found['records']:,} records, {matches:,} matches; known are"
                f" {count:,} and {KNOWN_MATCHES.get(count)}"
            )
    seconds, command, processor = (median(each) for each in zip(*taken, strict=True))
    return Measured(kind, cores, count, matches, seconds, command, processor)


def _processor() -> float:
    """Seconds of the processors for all processes that have ended."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(measured: Iterable[Measured]) -> Iterator[str]:
    """The figures as a table of Markdown."""
    yield "| input | cores | log-ins | log-ins a second | seconds | whole command | processor |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for each in measured:
        processor = "" if each.kind.endswith(_ON_SPARK) else f"{each.processor:.1f}"
        yield (
            f"| {each.kind} | {each.cores} | {each.records:,} | {each.rate:,.0f} |"
            f" {each.seconds:.1f} | {each.command:.1f} | {processor} |"
        )
