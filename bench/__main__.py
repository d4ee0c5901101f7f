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
import yaml

from bench import backtest as of_files
from bench import cliffs as by_kinds
from bench import cost as by_events
from bench import formats as of_formats
from bench import history
from bench import input_partitions as of_input
from bench import latency as live
from bench import many_rules as by_rules
from bench import memory as peaks
from bench import rule_changes as changing
from bench import scaling as scales
from bench import several as of_several
from bench import sql_rules as in_sql
from bench import start as starts
from bench import state_growth as states
from bench import throughput as whole_job
from bench.cliffs import Workload
from bench.cost_shapes import chosen as shapes_of_cost
from bench.flink_program import FlinkProgram, FlinkUnavailableError
from bench.machine import circumstances
from bench.outputs import DisagreementError
from bench.payments import Amount
from bench.peer import build_peer
from bench.plots import draw
from bench.report import put, text, text_of_all
from bench.side import SideFailedError
from bench.testbed import PARTITIONS, TestBed, all_cores

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
    """The main ratios alone, of log-ins and of payments with DECIMAL amounts: next to Flink with
    heap state and the expert's filter."""
    _measure(
        "quick",
        lambda bed, program: whole_job.quick(bed, program, events=events, runs=runs),
        runs,
        cores,
        record=record,
    )


@app.command()
def formats(events: Events = 3_000_000, runs: Runs = 3, cores: Cores = None) -> None:
    """The job over log-ins and payments in JSON and in Protobuf next to the same in Avro, of JSON
    also with its output in JSON."""
    _measure_alone(
        "formats", lambda bed: of_formats.formats(bed, events=events, runs=runs), runs, cores
    )


@app.command()
def payments(
    amount: Annotated[
        list[Amount] | None, typer.Option(help="Type of amounts; again for more. [both]")
    ] = None,
    events: Events = 3_000_000,
    runs: Runs = 3,
    cores: Cores = None,
    record: Record = False,
) -> None:
    """Three rules over payments of 430 bytes, next to Flink with heap state."""
    _measure(
        "payments",
        lambda bed, program: whole_job.payments(
            bed, program, amounts=amount or list(Amount), events=events, runs=runs
        ),
        runs,
        cores,
        record=record,
    )


@app.command()
def several(events: Events = 1_000_000, runs: Runs = 3, cores: Cores = None) -> None:
    """Three rules with keys of their own, of which each concerns every event."""
    _measure_alone(
        "several", lambda bed: of_several.several(bed, events=events, runs=runs), runs, cores
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
def sql(
    events: Events = 2_000_000,
    rocksdb_events: Annotated[
        int, typer.Option(min=10_000, help="Events next to Flink SQL with RocksDB.")
    ] = 50_000,
    runs: Runs = 3,
    cores: Cores = None,
    record: Record = False,
) -> None:
    """Rules in SQL, next to the same in YAML and to Flink SQL's MATCH_RECOGNIZE."""
    _measure(
        "sql",
        lambda bed, program: in_sql.sql_rules(
            bed, program, events=events, rocksdb_events=rocksdb_events, runs=runs
        ),
        runs,
        cores,
        record=record,
    )


@app.command()
def cliffs(
    only: Annotated[
        list[str] | None, typer.Option(help="Part of the name of kinds; again for more. [all]")
    ] = None,
    workload: Annotated[list[Workload] | None, typer.Option(help="Again for more. [all]")] = None,
    events: Events = 500_000,
    runs: Annotated[int, typer.Option(min=1, help="Pairs of runs of each kind.")] = 1,
    cores: Cores = None,
) -> None:
    """Kinds of condition, each next to the plainest rule that chooses the same events; figures are
    kept when all of them ran."""
    try:
        kinds = by_kinds.chosen(only or [""])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--only") from error
    _measure_alone(
        "cliffs",
        lambda bed: by_kinds.cliffs(
            bed,
            events=events,
            runs=runs,
            kinds=kinds,
            workloads=workload or list(Workload),
        ),
        runs,
        cores,
        keep=not only and not workload,
    )


@app.command()
def cost(
    only: Annotated[
        list[str] | None, typer.Option(help="Part of the name of shapes; again for more. [all]")
    ] = None,
    events: Annotated[
        list[int] | None,
        typer.Option(min=10, help="Events; again for more. [100, 1000, 10000, 100000]"),
    ] = None,
) -> None:
    """Shapes of rules over the events of one key, in the batch runner alone: growth, and the
    slowest event."""
    try:
        shapes = shapes_of_cost(only or [""])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--only") from error
    counts = events or [100, 1_000, 10_000, 100_000]
    for line in by_events.table(by_events.cost(shape, counts) for shape in shapes):
        typer.echo(line)


@app.command()
def backtest(
    events: Events = 3_000_000,
    runs: Runs = 3,
    cores: Annotated[
        list[int] | None, typer.Option(min=1, help="Cores on Spark; again for more. [1, 2]")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="A format, as Avro; again for more. [all]")
    ] = None,
) -> None:
    """Back-tests of files of log-ins: each format on one core, and on Spark by cores."""
    wanted = [each for each in of_files.KINDS if not only or each in only]
    if unknown := {*(only or ())} - {*of_files.KINDS}:
        allowed = ", ".join(of_files.KINDS)
        raise typer.BadParameter(f"there is no {min(unknown)}; allowed: {allowed}")
    folder = (_WORK / "bench-backtest").resolve()
    with _told():
        found = [*of_files.backtest(folder, events, wanted, runs, cores or [1, 2], _say)]
    for line in of_files.table(found):
        typer.echo(line)


