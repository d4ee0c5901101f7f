"""``spark-cep schema``: schemas of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from spark_cep.cli.saving import save
from spark_cep.cli.terminal import OutputFile, err
from spark_cep.errors import ConfigurationError, printable

commands = typer.Typer(name="schema", help="Infer the schemas of events.", no_args_is_help=True)

#: Records of a topic that are looked at.
_LOOKED_AT = 1_000


@commands.command()
def infer(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TOPIC", help="A file with events, or a topic with JSON records."
        ),
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="The settings, a YAML file; required to read a topic.",
            dir_okay=False,
        ),
    ] = None,
    record: Annotated[
        str, typer.Option("--record", help="Name of the record type.", metavar="NAME")
    ] = "Event",
    output: OutputFile = None,
) -> None:
    """Infer the Avro schema of events from the first records of a file, or from the newest records
    of a topic. Use the result as `reader_schema.file` of an input, or with --schema."""
    from spark_cep.config import load
    from spark_cep.recorded.inference import schema_of_file, schema_of_topic

    if Path(source).exists():
        found = schema_of_file(Path(source), record)
    elif config is not None:
        found = schema_of_topic(load(config), source, record, _LOOKED_AT)
    else:
        raise ConfigurationError(
            f"{source}: there is no such file; to read the topic {source}, give the settings with"
            " --config"
        )
    for each in found.left_out:
        err.print(f"left out: {printable(each)}", markup=False)
    text = json.dumps(found.schema.json, indent=2) + "\n"
    if output is None:
        typer.echo(text, nl=False)
    else:
        save(text, output)
