"""The inputs of recorded events: their record types, and where each file's records are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_cep.codecs.avro.reader_schemas import record_names
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.json.reader import JsonFormat
from spark_cep.codecs.mixed_formats import FormatInputs, MixedFormats
from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.errors import ConfigurationError
from spark_cep.pattern.types import record_type
from spark_cep.recorded.declared import DeclaredInput
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
    for number, schema in opening.written.items():
        schemas.take(number, schema)
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
    written: dict[int, AvroSchema] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _inferred: dict[str, AvroSchema] = field(default_factory=dict)

    def _number(self, schema: AvroSchema) -> int:
        number = self._numbers.setdefault(schema.text, len(self._numbers) + 1)
        self.written.setdefault(number, schema)
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
            for reader in declared.readers(schemas) if topics else ():
                (name,) = record_names(reader)
                column, unit = declared.time_of(reader)
                if declared.event_time is None:
                    self.notes.append(
                        f"input {declared.name}: the event time is {column}, the only timestamp of"
                        f" {record_type(reader.text).name}"
                    )
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
        record = declared.one_record()
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
