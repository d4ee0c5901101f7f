"""``spark-cep play``: a local page on which a rule is tried."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_cep.cli.terminal import out
from spark_cep.errors import ConfigurationError, needs_extra

if TYPE_CHECKING:
    from spark_cep.play.trial import Trial


def play(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="A rule file, its test cases (NAME.cases.yaml), Avro schemas (.avsc), or recorded"
            " events: Avro, JSON lines, CSV, Parquet.",
            dir_okay=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Listen at this address; others than this machine's own"
                          " let its network use the page.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65_535, help="Listen at this port; 0: any.")
    ] = 8765,
    show: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:  # fmt: skip
    """Try a rule on a local page: an editor, events, the automaton step by step, why-texts, a
    timeline. Needs neither Spark nor Kafka, and no network."""
    with needs_extra("play", "spark-cep play"):
        from spark_cep.play.page.server import serve

    def ready(address: str) -> None:
        out.print(f"{address}  (Ctrl-C ends it)", markup=False, highlight=False)

    serve(host, port, _trials(files or []), show=show, ready=ready)


def _trials(files: Sequence[Path]) -> Sequence[Trial]:
    """The rule and the events with which the page begins."""
    from spark_cep.play.beginning import beginning
    from spark_cep.play.files.given_files import GivenFile
    from spark_cep.play.files.opening import opened

    trials = beginning()
    if not files:
        return trials
    given = []
    for file in files:
        try:
            given.append(GivenFile(file.name, file.read_bytes()))
        except OSError as error:
            raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from error
    return opened(given, trials[0]).trials
