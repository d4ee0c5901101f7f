"""The inputs of recorded events: their record types, and where each file's records are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_cep.codecs.avro.reader_schemas import record_names, record_schema
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.json.reader import JsonFormat
from spark_cep.codecs.mixed_formats import FormatInputs, MixedFormats
from spark_cep.codecs.protobuf.resolution import columns_of_file
from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas, names_of
from spark_cep.codecs.registry.schema_ids import SchemaId
from spark_cep.codecs.schema_files import schema_of_file
from spark_cep.config import KAFKA_TIMESTAMP, Input, Settings
from spark_cep.documents.nearest import instead
from spark_cep.errors import ConfigurationError, SchemaError
from spark_cep.pattern.types import (
    BIGINT,
    STRING,
    TIMESTAMP,
    SqlType,
    column_type,
    record_type,
)
from spark_cep.recorded.files import avro_files, line_files, parquet_files
from spark_cep.recorded.files.avro_files import AvroFile
from spark_cep.recorded.files.line_files import CsvFile, JsonFile
from spark_cep.recorded.files.lines import COMPRESSED, is_csv
from spark_cep.recorded.files.parquet_files import ParquetFile
from spark_cep.recorded.files.row_writer import written_schema
from spark_cep.recorded.recording import FileCoordinates, Recording

#: Names that connectors from Kafka give their files: topic, partition, offset of the first record.
_OF_KAFKA = re.compile(r"([A-Za-z0-9._-]+)\+(\d+)\+(\d+)\.\w+(\.\w+)?")
_SUFFIXES = (*avro_files.SUFFIXES, *line_files.SUFFIXES, *parquet_files.SUFFIXES)
_RECORD = "Event"


@dataclass(frozen=True)
class DeclaredInput:
    """An input as it is known before its files are opened. ``event_time``: the column, ``None``
    for the only one that is a timestamp; ``record``: the record type that is read, ``None`` for
    each; ``schema``: what records are read as, ``None`` for what files say of themselves."""

    name: str
    event_time: str | None = None
    event_time_unit: str = "auto"
    record: str | None = None
    schema: AvroSchema | None = None


def declared_inputs(settings: Settings) -> dict[str, DeclaredInput]:
    """The inputs of a job's settings, by name. The registry is not asked: of reader schemas only
    files count."""
    found = {}
    for name, given in settings.inputs.items():
        chosen = given.reader_schema
        file = None if chosen is None else chosen.file
        found[name] = DeclaredInput(
            name,
            None if given.event_time == KAFKA_TIMESTAMP else given.event_time,
            given.event_time_unit,
            given.record,
            None if file is None else _schema_of(name, given, file),
        )
    return found


def _schema_of(name: str, given: Input, file: Path) -> AvroSchema:
    """The schema of a reader's file."""
    if given.format == "protobuf":
        return columns_of_file(name, given, file)
    return schema_of_file(file, given.record)


@dataclass(frozen=True)
class OpenedInputs:
    """The record types of inputs, and the files that have them. ``notes``: what was found out and
    not said, for people."""

    format: RecordFormat
    recordings: tuple[Recording, ...]
    notes: tuple[str, ...]


def open_inputs(given: Sequence[tuple[DeclaredInput, Sequence[Path]]]) -> OpenedInputs:
    """Open the files, and those of folders, of each input.

    Raises ConfigurationError where one cannot be read or it is not known how, SchemaError where its
    schema cannot be used.
    """
    opening = _Opening()
    for declared, paths in given:
        opening.open(declared, paths)
    avro, json = opening.avro, opening.json
    for each in (*avro, *json):
        # What cannot be a reader schema is told here.
        _ = each.columns
    schemas = ResolvedSchemas(tuple(avro))
    schemas.ask(opening, opening.ids.values())
    notes = [*dict.fromkeys(opening.notes)]
    notes += [f"records cannot be read: {why}" for why in schemas.unreadable.values()]
    found: RecordFormat = schemas
    if json and avro:
        topics = [frozenset(topic for one in of for topic in one.topics) for of in (avro, json)]
        found = MixedFormats.of(
            [
                FormatInputs("avro", schemas, topics[0], ()),
                FormatInputs("json", JsonFormat(tuple(json)), topics[1], ()),
            ]
        )
    elif json:
        found = JsonFormat(tuple(json))
    return OpenedInputs(found, tuple(opening.recordings), tuple(notes))


