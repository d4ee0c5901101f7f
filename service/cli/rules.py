"""``spark-cep rules``: which rules a running job has, and which ones a checkpoint ran under."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.exit_codes import ExitCode
from service.cli.terminal import ConfigFile, err, fail, out
from service.config import load
from service.durations import DurationError, parse_duration
from service.errors import SparkCepError, printable

if TYPE_CHECKING:
    from service.pipeline.driver.rule_log import LoggedRules

commands = typer.Typer(
    name="rules",
    help="Show the rules of a job: those that run, and the sets that its checkpoint ran under.",
    no_args_is_help=True,
)

Url = Annotated[
    str | None,
    typer.Option(
        "--url", help="The job's pages, as http://HOST:PORT; default: where the settings have them."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="As one JSON document.")]


@commands.command(name="list")
def list_rules(config: ConfigFile, url: Url = None, as_json: AsJson = False) -> None:
    """Show the rules of the running job, as its page /rules says: id, version, state, since which
    batch, partial matches; and what is rejected, and why."""
    from service.cli import rules_text
    from service.cli.rules_page import pages_of

    try:
        rules = pages_of(load(config).observability, url).rules()
    except SparkCepError as error:
        fail(error)
    if as_json:
        typer.echo(json.dumps(rules, indent=2))
    else:
        rules_text.show_rules(rules, out)


@commands.command()
def history(config: ConfigFile, as_json: AsJson = False) -> None:
    """Show the rule sets that the checkpoint ran under: the first batch of each, and which rules
    came, changed and went. Read-only; the job may be running."""
    from service.cli import rules_text

    sets = _sets(config)
    if as_json:
        typer.echo(rules_text.history_as_json(sets))
    else:
        rules_text.show_history(sets, out)


@commands.command()
def show(
    config: ConfigFile,
    rule: Annotated[str, typer.Argument(metavar="ID", help="The rule.")],
    number: Annotated[
        int | None, typer.Option("--set", "-n", help="In this rule set; default: the newest.")
    ] = None,
) -> None:
    """Show the canonical text of a rule, as a rule set of the checkpoint has it."""
    from service.pattern.canonical import to_yaml

    sets = _sets(config)
    chosen = sets[-1] if number is None else _numbered(sets, number)
    found = next((each for each in chosen.rules.rules if each.id == rule), None)
    if found is None:
        raise typer.BadParameter(f"rule set {chosen.number} has no rule {printable(rule)}")
    typer.echo(to_yaml(found), nl=False)


@commands.command()
def diff(
    config: ConfigFile,
    before: Annotated[
        int | None, typer.Argument(metavar="[A]", help="A rule set; default: the one before B.")
    ] = None,
    after: Annotated[
        int | None, typer.Argument(metavar="[B]", help="A rule set; default: the newest.")
    ] = None,
) -> None:
    """Show what differs between two rule sets of the checkpoint, as a unified diff of the rules'
    canonical texts."""
    from service.cli import rules_text

    sets = _sets(config)
    new = sets[-1] if after is None else _numbered(sets, after)
    if before is not None:
        old = _numbered(sets, before)
    elif len(sets) > 1:
        old = sets[-2]
    else:
        raise typer.BadParameter(f"the log has rule set {new.number} alone: nothing to compare")
    for line in rules_text.diff(old, new):
        typer.echo(line)


@commands.command()
def wait(
    config: ConfigFile,
    rule: Annotated[str, typer.Argument(metavar="ID", help="The rule.")],
    version: Annotated[
        int | None, typer.Option("--version", "-v", help="This version of it; default: any.")
    ] = None,
    gone: Annotated[
        bool, typer.Option("--gone", help="Until it is disabled or no longer there.")
    ] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", "-t", metavar="DURATION", help="Wait so long at most.")
    ] = "1 minute",
    url: Url = None,
) -> None:
    """Wait until the running job has begun a rule, or with --gone no longer has it. Fails at the
    time-out, and as soon as the rule is rejected."""
    from service.cli.rules_page import pages_of
    from service.cli.rules_wait import Wanted, wait_for

    try:
        limit = parse_duration(timeout)
    except DurationError as error:
        raise typer.BadParameter(str(error), param_hint="'--timeout'") from None
    try:
        settings = load(config)
        pages = pages_of(settings.observability, url)
        wanted = Wanted(rule, version, gone)
        end = wait_for(pages, wanted, limit, settings.rules.refresh_interval)
    except SparkCepError as error:
        fail(error)
    (typer.echo if end.ok else lambda text: err.print(text, markup=False))(end.text)
    if not end.ok:
        sys.exit(ExitCode.RULES if end.rejected else ExitCode.JOB_FAILED)


def _sets(config: ConfigFile) -> list[LoggedRules]:
    from service.pipeline.driver.rule_history import read_history

    try:
        return read_history(load(config))
    except SparkCepError as error:
        fail(error)


def _numbered(sets: list[LoggedRules], number: int) -> LoggedRules:
    for each in sets:
        if each.number == number:
            return each
    raise typer.BadParameter(
        f"rule set {number} is not in the log, which has {sets[0].number} to {sets[-1].number}"
    )
