"""Schemas parsed: names, references, checks, fingerprints."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any

import pytest

from spark_cep.codecs.avro.broken_records import explain_undecodable
from spark_cep.codecs.avro.resolution import Resolution
from spark_cep.codecs.avro.schema import parse
from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.errors import SchemaError


def record(name: str, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A record schema."""
    return {"type": "record", "name": name, "fields": list(fields), **more}


ADDRESS = record("Address", {"name": "city", "type": "string"})
ORDER = record(
    "Order",
    {"name": "from", "type": ADDRESS},
    {"name": "to", "type": ["null", "Address"], "default": None},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    namespace="shop",
    aliases=["Purchase"],
    doc="An order.",
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('// orders\n"string"', "JSON has no comments"),
        ('{"type": "string" /* text */}', "JSON has no comments"),
        ('{"type": string}', "not JSON: Expecting value: line 1"),
        (
            json.dumps(
                record(
                    "outer.Out",
                    {"name": "i", "type": record("In", namespace="")},
                    {"name": "j", "type": "In"},
                )
            ),
            "inside the namespace 'outer' the type 'In' without a namespace cannot be named",
        ),
    ],
)
def test_a_schema_that_cannot_be_read_is_explained(text: str, message: str) -> None:
    """Comments, and a name that its place cannot reach, are said to be the cause."""
    with pytest.raises(SchemaError, match=re.escape(message)):
        parse(text, "orders.avsc")


@pytest.mark.parametrize("kind", ["string", "int", "bytes"])
def test_wrong_defaults_of_a_writer_do_not_matter(kind: str) -> None:
    """A default at a type, or of another type at a field, is only a reader's to use."""
    schema = record(
        "A",
        {"name": "at_type", "type": {"type": kind, "default": None}},
        {"name": "at_field", "type": kind, "default": None},
        {"name": "symbol", "type": {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}},
    )
    assert parse(schema, "a", defaults=False).root == "A"
    with pytest.raises(SchemaError):
        parse(schema, "a")


def test_names_become_full() -> None:
    """Names and aliases get their namespace, and definitions stand once."""
    parsed = parse(ORDER, "orders")
    assert parsed.root == "shop.Order"
    assert set(parsed.named) == {"shop.Order", "shop.Address"}
    assert parsed.named["shop.Order"]["aliases"] == ["shop.Purchase"]


def test_text_is_self_contained_and_stable() -> None:
    """What is written parses to the same schema, each type defined where it is first used."""
    parsed = parse(ORDER, "orders")
    again = parse(parsed.text, "orders")
    assert (again.text, again.named) == (parsed.text, parsed.named)
    assert parsed.text.count('"city"') == 1
    assert "An order" not in parsed.text


def test_references_are_inlined() -> None:
    """Named types of referenced schemas are written into the schema that uses them."""
    address = parse(record("Address", {"name": "city", "type": "string"}, namespace="geo"), "a")
    unused = parse(record("Unused"), "u")
    order = record("Order", {"name": "to", "type": "geo.Address"}, {"name": "x", "type": "int"})
    parsed = parse(json.dumps(order), "orders", [address, unused])
    assert set(parsed.named) == {"Order", "geo.Address"}
    assert parse(parsed.text, "again").json == parsed.json


def test_type_without_namespace_inside_one() -> None:
    """A type that stands in no namespace stays so inside a record that has one."""
    inner = record("Inner", namespace="")
    parsed = parse(record("Outer", {"name": "i", "type": inner}, namespace="ns"), "s")
    assert set(parse(parsed.text, "again").named) == {"Inner", "ns.Outer"}


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ("{", "not JSON"),
        ("12", "a type is a name"),
        ("Unknown", "not JSON"),
        ({"type": "array"}, "without 'items'"),
        ({"type": "enum", "name": "E"}, "without 'symbols'"),
        ({"type": "record", "name": "R"}, "no list of fields"),
        ({"type": "record", "name": "1R", "fields": []}, "not a name"),
        ({"type": "record", "fields": []}, "None is not a name"),
        (record("R", {"name": "a"}), "at 'a': the field has no type"),
        (record("R", {"name": "a b", "type": "int"}), "'a b'"),
        (record("R", {"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "defined twice"),
        (record("R", {"name": "a", "type": "Nope"}), "'Nope' is not defined"),
        (record("R", {"name": "a", "type": record("R")}), "'R' is defined twice"),
        (record("R", {"name": "a", "type": ["int", "int"]}), "each type once"),
        (record("R", {"name": "a", "type": ["int", ["null"]]}), "directly inside a union"),
        (record("R", {"name": "a", "type": "int", "default": "x"}), "Default value"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 1, "scale": 3},
            "scale must be less",
        ),
    ],
)
def test_refused(schema: Any, part: str) -> None:
    """Each fault names the origin and the place."""
    with pytest.raises(SchemaError, match="orders-value: ") as caught:
        parse(schema, "orders-value")
    assert part in str(caught.value)