@dataclass
class _Opening:
    """Record types, of JSON lines and of what is handed on as Avro; and schemas by number, as they
    are met."""

    avro: list[EventType] = field(default_factory=list)
    json: list[EventType] = field(default_factory=list)
    recordings: list[Recording] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    _schemas: dict[int, AvroSchema] = field(default_factory=dict)
    _inferred: dict[str, AvroSchema] = field(default_factory=dict)

    def get_schema(self, schema: SchemaId) -> AvroSchema:
        """See :class:`~spark_cep.codecs.registry.resolved_schemas.SchemasById`."""
        assert isinstance(schema, int)
        return self._schemas[schema]

    def _number(self, schema: AvroSchema) -> int:
        number = self.ids.setdefault(schema.text, len(self.ids) + 1)
        self._schemas.setdefault(number, schema)
        return number

    def open(self, declared: DeclaredInput, paths: Sequence[Path]) -> None:
        """Open the files of an input, and find its record types."""
        of_json: dict[str, AvroSchema] = {}
        others: dict[str, list[AvroSchema]] = {}
        for file in _files(paths):
            schema = self._open(declared, file)
            made = self.recordings[-1]
            if isinstance(made, JsonFile):
                of_json[made.topic] = schema
            else:
                others.setdefault(made.topic, []).append(schema)
        written = [schema for several in others.values() for schema in several]
        for types, topics, schemas in (
            (self.avro, tuple(others), written),
            (self.json, tuple(of_json), [*of_json.values()]),
        ):
            for reader in _readers(declared, schemas) if topics else ():
                (name,) = record_names(reader)
                column, unit = self._event_time(declared, reader)
                types.append(
                    EventType(len(types), declared.name, name, reader, topics, column, unit)
                )
        self._check_topics(of_json)

    def _check_topics(self, of_json: Iterable[str]) -> None:
        """ConfigurationError where files of JSON have a topic with others of another schema."""
        for topic in of_json:
            of = [each for each in (*self.avro, *self.json) if topic in each.topics]
            if len(of) > 1:
                raise ConfigurationError(
                    f"files of the topic {topic} are read as"
                    f" {' and '.join(f'{e.name} of input {e.input}' for e in of)}, and lines of"
                    " JSON do not say which of several types they are, or that they are Avro; give"
                    " these files to one input, in one form"
                )

    def _open(self, declared: DeclaredInput, file: Path) -> AvroSchema:
        """Open a file; the schema that its records are written with, or read as."""
        place = _place(file)
        if _has(file, avro_files.SUFFIXES):
            schema = avro_files.schema_of(file)
            self.recordings.append(AvroFile(file, place, schema, self._number(schema)))
            return schema
        record = self._declared_record(declared)
        if _has(file, parquet_files.SUFFIXES):
            if record is None:
                record, left_out = parquet_files.schema_of(file, declared.record or _RECORD)
                self.notes += [f"{file}: is read without a column: {each}" for each in left_out]
            number = self._number(written_schema(record))
            self.recordings.append(ParquetFile(file, place, record, number))
            return record
        record = record or self._inferred.get(declared.name) or self._infer(declared, file)
        if is_csv(file):
            number = self._number(written_schema(record))
            self.recordings.append(CsvFile(file, place, record, number))
        else:
            self.recordings.append(JsonFile(file, place))
        return record

    def _infer(self, declared: DeclaredInput, file: Path) -> AvroSchema:
        """The schema that the first file of an input without one seems to have; all of its files
        are read with it."""
        schema, left_out = line_files.inferred_schema(file, declared.record or _RECORD)
        self._inferred[declared.name] = schema
        columns = ", ".join(
            f"{name} {kind}" for name, kind in record_type(schema.text).fields.items()
        )
        self.notes.append(
            f"input {declared.name}: the schema is found out from the first records of {file}:"
            f" {columns}; to say it yourself, give an Avro schema with --schema"
        )
        self.notes += [f"{file}: is read without a column: {each}" for each in left_out]
        return schema

    @staticmethod
    def _declared_record(declared: DeclaredInput) -> AvroSchema | None:
        """The one record that rows of an input are, where its schema is given."""
        if declared.schema is None:
            return None
        names = record_names(declared.schema)
        if declared.record is not None:
            return record_schema(declared.schema, declared.record)
        if len(names) > 1:
            raise SchemaError(
                f"input {declared.name}: {declared.schema.origin} has the records"
                f" {', '.join(names)}, and rows do not say which one they are; give the schema of"
                " one"
            )
        return record_schema(declared.schema, names[0])

    def _event_time(self, declared: DeclaredInput, reader: AvroSchema) -> tuple[str, str]:
        """The column with the event time, and its unit."""
        columns = record_type(reader.text)
        name = declared.event_time
        if name == KAFKA_TIMESTAMP:
            raise ConfigurationError(
                f"input {declared.name}: files do not have Kafka's timestamps; name a column with"
                f" --event-time: {shown_times(columns.fields)}"
            )
        if name is not None:
            if column_type(columns, tuple(name.split("."))) is None:
                raise ConfigurationError(
                    f"input {declared.name}: {columns.name} has no column {name} for the event"
                    f" time; {instead(name, columns.fields, 'columns')}"
                )
            return name, declared.event_time_unit
        found = [each for each, kind in columns.fields.items() if kind == TIMESTAMP]
        if len(found) != 1:
            what = f"several timestamps: {', '.join(found)}" if found else "no timestamp"
            raise ConfigurationError(
                f"input {declared.name}: it is not known which column of {columns.name} is the"
                f" event time, since it has {what}; name it with --event-time:"
                f" {shown_times(columns.fields)}"
            )
        self.notes.append(
            f"input {declared.name}: the event time is {found[0]}, the only timestamp of"
            f" {columns.name}"
        )
        return found[0], "auto"


