"""Record types and writers, as a registry has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.registry.registry import Registry, SubjectVersion
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.codecs.registry.schema_resolution import resolve_schemas
from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, RegistryError, SchemaError, SchemaNotFoundError


def record(name: str, *fields: str) -> dict[str, Any]:
    """A record of whole numbers."""
    listed = [{"name": field, "type": "long"} for field in fields]
    return {"type": "record", "name": name, "fields": listed}


def _parsed(schema: Any, origin: str, *, defaults: bool) -> AvroSchema | SchemaError:
    try:
        return parse(json.dumps(schema), origin, defaults=defaults)
    except SchemaError as error:
        return error


class FakeRegistry(Registry):
    """Schemas by id, and ids by subject, oldest first."""

    def __init__(self, schemas: dict[int, Any], **subjects: list[int]) -> None:
        self._texts = schemas
        self._subjects = {name.replace("_", "-"): ids for name, ids in subjects.items()}

    def get_schema(self, schema: int | UUID) -> AvroSchema:
        """By id."""
        if not isinstance(schema, int) or schema not in self._texts:
            raise SchemaNotFoundError(f"no schema {schema}")
        found = _parsed(self._texts[schema], str(schema), defaults=False)
        if isinstance(found, SchemaError):
            raise found
        return found

    def versions(self, subject: str) -> list[SubjectVersion]:
        """Of a subject."""
        if subject not in self._subjects:
            raise SchemaNotFoundError(f"no subject {subject}")
        return [
            SubjectVersion(
                subject, number, schema, _parsed(self._texts[schema], subject, defaults=True)
            )
            for number, schema in enumerate(self._subjects[subject], 1)
        ]


def resolved(folder: Path, registry: FakeRegistry, **inputs: list[str]) -> ResolvedSchemas:
    """For inputs by name with their topics."""
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": {name: {"topics": topics} for name, topics in inputs.items()},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": str(folder / "checkpoint")},
            "rules": {"folder": str(folder)},
        }
    )
    topics = [topic for several in inputs.values() for topic in several]
    return resolve_schemas(settings, settings.inputs, registry, topics)


def test_the_newest_version_is_read(tmp_path: Path) -> None:
    """All versions are writers of it, but for those that cannot be read so, with the reason."""
    known = {1: record("E", "n"), 2: record("E", "n", "m"), 3: record("E", "m")}
    schemas = resolved(tmp_path, FakeRegistry(known, t_value=[1, 2, 3]), i=["t"])
    (kind,) = schemas.types
    assert (kind.input, kind.name, kind.topics) == ("i", "E", ("t",))
    assert [*schemas.types_of(["i"])[0].columns.fields] == ["m"]
    assert {i: [w.type for w in writers] for i, writers in schemas.writers.items()} == {
        2: [0],
        3: [0],
    }
    assert "schema id 1 (E) cannot be read as E of input i" in schemas.unreadable[1]


def test_whoever_may_register_cannot_stop_the_job(tmp_path: Path) -> None:
    """A version that cannot be used is passed over, and records with its id are dead letters."""
    broken = record("E") | {"fields": [{"name": "n", "type": "no such type"}]}
    known = {1: record("E", "n"), 2: broken, 3: broken}
    registry = FakeRegistry(known, t_value=[1, 2])
    schemas = resolved(tmp_path, registry, i=["t"])
    assert [*schemas.types_of(["i"])[0].columns.fields] == ["n"]
    assert [*schemas.writers] == [1]
    schemas.ask(registry, [3])
    assert [*schemas.unreadable] == [2, 3]
    assert "3: schema at 'n': the type 'no such type' is not defined" in schemas.unreadable[3]


def test_a_subject_without_a_usable_version_is_refused(tmp_path: Path) -> None:
    """There is nothing to read it with; the newest says why."""
    broken = record("E") | {"fields": [{"name": "n", "type": "no such type"}]}
    with pytest.raises(SchemaError, match="the type 'no such type' is not defined"):
        resolved(tmp_path, FakeRegistry({1: broken}, t_value=[1]), i=["t"])


def test_ids_are_learnt(tmp_path: Path) -> None:
    """Those of records that nobody reads, too; unknown ones are remembered, also those that no
    registry can have."""
    known = {1: record("E", "n"), 5: [record("E", "n"), record("F", "n"), "null"]}
    registry = FakeRegistry(known, t_value=[1])
    schemas = resolved(tmp_path, registry, i=["t"])
    schemas.ask(registry, [5, 6, 2**31])
    assert [(w.branch, w.type) for w in schemas.writers[5]] == [(0, 0), (1, None), (2, None)]
    assert schemas.unknown_ids.keys() == {6, 2**31}
    assert schemas.unreadable == {}


def test_two_inputs_may_not_read_the_same(tmp_path: Path) -> None:
    """One record type of one topic is one input's."""
    registry = FakeRegistry({1: record("E", "n")}, t_value=[1])
    with pytest.raises(ConfigurationError, match="inputs a and b both read E from t"):
        resolved(tmp_path, registry, a=["t"], b=["t"])


def test_a_topic_without_subject(tmp_path: Path) -> None:
    """The message names the subject, and the setting for another way."""
    with pytest.raises(RegistryError, match=r"no subject 't-value'.*inputs\.i\.reader_schema"):
        resolved(tmp_path, FakeRegistry({}), i=["t"])
