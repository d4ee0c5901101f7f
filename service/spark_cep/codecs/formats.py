"""The formats of records that a job can read: one row each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.schema_resolution import resolve_schemas
from spark_cep.config import Settings

#: Finds the record types of the inputs, in topics of those that exist. ConfigurationError where the
#: settings do not say what the format needs, such as a registry.
FindTypes = Callable[[Settings, Registry | None, Sequence[str]], RecordFormat]

FORMATS: Final[Mapping[str, FindTypes]] = {
    # With a schema id of the registry in front.
    "avro": resolve_schemas,
}


def record_format(
    settings: Settings, registry: Registry | None, topics: Sequence[str]
) -> RecordFormat:
    """The format of the job's inputs, with their record types; ``topics`` are those that exist."""
    return FORMATS["avro"](settings, registry, topics)
