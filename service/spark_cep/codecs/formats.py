"""The formats of records that a job can read: one row each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from spark_cep.codecs.json.resolution import resolve_json
from spark_cep.codecs.mixed_formats import MixedFormats, part_of
from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.schema_resolution import resolve_schemas
from spark_cep.config import Input, Settings
from spark_cep.errors import ConfigurationError

#: Finds the record types of inputs, in topics of those that exist. ConfigurationError where the
#: settings do not say what the format needs, such as a registry.
FindTypes = Callable[[Settings, Mapping[str, Input], Registry | None, Sequence[str]], RecordFormat]

FORMATS: Final[Mapping[str, FindTypes]] = {
    # With a schema id of the registry in front.
    "avro": resolve_schemas,
    # With a schema id in front, or without.
    "json": resolve_json,
}


def record_format(
    settings: Settings, registry: Registry | None, topics: Sequence[str]
) -> RecordFormat:
    """The format of the job's inputs, with their record types; ``topics`` are those that exist."""
    inputs: dict[str, dict[str, Input]] = {}
    read_as: dict[str, tuple[str, str]] = {}
    for name, source in settings.inputs.items():
        inputs.setdefault(source.format, {})[name] = source
        for topic in source.topics_of(topics):
            other, form = read_as.setdefault(topic, (name, source.format))
            if form != source.format:
                raise ConfigurationError(
                    f"inputs {other} and {name} read the topic {topic} as {form} and as"
                    f" {source.format}; a topic has records of one format"
                )
    found = {
        form: FORMATS[form](settings, of_format, registry, topics)
        for form, of_format in inputs.items()
    }
    if len(found) == 1:
        return next(iter(found.values()))
    return MixedFormats.of(
        [part_of(form, each, inputs[form].values()) for form, each in found.items()]
    )
