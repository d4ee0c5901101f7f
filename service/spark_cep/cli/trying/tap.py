"""``spark-cep tap``: makes a test case of what files or topics have of one key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spark_cep.cli.terminal import compilation_shown, note
from spark_cep.cli.trying.events import Before, GivenEventTimes, GivenSchemas, Start


def tap(
    rule: Annotated[
        str, typer.Option("--rule", "-r", metavar="ID", help="The rule to make a test case for.")
    ],
    key: Annotated[
        str | None,
        typer.Option(
            "--key", "-k", help="The key, as shown in results; omit it for a rule without a key."
        ),
    ] = None,
    event: Annotated[
        str | None,
        typer.Option(
            "--event",
            metavar="TOPIC/PARTITION/OFFSET",
            help="Instead of --key: take the key of this event, named as in matches, late events"
            " and dead letters, and the events within the rule's window around it.",
        ),
    ] = None,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The case file to write, NAME.cases.yaml. Schemas are written to the same folder.",
            dir_okay=False,
        ),
    ],
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            help="A rule file, or a folder of rule files; default: the rules of the settings.",
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="[INPUT=]FILE|FOLDER|TOPIC",
            help="Files or folders with events, or a topic of --config; default: all topics of"
            " --config.",
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
            help="Mask the values of these columns; equal values stay equal.",
        ),
    ] = None,
) -> None:
    """Make a test case from the events of one key in files or topics. The results that the rule
    finds become the expected results. Read-only; the job may be running."""
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
