"""Record types that a job reads, and the topics in which each is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from spark_cep.codecs.avro.reader_schemas import project
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.errors import SchemaError
from spark_cep.pattern.types import RecordType, readable_columns, record_type, unreadable_part


@dataclass(frozen=True)
class EventType:
    """One record type of one input, read with ``reader``. ``topics``: where it is read, ``None``
    for every topic of the source."""

    number: int
    input: str
    name: str
    reader: AvroSchema
    topics: tuple[str, ...]
    event_time: str
    event_time_unit: str

    @cached_property
    def columns(self) -> RecordType:
        """The reader schema as column types.

        Raises SchemaError where it has types that cannot be read.
        """
        try:
            return record_type(self.reader.text)
        except SchemaError as error:
            raise SchemaError(
                f"input {self.input}: {self.name} of {self.reader.origin} cannot be the reader"
                f" schema: {error}; to read the other columns, set"
                f" inputs.{self.input}.reader_schema to a file that has the schema without this one"
            ) from error

    @cached_property
    def readable(self) -> AvroSchema:
        """The reader schema without the columns that cannot be read."""
        if unreadable_part(self.columns) is None:
            return self.reader
        return project(self.reader, [".".join(path) for path in readable_columns(self.columns)])


def types_in(types: Sequence[EventType], topic: str | None) -> frozenset[int]:
    """The numbers of the types that are read in a topic; ``None``: in one that did not exist at the
    start, where those are read that are read in every other."""
    everywhere = {each for one in types for each in one.topics}
    return frozenset(
        one.number
        for one in types
        if topic in one.topics or (topic not in everywhere and everywhere <= set(one.topics))
    )
