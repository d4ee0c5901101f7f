"""Resolved schemas: the record types that a job reads, and who writes them.

A *record type* is one kind of event of one input, with its reader schema. A *writer* is a schema
id met in a topic; it is read as one record type, or as several where it is a union of records. The
plan is built for the writers known when it starts; an id met later is learnt (:meth:`learn`) and
the plan built again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from service.codecs.avro_schema import AvroSchema, parse
from service.codecs.dead_letters import without_bytes
from service.codecs.reader_schemas import record_names, record_schema
from service.codecs.registry import Registry, SchemaNotFoundError
from service.codecs.resolution import resolves
from service.config import Settings
from service.config.topics import Input
from service.errors import ConfigurationError, RegistryError, SchemaError
from service.pattern.types import RecordType, record_type
from service.pipeline.decode.schema_lookup import LARGEST_REGISTERED


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
        """The reader schema as column types."""
        return record_type(self.reader.text)


@dataclass(frozen=True)
class Writer:
    """Schema id ``id`` writes record type ``type`` (its number; ``None``: a record that no input
    reads). ``branch``: its position in the writer's top-level union, if that is one."""

    id: int
    schema: AvroSchema
    branch: int | None
    type: int | None


@dataclass
class ResolvedSchemas:
    """Record types, writers, ids that the registry does not know (with when it said so, in
    milliseconds since 1970), and ids whose schema cannot be read with the reader schema (with the
    reason)."""

    types: tuple[EventType, ...]
    writers: dict[int, tuple[Writer, ...]] = field(default_factory=dict)
    unknown_ids: dict[int, int] = field(default_factory=dict)
    unreadable: dict[int, str] = field(default_factory=dict)

    def types_of(self, inputs: Sequence[str]) -> list[EventType]:
        """The record types of ``inputs`` (of all, when empty)."""
        return [t for t in self.types if not inputs or t.input in inputs]

    def snapshot(self) -> ResolvedSchemas:
        """What is known by now, for another thread or process."""
        return ResolvedSchemas(
            self.types, dict(self.writers), dict(self.unknown_ids), dict(self.unreadable)
        )

    @property
    def ids(self) -> frozenset[int]:
        """The schema ids that a plan is built for."""
        return frozenset({*self.writers, *self.unreadable})

    def learn(self, registry: Registry, ids: Iterable[int]) -> None:
        """Ask the registry for ``ids``; what it does not know is remembered as unknown.

        Raises RegistryError when the registry cannot be reached: nothing is decided then.
        """
        now = round(time.time() * 1000)
        for schema_id in ids:
            if schema_id > LARGEST_REGISTERED:
                # To a registry that is no id at all, and its answer may look like an outage.
                self.unknown_ids[schema_id] = now
                continue
            try:
                schema = registry.get_schema(schema_id)
                if problem := without_bytes(schema):
                    raise SchemaError(f"schema id {schema_id}: {problem}, in any number")
                self.writers[schema_id] = tuple(self._writers(schema_id, schema))
                self.unknown_ids.pop(schema_id, None)
            except SchemaNotFoundError:
                self.unknown_ids[schema_id] = now
            except SchemaError as error:
                self.unreadable[schema_id] = str(error)
                self.unknown_ids.pop(schema_id, None)

    def _writers(self, schema_id: int, schema: AvroSchema) -> Iterable[Writer]:
        if not isinstance(schema.root, list):
            (name,) = record_names(schema)
            yield from self._readings(schema_id, schema, name, None)
            return
        for branch, node in enumerate(schema.root):
            found = schema.resolve(node)
            if isinstance(found, dict) and found["type"] == "record":
                yield from self._readings(schema_id, schema, found["name"], branch)
            else:
                yield Writer(schema_id, schema, branch, None)

    def _readings(
        self, schema_id: int, schema: AvroSchema, name: str, branch: int | None
    ) -> Iterable[Writer]:
        """How the record ``name`` of a schema is read: as every type that is called so."""
        readers = [t for t in self.types if name in names_of(t.reader)]
        if not readers:
            yield Writer(schema_id, schema, branch, None)
            return
        for reader in readers:
            problems = resolves(_record(schema, name, branch), reader.reader)
            if problems:
                raise SchemaError(
                    f"schema id {schema_id} ({name}) cannot be read as {reader.name} of input"
                    f" {reader.input}: " + "; ".join(problems)
                )
            yield Writer(schema_id, schema, branch, reader.number)


def _record(schema: AvroSchema, name: str, branch: int | None) -> AvroSchema:
    """The record ``name`` on its own, also out of a union that has more than records."""
    if branch is None or not isinstance(schema.root, list):
        return record_schema(schema, name)
    return record_schema(replace(schema, root=schema.root[branch]), name)


def names_of(reader: AvroSchema) -> list[str]:
    """The names a writer's record may have to be read with ``reader``: its own and its aliases."""
    (name,) = record_names(reader)
    namespace = name.rpartition(".")[0]
    aliases = reader.named[name].get("aliases", [])
    return [name, *(a if "." in a or not namespace else f"{namespace}.{a}" for a in aliases)]


def resolve_schemas(
    settings: Settings, registry: Registry, topics: Sequence[str]
) -> ResolvedSchemas:
    """The schemas for ``settings``: ``topics`` are those that exist in the cluster."""
    types: list[EventType] = []
    ids: set[int] = set()
    for name, source in settings.inputs.items():
        matching = topics_of(source, topics)
        found, versions = _readers(name, source, settings, registry, matching)
        ids |= versions
        for reader in found:
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
    schemas = ResolvedSchemas(tuple(types))
    schemas.learn(registry, sorted(ids))
    return schemas


def topics_of(source: Input, existing: Sequence[str]) -> list[str]:
    """The topics that an input reads, of those that exist."""
    if source.topic_pattern is None:
        return list(source.topics)
    pattern = re.compile(source.topic_pattern)
    return sorted(topic for topic in existing if pattern.fullmatch(topic))


def _readers(
    name: str, source: Input, settings: Settings, registry: Registry, topics: Sequence[str]
) -> tuple[list[AvroSchema], set[int]]:
    """Reader schemas of an input, newest first of each record, and the writer ids known so far."""
    subjects = list(dict.fromkeys(_subjects(name, source, settings, topics)))
    versions = []
    for subject in subjects:
        try:
            versions += registry.versions(subject)
        except SchemaNotFoundError:
            if source.reader_schema is None:
                raise RegistryError(
                    f"input {name}: the registry has no subject {subject!r}; register the schema,"
                    f" or set inputs.{name}.reader_schema"
                ) from None
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
    readers: list[AvroSchema] = []
    taken: set[str] = set()
    for schema in candidates:
        for record in record_names(schema):
            if record in taken or (source.record and not _is_called(record, source.record)):
                continue
            reader = record_schema(schema, record)
            readers.append(reader)
            taken.update(names_of(reader))
    if not readers:
        raise SchemaError(f"input {name}: no record {source.record!r} in {', '.join(subjects)}")
    return readers, ids


def _subjects(name: str, source: Input, settings: Settings, topics: Sequence[str]) -> Iterable[str]:
    strategy = settings.registry.subject_name_strategy
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


def _is_called(record: str, wanted: str) -> bool:
    return record == wanted or ("." not in wanted and record.rpartition(".")[2] == wanted)
