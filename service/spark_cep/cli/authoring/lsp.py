"""``spark-cep lsp``: the language server for editors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_cep.errors import needs_extra

if TYPE_CHECKING:
    from spark_cep.language.known.event_types import KnownTypes


def lsp(
    schema: Annotated[
        list[Path] | None,
        typer.Option(
            "--schema",
            "-s",
            help="Schema files of the events, or folders of them: Avro (.avsc), JSON Schema, or"
            " Protobuf (FILE.proto, FILE.proto:MESSAGE); default: the schema files beside a"
            " rule.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="Take the schemas of the inputs in these settings; requires the registry.",
            dir_okay=False,
        ),
    ] = None,
    _stdio: Annotated[bool, typer.Option("--stdio", hidden=True)] = False,
) -> None:
    """Run the language server for an editor, over standard input and output: problems while typing,
    completion and explanations. Requires the extra `lsp`."""
    with needs_extra("lsp", "the language server"):
        from spark_cep.language_server.server import rule_server
    rule_server(_types_of_config, schema or [], config).start_io()


def _types_of_config(config: Path) -> tuple[KnownTypes, tuple[str, ...]]:
    """The types of events that a job reads, and the names of its inputs."""
    # Clients of Kafka and the registry are slow to import.
    from spark_cep.cli.authoring.settings_schemas import reader_schemas
    from spark_cep.config import load
    from spark_cep.language.known.event_types import known_types

    settings = load(config)
    found = reader_schemas(settings)
    schemas = ((name, f"input {name}", each) for name, read in found.items() for each in read)
    return known_types(schemas), tuple(settings.inputs)
