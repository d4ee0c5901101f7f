"""JSON Schemas as record types."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_cep.codecs.json.json_schema import from_json_schema, is_json_schema
from spark_cep.errors import SchemaError
from spark_cep.pattern.types import record_type


def columns(properties: dict[str, Any], **more: Any) -> tuple[dict[str, str], list[str]]:
    """The columns of an object, and what is left out."""
    schema = {"type": "object", "properties": {"at": {"type": "integer"}, **properties}, **more}
    found = from_json_schema(json.dumps(schema), None, "s")
    fields = record_type(found.schema.text).fields
    return {name: str(of) for name, of in fields.items() if name != "at"}, found.left_out


@pytest.mark.parametrize(
    ("part", "of"),
    [
        ({"type": "string"}, "STRING"),
        ({"type": "string", "enum": ["a", "b"]}, "STRING"),
        ({"type": "string", "enum": ["a b", "1"]}, "STRING"),
        ({"type": "string", "format": "date-time"}, "TIMESTAMP"),
        ({"type": "string", "format": "date"}, "DATE"),
        ({"type": "string", "format": "email"}, "STRING"),
        ({"type": "string", "contentEncoding": "base64"}, "BINARY"),
        ({"type": "integer"}, "BIGINT"),
        ({"type": "integer", "format": "int32"}, "INT"),
        ({"type": "integer", "connect.type": "int32"}, "INT"),
        ({"type": "number"}, "DOUBLE"),
        ({"type": "number", "format": "float"}, "FLOAT"),
        ({"type": "number", "multipleOf": 0.01}, "DECIMAL(18, 2)"),
        ({"type": "number", "multipleOf": 1}, "BIGINT"),
        ({"type": "number", "multipleOf": 0.25}, "DOUBLE"),
        ({"type": "boolean"}, "BOOLEAN"),
        ({"type": ["null", "boolean"]}, "BOOLEAN"),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, "BIGINT"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]},
         "STRUCT<member0: STRING, member1: BIGINT>"),
        ({"type": ["string", "number"]}, "STRUCT<member0: STRING, member1: DOUBLE>"),
        ({"const": "login"}, "STRING"),
        ({"enum": [1, 2, None]}, "BIGINT"),
        ({"type": "array", "items": {"type": "string"}}, "ARRAY<STRING>"),
        ({"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
         "ARRAY<STRUCT<x: BIGINT>>"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "MAP<STRING, DOUBLE>"),
        ({"type": "object", "properties": {"x": {"type": "string"}}}, "STRUCT<x: STRING>"),
        ({"$ref": "#/$defs/Money"}, "STRUCT<amount: DOUBLE, currency: STRING>"),
        ({"allOf": [{"$ref": "#/$defs/Money"}, {"properties": {"note": {"type": "string"}}}]},
         "STRUCT<amount: DOUBLE, currency: STRING, note: STRING>"),
    ],
)  # fmt: skip
def test_types(part: dict[str, Any], of: str) -> None:
    """Each in its place."""
    money = {
        "type": "object",
        "properties": {"amount": {"type": "number"}, "currency": {"type": "string"}},
    }
    assert columns({"x": part}, **{"$defs": {"Money": money}}) == ({"x": of}, [])


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (True, "any value is allowed there"),
        ({}, "give it a type"),
        ({"type": "object"}, "an object without 'properties'"),
        ({"type": "array"}, "an array without 'items'"),
        ({"type": "null"}, "null is its only value"),
        ({"$ref": "#/$defs/Tree"}, ""),
        ({"oneOf": [{"properties": {"a": {"type": "string"}}}, {"type": "string"}]},
         "one of several objects or arrays"),
        ({"oneOf": [{"type": "string", "format": "date-time"}, {"type": "integer"}]},
         "cannot be told apart"),
    ],
)  # fmt: skip
def test_what_has_no_type_is_left_out(part: Any, why: str) -> None:
    """And told, with its path; a type that contains itself, only where it does."""
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "below": {"$ref": "#/$defs/Tree"}},
    }
    found, left_out = columns({"x": part}, **{"$defs": {"Tree": tree}})
    if why:
        assert found == {}
        assert left_out[0].startswith("x: ")
        assert why in left_out[0]
    else:
        assert found == {"x": "STRUCT<name: STRING>"}
        assert left_out == ["x.below: #/$defs/Tree contains itself"]


def test_what_is_required_cannot_be_missing() -> None:
    """What is not may be null."""
    schema = {
        "title": "Login",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": ["integer", "null"]},
            "user-id": {"type": "string"},
        },
        "required": ["a", "b"],
    }
    made = from_json_schema(json.dumps(schema), None, "s").schema
    assert made.root == "Login"
    assert made.named["Login"]["fields"] == [
        {"name": "a", "type": "string"},
        {"name": "b", "type": ["null", "long"]},
        {"name": "user_id", "type": ["null", "string"], "aliases": ["user-id"], "default": None},
    ]
    assert from_json_schema(json.dumps(schema), "t.L", "s").schema.root == "t.L"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not JSON"),
        ("[]", "is an object"),
        ('{"type": "string"}', "needs 'properties'"),
        ('{"properties": {"x": {}}}', "no property can be read: x: any value"),
        ('{"properties": {"x": {"$ref": "other.json"}}}', "there is no schema 'other.json'"),
        ('{"properties": {"x": {"$ref": "#/$defs/No"}}}', "there is nothing at '#/$defs/No'"),
        ('{"properties": {"x": {"type": "text"}}}', "'text' is no type of JSON Schema"),
        ('{"$ref": "#"}', "references in a circle"),
        ('{"allOf": [{"$ref": "#"}]}', "contains itself"),
    ],
)
def test_schemas_that_cannot_be_used(text: str, why: str) -> None:
    """With the reason."""
    with pytest.raises(SchemaError, match="s: ") as refused:
        from_json_schema(text, None, "s")
    assert why in str(refused.value)


def test_references_of_the_registry() -> None:
    """By the names that the schema has for them, and inside of those."""
    text = '{"properties": {"x": {"$ref": "money.json#/$defs/M"}}}'
    money = '{"$defs": {"M": {"type": "object", "properties": {"c": {"$ref": "#/$defs/C"}}}, "C": {"type": "string"}}}'  # noqa: E501
    found = from_json_schema(text, None, "s", {"money.json": money})
    assert str(record_type(found.schema.text)) == "STRUCT<x: STRUCT<c: STRING>>"


def test_a_schema_that_grows_without_end_is_refused() -> None:
    """References written out double with each level."""
    levels = {
        f"L{n}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/L{n + 1}"} for k in "ab"}}
        for n in range(40)
    }
    schema = {
        "properties": {"x": {"$ref": "#/$defs/L0"}},
        "$defs": {**levels, "L40": {"type": "string"}},
    }
    with pytest.raises(SchemaError, match="written out"):
        from_json_schema(json.dumps(schema), None, "s")


@pytest.mark.parametrize(
    ("schema", "is_one"),
    [
        ({"type": "object"}, True),
        ({"$schema": "x"}, True),
        ({"properties": {}}, True),
        ({"type": "record", "name": "X", "fields": []}, False),
        ([], False),
        ("string", False),
    ],
)
def test_json_schema_or_avro(schema: Any, is_one: bool) -> None:
    """Told apart."""
    assert is_json_schema(schema) == is_one
