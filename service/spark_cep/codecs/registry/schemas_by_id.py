"""Schemas that records name by an id: what is known of each id, and how more is learnt."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar

from spark_cep.codecs.output.dead_letters import LONGEST_DETAIL
from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import Framing
from spark_cep.codecs.registry.schema_ids import (
    SchemaId,
    ids_in_order,
    in_order,
    ranges_of,
    schema_id_of,
)
from spark_cep.codecs.registry.schema_lookup import LARGEST_REGISTERED, SchemaLookup
from spark_cep.codecs.topic_numbers import TopicNumbers
from spark_cep.errors import SchemaError, SchemaNotFoundError, printable, shortened

_Writer = TypeVar("_Writer")


@dataclass
class SchemasById(RecordFormat, Generic[_Writer]):
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
    def found(self, registry: Any, schema_id: SchemaId) -> tuple[_Writer, ...]:
        """The writers of a schema, which ``registry`` is asked for. Raises SchemaError where it
        cannot be read, SchemaNotFoundError where there is none, RegistryError where the registry
        cannot be reached."""

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
                self.writers[schema_id] = self.found(registry, schema_id)
            except SchemaNotFoundError:
                self.unknown_ids[schema_id] = now
                continue
            except SchemaError as error:
                # It goes into each dead letter.
                self.unreadable[schema_id] = shortened(printable(str(error)), LONGEST_DETAIL)
            self.unknown_ids.pop(schema_id, None)
