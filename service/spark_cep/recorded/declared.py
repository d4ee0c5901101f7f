"""Inputs of recorded events before their files are opened: what their records are read as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_cep.codecs.avro.reader_schemas import record_names, record_schema
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.protobuf.resolution import columns_of_file
from spark_cep.codecs.registry.resolved_schemas import names_of
from spark_cep.codecs.schema_files import schema_of_file
from spark_cep.config import KAFKA_TIMESTAMP, Input, Settings
from spark_cep.documents.nearest import instead
from spark_cep.errors import ConfigurationError, SchemaError
from spark_cep.pattern.types import BIGINT, STRING, TIMESTAMP, SqlType, column_type, record_type


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

    def one_record(self) -> AvroSchema | None:
        """The one record that rows of the input are, where its schema is given. Raises
        SchemaError."""
        if self.schema is None:
            return None
        names = record_names(self.schema)
        if self.record is not None:
            return record_schema(self.schema, self.record)
        if len(names) > 1:
            raise SchemaError(
                f"input {self.name}: {self.schema.origin} has the records"
                f" {', '.join(names)}, and rows do not say which one they are; give the schema of"
                " one"
            )
        return record_schema(self.schema, names[0])

    def readers(self, written: Sequence[AvroSchema]) -> list[AvroSchema]:
        """The schemas as which the input's records are read: of each record type the one that was
        given, or that of the last file, the last of ``written``. Raises SchemaError."""
        candidates = [self.schema] if self.schema is not None else [*reversed(written)]
        readers: list[AvroSchema] = []
        taken: set[str] = set()
        for schema in candidates:
            for record in record_names(schema):
                short = record.rpartition(".")[2]
                if record in taken or self.record not in (None, record, short):
                    continue
                readers.append(record_schema(schema, record))
                taken.update(names_of(readers[-1]))
        met = dict.fromkeys(name for schema in written for name in record_names(schema))
        if not taken & set(met):
            wanted = self.record or ", ".join(sorted(taken))
            raise SchemaError(
                f"input {self.name}: no file has records called {wanted}; there are"
                f" {', '.join(met)}"
            )
        return readers

    def time_of(self, reader: AvroSchema) -> tuple[str, str]:
        """The column of a record type with the event time, and its unit. Raises
        ConfigurationError."""
        columns = record_type(reader.text)
        name = self.event_time
        if name == KAFKA_TIMESTAMP:
            raise ConfigurationError(
                f"input {self.name}: files do not have Kafka's timestamps; name a column with"
                f" --event-time: {shown_times(columns.fields)}"
            )
        if name is not None:
            if column_type(columns, tuple(name.split("."))) is None:
                raise ConfigurationError(
                    f"input {self.name}: {columns.name} has no column {name} for the event"
                    f" time; {instead(name, columns.fields, 'columns')}"
                )
            return name, self.event_time_unit
        found = [each for each, kind in columns.fields.items() if kind == TIMESTAMP]
        if len(found) != 1:
            what = f"several timestamps: {', '.join(found)}" if found else "no timestamp"
            raise ConfigurationError(
                f"input {self.name}: it is not known which column of {columns.name} is the"
                f" event time, since it has {what}; name it with --event-time:"
                f" {shown_times(columns.fields)}"
            )
        return found[0], "auto"


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


def shown_times(columns: Mapping[str, SqlType]) -> str:
    """The columns that may be a time, as advice: texts where nothing else may be one."""
    texts = [name for name, kind in columns.items() if kind == STRING]
    times = [name for name, kind in columns.items() if kind == TIMESTAMP]
    numbers = [name for name, kind in columns.items() if kind == BIGINT]
    shown = [*times, *(f"{name}:millis" for name in numbers)]
    shown = shown or [f"{name}:iso" for name in texts]
    example = f", as {', '.join(shown)}" if shown else ""
    return f"COLUMN, or COLUMN:UNIT for millis, micros, seconds or iso{example}"
