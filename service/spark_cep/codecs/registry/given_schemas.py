"""Avro whose schemas are files that the settings name: no registry is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.registry.framing import Framing
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.codecs.registry.schema_resolution import event_types, records_read
from spark_cep.codecs.topic_numbers import TopicNumbers
from spark_cep.config import Settings
from spark_cep.config.topics import Input
from spark_cep.errors import SchemaError


def given_schemas(
    settings: Settings,  # noqa: ARG001  of formats with a registry
    inputs: Mapping[str, Input],
    registry: Registry | None,  # noqa: ARG001  of formats with a registry
    topics: Sequence[str],
) -> ResolvedSchemas:
    """The schemas for ``inputs``, which have one framing, Glue's or none; ``topics`` are those that
    exist in the cluster.

    Raises SchemaError where a file's schema cannot be used for what it is given.
    """
    readers: dict[str, list[AvroSchema]] = {}
    unframed: dict[int, AvroSchema] = {}
    numbers: dict[str, int] = {}
    patterns: list[tuple[str, int]] = []
    for number, (name, source) in enumerate(inputs.items()):
        assert source.reader_schema is not None
        assert source.reader_schema.file is not None
        schema = _of_file(source.reader_schema.file)
        readers[name] = records_read(source, [schema])
        if not readers[name]:
            raise SchemaError(f"input {name}: {schema.origin} has no record {source.record!r}")
        if Framing(source.framing) is Framing.NONE:
            unframed[number] = schema
            numbers |= dict.fromkeys(source.topics_of(topics), number)
            if source.topic_pattern is not None:
                patterns.append((source.topic_pattern, number))
    (framing,) = {Framing(source.framing) for source in inputs.values()}
    schemas = ResolvedSchemas(
        event_types(inputs, readers, topics),
        framing=framing,
        unframed=TopicNumbers(numbers, tuple(patterns)),
    )
    for number, schema in unframed.items():
        schemas.take_file(number, schema, schema.origin)
    schemas.take_given(inputs, _of_file)
    return schemas


def _of_file(file: Path) -> AvroSchema:
    return parse(file.read_text("utf-8"), str(file))
