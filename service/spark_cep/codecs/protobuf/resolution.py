"""The record types of inputs in Protobuf: messages of files, or of the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from google.protobuf.descriptor import Descriptor

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.protobuf.descriptors import MessageFiles, compiled_file, compiled_text
from spark_cep.codecs.protobuf.message_columns import columns_of
from spark_cep.codecs.protobuf.message_values import MessageParser
from spark_cep.codecs.protobuf.reader import ProtobufFormat
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import Framing
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.schema_lookup import SchemaLookup
from spark_cep.codecs.registry.settings import RegistrySettings, no_registry
from spark_cep.codecs.registry.subjects import no_subject, no_topic, subjects_of
from spark_cep.codecs.topic_numbers import TopicNumbers
from spark_cep.config import Settings
from spark_cep.config.topics import Input
from spark_cep.errors import ConfigurationError, SchemaError, SchemaNotFoundError

#: Compiling a schema takes a moment; older ones are looked up when a record of theirs comes.
_ASKED_AT_START = 10


def resolve_protobuf(
    settings: Settings,
    inputs: Mapping[str, Input],
    registry: Registry | None,
    topics: Sequence[str],
) -> ProtobufFormat:
    """The record types of ``inputs``, which have one framing; ``topics`` are those that exist."""
    (framing,) = {Framing(source.framing) for source in inputs.values()}
    given = settings.registry
    if framing is Framing.REGISTRY and (given is None or registry is None):
        raise no_registry(
            f"records of {', '.join(f'inputs.{name}' for name in inputs)}",
            "framing: none of the input, where they have none",
            "Protobuf with a schema id of the schema registry",
        )
    types: list[EventType] = []
    parsers: list[MessageParser] = []
    patterns: list[tuple[str, int]] = []
    ids: set[int] = set()
    for name, source in inputs.items():
        matching = tuple(source.topics_of(topics))
        files, origin, known = _files(name, source, settings, registry, matching)
        ids |= known
        message = _message(name, source, files, origin)
        _check_alone(types, name, message.full_name, matching, unframed=framing is Framing.NONE)
        types.append(
            EventType(
                len(types), name, message.full_name, columns_of(message, origin), matching,
                source.event_time, source.event_time_unit,
            )
        )  # fmt: skip
        parsers.append(MessageParser(files, message.full_name))
        if source.topic_pattern is not None:
            patterns.append((source.topic_pattern, len(types) - 1))
    for each in types:
        # What cannot be a reader schema is told here.
        _ = each.columns
    numbers = {topic: one.number for one in types for topic in one.topics}
    found = ProtobufFormat(
        tuple(types),
        framing=framing,
        unframed=TopicNumbers(numbers, tuple(patterns)),
        parsers=tuple(parsers),
    )
    if framing is Framing.REGISTRY and given is not None and registry is not None:
        found.lookup, found.registry = SchemaLookup(RegistrySettings.of(given)), registry
        found.ask(registry, sorted(ids)[-_ASKED_AT_START:])
    if framing is Framing.GLUE:
        found.take_given(inputs, compiled_file)
    return found


def columns_of_file(name: str, source: Input, file: Path) -> AvroSchema:
    """The columns of the message of a .proto file that input ``name`` reads. Raises SchemaError."""
    return columns_of(_message(name, source, compiled_file(file), str(file)), str(file))


def _check_alone(
    types: Sequence[EventType], name: str, message: str, topics: Sequence[str], *, unframed: bool
) -> None:
    for other in types:
        both = sorted({*other.topics} & {*topics})
        if both and (unframed or other.name == message):
            raise ConfigurationError(
                f"inputs {other.input} and {name} both read {', '.join(both)} as"
                f" {other.name if unframed else message}; one input is enough, rules can share it"
            )


def _files(
    name: str,
    source: Input,
    settings: Settings,
    registry: Registry | None,
    topics: Sequence[str],
) -> tuple[MessageFiles, str, set[int]]:
    """The schema that an input is read as, its origin, and the ids that are known so far."""
    chosen = source.reader_schema
    ids: set[int] = set()
    subjects: list[str] = []
    given = settings.registry
    if Framing(source.framing) is Framing.REGISTRY and registry is not None and given is not None:
        strategy = given.subject_name_strategy
        subjects = [*dict.fromkeys(subjects_of(name, source, strategy, topics))]
        for subject in subjects:
            try:
                ids |= {*registry.ids(subject)}
            except SchemaNotFoundError:
                if chosen is None:
                    raise no_subject(name, subject) from None
    if chosen is not None and chosen.file is not None:
        return compiled_file(chosen.file), str(chosen.file), ids
    assert registry is not None
    version = None
    if chosen is not None:
        subjects = [str(chosen.subject)]
        version = None if chosen.version == "latest" else int(chosen.version)
    if not subjects:
        raise no_topic(name)
    found = registry.text(subjects[0], version)
    origin = f"subject {found.subject!r}, version {found.version}"
    if found.type != "PROTOBUF":
        raise SchemaError(f"{origin} is of type {found.type}; allowed for Protobuf: PROTOBUF")
    return compiled_text(found.text, origin, found.references), origin, ids


def _message(name: str, source: Input, files: MessageFiles, origin: str) -> Descriptor:
    """The message that an input reads."""
    advice = f"set inputs.{name}.record to the one that events are"
    return files.message_called(source.record, f"input {name}: {origin}", advice)
