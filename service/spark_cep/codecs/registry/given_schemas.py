"""Avro whose schemas are files that the settings name: no registry is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.registry.framing import Framing
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.codecs.registry.schema_ids import SchemaId
from spark_cep.codecs.registry.schema_resolution import event_types, records_read
from spark_cep.codecs.topic_numbers import TopicNumbers
from spark_cep.config import Settings
from spark_cep.config.topics import Input
from spark_cep.errors import SchemaError, SchemaNotFoundError


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
    written: dict[SchemaId, AvroSchema] = {}
    numbers: dict[str, int] = {}
    patterns: list[tuple[str, int]] = []
    for number, (name, source) in enumerate(inputs.items()):
        assert source.reader_schema is not None
        assert source.reader_schema.file is not None
        file = source.reader_schema.file
        reader = _of_file(file)
        readers[name] = records_read(source, [reader])
        if not readers[name]:
            raise SchemaError(f"input {name}: {file} has no record {source.record!r}")
        if Framing(source.framing) is Framing.NONE:
            written[number] = reader
            numbers |= dict.fromkeys(source.topics_of(topics), number)
            if source.topic_pattern is not None:
                patterns.append((source.topic_pattern, number))
        for guid, each in source.writer_schemas.items():
            schema = _of_file(each)
            if written.setdefault(guid, schema).text != schema.text:
                raise SchemaError(
                    f"inputs.{name}.writer_schemas: the schema version {guid} is {schema.origin},"
                    f" and that of another input is {written[guid].origin}, which differs"
                )
    (framing,) = {Framing(source.framing) for source in inputs.values()}
    schemas = ResolvedSchemas(
        event_types(inputs, readers, topics),
        framing=framing,
        unframed=TopicNumbers(numbers, tuple(patterns)),
    )
    schemas.ask(_Given(written), written)
    for schema_id, why in schemas.unreadable.items():
        raise SchemaError(f"{written[schema_id].origin} cannot be used: {why}")
    for schema_id, writers in schemas.writers.items():
        if all(each.type is None for each in writers):
            known = ", ".join(each.name for each in schemas.types)
            raise SchemaError(f"{written[schema_id].origin}: has no record that is read as {known}")
    return schemas


class _Given:
    """Schemas of files, as those of a registry."""

    def __init__(self, schemas: Mapping[SchemaId, AvroSchema]) -> None:
        self._schemas = schemas

    def get_schema(self, schema: SchemaId) -> AvroSchema:
        """See :class:`~spark_cep.codecs.registry.resolved_schemas.SchemasById`."""
        if schema not in self._schemas:
            raise SchemaNotFoundError(f"no file has the schema {schema}")
        return self._schemas[schema]


def _of_file(file: Path) -> AvroSchema:
    return parse(file.read_text("utf-8"), str(file))
