"""The subjects of an input's schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_cep.config.topics import Input
from spark_cep.errors import ConfigurationError


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
