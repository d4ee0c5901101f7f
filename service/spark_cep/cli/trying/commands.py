"""The commands that try rules on events."""

from __future__ import annotations

import typer

from spark_cep.cli.trying.backtest import backtest
from spark_cep.cli.trying.play import play
from spark_cep.cli.trying.tap import tap
from spark_cep.cli.trying.test_cases import run_cases
from spark_cep.cli.trying.why import why

commands = typer.Typer()
commands.command("test")(run_cases)
commands.command()(backtest)
commands.command()(why)
commands.command()(tap)
commands.command()(play)