@app.command()
def state_growth(
    keys: Annotated[
        list[int] | None,
        typer.Option(
            min=1_000, help="Keys that hold a partial match; again for more. [50000, 1000000]"
        ),
    ] = None,
    touched: Annotated[
        int, typer.Option(min=100, help="Keys that a batch touches, a multiple of 4.")
    ] = 30_000,
    rounds: Annotated[int, typer.Option(min=1, help="Batches that are measured.")] = 8,
    bucket_size: Annotated[str | None, typer.Option(help="state.bucket_size")] = None,
    peer: Annotated[bool, typer.Option(help="Also the size of Flink's checkpoint.")] = True,
    cores: Cores = None,
) -> None:
    """Cost of a batch, bytes and memory by the number of keys that hold a partial match."""
    chosen = sorted(keys or [50_000, 1_000_000])
    if touched % PARTITIONS or touched > chosen[0]:
        raise typer.BadParameter(
            f"--touched is {touched}; allowed: multiples of {PARTITIONS} up to --keys"
        )
    state = {} if bucket_size is None else {"bucket_size": bucket_size}
    growth = states.Growth(chosen, touched, rounds, state)
    if peer:
        _measure(
            "state-growth",
            lambda bed, program: states.state_growth(bed, program, growth),
            rounds,
            cores,
        )
    else:
        _measure_alone(
            "state-growth", lambda bed: states.state_growth(bed, None, growth), rounds, cores
        )


@app.command()
def rules(
    events: Events = 2_000_000,
    runs: Runs = 3,
    count: Annotated[
        list[int] | None, typer.Option(help="Rules of ours; again for more. [1, 10, 100, 1000]")
    ] = None,
    peer_count: Annotated[
        list[int] | None, typer.Option(help="Rules of Flink's; again for more. [1, 100]")
    ] = None,
    untouched: Annotated[
        int, typer.Option(min=1, help="Rules that no event touches, beside one that is.")
    ] = 1_000,
    cores: Cores = None,
    record: Record = False,
) -> None:
    """Events per second by the number of rules over one stream."""
    _measure(
        "rules",
        lambda bed, program: by_rules.many_rules(
            bed,
            program,
            events=events,
            runs=runs,
            counts=count or [1, 10, 100, 1_000],
            peer_counts=peer_count or [1, 100],
            untouched=untouched,
        ),
        runs,
        cores,
        record=record,
    )


