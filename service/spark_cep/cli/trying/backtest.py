"""``spark-cep backtest``: rules over recorded events, and what a change of them would do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.saving import save
from spark_cep.cli.terminal import (
    compilation_shown,
    err,
    note,
    out,
    print_warnings,
    shows_progress,
)
from spark_cep.cli.trying.events import (
    AtEnd,
    Before,
    Disorder,
    GivenEventTimes,
    GivenSchemas,
    Start,
    TimeAtEnd,
    allowed_disorder,
    recorded_events,
    rules_to_run,
)

if TYPE_CHECKING:
    from spark_cep.backtest.comparison import CompareReport
    from spark_cep.backtest.expectations import ExpectationVerdict
    from spark_cep.backtest.on_spark import SparkReplay
    from spark_cep.backtest.replay import Replay
    from spark_cep.backtest.report import BacktestReport
    from spark_cep.recorded.events import RecordedEvents
    from spark_cep.rules.rule_set import RuleSet


class ResultForm(Enum):
    """The forms of files of results."""

    JSONL = "jsonl"
    PARQUET = "parquet"


def backtest(
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            "-r",
            help="A rule file, or a folder of rule files; default: the rules of --config.",
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE|FOLDER|TOPIC",
            help="Avro container, Parquet, JSON lines or CSV files, folders of them, or a topic of"
            " --config; INPUT=… if there are several inputs. Default: the topics of --config.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", help="The settings of the job, a YAML file.", dir_okay=False
        ),
    ] = None,
    schema: GivenSchemas = None,
    event_time: GivenEventTimes = None,
    start: Start = None,
    end: Before = None,
    disorder: Disorder = None,
    at_end: AtEnd = TimeAtEnd.WAIT,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write results to.", file_okay=False),
    ] = None,
    form: Annotated[
        ResultForm, typer.Option("--format", "-f", help="Format of the result files.")
    ] = ResultForm.JSONL,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    expect: Annotated[
        Path | None,
        typer.Option(
            "--expect",
            help="Compare the results with the expectations in this YAML file.",
            dir_okay=False,
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit", help="Write the outcome of --expect to this JUnit file.", dir_okay=False
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            metavar="OTHER_RULES",
            help="Also run these new rules, and show the differences.",
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            "--master", help="Run on this Spark master, such as local[4]; default: in this process."
        ),
    ] = None,
) -> None:
    """Run rules over recorded events, with the decoder and matcher of the job. For files neither
    Kafka nor the registry is required. Exit code 1: the results differ from --expect."""
    from spark_cep.backtest.expectations import Expectations, read_expectations
    from spark_cep.backtest.replay import Replay, run_settings
    from spark_cep.cli.trying import backtest_text
    from spark_cep.config import load
    from spark_cep.recorded.opening import window_of

    if junit is not None and expect is None:
        raise typer.BadParameter("--junit is about --expect, which is not given")
    if compare is not None and (expect, output, master) != (None, None, None):
        raise typer.BadParameter("--compare goes with neither --expect, --output nor --master")
    settings = None if config is None else load(config)
    chosen = rules_to_run(rules, settings)
    expected = None if expect is None else Expectations(read_expectations(expect, chosen))
    with ExitStack() as stack, compilation_shown():
        events = recorded_events(
            chosen, given or [], settings, schema, event_time, window_of(start, end), stack
        )
        for each in events.notes:
            note(each)
        run = run_settings(settings, None if disorder is None else allowed_disorder(disorder))
        replay = Replay(chosen, events, run)
        print_warnings(replay.warnings)
        if compare is not None:
            other = Replay(rules_to_run(compare, None), events, run)
            print_warnings(other.warnings)
            found = _compared(replay, other, events, at_end)
            if as_json:
                typer.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
            else:
                backtest_text.show_comparison(found, out)
            return
        keeps = output is not None or expected is not None
        runs = replay if master is None else _on_spark(replay, master, keeps, stack)
        report = _run(runs, chosen, events, at_end, output, form, expected)
    if not report.records:
        between = "between --from and --to" if start or end else "in what was read"
        note(f"there is no record {between}")
    verdicts = [] if expected is None else [*expected.verdicts()]
    if as_json:
        made = report.as_json()
        if expected is not None:
            made["expectations"] = [_verdict(each) for each in verdicts]
        typer.echo(json.dumps(made, indent=2, ensure_ascii=False))
    else:
        backtest_text.show(report, out)
        backtest_text.show_verdicts(verdicts, out)
        if output is not None:
            out.print(f"\nResults are in {output}", markup=False)
    if junit is not None:
        from spark_cep.backtest.junit import junit as junit_of

        save(junit_of(verdicts, str(expect), report.seconds), junit)
    if any(each.failed for each in verdicts):
        sys.exit(NOT_AS_EXPECTED)


#: What a CI system takes for failed tests.
NOT_AS_EXPECTED = int(ExitCode.JOB_FAILED)


def _on_spark(replay: Replay, master: str, keeps: bool, stack: ExitStack) -> SparkReplay:
    from spark_cep.backtest.on_spark import SparkReplay, spark_context

    spark = stack.enter_context(spark_context(master))
    return SparkReplay(replay, spark, keeps_results=keeps)


def _run(
    replay: Replay | SparkReplay,
    rules: RuleSet,
    events: RecordedEvents,
    at_end: TimeAtEnd,
    output: Path | None,
    form: ResultForm,
    expected: Any,
) -> BacktestReport:
    from spark_cep.backtest.report import BacktestReport
    from spark_cep.backtest.result_files import FileForm, result_files

    report = BacktestReport.of(rules)
    began = monotonic()
    with result_files(output, FileForm(form.value)) as files, _progress(events) as moved:
        for found in replay.run(at_end.value):
            report.add(found)
            if files is not None:
                files.write(found)
            if expected is not None:
                expected.add(found)
            moved(found.read, report.records, report.matches)
    report.end(replay.open_matches(), monotonic() - began)
    if output is not None:
        text = json.dumps(report.as_json(), indent=2, ensure_ascii=False)
        save(text + "\n", output / "report.json")
    return report


def _compared(old: Replay, new: Replay, events: RecordedEvents, at_end: TimeAtEnd) -> CompareReport:
    from spark_cep.backtest.comparison import Comparison
    from spark_cep.backtest.example_accounts import explain

    comparison = Comparison(old.rules, new.rules)
    records = 0
    with _progress(events) as moved:
        for batch in events.batches(old.settings, at_end.value):
            comparison.add(old.apply(batch), new.apply(batch))
            records += batch.records
            moved(batch.read, records, None)
    report = comparison.ended(records)
    with _progress(events) as moved:
        explain(report, old, new, at_end.value, moved)
    return report


@contextmanager
def _progress(events: RecordedEvents) -> Iterator[Any]:
    """Shows how far reading has come, on a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%  {task.description}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not shows_progress()) as progress:
        task = progress.add_task("", total=max(1, events.size))
        began = monotonic()

        def moved(read: int, records: int, matches: int | None) -> None:
            rate = records / max(monotonic() - began, 1e-3)
            found = "" if matches is None else f", {matches:,} matches"
            text = f"{records:,} records{found}, {rate:,.0f} records/s"
            progress.update(task, completed=read, description=text)

        yield moved


def _verdict(verdict: ExpectationVerdict) -> dict[str, Any]:
    return {
        "expected": verdict.title,
        "ok": verdict.wrong is None,
        "failed": verdict.failed,
        "found": verdict.wrong,
    }
