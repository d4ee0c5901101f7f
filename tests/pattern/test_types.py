"""Avro schemas as SQL types, as Spark's SchemaConverters map them."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from spark_cep.errors import SchemaError
from spark_cep.pattern.types import (
    RecordType,
    UnreadableType,
    column_type,
    readable_columns,
    record_type,
    unreadable_part,
)


def type_of(kind: Any) -> str:
    """The SQL type of one field."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]}
    return str(record_type(schema).fields["x"])


@pytest.mark.parametrize(
    ("avro", "sql"),
    [
        ("boolean", "BOOLEAN"),
        ("int", "INT"),
        ("long", "BIGINT"),
        ("float", "FLOAT"),
        ("double", "DOUBLE"),
        ("bytes", "BINARY"),
        ("string", "STRING"),
        ("null", "NULL"),
        ({"type": "string", "logicalType": "uuid"}, "STRING"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "STRING"),
        ({"type": "fixed", "name": "F", "size": 4}, "BINARY"),
        ({"type": "int", "logicalType": "date"}, "DATE"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "TIMESTAMP"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "TIMESTAMP"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "TIMESTAMP_NTZ"),
        ({"type": "long", "logicalType": "unheard-of"}, "BIGINT"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3}, "DECIMAL(9, 3)"),
        (
            {"type": "fixed", "name": "D", "size": 8, "logicalType": "decimal", "precision": 5},
            "DECIMAL(5, 0)",
        ),
        ({"type": "array", "items": "int"}, "ARRAY<INT>"),
        ({"type": "map", "values": ["null", "long"]}, "MAP<STRING, BIGINT>"),
        (["null", "string"], "STRING"),
        (["int", "null"], "INT"),
        (["null"], "NULL"),
        (["int", "long"], "BIGINT"),
        (["long", "null", "int"], "BIGINT"),
        (["float", "double"], "DOUBLE"),
        (["null", "int", "string"], "STRUCT<member0: INT, member1: STRING>"),
        ({"type": {"type": "string"}}, "STRING"),
        (
            {"type": "record", "name": "I", "fields": [{"name": "y", "type": "int"}]},
            "STRUCT<y: INT>",
        ),
    ],
)
def test_mapping(avro: Any, sql: str) -> None:
    """Each Avro type has Spark's SQL type."""
    assert type_of(avro) == sql


def test_named_types_are_found_by_short_and_full_name() -> None:
    """A type defined once is used again by name, within its namespace."""
    money = {"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}
    schema = {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "a", "type": money},
            {"name": "b", "type": "Money"},
            {"name": "c", "type": ["null", "shop.Money"]},
        ],
    }
    record = record_type(json.dumps(schema))
    assert record.name == "shop.Order"
    assert record.fields["a"] == record.fields["b"] == record.fields["c"]


def test_records_are_values() -> None:
    """Records are equal by fields, can be keys, and survive pickling."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]}
    one, other = record_type(schema), record_type(schema)
    assert (one, hash(one)) == (other, hash(other))
    assert pickle.loads(pickle.dumps(one)) == one  # our own bytes
    assert one != RecordType({}, "R")


def _record(*fields: Any, name: Any = "R") -> Any:
    return {"type": "record", "name": name, "fields": list(fields)}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "not JSON"),
        ('"string"', "must be a record"),
        (_record({"name": "x", "type": "nope"}), "unknown Avro type 'nope'"),
        (_record({"name": "x", "type": 5}), "not an Avro schema"),
        (_record({"name": "x", "type": {}}), "needs a 'type'"),
        (_record({"type": "int"}), "needs a name"),
        (_record({"name": "x", "type": "int"}, {"name": "x", "type": "int"}), "there twice"),
        (_record(name=None), "needs a name"),
        ({"type": "record", "name": "R"}, "needs a list of fields"),
    ],
)
def test_unusable_schema(schema: Any, message: str) -> None:
    """What cannot be read is refused, with what was found."""
    with pytest.raises(SchemaError, match=message):
        record_type(schema)


def test_deep_nesting_is_refused() -> None:
    """A schema nested without end is refused with the limit."""
    kind: Any = "int"
    for _ in range(100):
        kind = {"type": "array", "items": kind}
    with pytest.raises(SchemaError, match="nested more than 64 deep"):
        type_of(kind)


DEEP = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}


@pytest.mark.parametrize(
    ("of", "name", "reason"),
    [
        (["null", "R"], "R", "the type R contains itself"),
        (DEEP, "DECIMAL(64, 2)", "DECIMAL(64, 2) is beyond a precision of 1 to 38"),
        (DEEP | {"precision": None}, "DECIMAL(None, 2)", "DECIMAL(None, 2) is beyond"),
        (DEEP | {"precision": 1}, "DECIMAL(1, 2)", "DECIMAL(1, 2) is beyond"),
        (
            {"type": "fixed", "name": "F", "size": 40} | {**DEEP, "type": "fixed"},
            "DECIMAL(64, 2)",
            "DECIMAL(64, 2) is beyond",
        ),
        (
            {"type": "array", "items": ["null", DEEP]},
            "ARRAY<DECIMAL(64, 2)>",
            "DECIMAL(64, 2) is beyond",
        ),
        ({"type": "map", "values": "R"}, "MAP<STRING, R>", "the type R contains itself"),
        (
            {"type": "array", "items": _record({"name": "d", "type": DEEP}, name="I")},
            "ARRAY<STRUCT<d: DECIMAL(64, 2)>>",
            "DECIMAL(64, 2) is beyond",
        ),
        (["int", "string", DEEP], "STRUCT<member0: INT, member1: STRING, member2: ", "DECIMAL"),
    ],
)
def test_unreadable_columns(of: Any, name: str, reason: str) -> None:
    """A type that is not read is that of its column alone."""
    record = record_type(_record({"name": "x", "type": "int"}, {"name": "y", "type": of}))
    kind = record.fields["y"]
    assert isinstance(kind, UnreadableType)
    assert str(kind).startswith(name)
    assert kind.reason.startswith(reason)
    assert column_type(record, ("y", "below", "it")) == kind
    assert readable_columns(record) == [("x",)]


def test_columns_beside_an_unreadable_one() -> None:
    """Of a record with an unreadable part the others can be read."""
    node = _record(
        {"name": "value", "type": "int"},
        {"name": "next", "type": ["null", "Node"]},
        {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A"]}},
        name="Node",
    )
    record = record_type(
        _record({"name": "first", "type": node}, {"name": "second", "type": ["null", "Node"]})
    )
    columns = ["first.value", "first.kind", "second.value", "second.kind"]
    assert [".".join(path) for path in readable_columns(record)] == columns
    part = unreadable_part(record)
    assert part is not None
    assert part.name == "Node"