@app.command()
def latency(
    rates: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Events a second; again for more. [10, 1000, 20000, 100000]"),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds that are measured.")] = 60.0,
    settling: Annotated[float, typer.Option(min=0, help="Seconds before them.")] = 120.0,
    settling_rate: Annotated[
        int | None, typer.Option(min=1, help="Events a second in these. [default: the rate]")
    ] = None,
    disorder_ms: Annotated[
        int, typer.Option(min=0, help="How far events are out of order, in milliseconds.")
    ] = 0,
    partitions: Annotated[
        list[int] | None,
        typer.Option(min=1, max=16, help="State partitions; again for more. [2, 16]"),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Part of the name of jobs; again for more. [all]")
    ] = None,
    flink: Annotated[bool, typer.Option(help="Also Flink CEP.")] = True,
    cores: Cores = None,
) -> None:
    """From the append of the event that completes a match until a consumer can have the match, next
    to Flink CEP; figures are kept unless --seconds, --settling, --settling-rate or --disorder-ms is
    given."""
    load = live.Load(rates or live.RATES, seconds, settling, disorder_ms, settling_rate)
    program = _peer() if flink else None
    jobs = live.live_jobs(partitions or live.STATE_PARTITIONS, program)
    chosen = [job for job in jobs if any(part in job.name for part in only or [""])]
    if not chosen:
        allowed = "; ".join(job.name for job in jobs)
        raise typer.BadParameter(f"no job has such a name; allowed: parts of {allowed}")
    _measure_alone(
        "latency",
        lambda bed: live.latency(bed, chosen, load),
        1,
        cores,
        flink=program.version if program else None,
        keep=(seconds, settling, settling_rate, disorder_ms) == (60.0, 120.0, None, 0),
        join=live.joined,
    )


@app.command(name="rule-changes")
def rule_changes(
    changes: Annotated[int, typer.Option(min=2, help="Changes, one every two seconds.")] = 60,
    rules_running: Annotated[int, typer.Option("--rules", min=1, help="Rules that run.")] = 1_000,
    rate: Annotated[int, typer.Option(min=1, help="Events a second.")] = 5_000,
    events: Events = 6_000_000,
    runs: Runs = 3,
    cores: Cores = None,
) -> None:
    """From publishing a rule to a committed batch under it; the speed while rules change."""
    given = changing.Changes(changes, rules_running, rate)
    _measure_alone(
        "rule-changes", lambda bed: changing.rule_changes(bed, given, events, runs), runs, cores
    )


@app.command()
def scaling(
    events: Events = 2_000_000,
    runs: Runs = 3,
    partitions: Annotated[
        list[int] | None, typer.Option(min=1, max=64, help="State partitions. [2, 4, … 64]")
    ] = None,
    cores: Cores = None,
    record: Record = False,
) -> None:
    """Events per second by cores, and by state partitions."""
    most = len(all_cores()[:cores])
    _measure_alone(
        "scaling",
        lambda bed: scales.scaling(
            bed,
            events=events,
            runs=runs,
            cores=[n for n in (1, 2, 4, 8, 16) if n <= most],
            partitions=partitions or [2, 4, 8, 16, 32, 64],
        ),
        runs,
        cores,
        record=record,
    )


@app.command(name="input-partitions")
def input_partitions(
    partitions: Annotated[
        list[int] | None, typer.Option(min=1, help="Input partitions; again for more. [4, 1000]")
    ] = None,
    rate: Annotated[int, typer.Option(min=1, help="Events a second.")] = 200,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds that are measured.")] = 60.0,
    cores: Cores = None,
) -> None:
    """Small batches by stage, by the number of input partitions."""
    counts = partitions or [4, 1_000]
    _measure_alone(
        "input-partitions",
        lambda bed: of_input.input_partitions(bed, counts=counts, rate=rate, seconds=seconds),
        1,
        cores,
    )


@app.command()
def start(
    events: Events = 200_000,
    runs: Annotated[int, typer.Option(min=1, help="First starts, each with a restart.")] = 3,
    cores: Cores = None,
) -> None:
    """From the command to the first committed batch, by phase: a first start, and a restart."""
    _measure_alone("start", lambda bed: starts.start(bed, events, runs), runs, cores)


