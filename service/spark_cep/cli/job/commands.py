"""Commands about a job and its checkpoint, topics and surroundings."""

from __future__ import annotations

from typing import Annotated

import typer

from spark_cep.cli.job.running import run
from spark_cep.cli.job.tail import tail
from spark_cep.cli.job.watch import watch
from spark_cep.cli.terminal import AsJson, ConfigFile, configure_logs, err, out
from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.config import load
from spark_cep.errors import printable

_Checkpoint = Annotated[
    str | None,
    typer.Option("--checkpoint", help="Use this checkpoint instead of that of the settings."),
]

commands = typer.Typer()
commands.command()(run)
commands.command()(tail)
commands.command()(watch)


@commands.command()
def state(
    config: ConfigFile,
    checkpoint: _Checkpoint = None,
    key: Annotated[
        str | None,
        typer.Option("--key", "-k", help="Also show the partial matches of this key."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the contents of a checkpoint: rules, keys, partial matches, bytes, deadlines and clock.
    Read-only; the job may be running."""
    from spark_cep.cli.job import state_text
    from spark_cep.pipeline.driver.commands.state_report import read_state

    settings = load(config).with_checkpoint(checkpoint)
    report = read_state(settings, key)
    plans = {} if key is None else state_text.plans_of(settings, report.position.committed)
    if as_json:
        typer.echo(state_text.as_json(report, plans))
    else:
        state_text.show(report, plans, out, key)


@commands.command()
def dead_letters(
    config: ConfigFile,
    most: Annotated[
        int,
        typer.Option("--last", "-n", min=1, max=1_000, help="Show at most this many, the newest."),
    ] = 20,
    reason: Annotated[
        Reason | None, typer.Option("--reason", help="Show only dead letters with this reason.")
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option("--rule", "-r", metavar="ID", help="Show only dead letters of this rule."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, with the whole record.")
    ] = False,
) -> None:
    """Show the newest dead letters: reason, coordinates, rule, and the first bytes of the record.
    Read-only; the job may be running."""
    from spark_cep.cli.job import dead_letters_text
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


@commands.command()
def rescale(
    config: ConfigFile,
    partitions: Annotated[
        int,
        typer.Option("--partitions", "-n", help="New number of state partitions."),
    ],
) -> None:
    """Redistribute the state of a stopped job over another number of partitions. An unfinished
    batch is completed first."""
    from spark_cep.pipeline.driver.commands import rescale as rescaling

    settings = load(config)
    configure_logs(settings.observability)
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


@commands.command()
def reset_clock(
    config: ConfigFile,
    checkpoint: _Checkpoint = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="TIME",
            help="The new watermark, a date and time with a time zone; default: derived from the"
            " time of the last batch.",
        ),
    ] = None,
) -> None:
    """Set back the event-time clock of a stopped job, after events with times in the future have
    advanced it. The next start applies it before it reads any record."""
    from spark_cep.cli.job import resetting
    from spark_cep.pipeline.driver.commands import reset_clock as command

    wanted = None if to is None else resetting.moment(to)
    settings = load(config).with_checkpoint(checkpoint)
    configure_logs(settings.observability)
    done = command.reset_clock(settings, wanted)
    typer.echo(resetting.text(str(settings.state.checkpoint), done))