def shown_times(columns: Mapping[str, SqlType]) -> str:
    """The columns that may be a time, as advice."""
    texts = [name for name, kind in columns.items() if kind == STRING]
    times = [name for name, kind in columns.items() if kind == TIMESTAMP]
    numbers = [name for name, kind in columns.items() if kind == BIGINT]
    shown = [*times, *(f"{name}:millis" for name in numbers), *(f"{name}:iso" for name in texts)]
    example = f", as {', '.join(shown)}" if shown else ""
    return f"COLUMN, or COLUMN:UNIT for millis, micros, seconds or iso{example}"


def _readers(declared: DeclaredInput, written: Sequence[AvroSchema]) -> list[AvroSchema]:
    """The schemas as which the records of an input are read: of each record type the one that was
    given, or that of the last file."""
    candidates = [declared.schema] if declared.schema is not None else [*reversed(written)]
    readers: list[AvroSchema] = []
    taken: set[str] = set()
    for schema in candidates:
        for record in record_names(schema):
            short = record.rpartition(".")[2]
            if record in taken or declared.record not in (None, record, short):
                continue
            readers.append(record_schema(schema, record))
            taken.update(names_of(readers[-1]))
    met = dict.fromkeys(name for schema in written for name in record_names(schema))
    if not taken & set(met):
        wanted = declared.record or ", ".join(sorted(taken))
        raise SchemaError(
            f"input {declared.name}: no file has records called {wanted}; there are"
            f" {', '.join(met)}"
        )
    return readers


def _files(paths: Iterable[Path]) -> list[Path]:
    """The files, and those in folders, in the order of their names."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if _is_data(each, path))
            if not inside:
                raise ConfigurationError(
                    f"{path}: there is no file of events in this folder; their names end with"
                    f" {', '.join(_SUFFIXES)}"
                )
            found += inside
        elif not path.exists():
            raise ConfigurationError(f"{path}: there is no such file or folder")
        elif not _has(path, _SUFFIXES):
            raise ConfigurationError(
                f"{path}: its name does not say what it is; names of files with events end with"
                f" {', '.join(_SUFFIXES)}, those of JSON lines and CSV also with"
                f" {', '.join(COMPRESSED)} behind that"
            )
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _is_data(file: Path, folder: Path) -> bool:
    """Return whether a file of a folder has events; other programs hide theirs."""
    hidden = any(part[0] in "._" for part in file.relative_to(folder).parts)
    return not hidden and file.is_file() and _has(file, _SUFFIXES)


def _has(file: Path, suffixes: Sequence[str]) -> bool:
    name = file.name.lower()
    if name.endswith(tuple(suffixes)):
        return True
    lines = [each for each in suffixes if each in line_files.SUFFIXES]
    return name.endswith(tuple(one + two for one in lines for two in COMPRESSED))


def _place(file: Path) -> FileCoordinates:
    """The coordinates of a file's records."""
    of_kafka = _OF_KAFKA.fullmatch(file.name)
    if of_kafka is None:
        return FileCoordinates(str(file), str(file))
    topic, partition, first = of_kafka.group(1, 2, 3)
    return FileCoordinates(str(file), topic, int(partition), int(first))
