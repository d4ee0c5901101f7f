"""``spark-cep tap``: makes a test case of what files or topics have of one key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spark_cep.cli.terminal import compilation_shown, note
from spark_cep.cli.trying.events import Before, GivenEventTimes, GivenSchemas, Start


def tap(
    rule: Annotated[
        str, typer.Option("--rule", "-r", metavar="ID", help="The rule whose key is meant.")
    ],
    key: Annotated[
        str | None, typer.Option("--key", "-k", help="The key, as results have it; default: none.")
    ] = None,
    event: Annotated[
        str | None,
        typer.Option(
            "--event",
            metavar="TOPIC/PARTITION/OFFSET",
            help="The key of this event, in place of --key: as matches, late events and dead"
            " letters name it. What is within the rule's window of it is taken.",
        ),
    ] = None,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The case file to write, NAME.cases.yaml. Its schemas are written beside it.",
            dir_okay=False,
        ),
    ],
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            help="A rule file, or a folder of them; default: where the settings have rules from.",
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="[INPUT=]FILE|FOLDER|TOPIC",
            help="Files or folders with events, or a topic of --config; default: all that it"
            " reads.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", help="The settings of the job whose topics are read.", dir_okay=False
        ),
    ] = None,
    start: Start = None,
    end: Before = None,
    schema: GivenSchemas = None,
    event_time: GivenEventTimes = None,
    mask: Annotated[
        str | None,
        typer.Option(
            "--mask",
            metavar="COLUMN,…",
            help="Replace the values of these columns, equal ones by equal ones.",
        ),
    ] = None,
) -> None:
    """Make a test case of the events of one key that files or topics have, with what the rule finds
    in them as what is expected. Reads only; nothing is committed, and the job may be running."""
    from spark_cep.cli.trying.tapping import Tap, write_case

    columns = [name.strip() for name in (mask or "").split(",") if name.strip()]
    asked = Tap(
        rule, key, event, output, rules, tuple(given or ()), config, start, end,
        tuple(schema or ()), tuple(event_time or ()), tuple(columns),
    )  # fmt: skip
    with compilation_shown():
        done = write_case(asked)
    for each in done.notes:
        note(each)
    events = "1 event" if done.events == 1 else f"{done.events} events"
    typer.echo(f"{output}: {events}, {done.expected}")
