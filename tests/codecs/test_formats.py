"""Inputs of one format or several, from settings to records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.serializers import CPickleSerializer

from spark_cep.codecs.formats import record_format
from spark_cep.codecs.json.reader import JsonFormat
from spark_cep.codecs.mixed_formats import MixedFormats
from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import RawRecord, RecordFormat
from spark_cep.codecs.registry.framing import frame
from spark_cep.codecs.registry.registry import SchemaText
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.vectors import Bytes
from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, SchemaError, SchemaNotFoundError
from spark_cep.pattern.types import SqlType, column_type
from tests.codecs.registry.test_resolved_schemas import FakeRegistry
from tests.e2e.schemas import record

LOGIN = record("t.Login", user="string", at="long")
ORDER = {"title": "Order", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


class Texts(FakeRegistry):
    """Schemas of any type, by subject."""

    def __init__(
        self, schemas: dict[int, Any], texts: Mapping[str, SchemaText], **subjects: list[int]
    ) -> None:
        super().__init__(schemas, **subjects)
        self._written = texts

    def text(self, subject: str, version: int | None = None) -> SchemaText:
        """Of a subject."""
        found = self._written.get(subject)
        if found is None or version not in (None, found.version):
            raise SchemaNotFoundError(f"no subject {subject}")
        return found


def settings(folder: Path, *, url: str | None = "http://localhost", **inputs: Any) -> Settings:
    """With these inputs."""
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": inputs,
            **({} if url is None else {"registry": {"url": url}}),
            "state": {"checkpoint": str(folder / "checkpoint")},
            "rules": {"folder": str(folder)},
        }
    )


def text(kind: str, schema: Any, subject: str = "o-value", **references: str) -> SchemaText:
    """A schema of the registry."""
    return SchemaText(subject, 2, kind, json.dumps(schema), references)


def test_json_without_a_registry(tmp_path: Path) -> None:
    """By a schema of Avro, or a JSON Schema, in a file."""
    for name, schema in (("a.avsc", LOGIN), ("b.json", ORDER)):
        (tmp_path / name).write_text(json.dumps(schema), "utf-8")
    given = settings(
        tmp_path,
        url=None,
        logins={"topics": ["l"], "format": "json", "reader_schema": {"file": tmp_path / "a.avsc"}},
        orders={
            "topics": ["o"], "format": "json", "record": "shop.Order",
            "reader_schema": {"file": tmp_path / "b.json"},
        },
    )  # fmt: skip
    found = record_format(given, None, ["l", "o"])
    assert isinstance(found, JsonFormat)
    assert [(each.input, each.name) for each in found.types] == [
        ("logins", "t.Login"),
        ("orders", "shop.Order"),
    ]
    assert [*found.types[1].columns.fields] == ["id"]


@pytest.mark.parametrize("kind", ["JSON", "AVRO"])
def test_json_with_a_registry(kind: str, tmp_path: Path) -> None:
    """By the newest schema of the topic's subject, whatever it is written in."""
    schema = ORDER if kind == "JSON" else record("Order", id="long")
    given = settings(tmp_path, orders={"topics": ["o"], "format": "json"})
    found = record_format(given, Texts({}, {"o-value": text(kind, schema)}), ["o"])
    assert [each.name for each in found.types] == ["Order"]
    assert str(found.types[0].columns.fields["id"]) == "BIGINT"


@pytest.mark.parametrize(
    ("more", "topics", "texts", "why"),
    [
        ({}, ["o"], {}, "the registry has no subject 'o-value'"),
        ({}, ["o"], {"o-value": text("PROTOBUF", {})}, "of type PROTOBUF; allowed for JSON: JSON"),
        ({"topics": ["o", "p"]}, ["o", "p"], {"o-value": text("JSON", ORDER),
         "p-value": text("AVRO", LOGIN, "p-value")}, "its topics have different schemas"),
        ({}, ["o"], {"o-value": text("AVRO", [LOGIN, record("t.Out", at="long")])},
         "has the records t.Login, t.Out, and JSON does not say which one"),
    ],
)  # fmt: skip
def test_schemas_that_are_not_there(
    more: dict[str, Any], topics: list[str], texts: Any, why: str, tmp_path: Path
) -> None:
    """With the input and what to do."""
    given = settings(tmp_path, orders={"topics": ["o"], "format": "json", **more})
    with pytest.raises((ConfigurationError, SchemaError, SchemaNotFoundError)) as refused:
        record_format(given, Texts({}, texts), topics)
    assert why in str(refused.value)


def test_no_schema_and_no_registry(tmp_path: Path) -> None:
    """The error says how to get one."""
    given = settings(tmp_path, url=None, orders={"topics": ["o"], "format": "json"})
    with pytest.raises(ConfigurationError, match="spark-cep schema infer"):
        record_format(given, None, ["o"])


