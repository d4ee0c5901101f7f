"""Reader schemas: records of a topic, and schemas cut down to columns."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from spark_cep.codecs.avro.reader_schemas import project, record_names, record_schema
from spark_cep.codecs.avro.resolution import resolves
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.errors import SchemaError

GEO = {
    "type": "record",
    "name": "Geo",
    "fields": [{"name": "lat", "type": "double"}, {"name": "lon", "type": "double"}],
}
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "qty", "type": "int"}],
}
ORDER = {
    "type": "record",
    "name": "shop.Order",
    "aliases": ["Purchase"],
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": "double", "aliases": ["sum"]},
        {"name": "home", "type": ["null", GEO], "default": None},
        {"name": "work", "type": ["null", "Geo"], "default": None},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
        {"name": "any", "type": ["string", "int"]},
    ],
}
UNION = [ORDER, {"type": "record", "name": "shop.Refund", "fields": []}]
SCHEMA = parse(ORDER, "orders")


def field_names(schema: AvroSchema, record: str = "shop.Order") -> list[str]:
    """The fields that a record of a schema has left."""
    return [field["name"] for field in schema.named[record]["fields"]]


def test_record_names() -> None:
    """One record, or the branches of a union."""
    assert record_names(SCHEMA) == ["shop.Order"]
    assert record_names(parse(UNION, "s")) == ["shop.Order", "shop.Refund"]


@pytest.mark.parametrize("schema", ["string", ["null", ORDER], {"type": "array", "items": "int"}])
def test_not_a_record(schema: Any) -> None:
    """An event is a record; anything else is refused."""
    with pytest.raises(SchemaError, match="a record or a union of records"):
        record_names(parse(schema, "s"))


@pytest.mark.parametrize("name", ["shop.Refund", "Refund"])
def test_record_of_a_union(name: str) -> None:
    """One record of a union on its own, by full or short name, without the others' types."""
    chosen = record_schema(parse(UNION, "s"), name)
    assert set(chosen.named) == {"shop.Refund"}


def test_unknown_record() -> None:
    """An unknown record is refused with those that there are."""
    with pytest.raises(SchemaError, match=r"no records .* shop\.Order, shop\.Refund"):
        record_schema(parse(UNION, "s"), "Nope")


@pytest.mark.parametrize(
    ("columns", "kept"),
    [
        ({"id"}, {"shop.Order": ["id"]}),
        ({"amount", "id"}, {"shop.Order": ["id", "amount"]}),
        ({"home"}, {"shop.Order": ["home"], "shop.Geo": ["lat", "lon"]}),
        ({"work.lat"}, {"shop.Order": ["work"], "shop.Geo": ["lat"]}),
        ({"home.lat", "work.lon"}, {"shop.Order": ["home", "work"], "shop.Geo": ["lat", "lon"]}),
        ({"lines.qty"}, {"shop.Order": ["lines"], "shop.Line": ["qty"]}),
        ({"tags.colour"}, {"shop.Order": ["tags"]}),
        ({"any"}, {"shop.Order": ["any"]}),
        (set(), {"shop.Order": []}),
    ],
)
def test_projection(columns: set[str], kept: dict[str, list[str]]) -> None:
    """Only what is read stays, in the schema's order, and the writer can still be read with it."""
    cut = project(SCHEMA, columns)
    assert {name: field_names(cut, name) for name in cut.named} == kept
    assert resolves(SCHEMA, parse(cut.text, "cut")) == []


def test_projection_keeps_aliases_and_defaults() -> None:
    """What resolution needs of a kept field stays."""
    cut = project(SCHEMA, {"amount", "home"})
    assert cut.named["shop.Order"]["aliases"] == ["shop.Purchase"]
    amount, home = cut.named["shop.Order"]["fields"]
    assert amount["aliases"] == ["sum"]
    assert home["default"] is None


def test_projection_decodes() -> None:
    """A record written whole is read with the cut schema."""
    datum = {"id": "1", "amount": 2.5, "lines": [{"sku": "s", "qty": 3}], "tags": {}, "any": 1}
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(SCHEMA.json), datum)
    cut = project(SCHEMA, {"amount", "lines.qty"})
    assert fastavro.schemaless_reader(
        io.BytesIO(body.getvalue()),
        fastavro.parse_schema(SCHEMA.json),
        fastavro.parse_schema(cut.json),
    ) == {"amount": 2.5, "lines": [{"qty": 3}]}


@pytest.mark.parametrize(
    ("column", "part"),
    [
        ("amuont", "did you mean 'amount'?"),
        ("home.latt", "shop.Geo has no field 'latt'; did you mean 'lat'?"),
        ("zzz", "it has id, amount"),
        ("id.x", "'x' is below a scalar"),
    ],
)
def test_unknown_column(column: str, part: str) -> None:
    """An unknown column is refused with the nearest name."""
    with pytest.raises(SchemaError) as caught:
        project(SCHEMA, {column})
    assert part in str(caught.value)


def test_projection_of_a_union() -> None:
    """Columns belong to one record: a union is refused."""
    with pytest.raises(SchemaError, match="choose a record"):
        project(parse(UNION, "s"), {"id"})
