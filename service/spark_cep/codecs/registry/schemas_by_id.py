"""Schemas that records name by an id: what is known of each id, and how more is learnt."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar
from uuid import UUID

from spark_cep.codecs.output.dead_letters import LONGEST_DETAIL
from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import Framing
from spark_cep.codecs.registry.schema_ids import (
    SchemaId,
    ids_in_order,
    in_order,
    named,
    ranges_of,
    schema_id_of,
)
from spark_cep.codecs.registry.schema_lookup import LARGEST_REGISTERED, SchemaLookup
from spark_cep.codecs.topic_numbers import TopicNumbers
from spark_cep.errors import SchemaError, SchemaNotFoundError, printable, shortened

if TYPE_CHECKING:
    # Python workers need no settings.
    from spark_cep.config.topics import Input


class SchemaWriter(Protocol):
    """A record type of a schema that records are written with."""

    @property
    def type(self) -> int | None:
        """The number of the type that it is read as; ``None``: no input reads it."""


_Schema = TypeVar("_Schema")
_Writer = TypeVar("_Writer", bound=SchemaWriter)


@dataclass
class SchemasById(RecordFormat, Generic[_Schema, _Writer]):
    """Record types, writers, ids that the registry does not know (with when it said so, in
    milliseconds since 1970), and ids whose schema cannot be read with the reader schema (with the
    reason). Tasks ask ``lookup`` about ids that are not among these, the driver learns them from
    ``registry``. ``unframed``: of records without framing, a number for each topic."""

    types: tuple[EventType, ...]
    writers: dict[SchemaId, tuple[_Writer, ...]] = field(default_factory=dict)
    unknown_ids: dict[SchemaId, int] = field(default_factory=dict)
    unreadable: dict[SchemaId, str] = field(default_factory=dict)
    framing: Framing = Framing.REGISTRY
    unframed: TopicNumbers = field(default_factory=lambda: TopicNumbers({}))
    lookup: SchemaLookup | None = None
    #: Each format asks it in its own way, and it does not travel to Python workers.
    registry: Any = None

    @abstractmethod
    def registered(self, registry: Any, schema_id: SchemaId) -> _Schema:
        """Ask ``registry`` for a schema. Raises SchemaError where it cannot be used,
        SchemaNotFoundError where there is none, RegistryError where the registry cannot be
        reached."""

    @abstractmethod
    def writers_in(self, schema_id: SchemaId, schema: _Schema) -> Iterable[_Writer]:
        """The writers in a schema. Raises SchemaError where one cannot be read as its type."""

    def snapshot(self) -> Self:
        """Return a copy of the present knowledge for another thread or process."""
        return replace(
            self,
            writers=dict(self.writers),
            unknown_ids=dict(self.unknown_ids),
            unreadable=dict(self.unreadable),
            registry=None,
        )

    @property
    def ids(self) -> frozenset[SchemaId]:
        """The schema ids that a plan is built for."""
        return frozenset({*self.writers, *self.unreadable})

    @property
    def known(self) -> str:
        """The ids as ranges, in text."""
        return ranges_of(self.ids)

    def not_given(self, topic: str, schema_id: SchemaId) -> str:
        """Return why a record's schema is not known where the settings have all of them."""
        inputs = {each.input for each in self.types if topic in each.topics}
        known = ", ".join(map(str, in_order(self.ids)[1]))
        return (
            f"the schema version {schema_id} is not in writer_schemas of"
            f" {', '.join(f'inputs.{name}' for name in sorted(inputs)) or 'the input'}, which has"
            f" {known}; add it with the schema's file"
        )

    def learn(self, schemas: Iterable[str]) -> list[str]:
        """See :class:`~spark_cep.codecs.record_reader.RecordFormat`; names are the ids' texts."""
        ids = ids_in_order(map(schema_id_of, schemas))
        assert self.registry is not None
        self.ask(self.registry, ids)
        return [str(each) for each in ids if each in self.unknown_ids]

    def ask(self, registry: Any, ids: Iterable[SchemaId]) -> None:
        """Ask the registry for ``ids``; what it does not know is remembered as unknown, and what is
        wrong with a schema as the reason why it cannot be read.

        Raises RegistryError when the registry cannot be reached: nothing is decided then.
        """
        now = round(time.time() * 1000)
        for schema_id in ids:
            if isinstance(schema_id, int) and schema_id > LARGEST_REGISTERED:
                # To a registry that is no id at all, and its answer may look like an outage.
                self.unknown_ids[schema_id] = now
                continue
            try:
                self.take(schema_id, self.registered(registry, schema_id))
            except SchemaNotFoundError:
                self.unknown_ids[schema_id] = now
                continue
            except SchemaError as error:
                self._refuse(schema_id, error)
            self.unknown_ids.pop(schema_id, None)

    def take(self, schema_id: SchemaId, schema: _Schema) -> None:
        """Remember the writers in a schema, or the reason why it cannot be read."""
        try:
            self.writers[schema_id] = self._readable(schema_id, schema)
        except SchemaError as error:
            self._refuse(schema_id, error)

    def _readable(self, schema_id: SchemaId, schema: _Schema) -> tuple[_Writer, ...]:
        """The writers in a schema. Raises SchemaError for whatever it fails in."""
        try:
            return tuple(self.writers_in(schema_id, schema))
        except SchemaError:
            raise
        except Exception as error:
            # Whoever may register schemas must not be able to end a job with one.
            raise SchemaError(
                f"{named(schema_id)} cannot be used: {type(error).__name__}: {error}"
            ) from error

    def _refuse(self, schema_id: SchemaId, why: SchemaError) -> None:
        # It goes into each dead letter.
        self.unreadable[schema_id] = shortened(printable(str(why)), LONGEST_DETAIL)

    def take_file(self, schema_id: SchemaId, schema: _Schema, file: str) -> None:
        """Remember the writers in the schema of a file. Raises SchemaError where it cannot be read,
        or no input reads any of its records."""
        self.take(schema_id, schema)
        if schema_id in self.unreadable:
            raise SchemaError(f"{file} cannot be used: {self.unreadable[schema_id]}")
        if all(writer.type is None for writer in self.writers[schema_id]):
            known = ", ".join(each.name for each in self.types)
            raise SchemaError(f"{file}: has no record type that is read as {known}")

    def take_given(self, inputs: Mapping[str, Input], read: Callable[[Path], _Schema]) -> None:
        """Remember the schemas that ``inputs`` name by the GUIDs of their versions, whose files
        ``read`` reads. Raises SchemaError as :meth:`take_file`, and where inputs name different
        schemas by one GUID."""
        files: dict[UUID, tuple[Path, _Schema]] = {}
        for name, source in inputs.items():
            for guid, file in source.writer_schemas.items():
                schema = read(file)
                other, same = files.setdefault(guid, (file, schema))
                if schema != same:
                    raise SchemaError(
                        f"inputs.{name}.writer_schemas: the schema version {guid} is {file}, and"
                        f" that of another input is {other}, which differs"
                    )
        for guid, (file, schema) in files.items():
            self.take_file(guid, schema, str(file))
