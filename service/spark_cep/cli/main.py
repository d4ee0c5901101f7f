"""The command ``spark-cep``: arguments in, exit codes out; everything else is elsewhere."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from spark_cep import __version__
from spark_cep.cli.authoring.backtest import backtest
from spark_cep.cli.authoring.check import check
from spark_cep.cli.authoring.explain import explain
from spark_cep.cli.authoring.lsp import lsp
from spark_cep.cli.authoring.play import play
from spark_cep.cli.authoring.schema import commands as schema_commands
from spark_cep.cli.authoring.tap import tap
from spark_cep.cli.authoring.test_cases import run_cases
from spark_cep.cli.authoring.why import why
from spark_cep.cli.command_help import complete
from spark_cep.cli.ending import Ending
from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.job import commands as job
from spark_cep.cli.job.doctor import doctor
from spark_cep.cli.job.tail import tail
from spark_cep.cli.job.watch import watch
from spark_cep.cli.rules.commands import commands as rules_commands
from spark_cep.cli.running import run
from spark_cep.cli.setup.config import commands as config_commands
from spark_cep.cli.setup.fmt import fmt
from spark_cep.cli.setup.init import init
from spark_cep.cli.terminal import CommandGroup
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


def prepare() -> None:
    """Compile the code that this machine runs, once; otherwise the first start or test does it."""
    from spark_cep.columns.compilation import compilation_noticed
    from spark_cep.pipeline import compiled_code

    took: list[float] = []
    with compilation_noticed(lambda: typer.echo("compiling: up to two minutes"), took.append):
        compiled_code.prepare()
    typer.echo(f"compiled in {took[0]:.0f} s" if took else "everything is compiled already")


# Groups of commands stand in --help in the order of their first one.
app.command()(init)
app.add_typer(schema_commands)
app.add_typer(config_commands)
app.command()(doctor)
app.command()(prepare)
app.command()(check)
app.command()(lsp)
app.command()(fmt)
app.command()(explain)
app.command("test")(run_cases)
app.command()(backtest)
app.command()(why)
app.command()(tap)
app.command()(play)
app.command()(run)
app.command()(tail)
app.command()(watch)
app.add_typer(rules_commands)
app.command()(job.state)
app.command("dead-letters")(job.dead_letters)
app.command()(job.rescale)
app.command("reset-clock")(job.reset_clock)
complete(app)

if __name__ == "__main__":
    main()