@app.command()
def memory(
    size: Annotated[
        list[str] | None,
        typer.Option(help=f"Sizes of records; again for more. [{', '.join(peaks.SIZES)}]"),
    ] = None,
    gigabytes: Annotated[
        list[float] | None, typer.Option(min=0.01, help="Backlogs; again for more. [0.2, 1]")
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of the input.")] = 4,
    setting: Annotated[
        list[str] | None,
        typer.Option(help="Other than default, as section.name=value; again for more."),
    ] = None,
    limit_mib: Annotated[
        int | None,
        typer.Option(min=256, help="Run in a control group with so much memory, as root."),
    ] = None,
) -> None:
    """Peak memory of a default start on a filled topic, by size of record and backlog."""
    chosen = size or list(peaks.SIZES)
    if unknown := set(chosen) - set(peaks.SIZES):
        raise typer.BadParameter(f"--size {', '.join(unknown)}; allowed: {', '.join(peaks.SIZES)}")
    changed: dict[str, dict[str, Any]] = {}
    for each in setting or []:
        name, _, value = each.partition("=")
        section, _, name = name.partition(".")
        changed.setdefault(section, {})[name] = yaml.safe_load(value)
    _measure_alone(
        "memory",
        lambda bed: peaks.memory(
            bed,
            chosen,
            gigabytes or [0.2, 1.0],
            partitions,
            changed,
            None if limit_mib is None else limit_mib << 20,
        ),
        1,
        None,
    )


@app.command(name="all")
def everything(record: Record = False) -> None:
    """All of the above, with their defaults, then the report."""
    throughput(record=record)
    payments(record=record)
    relevant(record=record)
    several()
    sql(record=record)
    state_growth()
    rules(record=record)
    latency()
    rule_changes()
    cliffs()
    memory()
    start()
    scaling(record=record)
    report()


@app.command()
def report(
    into: Annotated[
        Path | None, typer.Option(help="Put tables into performance.md of this folder, and plots.")
    ] = None,
) -> None:
    """Tables and plots of the figures that were kept."""
    found = {
        file.stem: json.loads(file.read_text("utf-8")) for file in sorted(_FIGURES.glob("*.json"))
    }
    if not found:
        typer.echo(f"error: {_FIGURES} has no figures; measure something first", err=True)
        raise typer.Exit(1)
    if into is None:
        typer.echo(text_of_all(found))
        return
    plots = draw(found, history.HISTORY, into / "performance")
    try:
        put(into / "performance.md", text_of_all(found, plots))
    except (OSError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error


def _measure(
    name: str,
    measure: Callable[[TestBed, FlinkProgram], dict[str, Any]],
    runs: int,
    cores: int | None,
    *,
    record: bool = False,
) -> None:
    """Measure next to the peer, which is built first."""
    program = _peer()
    _measure_alone(
        name, lambda bed: measure(bed, program), runs, cores, record=record, flink=program.version
    )


def _peer() -> FlinkProgram:
    with _told():
        return build_peer((_WORK / "bench-flink" / "flink").resolve())


def _measure_alone(
    name: str,
    measure: Callable[[TestBed], dict[str, Any]],
    runs: int,
    cores: int | None,
    *,
    record: bool = False,
    flink: str | None = None,
    keep: bool = True,
    join: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]] | None = None,
) -> None:
    """Measure, print the table, keep the figures; ``join`` puts them to those kept before."""
    chosen = all_cores()[:cores]
    facts = circumstances(chosen, flink)
    folder, jars = (_WORK / "bench").resolve(), (_WORK / "jars").resolve()
    with _told(), TestBed(folder, jars, chosen, _say) as bed:
        figures = measure(bed)
    document = {"benchmark": name, "runs_each": runs, "facts": facts} | figures
    if keep:
        file = _FIGURES / f"{name}.json"
        if join is not None and file.exists():
            document = join(json.loads(file.read_text("utf-8")), document)
        _FIGURES.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
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
