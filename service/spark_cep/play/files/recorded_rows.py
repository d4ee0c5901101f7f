"""Recorded events as rows of the table: JSON lines, CSV, Avro and Parquet, read by
:mod:`spark_cep.recorded`.

That reads files by their paths, so what the browser sent stands in a folder of its own, for no
longer than it is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Final

from spark_cep.cases.document.values import relative
from spark_cep.cases.writing.tapping import (
    TappedEvent,
    disorder_of,
    event_time_column,
    tapped_events,
)
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.errors import ConfigurationError, RuleSetError
from spark_cep.pattern.tree import Rule, Step
from spark_cep.play.cells import cell_texts
from spark_cep.play.files.given_files import GivenFile
from spark_cep.play.reading import Schemas, chosen, rules_of
from spark_cep.play.trial import MOST_ROWS, OF_ALL, Trial, TrialRow
from spark_cep.recorded.events import RecordedEvents
from spark_cep.recorded.opening import open_events

_SECOND: Final = 1_000_000
_ODD: Final = re.compile(r"[^A-Za-z0-9._+-]")
_LONGEST: Final = 100


def recorded_rows(
    trial: Trial, files: Sequence[GivenFile], *, given_schemas: bool
) -> tuple[Trial, tuple[str, ...]]:
    """The trial with the events of files as its rows, and the schema that they have; and notes.
    ``given_schemas``: the trial's schemas are those of the files.

    Raises ConfigurationError where they cannot be read, or are too many.
    """
    rule = _rule(trial)
    with TemporaryDirectory(prefix="spark-cep-play-") as folder:
        here = Path(folder)
        paths = [_put(here, number, each) for number, each in enumerate(files)]
        schemas = _schema_files(here, trial) if given_schemas else []
        times = [trial.event_time] if trial.event_time else []
        try:
            events = _opened(rule, files, paths, schemas, times)
            seen = tapped_events(events, replace(rule, key=()), None, MOST_ROWS)
        except ConfigurationError as error:
            raise ConfigurationError(_without_folder(str(error), folder)) from error
        notes = tuple(_without_folder(note, folder) for note in events.notes)
    return _with_rows(trial, events, seen), notes


def _rule(trial: Trial) -> Rule:
    """The rule that is tried; where it cannot be read yet, one that reads every input."""
    try:
        loaded = chosen(trial, rules_of(trial))
    except RuleSetError:
        loaded = None
    return Rule("any", 1, pattern=(Step("event"),)) if loaded is None else loaded.rule


def _put(folder: Path, number: int, file: GivenFile) -> Path:
    """Write a file, below its name as far as that is harmless."""
    path = folder / str(number) / _ODD.sub("_", PurePath(file.name).name).lstrip(".")[-_LONGEST:]
    path.parent.mkdir()
    path.write_bytes(file.content)
    return path


def _schema_files(folder: Path, trial: Trial) -> list[str]:
    found = []
    for number, (name, text) in enumerate(trial.schemas.items()):
        path = folder / f"schema-{number}.avsc"
        path.write_text(text, "utf-8")
        found.append(f"{name}={path}" if name != OF_ALL else str(path))
    return found


def _opened(
    rule: Rule,
    files: Sequence[GivenFile],
    paths: Sequence[Path],
    schemas: Sequence[str],
    times: Sequence[str],
) -> RecordedEvents:
    inputs = rule.events
    given = [str(path) for path in paths]
    if len(inputs) > 1:
        given = [
            f"{_input(file.name, inputs)}={path}" for file, path in zip(files, given, strict=True)
        ]
    return open_events([rule], given, None, schemas, times)


def _input(name: str, inputs: Sequence[str]) -> str:
    """The input whose name a file has."""
    stem = PurePath(name).name.partition(".")[0]
    if stem not in inputs:
        listed = ", ".join(inputs)
        raise ConfigurationError(
            f"{name}: the rule reads several inputs; give files their names, as {inputs[0]}.jsonl;"
            f" the inputs are {listed}"
        )
    return stem


def _without_folder(text: str, folder: str) -> str:
    """Name files in a text as they were named when they came."""
    return re.sub(rf"{re.escape(folder)}/(\d+/)?", "", text)


def _with_rows(trial: Trial, events: RecordedEvents, seen: Sequence[TappedEvent]) -> Trial:
    texts: dict[str, list[object]] = {}
    types = [kind for kind in events.format.types if isinstance(kind, EventType)]
    for kind in types:
        texts.setdefault(kind.input, []).append(json.loads(kind.reader.text))
    only = len(texts) == 1
    schemas = {
        OF_ALL if only else name: json.dumps(each[0] if len(each) == 1 else each, indent=2)
        for name, each in texts.items()
    }
    known = Schemas.of(schemas)
    start = min(each.event.time for each in seen) // _SECOND * _SECOND
    column = event_time_column(events, seen)
    rows = []
    for one in seen:
        event = one.event
        source, of_type = event.input or "", event.of_type or ""
        columns = {name: value for name, value in event.columns.items() if name != column}
        cells = cell_texts(columns, known.columns(source, of_type))
        rows.append(
            TrialRow(at=relative(event.time, start), cells=cells, input=source, of_type=of_type)
        )
    return replace(
        trial,
        rows=tuple(rows),
        schemas=schemas,
        start=start // 1_000,
        allowed_disorder=disorder_of(seen),
        event_time=column,
    )
