"""``spark-cep play``: a local page on which a rule is tried."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_cep.cli.page_options import LOOPBACK, Host, OpenBrowser, Port, say_where
from spark_cep.errors import ConfigurationError, needs_extra

if TYPE_CHECKING:
    from spark_cep.play.trial import Trial


def play(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="A rule file, its test cases (NAME.cases.yaml), schemas (Avro .avsc; Protobuf"
            " FILE.proto, FILE.proto:MESSAGE), or recorded events (Avro, JSON lines, CSV,"
            " Parquet).",
            dir_okay=False,
        ),
    ] = None,
    host: Host = LOOPBACK,
    port: Port = 8765,
    show: OpenBrowser = True,
) -> None:
    """Try a rule on a local web page: an editor, events, the automaton step by step, explanations,
    and a timeline. Neither Spark, Kafka nor a network is required."""
    with needs_extra("play", "spark-cep play"):
        from spark_cep.play.page.server import serve

    serve(host, port, _trials(files or []), show=show, ready=say_where)


def _trials(files: Sequence[Path]) -> Sequence[Trial]:
    """The rule and the events with which the page begins."""
    from spark_cep.codecs.schema_files import SchemaFile, schema_of_file
    from spark_cep.play.beginning import beginning
    from spark_cep.play.files.given_files import GivenFile
    from spark_cep.play.files.opening import opened

    trials = beginning()
    if not files:
        return trials
    given = []
    for file in files:
        schema = SchemaFile.of(file)
        if schema.is_protobuf:
            # What the file imports is there only here.
            given.append(GivenFile.of_schema(schema.path.name, schema_of_file(file)))
            continue
        try:
            given.append(GivenFile(file.name, file.read_bytes()))
        except OSError as error:
            raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from error
    return opened(given, trials[0]).trials
