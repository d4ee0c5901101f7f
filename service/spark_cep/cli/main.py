"""The command ``spark-cep``: arguments in, exit codes out; everything else is elsewhere."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from spark_cep import __version__
from spark_cep.cli.authoring.commands import commands as authoring
from spark_cep.cli.command_help import complete
from spark_cep.cli.ending import Ending
from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.job.commands import commands as job
from spark_cep.cli.rules.commands import commands as rules
from spark_cep.cli.setup.commands import commands as setup
from spark_cep.cli.terminal import CommandGroup
from spark_cep.cli.trying.commands import commands as trying
from spark_cep.observability.logs import as_json, configure

app = typer.Typer(
    name="spark-cep",
    cls=CommandGroup,
    help="Complex event processing on Kafka and Spark.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
)

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
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Show the version and exit.")
    ] = False,
) -> None:
    if version:
        typer.echo(f"spark-cep {__version__}")
        raise typer.Exit


# Groups of commands stand in --help in the order of their first one.
for commands in (setup, authoring, trying, job, rules):
    app.add_typer(commands)
complete(app)

if __name__ == "__main__":
    main()
