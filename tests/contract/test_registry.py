"""What the service needs of a schema registry, the same for each one that tests run against."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
)
from confluent_kafka.schema_registry.error import SchemaRegistryError

from spark_cep.codecs.output.fields import Contract
from spark_cep.codecs.output.schemas import schema_text
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.settings import RegistrySettings
from spark_cep.errors import SchemaNotFoundError
from tests.e2e.schemas import field, record

pytestmark = pytest.mark.kafka

UNKNOWN_ID = 999_999


@pytest.fixture
def registry(registry_url: str) -> Iterator[Registry]:
    """The service's client of the registry."""
    registry = Registry(RegistrySettings(url=registry_url, max_attempts=2))
    yield registry
    registry.close()


@pytest.fixture
def client(registry_url: str) -> Iterator[SchemaRegistryClient]:
    """Confluent's own client, for what the service never does."""
    with SchemaRegistryClient({"url": registry_url}) as client:
        yield client


@pytest.fixture
def subject() -> str:
    """A subject that no other test uses."""
    return f"contract.{uuid.uuid4().hex[:10]}-value"


def _schema(name: str, **fields: object) -> str:
    return json.dumps(record(f"e2e.{name}", a="int", **fields))


def test_a_registered_schema_is_found_by_its_id(registry: Registry, subject: str) -> None:
    """The id that registration gives leads back to the schema."""
    schema_id = registry.register(subject, _schema("One"))
    assert registry.get_schema(schema_id).root == "e2e.One"


def test_registration_is_idempotent(registry: Registry, subject: str) -> None:
    """The same schema has the same id, registered again or looked up, and is one version."""
    first = registry.register(subject, _schema("Same"))
    assert registry.register(subject, _schema("Same")) == first
    assert registry.lookup(subject, _schema("Same")) == first
    assert [version.id for version in registry.versions(subject)] == [first]


def test_versions_are_in_order(registry: Registry, subject: str) -> None:
    """All versions of a subject, oldest first; the latest is the last."""
    ids = [
        registry.register(subject, schema)
        for schema in (_schema("V"), _schema("V", b=field("int", default=0)))
    ]
    versions = registry.versions(subject)
    assert [(version.version, version.id) for version in versions] == [(1, ids[0]), (2, ids[1])]
    assert registry.latest(subject) == versions[-1]
    assert registry.version(subject, 1) == versions[0]


def test_a_union_of_records_is_one_schema(registry: Registry, subject: str) -> None:
    """Several record types in one topic have a union as their schema."""
    union = json.dumps([json.loads(_schema("Left")), json.loads(_schema("Right"))])
    schema_id = registry.register(subject, union)
    assert registry.get_schema(schema_id).root == ["e2e.Left", "e2e.Right"]


def test_references_are_followed(
    registry: Registry, client: SchemaRegistryClient, subject: str
) -> None:
    """A schema that refers to another subject's comes back whole."""
    inner = f"inner.{subject}"
    registry.register(inner, _schema("Inner"))
    outer = Schema(
        json.dumps(record("e2e.Outer", inner="e2e.Inner")),
        "AVRO",
        [SchemaReference("e2e.Inner", inner, 1)],
    )
    schema_id = client.register_schema(subject, outer)
    assert set(registry.get_schema(schema_id).named) == {"e2e.Outer", "e2e.Inner"}


@pytest.mark.parametrize("contract", ["match", "match-row", "timeout", "dead-letter"])
def test_the_output_schemas_are_accepted(
    registry: Registry, subject: str, contract: Contract
) -> None:
    """The public schemas can be registered and are found again."""
    schema_id = registry.register(subject, schema_text(contract))
    assert registry.latest(subject).id == schema_id


def test_what_it_does_not_know_is_not_found(registry: Registry, subject: str) -> None:
    """An unknown id, subject and version are told apart from a registry that fails."""
    with pytest.raises(SchemaNotFoundError):
        registry.get_schema(UNKNOWN_ID)
    with pytest.raises(SchemaNotFoundError):
        registry.versions(subject)
    with pytest.raises(SchemaNotFoundError):
        registry.latest(subject)
    registry.register(subject, _schema("Known"))
    with pytest.raises(SchemaNotFoundError):
        registry.version(subject, 9)
    with pytest.raises(SchemaNotFoundError):
        registry.lookup(subject, _schema("Other"))


@pytest.mark.parametrize(
    ("path", "code"), [(f"schemas/ids/{UNKNOWN_ID}", 40403), ("subjects/nobody/versions", 40401)]
)
def test_not_found_has_its_error_code(registry_url: str, path: str, code: int) -> None:
    """HTTP 404 with a code in the body: a wrong address has none."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{registry_url}/{path}", timeout=10)  # noqa: S310  our registry
    with caught.value as answer:
        assert answer.code == 404
        assert json.load(answer)["error_code"] == code


def test_an_incompatible_schema_is_refused(
    registry: Registry, client: SchemaRegistryClient, subject: str
) -> None:
    """Where a subject demands compatibility, a change that breaks readers is HTTP 409."""
    registry.register(subject, _schema("Strict"))
    level = ConfigCompatibilityLevel.BACKWARD
    client.set_config(subject, ServerConfig(compatibility=level))
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema(subject, Schema(_schema("Strict", b="string"), "AVRO"))
    assert caught.value.http_status_code == 409
    registry.register(subject, _schema("Strict", b=field("string", default="")))
    assert len(registry.versions(subject)) == 2
