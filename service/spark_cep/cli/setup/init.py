"""``spark-cep init``: the files of a new job, from a file or a topic that it looks at."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer

from spark_cep.cli.terminal import note
from spark_cep.cli.trying.events import GivenEventTimes, GivenSchemas
from spark_cep.errors import ConfigurationError, SchemaError

if TYPE_CHECKING:
    from spark_cep.cli.setup.project import KafkaPlace
    from spark_cep.cli.setup.sample import Sample
    from spark_cep.config import Settings

_JSON: Final = (".json", ".jsonl", ".ndjson")
_RECORD: Final = "Event"
_LOOKED_AT: Final = 1_000
_OWN_EVENTS: Final = "logins.jsonl"
_SERVERS: Final = "localhost:9092"
_REGISTRY: Final = "http://localhost:8081"


def init(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder to write to; created if it does not exist.", file_okay=False),
    ] = Path(),
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE|FOLDER",
            help="Files with example events: JSON lines, CSV, Parquet or Avro container files."
            f" Default: some logins, which are written to {_OWN_EVENTS}.",
        ),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", "-t", help="Take example events from this Kafka topic instead."),
    ] = None,
    servers: Annotated[
        str,
        typer.Option(
            "--bootstrap-servers", "-b", help="Bootstrap servers of Kafka, for the settings."
        ),
    ] = _SERVERS,
    registry: Annotated[
        str | None,
        typer.Option(
            "--registry",
            metavar="URL",
            help=f"URL of the schema registry; default: none for JSON, otherwise {_REGISTRY}.",
        ),
    ] = None,
    schema: GivenSchemas = None,
    event_time: GivenEventTimes = None,
) -> None:
    """Create the files of a new job: settings, a rule that matches example events, its test case,
    the schema of the events, a compose.yaml that starts Kafka on this machine, and a workflow for
    CI. Existing files are never overwritten. Credentials for Kafka are read from environment
    variables such as SPARK_CEP__KAFKA__SECURITY__USERNAME."""
    from spark_cep.cli.setup.first_rule import first_rule
    from spark_cep.cli.setup.project import CONFIG, RULE, KafkaPlace, schema_file, write_files
    from spark_cep.cli.setup.sample import sample_of_files

    if topic is not None and (files or schema):
        raise typer.BadParameter("--topic goes with neither --input nor --schema")
    with ExitStack() as stack:
        # All files, or none of them.
        made = Path(stack.enter_context(TemporaryDirectory(prefix="spark-cep-init-")))
        if topic is not None:
            place = KafkaPlace(servers, registry, topic)
            sample, place = _of_topic(place, event_time or (), made, stack)
            source = f"topic {topic}"
        else:
            given = files or [_write_own_events(made)]
            sample = sample_of_files(given, schema or (), event_time or ())
            is_json = any(each in _JSON for each in Path(given[0]).suffixes)
            place = KafkaPlace(servers, registry, is_json=is_json)
            if not is_json:
                place = _with_registry(place)
            source = ", ".join(Path(each).name for each in given)
        for each in sample.recorded.notes if files else ():
            note(each)
        rule = first_rule(sample, source)
        names = write_files(made, sample, rule, place, compose=topic is None)
        if topic is None and not files:
            names.append(_OWN_EVENTS)
        _move(made, folder, names)
    for name in names:
        typer.echo(f"wrote {folder / name}")
    rules = folder / Path(RULE).parent
    look = [f"spark-cep {each} --config {folder / CONFIG}" for each in ("backtest", "run")]
    if topic is None:
        looked_at = " ".join(f"--input {each}" for each in files or (folder / _OWN_EVENTS,))
        look = [f"spark-cep run {looked_at} --config {folder / CONFIG}"]
    for line in (
        f"spark-cep explain {rules}",
        f"spark-cep check {rules} --schema {folder / schema_file(sample.input)}",
        f"spark-cep test {rules}",
        *look,
    ):
        note(f"next: {line}")


def _with_registry(place: KafkaPlace) -> KafkaPlace:
    """The place with the usual registry, where none is given."""
    return replace(place, registry=place.registry or _REGISTRY)


def _of_topic(
    place: KafkaPlace, event_times: Sequence[str], made: Path, stack: ExitStack
) -> tuple[Sample, KafkaPlace]:
    """Look at a topic by settings as they will be written, and the environment. Records in JSON
    need no schema in the registry."""
    from spark_cep.cli.setup.project import CONFIG, config_text, schema_file
    from spark_cep.cli.setup.sample import (
        about_event_time,
        input_name,
        only_timestamp,
        sample_of_topic,
    )
    from spark_cep.config import load
    from spark_cep.recorded.inference import schema_of_topic
    from spark_cep.recorded.opening import event_time_of

    config, name = made / CONFIG, input_name(place.topic)

    def settings(details: Mapping[str, str]) -> Settings:
        config.write_text(config_text(place, name, details), "utf-8")
        return load(config)

    details: dict[str, str] = {}
    try:
        inferred = schema_of_topic(settings(details), place.topic, _RECORD, _LOOKED_AT)
    except SchemaError:
        # The registry knows the schema of what is no JSON.
        place = _with_registry(place)
    else:
        place = replace(place, is_json=True)
        file = made / schema_file(name)
        file.parent.mkdir()
        file.write_text(inferred.schema.text, "utf-8")
        details = {"format": "json", "reader_schema": f"{{file: {schema_file(name)}}}"}
        for each in inferred.left_out:
            note(f"{place.topic}: is read without a column: {each}")
    for text in event_times:
        details["event_time"], details["event_time_unit"] = event_time_of(text)
    sample = sample_of_topic(settings(details), place.topic, stack)
    column = only_timestamp(sample)
    if column is not None:
        details["event_time"] = column
        sample = sample_of_topic(settings(details), place.topic, stack)
    if not event_times:
        note(about_event_time(sample))
    return sample, place


def _write_own_events(folder: Path) -> str:
    from spark_cep.cli.setup.own_events import logins

    file = folder / _OWN_EVENTS
    file.write_text(logins(), "utf-8")
    return str(file)


def _move(made: Path, folder: Path, names: list[str]) -> None:
    """Move the files to their place, unless one of them is there."""
    there = [str(folder / name) for name in names if (folder / name).exists()]
    if there:
        raise ConfigurationError(
            f"{', '.join(there)}: there is such a file already; choose another folder, as"
            " spark-cep init FOLDER"
        )
    for name in names:
        file = folder / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(made / name, file)
        except OSError as error:
            raise ConfigurationError(f"{file}: cannot be written: {error.strerror}") from error
