"""The command ``spark-cep``: arguments in, exit codes out; everything else is elsewhere."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from spark_cep import __version__
from spark_cep.cli.authoring.backtest import backtest
from spark_cep.cli.authoring.tap import tap
from spark_cep.cli.authoring.test_cases import run_cases
from spark_cep.cli.authoring.why import why
from spark_cep.cli.ending import Ending
from spark_cep.cli.exit_codes import ExitCode, exit_code
from spark_cep.cli.forms import CheckForm, RuleForm
from spark_cep.cli.rules.commands import commands as rules_commands
from spark_cep.cli.running import run
from spark_cep.cli.terminal import CommandGroup, ConfigFile, err, out
from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.config import load
from spark_cep.errors import (
    Problem,
    RuleSetError,
    SparkCepError,
    printable,
    printable_lines,
    rendered,
)
from spark_cep.observability.logs import as_json, configure

app = typer.Typer(
    name="spark-cep",
    cls=CommandGroup,
    help="Complex event processing on Kafka and Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(rules_commands)
app.command()(run)
app.command()(backtest)
app.command("test")(run_cases)
app.command()(tap)
app.command()(why)

#: Wrong use of a command; typer exports only what is below it.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def main() -> None:
    """Entry point."""
    try:
        if sys.argv[1:2] == ["run"]:
            _main_of_run()
        app()
    except Exception:  # noqa: BLE001  a defect of ours, reported in full
        traceback.print_exc()
        sys.exit(ExitCode.INTERNAL_ERROR)


def _main_of_run() -> None:
    """Run ``app()``, and report wrong use in the log's form."""
    configure()
    try:
        sys.exit(app(standalone_mode=not as_json()))
    except _UsageError as error:
        Ending().log(ExitCode.USAGE, str(error))
        sys.exit(ExitCode.USAGE)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"spark-cep {__version__}")
        raise typer.Exit


@app.command()
def prepare() -> None:
    """Compile the code that this machine runs, once; otherwise the first start or test does it."""
    from spark_cep.columns.compilation import compilation_noticed
    from spark_cep.pipeline import compiled_code

    took: list[float] = []
    with compilation_noticed(lambda: typer.echo("compiling: up to two minutes"), took.append):
        compiled_code.prepare()
    typer.echo(f"compiled in {took[0]:.0f} s" if took else "everything is compiled already")


@app.command()
def rescale(
    config: ConfigFile,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions", "-n", help="State partitions from now on, at most state.key_groups."
        ),
    ],
) -> None:
    """Redistribute the state of a stopped job over another number of partitions. An unfinished
    batch is completed first."""
    from spark_cep.pipeline.driver.commands import rescale as rescaling

    settings = load(config)
    configure(settings.observability.log_level, settings.observability.log_format)
    done = rescaling.rescale(settings, partitions)
    place = settings.state.checkpoint
    if done.before == done.after:
        typer.echo(f"{place} has {done.after} state partitions already; nothing to do")
    else:
        typer.echo(
            f"{place}: {done.before} state partitions before, {done.after} now, as of batch"
            f" {done.batch}"
        )
    if settings.state.state_partitions != done.after:
        typer.echo(f"set state.state_partitions to {done.after}, then start the job")


@app.command()
def state(
    config: ConfigFile,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", help="This checkpoint instead of the settings' own."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", "-k", help="Show the partial matches of this key too."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON document.")] = False,
) -> None:
    """Show what a checkpoint holds: rules, keys, partial matches, bytes, deadlines, the clock.
    Read-only: no job is started, and one may be running."""
    from spark_cep.cli import state_text
    from spark_cep.pipeline.driver.commands.state_report import read_state

    settings = load(config)
    if checkpoint is not None:
        own = settings.state.model_copy(update={"checkpoint": checkpoint})
        settings = settings.model_copy(update={"state": own})
    report = read_state(settings, key)
    plans = {} if key is None else state_text.plans_of(settings, report.position.committed)
    if as_json:
        typer.echo(state_text.as_json(report, plans))
    else:
        state_text.show(report, plans, out)


@app.command(name="reset-clock")
def reset_clock(
    config: ConfigFile,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", help="This checkpoint instead of the settings' own."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="TIME",
            help="The new watermark, a date and time with its zone; default: by the time of the"
            " last batch.",
        ),
    ] = None,
) -> None:
    """Set the clock of a stopped job back, after events with times in the future have moved it. The
    next start does it, before it reads anything."""
    from spark_cep.cli import resetting
    from spark_cep.pipeline.driver.commands import reset_clock as command

    wanted = None if to is None else resetting.moment(to)
    settings = load(config)
    configure(settings.observability.log_level, settings.observability.log_format)
    if checkpoint is not None:
        own = settings.state.model_copy(update={"checkpoint": checkpoint})
        settings = settings.model_copy(update={"state": own})
    done = command.reset_clock(settings, wanted)
    typer.echo(resetting.text(str(settings.state.checkpoint), done))