@pytest.mark.parametrize(
    ("form", "framing", "has_file"),
    [
        (form, framing, has_file)
        for form in ("avro", "json", "protobuf")
        for framing in ("registry", "glue", "none")
        for has_file in (True, False)
        # The settings of others are refused.
        if has_file or framing == "registry" or form == "json"
    ],
)
def test_a_start_without_a_registry_fails_where_one_is_asked(
    form: str, framing: str, has_file: bool, tmp_path: Path
) -> None:
    """And in no other case."""
    files = {
        "avro": ("a.avsc", json.dumps(LOGIN)),
        "json": ("b.json", json.dumps(ORDER)),
        "protobuf": ("c.proto", 'syntax = "proto3";\nmessage Login { string user = 1; }\n'),
    }
    name, schema = files[form]
    (tmp_path / name).write_text(schema, "utf-8")
    given: dict[str, Any] = {"topics": ["t"], "format": form, "framing": framing}
    if form == "json":
        given["record"] = "t.Order"
    if has_file:
        given["reader_schema"] = {"file": tmp_path / name}
    if framing == "glue" and form != "json":
        given["writer_schemas"] = {"3b241101-e2bb-4255-8caf-4136c566a962": tmp_path / name}
    without = settings(tmp_path, url=None, i=given)
    if without.inputs["i"].asks_registry:
        with pytest.raises(ConfigurationError, match="registry"):
            record_format(without, None, ["t"])
    else:
        assert len(record_format(without, None, ["t"]).types) == 1


def test_a_topic_has_one_format(tmp_path: Path) -> None:
    """And of JSON one type."""
    given = settings(tmp_path, a={"topics": ["t"]}, b={"topics": ["t"], "format": "json"})
    with pytest.raises(ConfigurationError, match="inputs a and b read the topic t as avro and as"):
        record_format(given, Texts({}, {}), ["t"])
    both = {"topics": ["o"], "format": "json"}
    registry = Texts({}, {"o-value": text("JSON", ORDER)})
    with pytest.raises(ConfigurationError, match="both read o as JSON"):
        record_format(settings(tmp_path, a=both, b=both), registry, ["o"])


def mixed(folder: Path) -> RecordFormat:
    """An input of Avro between two of JSON, one of them with a pattern."""
    given = settings(
        folder,
        orders={"topics": ["o"], "format": "json"},
        logins={"topics": ["l"]},
        others={"topic_pattern": "p-.*", "format": "json", "record": "Other"},
    )
    texts = {name: text("JSON", ORDER, name) for name in ("o-value", "p-1-value")}
    registry = Texts({5: LOGIN}, texts, l_value=[5])
    return record_format(given, registry, ["l", "o", "p-1"])


def test_each_topic_is_read_in_its_format(tmp_path: Path) -> None:
    """Types are numbered through, dead letters are explained by their format, and what is known of
    schemas is Avro's."""
    found = mixed(tmp_path)
    assert isinstance(found, MixedFormats)
    assert [(each.number, each.name) for each in found.types] == [
        (0, "Order"), (1, "Other"), (2, "t.Login"),
    ]  # fmt: skip
    assert found.known == "5"
    assert found.snapshot().known == "5"
    vectors = ColumnVectors()
    wanted = []
    for each in found.types:
        columns: dict[tuple[str, ...], tuple[int, SqlType]] = {}
        for name in each.columns.fields:
            of = column_type(each.columns, (name,))
            assert of is not None
            columns[name,] = vectors.value((name,), of), of
        wanted.append(columns)
    serializer: Any = CPickleSerializer()
    made: Any = serializer.loads(serializer.dumps(found.reader(wanted, vectors)))
    reader = made.of_task(0, None)
    body = BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(LOGIN), {"user": "ann", "at": 7})
    avro = frame(5, body.getvalue())
    for topic, value, number, column, whole in (
        ("o", b'{"id": 3}', 0, "id", 3),
        ("p-new", b'{"id": 4}', 1, "id", 4),
        ("l", avro, 2, "at", 7),
    ):
        read = reader.read(topic, Bytes.of([value, value[:-2], None]), Bytes.of([None] * 3))
        assert read.faults.tolist() == [0, Fault.UNDECODABLE, Fault.TOMBSTONE]
        assert read.types.tolist() == [number, number, -1]
        assert read.wholes[0, wanted[number][column,][0]] == whole
        assert read.wholes.shape[1] == vectors.width
        reason, why = reader.explain(RawRecord(topic, value[:-2]), Fault.UNDECODABLE, number)
        assert reason == Reason.UNDECODABLE
        assert ("not JSON" in why) == (number < 2)
    unknown = frame(9, b"x")
    read = reader.read("l", Bytes.of([unknown]), Bytes.of([None]))
    assert read.faults.tolist() == [Fault.UNKNOWN_SCHEMA]
    told = reader.explain(RawRecord("l", unknown), Fault.UNKNOWN_SCHEMA, -1)
    assert told[0] == Reason.UNKNOWN_SCHEMA_ID
    assert isinstance(found.parts[1].format, ResolvedSchemas)
