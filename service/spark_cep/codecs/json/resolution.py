"""The record types of inputs in JSON: those of their settings, or of the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_cep.codecs.avro.reader_schemas import record_names, record_schema
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.json.json_schema import from_json_schema
from spark_cep.codecs.json.reader import JsonFormat
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import Framing
from spark_cep.codecs.registry.registry import Registry, SchemaText
from spark_cep.codecs.registry.subjects import no_subject, no_topic, subjects_of
from spark_cep.codecs.schema_files import schema_of_file
from spark_cep.config import Settings
from spark_cep.config.topics import Input
from spark_cep.errors import ConfigurationError, SchemaError, SchemaNotFoundError


def resolve_json(
    settings: Settings,
    inputs: Mapping[str, Input],
    registry: Registry | None,
    topics: Sequence[str],
) -> JsonFormat:
    """The record types of ``inputs``, which have one framing; ``topics`` are those that exist."""
    types: list[EventType] = []
    patterns: dict[int, str] = {}
    for number, (name, source) in enumerate(inputs.items()):
        matching = tuple(source.topics_of(topics))
        for other in types:
            if both := sorted({*other.topics} & {*matching}):
                raise ConfigurationError(
                    f"inputs {other.input} and {name} both read {', '.join(both)} as JSON, whose"
                    " records do not say which of two types they are; one input is enough, rules"
                    " can share it"
                )
        schema = _schema(name, source, settings, registry, matching)
        (record,) = record_names(schema)
        types.append(
            EventType(
                number, name, record, schema, matching, source.event_time, source.event_time_unit
            )
        )
        if source.topic_pattern is not None:
            patterns[number] = source.topic_pattern
    for each in types:
        # What cannot be a reader schema is told here.
        _ = each.columns
    (framing,) = {Framing(source.framing) for source in inputs.values()}
    return JsonFormat(tuple(types), patterns, framing)


def _schema(
    name: str,
    source: Input,
    settings: Settings,
    registry: Registry | None,
    topics: Sequence[str],
) -> AvroSchema:
    """The one record type of an input."""
    chosen = source.reader_schema
    if chosen is not None and chosen.file is not None:
        return _one_record(schema_of_file(chosen.file, source.record), source.record)
    if registry is None or settings.registry is None:
        raise ConfigurationError(
            f"inputs.{name}: records in JSON do not have their schema: set"
            f" inputs.{name}.reader_schema.file to an Avro schema or a JSON Schema"
            " (`spark-cep schema infer` writes one from records), or registry.url"
        )
    if chosen is not None:
        version = None if chosen.version == "latest" else int(chosen.version)
        return _registered(registry.text(str(chosen.subject), version), source.record)
    strategy = settings.registry.subject_name_strategy
    found = [
        _registered(_newest(name, registry, subject), source.record)
        for subject in subjects_of(name, source, strategy, topics)
    ]
    if not found:
        raise no_topic(name)
    if different := next((each for each in found if each.json != found[0].json), None):
        raise ConfigurationError(
            f"inputs.{name}: its topics have different schemas ({found[0].origin};"
            f" {different.origin}); set inputs.{name}.reader_schema to the one that all are read"
            " as, or make an input for each"
        )
    return found[0]


def _newest(name: str, registry: Registry, subject: str) -> SchemaText:
    try:
        return registry.text(subject)
    except SchemaNotFoundError:
        raise no_subject(name, subject) from None


def _registered(found: SchemaText, record: str | None) -> AvroSchema:
    origin = f"subject {found.subject!r}, version {found.version}"
    match found.type:
        case "JSON":
            return from_json_schema(found.text, record, origin, found.references).schema
        case "AVRO":
            return _one_record(parse(found.text, origin), record)
    raise SchemaError(f"{origin} is of type {found.type}; allowed for JSON: JSON, AVRO")


def _one_record(schema: AvroSchema, record: str | None) -> AvroSchema:
    names = record_names(schema)
    if record is None and len(names) > 1:
        raise SchemaError(
            f"{schema.origin}: has the records {', '.join(names)}, and JSON does not say which one"
            " a record is; set `record` of the input"
        )
    return record_schema(schema, names[0] if record is None else record)
