"""``spark-cep rules``: which rules a running job has, and which ones a checkpoint ran under."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.terminal import AsJson, ConfigFile, PagesUrl, err, out
from spark_cep.config import load
from spark_cep.durations import DurationError, parse_duration
from spark_cep.errors import printable

if TYPE_CHECKING:
    from spark_cep.cli.rules.text import Side
    from spark_cep.pipeline.driver.rules.rule_log import LoggedRules

commands = typer.Typer(
    name="rules",
    help="Show and change the rules of a job.",
    no_args_is_help=True,
)

Audit = Annotated[
    bool,
    typer.Option(
        "--audit",
        help="Read the audit topic, which keeps all rule sets, instead of the checkpoint.",
    ),
]


@commands.command(name="list")
def list_rules(config: ConfigFile, url: PagesUrl = None, as_json: AsJson = False) -> None:
    """Show the rules of the running job: id, version, state, first batch and partial matches;
    rejected rules with the reason; and whether event time stands still or is ahead of the clock."""
    from spark_cep.cli.rules import text as rules_text
    from spark_cep.watch.pages import pages_of

    page = pages_of(load(config).observability, url).rules_page()
    if as_json:
        typer.echo(json.dumps({"time": page.time, "rules": page.rules}, indent=2))
    else:
        rules_text.show_rules(page.rules, out)
        rules_text.show_time(page.time, out)


@commands.command()
def history(config: ConfigFile, audit: Audit = False, as_json: AsJson = False) -> None:
    """Show the rule sets of the checkpoint: the first batch of each, and which rules were added,
    changed and removed. Read-only; the job may be running."""
    from spark_cep.cli.rules import text as rules_text

    sets = _sets(config, audit=audit)
    if as_json:
        typer.echo(rules_text.history_as_json(sets))
    else:
        rules_text.show_history(sets, out)


@commands.command()
def show(
    config: ConfigFile,
    rule: Annotated[str, typer.Argument(metavar="ID", help="The id of the rule.")],
    number: Annotated[
        int | None, typer.Option("--set", "-n", help="Number of the rule set; default: the newest.")
    ] = None,
    audit: Audit = False,
) -> None:
    """Show the canonical text of a rule in a rule set of the checkpoint."""
    sets = _sets(config, audit=audit)
    chosen = sets[-1] if number is None else _numbered(sets, number)
    loaded = chosen.rules.by_id.get(rule)
    if loaded is None:
        raise typer.BadParameter(f"rule set {chosen.number} has no rule {printable(rule)}")
    typer.echo(loaded.text, nl=False)


@commands.command()
def diff(
    before: Annotated[
        str | None,
        typer.Argument(
            metavar="[A]",
            help="Number of a rule set of the checkpoint, or a file or folder of rules; default:"
            " the rule set before B.",
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Argument(
            metavar="[B]",
            help="Number of a rule set of the checkpoint, or a file or folder of rules; default:"
            " the newest rule set.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="The settings, a YAML file; required for rule sets.",
            dir_okay=False,
        ),
    ] = None,
    audit: Audit = False,
    words: Annotated[
        bool,
        typer.Option(
            "--words", "-w", help="Describe in words what the change does to the results."
        ),
    ] = False,
) -> None:
    """Show the differences between two rule sets of the checkpoint, or between rule files or
    folders: as a unified diff of the canonical texts, or in words."""
    from spark_cep.cli.rules import text as rules_text

    sets = [] if config is None else _sets(config, audit=audit)
    new = _side(after, sets)
    if before is not None:
        old = _side(before, sets)
    elif len(sets) > 1:
        old = rules_text.Side.of_set(sets[-2])
    else:
        alone = f"the log has rule set {sets[0].number} alone: " if sets else ""
        raise typer.BadParameter(f"{alone}nothing to compare")
    lines = [*(rules_text.in_words(old, new) if words else rules_text.diff(old, new))]
    for line in lines or (["no rule differs"] if words else []):
        typer.echo(line)


@commands.command()
def wait(
    config: ConfigFile,
    rule: Annotated[str, typer.Argument(metavar="ID", help="The id of the rule.")],
    version: Annotated[
        int | None, typer.Option("--version", "-V", help="Wait for this version; default: any.")
    ] = None,
    gone: Annotated[
        bool, typer.Option("--gone", help="Wait until the rule is disabled or removed.")
    ] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", "-t", metavar="DURATION", help="Maximum time to wait.")
    ] = "1 minute",
    url: PagesUrl = None,
) -> None:
    """Wait until the running job has started a rule, or, with --gone, has removed it. Fails at the
    timeout, or as soon as the rule is rejected."""
    from spark_cep.cli.rules.wait import Wanted, wait_for
    from spark_cep.watch.pages import pages_of

    try:
        limit = parse_duration(timeout)
    except DurationError as error:
        raise typer.BadParameter(str(error), param_hint="'--timeout'") from None
    settings = load(config)
    pages = pages_of(settings.observability, url)
    wanted = Wanted(rule, version, gone)
    end = wait_for(pages, wanted, limit, settings.rules.refresh_interval)
    (typer.echo if end.ok else lambda text: err.print(text, markup=False))(end.text)
    if not end.ok:
        sys.exit(ExitCode.RULES if end.rejected else ExitCode.JOB_FAILED)


Reason = Annotated[str, typer.Option("--reason", "-r", help="Reason, for other people.")]
By = Annotated[
    str, typer.Option("--by", help="Name of the person who decides; default: the current user.")
]


@commands.command()
def pause(
    config: ConfigFile,
    rule: Annotated[str, typer.Argument(metavar="ID", help="The id of the rule.")],
    version: Annotated[
        int | None,
        typer.Option(
            "--version", "-V", min=1, help="Pause only this version; default: all versions."
        ),
    ] = None,
    reason: Reason = "",
    by: By = "",
    even_unknown: Annotated[
        bool, typer.Option("--even-unknown", help="Allow a rule that the job does not have yet.")
    ] = False,
) -> None:
    """Pause a rule from the next batch on. Its partial matches end. It stays paused, through
    restarts and new versions, until it is resumed."""
    from spark_cep.watch import overrides as rules_overrides

    settings = load(config)
    typer.echo(
        rules_overrides.pause(settings, rule, version, reason, by, even_unknown=even_unknown)
    )


@commands.command()
def resume(
    config: ConfigFile,
    rule: Annotated[str, typer.Argument(metavar="ID", help="The id of the rule.")],
    by: By = "",
) -> None:
    """Resume a rule that was paused by a person or by the circuit breaker. It starts with the next
    batch, without partial matches."""
    from spark_cep.watch import overrides as rules_overrides

    typer.echo(rules_overrides.resume(load(config), rule, by))


@commands.command()
def rollback(
    config: ConfigFile,
    rule: Annotated[str, typer.Argument(metavar="ID", help="The id of the rule.")],
    to: Annotated[
        int | None,
        typer.Option("--to", min=1, help="Version to run; default: the previous one."),
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="End the rollback: follow the source of the rule again.")
    ] = False,
    by: By = "",
    audit: Audit = False,
) -> None:
    """Run an older version of a rule instead of its newest one, with the text that ran then, until
    the source has a still newer version."""
    from spark_cep.watch import overrides as rules_overrides

    settings = load(config)
    if undo:
        typer.echo(rules_overrides.undo_rollback(settings, rule, by))
    else:
        sets = _sets(config, audit=audit)
        typer.echo(rules_overrides.roll_back(settings, sets, rule, to, by))


def _sets(config: ConfigFile, *, audit: bool) -> list[LoggedRules]:
    from spark_cep.pipeline.driver.commands.rule_history import read_audit, read_history

    return (read_audit if audit else read_history)(load(config))


def _side(named: str | None, sets: list[LoggedRules]) -> Side:
    """The newest set, the one of a number, or the rules of a file or folder."""
    from spark_cep.cli.authoring.checking import read_existing
    from spark_cep.cli.rules.text import Side

    if named is not None and not named.isdigit():
        return Side(named, read_existing(Path(named)))
    if not sets:
        raise typer.BadParameter(
            "give two rule files or folders, or, for rule sets of a job's checkpoint, --config"
        )
    return Side.of_set(sets[-1] if named is None else _numbered(sets, int(named)))


def _numbered(sets: list[LoggedRules], number: int) -> LoggedRules:
    for logged in sets:
        if logged.number == number:
            return logged
    raise typer.BadParameter(
        f"rule set {number} is not in the log, which has {sets[0].number} to {sets[-1].number}"
    )
