"""``python -m bench COMMAND``: the whole job, measured next to Flink CEP and to Spark alone.

Each command prints its table and keeps its figures as JSON below ``.work/bench-figures``, from
which ``report`` makes tables and plots for the documentation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from bench import history
from bench import throughput as whole_job
from bench.flink_program import FlinkProgram, FlinkUnavailableError
from bench.machine import circumstances
from bench.outputs import DisagreementError
from bench.peer import build_peer
from bench.report import text
from bench.side import SideFailedError
from bench.testbed import TestBed, all_cores

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)
_WORK = Path(".work")
_FIGURES = _WORK / "bench-figures"

Events = Annotated[int, typer.Option(min=10_000, help="Events in the topic.")]
Runs = Annotated[int, typer.Option(min=1, help="Timed runs of each side, in turn.")]
Cores = Annotated[int | None, typer.Option(min=1, help="Cores for each side. [default: all]")]
Record = Annotated[bool, typer.Option("--record", help="Add the ratios to bench/history.csv.")]


@app.command()
def throughput(
    events: Events = 5_000_000,
    rocksdb_events: Annotated[
        int, typer.Option(min=0, help="Events next to Flink with RocksDB; 0: leave it out.")
    ] = 1_000_000,
    runs: Runs = 3,
    cores: Cores = None,
    record: Record = False,
) -> None:
    """Events per second: next to Flink with heap state, filtered and not, with RocksDB, and to
    Spark alone."""
    _measure(
        "throughput",
        lambda bed, program: whole_job.throughput(
            bed, program, events=events, rocksdb_events=rocksdb_events, runs=runs
        ),
        runs,
        cores,
        record=record,
    )


@app.command()
def quick(
    events: Events = 1_000_000, runs: Runs = 3, cores: Cores = None, record: Record = False
) -> None:
    """The main ratio alone: next to Flink with heap state and the expert's filter."""
    _measure(
        "quick",
        lambda bed, program: whole_job.quick(bed, program, events=events, runs=runs),
        runs,
        cores,
        record=record,
    )


@app.command()
def relevant(
    events: Events = 5_000_000, runs: Runs = 3, cores: Cores = None, record: Record = False
) -> None:
    """A rule that needs every event, and one that looks back, next to Flink with heap state."""
    _measure(
        "relevant",
        lambda bed, program: whole_job.relevant(bed, program, events=events, runs=runs),
        runs,
        cores,
        record=record,
    )


@app.command()
def delivery(
    events: Events = 5_000_000, runs: Runs = 3, cores: Cores = None, record: Record = False
) -> None:
    """Exactly-once output next to at-least-once, ours alone."""
    _measure_alone(
        "delivery",
        lambda bed: whole_job.delivery(bed, events=events, runs=runs),
        runs,
        cores,
        record=record,
    )


def _measure(
    name: str,
    measure: Callable[[TestBed, FlinkProgram], dict[str, Any]],
    runs: int,
    cores: int | None,
    *,
    record: bool,
) -> None:
    """Measure next to the peer, which is built first."""
    with _told():
        program = build_peer((_WORK / "bench-flink" / "flink").resolve())
    _measure_alone(
        name, lambda bed: measure(bed, program), runs, cores, record=record, flink=program.version
    )


def _measure_alone(
    name: str,
    measure: Callable[[TestBed], dict[str, Any]],
    runs: int,
    cores: int | None,
    *,
    record: bool,
    flink: str | None = None,
) -> None:
    """Measure, print the table, keep the figures."""
    chosen = all_cores()[:cores]
    facts = circumstances(chosen, flink)
    folder, jars = (_WORK / "bench").resolve(), (_WORK / "jars").resolve()
    with _told(), TestBed(folder, jars, chosen, _say) as bed:
        figures = measure(bed)
    document = {"benchmark": name, "runs_each": runs, "facts": facts} | figures
    _FIGURES.mkdir(parents=True, exist_ok=True)
    (_FIGURES / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    typer.echo(text(document))
    if record:
        history.append(history.HISTORY, name, facts, figures["ratios"], runs)


@contextmanager
def _told() -> Iterator[None]:
    """Say in one line what went wrong."""
    try:
        yield
    except (DisagreementError, FlinkUnavailableError, SideFailedError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error


def _say(what: str) -> None:
    typer.echo(what, err=True)


if __name__ == "__main__":
    app()
