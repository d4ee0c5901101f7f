"""The commands that prepare a job."""

from __future__ import annotations

import typer

from spark_cep.cli.setup.config import commands as config_commands
from spark_cep.cli.setup.doctor import doctor
from spark_cep.cli.setup.init import init
from spark_cep.cli.setup.prepare import prepare
from spark_cep.cli.setup.schema import commands as schema_commands

commands = typer.Typer()
commands.command()(init)
commands.add_typer(schema_commands)
commands.add_typer(config_commands)
commands.command()(doctor)
commands.command()(prepare)
