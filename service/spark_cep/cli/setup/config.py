"""``spark-cep config``: the settings that a job would run with, and whether they are right."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.text import Text

from spark_cep.cli.authoring.forms import CheckForm
from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.terminal import AsJson, ConfigFile, out
from spark_cep.documents.nearest import instead
from spark_cep.errors import ConfigurationError, printable

commands = typer.Typer(
    name="config",
    help="Show or check the settings of a job.",
    no_args_is_help=True,
)
_MOST_OF_VALUE = 40
"""Characters of a value that move the next column."""


@commands.command()
def show(
    config: ConfigFile,
    wanted: Annotated[
        str | None,
        typer.Argument(metavar="[SETTING]", help="Setting or section to show; default: all."),
    ] = None,
    given: Annotated[
        bool, typer.Option("--given", "-g", help="Leave out settings that have their defaults.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show each setting with its value and its origin: line of the file, environment variable, or
    default. Secrets are masked. Neither Kafka nor the registry is contacted."""
    from spark_cep.cli.setup.shown_settings import shown_settings
    from spark_cep.config import load_with_origins

    settings = shown_settings(load_with_origins(config))
    if wanted is not None:
        below = [each for each in settings if f"{each.name}.".startswith(f"{wanted}.")]
        if not below:
            section = wanted.rpartition(".")[0]
            inside = [each.name for each in settings if each.name.startswith(f"{section}.")]
            known = dict.fromkeys(inside or [each.name.split(".")[0] for each in settings])
            raise ConfigurationError(
                f"there is no setting `{printable(wanted)}`\n"
                f"  help: {instead(wanted, known, 'settings')}"
            )
        settings = below
    if given:
        settings = [each for each in settings if each.origin is not None]
    if as_json:
        typer.echo(json.dumps([each.as_data() for each in settings], indent=2))
        return
    longest = max((len(each.name) for each in settings), default=0)
    widest = max((min(len(each.text), _MOST_OF_VALUE) for each in settings), default=0)
    for each in settings:
        line = Text(f"{printable(each.name):<{longest}}  {printable(each.text):<{widest}}  ")
        line.append(printable(each.place), style="" if each.origin else "dim")
        if each.origin is not None:
            line.stylize("bold", 0, longest)
        out.print(line)


@commands.command()
def check(
    config: ConfigFile,
    form: Annotated[
        CheckForm, typer.Option("--format", "-f", help="Output format.")
    ] = CheckForm.TEXT,
) -> None:
    """Check the settings, and report all mistakes at once, each with its file and line or its
    environment variable. Neither Kafka nor the registry is contacted; `spark-cep doctor` does
    that."""
    from spark_cep.cli.authoring import check_forms
    from spark_cep.cli.authoring.checking import CheckReport
    from spark_cep.config import load_with_origins, waits_of

    try:
        found = load_with_origins(config)
    except ConfigurationError as error:
        if form is CheckForm.TEXT:
            raise
        typer.echo(check_forms.written(CheckReport(error.problems, (), (), "", ()), form), nl=False)
        sys.exit(ExitCode.CONFIGURATION)
    if form is not CheckForm.TEXT:
        typer.echo(check_forms.written(CheckReport((), (), (), "", ()), form), nl=False)
        return
    from spark_cep.cli.setup.shown_settings import shown_settings

    settings = shown_settings(found)
    count = sum(each.origin is not None for each in settings)
    defaults = len(settings) - count
    typer.echo(f"{config}: {count} settings are given and valid; {defaults} have their defaults")
    waits = waits_of(found.settings)
    if waits is not None:
        typer.echo(waits)
