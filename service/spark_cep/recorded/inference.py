"""Schemas found out from records: of files of any form, and of JSON in a topic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.registry.framing import FramingError, of_glue, prefixed
from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, SchemaError
from spark_cep.pipeline.driver.kafka.partition_reader import partitions_of_input
from spark_cep.recorded.files import avro_files, line_files, parquet_files
from spark_cep.recorded.files.arrow_schemas import avro_schema
from spark_cep.recorded.files.json_lines import JsonLines
from spark_cep.recorded.files.text_columns import as_lines


class Inferred(NamedTuple):
    """A schema that was found out, and why columns are left out of it."""

    schema: AvroSchema
    left_out: list[str]


def schema_of_file(file: Path, record: str) -> Inferred:
    """The schema of the records of a file, which are called ``record`` where the file does not say.

    Raises ConfigurationError where it cannot be read, SchemaError where there is no such schema.
    """
    suffixes = {each.lower() for each in file.suffixes}
    if suffixes & {*avro_files.SUFFIXES}:
        return Inferred(avro_files.schema_of(file), [])
    if suffixes & {*parquet_files.SUFFIXES}:
        return Inferred(*parquet_files.schema_of(file, record))
    if suffixes & {*line_files.SUFFIXES}:
        return Inferred(*line_files.inferred_schema(file, record))
    known = (*avro_files.SUFFIXES, *line_files.SUFFIXES, *parquet_files.SUFFIXES)
    raise ConfigurationError(
        f"{file}: its form is not known; allowed are files that end in {', '.join(known)}"
    )


def schema_of_topic(settings: Settings, topic: str, record: str, most: int) -> Inferred:
    """The schema of the newest ``most`` records in JSON of a topic.

    Raises ConfigurationError where there is no such topic, SchemaError where it has no JSON
    objects, KafkaUnavailableError and what :func:`partitions_of_input` does.
    """
    return schema_of_values([*_newest(settings, topic, most)], topic, record)


def schema_of_values(values: list[bytes], origin: str, record: str) -> Inferred:
    """The schema of records in JSON, with or without a schema id in front. Raises SchemaError."""
    lines = []
    for value in values:
        text = _without_framing(value)
        try:
            # On one line, as PyArrow wants it.
            lines.append(json.dumps(json.loads(text), separators=(",", ":")).encode())
        except (ValueError, RecursionError):
            continue
    if not lines:
        raise SchemaError(
            f"{origin}: none of {len(values):,} records is JSON, so their schema cannot be found"
            " out"
        )
    columns = JsonLines(Path(origin)).inferred(as_lines(lines))
    return Inferred(*avro_schema(columns, record, origin))


def _without_framing(value: bytes) -> bytes:
    """The body of a record in JSON; what begins as no framing is all of it."""
    try:
        return of_glue(value).body if value[:1] == b"\3" else prefixed(value).body
    except FramingError:
        return value


def _newest(settings: Settings, topic: str, most: int) -> Iterator[bytes]:
    """About as many of the newest values from each partition."""
    with partitions_of_input(settings, topic) as partitions:
        share = -(-most // max(1, len(partitions)))
        for partition in partitions:
            taken = 0
            for stretch in partition.backwards():
                for message in stretch:
                    value = message.value()
                    if value is not None and taken < share:
                        taken += 1
                        yield value
                if taken >= share:
                    break