@app.command(name="dead-letters")
def dead_letters(
    config: ConfigFile,
    most: Annotated[
        int, typer.Option("--last", "-n", min=1, max=1_000, help="Show so many, the newest.")
    ] = 20,
    reason: Annotated[
        Reason | None, typer.Option("--reason", help="Only those for this reason.")
    ] = None,
    rule: Annotated[
        str | None, typer.Option("--rule", "-r", metavar="ID", help="Only those of this rule.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line, with all bytes.")
    ] = False,
) -> None:
    """Show the newest dead letters: reason, coordinates, rule and the record's first bytes. Reads
    the topic and commits nothing; the job may be running."""
    from spark_cep.cli import dead_letters_text
    from spark_cep.pipeline.driver.commands.dead_letter_topic import Letter, newest_letters

    def wanted(letter: Letter) -> bool:
        return reason in (None, letter.reason) and rule in (None, letter.rule_id)

    settings = load(config)
    letters, foreign = newest_letters(settings, most, wanted)
    topic = settings.outputs.topics.dead_letters
    for each in foreign:
        at = f"{topic}, partition {each.place[0]}, offset {each.place[1]}"
        err.print(f"warning: {at}: no dead letter: {printable(each.why)}", markup=False)
    for letter in letters:
        if as_json:
            typer.echo(dead_letters_text.as_json(letter))
        else:
            typer.echo("\n".join(dead_letters_text.as_text(letter)))
    if not letters and not as_json:
        typer.echo(f"{topic} has no such dead letters")


@app.command()
def check(
    rules: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Rule files, folders of them, or - for the standard input; default: where the"
            " settings have rules from.",
            allow_dash=True,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="Check against the schemas that these settings read.",
            dir_okay=False,
        ),
    ] = None,
    schema: Annotated[
        list[Path] | None,
        typer.Option("--schema", "-s", help="Check against this Avro schema file.", dir_okay=False),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors, too.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Write what is meant without doubt into the rule files.")
    ] = False,
    form: Annotated[
        CheckForm, typer.Option("--format", "-f", help="For people or for programs.")
    ] = CheckForm.TEXT,
) -> None:
    """Check rules, with --schema or --config also against event schemas. Needs neither Spark nor
    Kafka; --config needs the registry."""
    from spark_cep.cli.authoring import check_forms
    from spark_cep.cli.authoring.fixing import fix_files
    from spark_cep.cli.checking import STANDARD_INPUT, check_rules

    paths = rules or []
    if fix and (not paths or STANDARD_INPUT in paths):
        raise typer.BadParameter("--fix takes rule files and folders")
    report = check_rules(paths, config, schema or [])
    if fix:
        fixed = fix_files(paths, report.warnings)
        for file, count in fixed.items():
            err.print(f"fixed {count} in {printable(str(file))}", markup=False)
        if fixed:
            report = check_rules(paths, config, schema or [])
    if form is not CheckForm.TEXT:
        typer.echo(check_forms.written(report, form), nl=False)
    else:
        _warn(report.warnings)
        if report.problems:
            raise RuleSetError(report.problems)
        typer.echo(report.summary)
    if report.problems or (strict and report.warnings):
        sys.exit(ExitCode.RULES)


@app.command()
def doctor(config: ConfigFile) -> None:
    """Try everything that a start needs, and tell all that is wrong: Java, brokers, logins,
    certificates, topics, registry, schemas, rules, checkpoint. Nothing is written, and the job may
    be running."""
    from spark_cep.pipeline.driver.commands.doctor import examine

    failed: list[SparkCepError] = []
    for finding in examine(load(config)):
        if finding.error is None:
            typer.echo(f"ok      {finding.what}: {finding.found}")
        else:
            failed.append(finding.error)
            typer.echo(f"failed  {finding.what}: {printable_lines(str(finding.error))}")
    if failed:
        sys.exit(exit_code(failed[0]))


@app.command()
def explain(
    rules: Annotated[
        Path, typer.Argument(metavar="RULE", help="A rule file, or a folder of them.")
    ],
    chosen: Annotated[
        list[str] | None,
        typer.Option("--rule", "-r", metavar="ID", help="Explain this rule; default: all."),
    ] = None,
    form: Annotated[
        RuleForm, typer.Option("--format", "-f", help="In words, drawn, or the plan's own text.")
    ] = RuleForm.TEXT,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file.", dir_okay=False),
    ] = None,
    schema: Annotated[
        list[Path] | None,
        typer.Option("--schema", "-s", help="Avro schema file of the events.", dir_okay=False),
    ] = None,
) -> None:
    """Show what rules do: steps, states and edges, where conditions are evaluated, what bounds the
    state. Needs neither Spark nor Kafka."""
    from spark_cep.cli import explaining

    explained = explaining.rules_to_explain(rules, chosen or [], schema or [])
    _warn(explained.warnings_outside(form))
    if output is not None:
        explaining.save(explaining.written(explained, form), output)
    elif form is RuleForm.TEXT:
        explaining.show(explained, out)
    else:
        typer.echo(explaining.written(explained, form), nl=False)


def _warn(warnings: Sequence[Problem]) -> None:
    for warning in rendered(warnings, "warning: "):
        err.print(f"{warning}\n", markup=False)


if __name__ == "__main__":
    main()