def test_bottomless_nesting_is_refused() -> None:
    """Depth has a limit, and the limit stands in the error."""
    schema: Any = "int"
    for _ in range(101):
        schema = {"type": "array", "items": schema}
    with pytest.raises(SchemaError, match="100 levels"):
        parse(schema, "deep")


def test_what_is_as_deep_as_allowed_is_worked_with() -> None:
    """Python's stack holds it wherever a schema is gone through: compared, read, explained."""
    schema: Any = "int"
    for number in range(100):
        schema = record(f"R{number}", {"name": "f", "type": schema})
    deep: list[Any] = []
    for _ in range(348):
        deep = [deep]
    for each in (schema, {**record("E", {"name": "f", "type": "int"}), "x": deep}):
        parsed, other = parse(each, "e"), parse({**each, "aliases": ["F"]}, "e")
        resolution = Resolution(parsed, other)
        assert not [*resolution.check(parsed.root, other.root, "")]
        reason, _ = explain_undecodable(b"", parsed, other)
        assert reason is Reason.UNDECODABLE


@pytest.mark.parametrize("aliases", [5, "a", [5], {"a": 1}, None])
def test_aliases_that_are_no_names_are_refused(aliases: Any) -> None:
    """Of types and of fields."""
    field = {"name": "a", "type": "int"}
    for schema in (
        record("E", field) | {"aliases": aliases},
        record("E", field | {"aliases": aliases}),
        {"type": "enum", "name": "E", "symbols": ["A"], "aliases": aliases},
    ):
        with pytest.raises(SchemaError, match=r"e: .*the aliases .* are not a list of names"):
            parse(schema, "e")


def test_bottomless_properties_are_refused() -> None:
    """Of which Avro says nothing, so that they may hold anything."""
    for depth in (351, 5_000, 100_000):
        text = json.dumps(record("E"))[:-1] + ', "x": ' + "[" * depth + "]" * depth + "}"
        with pytest.raises(SchemaError, match="e: the schema's text is nested more than 350"):
            parse(text, "e")


def _each_twice(count: int) -> dict[str, Any]:
    """Records, each with two of the one before: 2 ** count values."""
    inner: Any = "int"
    for number in range(count):
        name = f"R{number}"
        inner = record(name, {"name": "a", "type": inner}, {"name": "b", "type": "int"})
        if number:
            inner["fields"][1]["type"] = f"R{number - 1}"
    return dict(inner)


def test_types_that_unfold_without_bound_are_refused() -> None:
    """A few kilobytes that are a million values: whoever works with them would never end."""
    assert parse(_each_twice(12), "e").root == "R11"
    with pytest.raises(SchemaError, match="more than 100000 values when each named type"):
        parse(_each_twice(25), "e")


def test_types_that_refer_to_each_other_too_deep_are_refused() -> None:
    """As deep as nesting may be, however they are written."""
    chain = [record("R0", {"name": "a", "type": "int"})]
    chain += [record(f"R{n}", {"name": "a", "type": f"R{n - 1}"}) for n in range(1, 400)]
    fields = [{"name": f"f{n}", "type": each} for n, each in enumerate(chain)]
    assert parse(record("E", *fields[:90]), "e").root == "E"
    with pytest.raises(SchemaError, match="types are in each other over 100 levels deep"):
        parse(record("E", *fields), "e")


@pytest.mark.parametrize("size", [-1, 2**31, 2**70])
def test_fixed_of_a_size_that_is_none_is_refused(size: int) -> None:
    """Compiled loops skip so many bytes."""
    fixed = {"type": "fixed", "name": "F", "size": size}
    with pytest.raises(SchemaError, match=f"e: schema at 'f': fixed of {size} bytes; allowed: 0"):
        parse(record("E", {"name": "f", "type": fixed}), "e")


def test_a_parsed_schema_is_what_a_reader_sees() -> None:
    """Documentation and the way names are written do not count; defaults and logical types do."""
    plain = record("n.R", {"name": "a", "type": "long", "default": 1})
    same = {"type": {"type": "long"}, "name": "a", "default": 1, "doc": "x"}
    assert parse(plain, "e").json == parse(record("R", same, namespace="n"), "e").json
    others = [
        record("n.R", {"name": "a", "type": "long", "default": 2}),
        record("n.R", {"name": "a", "type": "long", "default": 1, "aliases": ["b"]}),
        record(
            "n.R",
            {
                "name": "a",
                "type": {"type": "long", "logicalType": "timestamp-millis"},
                "default": 1,
            },
        ),
    ]
    found = {json.dumps(parse(each, "e").json, sort_keys=True) for each in [plain, *others]}
    assert len(found) == 4


def test_recursive() -> None:
    """A type that contains itself, also through others, is told."""
    node = record("Node", {"name": "next", "type": ["null", "Node"]})
    assert parse(node, "s").recursive
    assert not parse(ORDER, "s").recursive


def test_pickles() -> None:
    """A parsed schema can travel to a worker."""
    parsed = parse(ORDER, "orders")
    assert pickle.loads(pickle.dumps(parsed)).text == parsed.text
