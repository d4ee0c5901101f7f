"""The formats of records that a job can read: one row each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from spark_cep.codecs.json.resolution import resolve_json
from spark_cep.codecs.mixed_formats import MixedFormats, part_of
from spark_cep.codecs.protobuf.resolution import resolve_protobuf
from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.codecs.registry.given_schemas import given_schemas
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.schema_resolution import resolve_schemas
from spark_cep.config import Input, Settings
from spark_cep.errors import ConfigurationError

#: Finds the record types of inputs, in topics of those that exist. ConfigurationError where the
#: settings do not say what the format needs, such as a registry.
FindTypes = Callable[[Settings, Mapping[str, Input], Registry | None, Sequence[str]], RecordFormat]

#: By format and framing.
FORMATS: Final[Mapping[tuple[str, str], FindTypes]] = {
    ("avro", "registry"): resolve_schemas,
    ("avro", "glue"): given_schemas,
    ("avro", "none"): given_schemas,
    ("json", "registry"): resolve_json,
    ("json", "glue"): resolve_json,
    ("json", "none"): resolve_json,
    ("protobuf", "registry"): resolve_protobuf,
    ("protobuf", "glue"): resolve_protobuf,
    ("protobuf", "none"): resolve_protobuf,
}


def record_format(
    settings: Settings, registry: Registry | None, topics: Sequence[str]
) -> RecordFormat:
    """The format of the job's inputs, with their record types; ``topics`` are those that exist."""
    inputs: dict[tuple[str, str], dict[str, Input]] = {}
    read_as: dict[str, tuple[str, str]] = {}
    for name, source in settings.inputs.items():
        form = source.format, source.framing
        inputs.setdefault(form, {})[name] = source
        for topic in source.topics_of(topics):
            other, said = read_as.setdefault(topic, (name, _name(*form)))
            if said != _name(*form):
                raise ConfigurationError(
                    f"inputs {other} and {name} read the topic {topic} as {said} and as"
                    f" {_name(*form)}; a topic has records of one format and framing"
                )
    found = {
        form: FORMATS[form](settings, of_format, registry, topics)
        for form, of_format in inputs.items()
    }
    if len(found) == 1:
        return next(iter(found.values()))
    return MixedFormats.of(
        [part_of(_name(*form), each, inputs[form].values()) for form, each in found.items()]
    )


def _name(form: str, framing: str) -> str:
    """The name of a format in messages, and of what is known of it."""
    return form if framing == "registry" else f"{form}/{framing}"
