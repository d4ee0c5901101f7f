"""The subjects of an input's schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_cep.config.topics import Input
from spark_cep.errors import ConfigurationError, SchemaNotFoundError


def subjects_of(name: str, source: Input, strategy: str, topics: Sequence[str]) -> Iterator[str]:
    """The subjects of the schemas of input ``name``, whose ``topics`` exist."""
    if strategy != "topic" and source.record is None and source.reader_schema is None:
        raise ConfigurationError(
            f"inputs.{name}: with registry.subject_name_strategy {strategy} the subject follows"
            " from the record: set record, or reader_schema"
        )
    if strategy == "topic":
        yield from (f"{topic}-value" for topic in topics)
    elif source.record is not None:
        yield from (
            [source.record] if strategy == "record" else [f"{t}-{source.record}" for t in topics]
        )


def no_subject(name: str, subject: str) -> SchemaNotFoundError:
    """Return the error for a subject of input ``name`` that the registry does not have."""
    return SchemaNotFoundError(
        f"input {name}: the registry has no subject {subject!r}; register the schema, or set"
        f" inputs.{name}.reader_schema"
    )


def no_topic(name: str) -> ConfigurationError:
    """Return the error for input ``name``, whose schema is that of a topic that does not exist."""
    return ConfigurationError(
        f"inputs.{name}: there is no topic yet to look up the schema of; set"
        f" inputs.{name}.reader_schema"
    )
