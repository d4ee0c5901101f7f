"""Files, folders and topics as they are named on a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.schema_files import schema_of_file
from spark_cep.config import Input, Settings
from spark_cep.documents.nearest import instead
from spark_cep.errors import ConfigurationError
from spark_cep.event_times import instant_us
from spark_cep.pattern.tree import Rule
from spark_cep.recorded.declared import DeclaredInput, declared_inputs
from spark_cep.recorded.events import RecordedEvents, Window
from spark_cep.recorded.inputs import open_inputs

#: Units of event times in columns.
UNITS = get_args(Input.model_fields["event_time_unit"].annotation)
#: The input of files where neither rules nor settings name one.
_ONLY = "events"


def open_events(
    rules: Sequence[Rule],
    files: Sequence[str],
    settings: Settings | None = None,
    schemas: Sequence[str] = (),
    event_times: Sequence[str] = (),
) -> RecordedEvents:
    """The events of ``files``: paths of files or folders, or INPUT=PATH where there are several
    inputs. ``schemas``: schema files, ``event_times``: columns with their units
    (COLUMN:UNIT), both with INPUT= in front as well. What they do not say is taken from
    ``settings``, or found out.

    Raises ConfigurationError where a name or path is wrong, SchemaError where a schema is.
    """
    known = {} if settings is None else declared_inputs(settings)
    names = list(known) or list(dict.fromkeys(name for rule in rules for name in _inputs(rule)))
    names = names or [_ONLY]
    paths = _by_input(files, names, "--input")
    given_schemas = _by_input(schemas, names, "--schema")
    given_times = _by_input(event_times, names, "--event-time")
    opened = open_inputs(
        [
            (
                _declared(
                    known.get(name, DeclaredInput(name)),
                    [schema_of_file(Path(each)) for each in given_schemas.get(name, ())],
                    given_times.get(name, ()),
                ),
                [*map(Path, several)],
            )
            for name, several in paths.items()
        ]
    )
    return RecordedEvents(opened.format, opened.recordings, opened.notes)


def _inputs(rule: Rule) -> tuple[str, ...]:
    """The inputs that a rule names."""
    if rule.query is not None:
        return (rule.query.input,)
    return tuple(rule.events)


def window_of(start: str | None, end: str | None) -> Window:
    """The window between two texts: ISO 8601, UTC without an offset, or a day. Raises
    ConfigurationError."""
    window = Window()
    if start is not None:
        window = window._replace(start=instant_of(start, "--from"))
    if end is not None:
        window = window._replace(end=instant_of(end, "--to"))
    if window.start >= window.end:
        raise ConfigurationError(f"--from {start} is not before --to {end}: nothing is between")
    return window


def instant_of(text: str, option: str) -> int:
    """The time of an option in ms since 1970. Raises ConfigurationError."""
    try:
        return instant_us(text) // 1_000
    except ValueError:
        raise ConfigurationError(
            f"{option}: {text!r} is no time; allowed is a day or a day and a time, as 2026-01-31 or"
            " 2026-01-31T12:00:00Z (UTC without an offset)"
        ) from None


def _by_input(given: Sequence[str], names: Sequence[str], option: str) -> Mapping[str, list[str]]:
    """The values of an option by input; with one input, all of them are for it."""
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or "/" in name or Path(text).exists():
            if len(names) > 1:
                raise ConfigurationError(
                    f"{option} {text}: there are several inputs, so say which one it is for, as"
                    f" {option} {names[0]}={text}; the inputs are {', '.join(names)}"
                )
            name, value = names[0], text
        elif name not in names:
            raise ConfigurationError(
                f"{option} {text}: there is no input {name!r}; {instead(name, names, 'inputs')}"
            )
        found.setdefault(name, []).append(value)
    return found


def _declared(
    known: DeclaredInput, schemas: Sequence[AvroSchema], times: Sequence[str]
) -> DeclaredInput:
    if len(schemas) > 1 or len(times) > 1:
        option = "--schema" if len(schemas) > 1 else "--event-time"
        raise ConfigurationError(f"input {known.name}: {option} is given twice; once is enough")
    if schemas:
        known = replace(known, schema=schemas[0])
    if times:
        column, unit = event_time_of(times[0])
        known = replace(known, event_time=column, event_time_unit=unit)
    return known


def event_time_of(text: str) -> tuple[str, str]:
    """The column and the unit of COLUMN:UNIT, as ``--event-time`` has them. Raises
    ConfigurationError."""
    column, colon, unit = text.partition(":")
    if colon and unit not in UNITS:
        raise ConfigurationError(
            f"--event-time {text}: there is no unit {unit!r}; allowed are {', '.join(UNITS)}"
        )
    return column, unit or "auto"
