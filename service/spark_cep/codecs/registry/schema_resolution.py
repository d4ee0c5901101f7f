"""The schemas that a job begins with: those of its settings, looked up in the registry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spark_cep.codecs.avro.reader_schemas import record_names, record_schema
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas, names_of
from spark_cep.codecs.registry.schema_lookup import SchemaLookup
from spark_cep.codecs.registry.settings import RegistrySettings, no_registry
from spark_cep.codecs.registry.subjects import no_subject, subjects_of
from spark_cep.config import Settings
from spark_cep.config.topics import Input
from spark_cep.errors import ConfigurationError, SchemaError, SchemaNotFoundError


def resolve_schemas(
    settings: Settings,
    inputs: Mapping[str, Input],
    registry: Registry | None,
    topics: Sequence[str],
) -> ResolvedSchemas:
    """The schemas for ``inputs``: ``topics`` are those that exist in the cluster."""
    given = settings.registry
    if given is None or registry is None:
        raise no_registry(
            f"records of {', '.join(f'inputs.{name}' for name in inputs)}",
            "format: json of the input, where they are JSON",
        )
    readers: dict[str, list[AvroSchema]] = {}
    ids: set[int] = set()
    for name, source in inputs.items():
        matching = source.topics_of(topics)
        readers[name], versions = _readers(
            name, source, given.subject_name_strategy, registry, matching
        )
        ids |= versions
    schemas = ResolvedSchemas(
        event_types(inputs, readers, topics),
        lookup=SchemaLookup(RegistrySettings.of(given)),
        registry=registry,
    )
    schemas.ask(registry, sorted(ids))
    return schemas


def event_types(
    inputs: Mapping[str, Input],
    readers: Mapping[str, Sequence[AvroSchema]],
    topics: Sequence[str],
) -> tuple[EventType, ...]:
    """The record types of ``inputs``, which are read as these ``readers``. Raises
    ConfigurationError where two inputs read the same, SchemaError where a schema cannot be a
    reader's."""
    types: list[EventType] = []
    for name, source in inputs.items():
        matching = source.topics_of(topics)
        for reader in readers[name]:
            (record,) = record_names(reader)
            clash = [t for t in types if t.name == record and set(t.topics) & set(matching)]
            if clash:
                raise ConfigurationError(
                    f"inputs {clash[0].input} and {name} both read {record} from"
                    f" {', '.join(sorted(set(clash[0].topics) & set(matching)))};"
                    " one input is enough, rules can share it"
                )
            number = len(types)
            types.append(
                EventType(
                    number, name, record, reader, tuple(matching),
                    source.event_time, source.event_time_unit,
                )
            )  # fmt: skip
    for each in types:
        # What cannot be a reader schema is told here.
        _ = each.columns
    return tuple(types)


def _readers(
    name: str, source: Input, strategy: str, registry: Registry, topics: Sequence[str]
) -> tuple[list[AvroSchema], set[int]]:
    """Reader schemas of an input, newest first of each record, and the writer ids known so far."""
    subjects = list(dict.fromkeys(subjects_of(name, source, strategy, topics)))
    versions = []
    for subject in subjects:
        try:
            versions += registry.versions(subject)
        except SchemaNotFoundError:
            if source.reader_schema is None:
                raise no_subject(name, subject) from None
    ids = {version.id for version in versions}
    chosen = source.reader_schema
    if chosen is not None:
        if chosen.file is not None:
            schema = parse(chosen.file.read_text("utf-8"), str(chosen.file))
        elif chosen.version == "latest":
            schema = registry.latest(str(chosen.subject)).schema
        else:
            schema = registry.version(str(chosen.subject), int(chosen.version)).schema
        candidates = [schema]
    else:
        newest = sorted(versions, key=lambda version: -version.version)
        candidates = [v.found for v in newest if isinstance(v.found, AvroSchema)]
        if newest and not candidates:
            # Why the newest cannot be used.
            candidates = [newest[0].schema]
    readers = records_read(source, candidates)
    if not readers:
        raise SchemaError(f"input {name}: no record {source.record!r} in {', '.join(subjects)}")
    return readers, ids


def records_read(source: Input, candidates: Iterable[AvroSchema]) -> list[AvroSchema]:
    """The records of schemas that an input reads, the first of each name."""
    readers: list[AvroSchema] = []
    taken: set[str] = set()
    for schema in candidates:
        for record in record_names(schema):
            if record in taken or (source.record and not _is_called(record, source.record)):
                continue
            reader = record_schema(schema, record)
            readers.append(reader)
            taken.update(names_of(reader))
    return readers


def _is_called(record: str, wanted: str) -> bool:
    return record == wanted or ("." not in wanted and record.rpartition(".")[2] == wanted)
