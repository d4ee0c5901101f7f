"""Rules and recorded events as the commands for authors name them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_cep.durations import DurationError, parse_duration
from spark_cep.errors import ConfigurationError

if TYPE_CHECKING:
    from spark_cep.config import Settings
    from spark_cep.recorded.events import RecordedEvents, Window
    from spark_cep.rules.rule_set import RuleSet


GivenSchemas = Annotated[
    list[str] | None,
    typer.Option(
        "--schema",
        "-s",
        metavar="[INPUT=]FILE",
        help="Schema file of the events: Avro (.avsc), JSON Schema, or Protobuf (FILE.proto,"
        " FILE.proto:MESSAGE).",
    ),
]
GivenEventTimes = Annotated[
    list[str] | None,
    typer.Option(
        "--event-time",
        metavar="[INPUT=]COLUMN[:UNIT]",
        help="Column of the event time; default: the only timestamp column. Unit: millis,"
        " micros, seconds or iso.",
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help="Read events from this time on (ISO 8601, UTC): by event time in files, by"
        " Kafka's timestamp in topics.",
    ),
]
Before = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="Read events before this time.")
]
Disorder = Annotated[
    str | None,
    typer.Option(
        "--allowed-disorder",
        metavar="DURATION",
        help="Allowed disorder; default: time.allowed_disorder.",
    ),
]


class TimeAtEnd(Enum):
    """The time at the end: the last event's (``WAIT``), or past all deadlines (``DECIDE``)."""

    WAIT = "wait"
    DECIDE = "decide"


AtEnd = Annotated[
    TimeAtEnd,
    typer.Option(
        "--at-end",
        help="After the last event: `wait` leaves matches open, `decide` lets all deadlines pass.",
    ),
]


def rules_to_run(path: Path | None, settings: Settings | None) -> RuleSet:
    """The rules of a file or folder, or those of the settings' source. Raises ConfigurationError
    where neither is given, RuleSetError with every problem found."""
    from spark_cep.cli.authoring.checking import read_existing

    if path is not None:
        return read_existing(path)
    if settings is None:
        raise ConfigurationError(
            "there are no rules to run: give a rule file or a folder with --rules, or --config"
        )
    from spark_cep.rules.sources.configured import rules_of

    return rules_of(settings)


def recorded_events(
    rules: RuleSet,
    given: Sequence[str],
    settings: Settings | None,
    schema: Sequence[str] | None,
    event_time: Sequence[str] | None,
    window: Window,
    stack: ExitStack,
) -> RecordedEvents:
    """The events of files and folders whose event times are in the ``window``, or the records of
    topics of the settings whose timestamps are; what is opened for them is closed with ``stack``.
    Raises ConfigurationError where there are none."""
    from spark_cep.recorded.opening import open_events

    topics = [each for each in given if settings is not None and not Path(each).exists()]
    topics = [each for each in topics if _is_topic(each, settings)]
    if given and not topics:
        rules_read = [one.rule for one in rules.running]
        events = open_events(rules_read, given, settings, schema or (), event_time or ())
        return events.within(window)
    if settings is None:
        raise ConfigurationError(
            "there are no events to read: name files or folders with --input, or give the job's"
            " settings with --config to read its topics"
        )
    if len(given) > 1:
        raise ConfigurationError(
            "--input: one topic, or files and folders; without --input all topics of the inputs"
            " are read"
        )
    from spark_cep.recorded.topics import open_topics

    return open_topics(settings, window, stack, topics[0] if topics else None)


def _is_topic(name: str, settings: Settings | None) -> bool:
    inputs = [] if settings is None else settings.inputs.values()
    return any(name in source.topics_of([name]) for source in inputs)


def allowed_disorder(text: str) -> int:
    """The milliseconds of the option."""
    try:
        return parse_duration(text)
    except DurationError as error:
        raise typer.BadParameter(str(error), param_hint="'--allowed-disorder'") from None
