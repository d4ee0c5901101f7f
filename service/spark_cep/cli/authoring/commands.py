"""The commands for authors of rules."""

from __future__ import annotations

import typer

from spark_cep.cli.authoring.check import check
from spark_cep.cli.authoring.explain import explain
from spark_cep.cli.authoring.fmt import fmt
from spark_cep.cli.authoring.lsp import lsp

commands = typer.Typer()
commands.command()(check)
commands.command()(lsp)
commands.command()(fmt)
commands.command()(explain)
