"""``spark-cep explain``: what rules do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spark_cep.cli.authoring.forms import RuleForm
from spark_cep.cli.saving import save
from spark_cep.cli.terminal import OutputFile, out, print_warnings


def explain(
    rules: Annotated[
        Path, typer.Argument(metavar="RULE", help="A rule file, or a folder of rule files.")
    ],
    chosen: Annotated[
        list[str] | None,
        typer.Option("--rule", "-r", metavar="ID", help="Explain this rule; default: all."),
    ] = None,
    form: Annotated[
        RuleForm,
        typer.Option(
            "--format", "-f", help="Output format: text, a drawing, or the compiled plan."
        ),
    ] = RuleForm.TEXT,
    output: OutputFile = None,
    schema: Annotated[
        list[Path] | None,
        typer.Option(
            "--schema",
            "-s",
            help="Schema file of the events: Avro (.avsc), JSON Schema, or Protobuf (FILE.proto,"
            " FILE.proto:MESSAGE).",
            dir_okay=False,
        ),
    ] = None,
) -> None:
    """Show what rules do: steps, states and edges, where conditions are evaluated, and what bounds
    the state. Neither Spark nor Kafka is required."""
    from spark_cep.cli.authoring import explaining

    explained = explaining.rules_to_explain(rules, chosen or [], schema or [])
    print_warnings(explained.warnings_outside(form))
    if output is not None:
        save(explaining.written(explained, form), output)
    elif form is RuleForm.TEXT:
        explaining.show(explained, out)
    else:
        typer.echo(explaining.written(explained, form), nl=False)
