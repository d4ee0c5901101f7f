"""Which writers a reader can read: one table, each row as the Avro Java library decides it."""

from __future__ import annotations

from typing import Any

import pytest

from spark_cep.codecs.avro.resolution import incompatibilities, resolves
from spark_cep.codecs.avro.schema import parse
from spark_cep.errors import SchemaError


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A record named n.R."""
    return {"type": "record", "name": "n.R", "fields": list(fields)} | more


def of(kind: Any, name: str = "a", **more: Any) -> dict[str, Any]:
    """A record with one field."""
    return record({"name": name, "type": kind} | more)


def enum(*symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    """An enum."""
    return {"type": "enum", "name": name, "symbols": list(symbols)} | more


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """A primitive with a logical type."""
    return {"type": kind, "logicalType": name} | more


def fixed(size: int, name: str = "F") -> dict[str, Any]:
    """A fixed."""
    return {"type": "fixed", "name": name, "size": size}


READABLE = {
    "same": (of("int"), of("int")),
    "field left out": (record({"name": "b", "type": "int"}), record()),
    "added with default": (record(), of("int", default=1)),
    "field alias": (of("int", "old"), of("int", aliases=["old"])),
    "record alias": (
        of("int") | {"name": "n.Old"},
        of("int", aliases=["x"]) | {"aliases": ["Old"]},
    ),
    "record of another name": (of("int") | {"name": "m.Other"}, of("int")),
    "int to long": (of("int"), of("long")),
    "int to double": (of("int"), of("double")),
    "long to float": (of("long"), of("float")),
    "float to double": (of("float"), of("double")),
    "string to bytes": (of("string"), of("bytes")),
    "bytes to string": (of("bytes"), of("string")),
    "made nullable": (of("int"), of(["null", "int"])),
    "widened into a union": (of("int"), of(["null", "long"])),
    "union reordered": (of(["null", "int"]), of(["int", "null"])),
    "union widened": (of(["null", "int"]), of(["null", "string", "long"])),
    "array widened": (
        of({"type": "array", "items": "int"}),
        of({"type": "array", "items": "long"}),
    ),
    "map widened": (of({"type": "map", "values": "int"}), of({"type": "map", "values": "long"})),
    "enum grown": (of(enum("X")), of(enum("X", "Y"))),
    "enum with default": (of(enum("X", "Y")), of(enum("X", default="X"))),
    "enum of another namespace": (of(enum("X", name="p.E")), of(enum("X", name="q.E"))),
    "nullable enum of another namespace": (
        of(["null", enum("X", name="p.E")]),
        of(["null", enum("X", name="q.E")]),
    ),
    "record in a union by structure": (
        of(["null", of("int", "z") | {"name": "p.In"}]),
        of(["null", "string", of("int", "z") | {"name": "q.In"}]),
    ),
    "recursive": (
        record({"name": "next", "type": ["null", "n.R"]}),
        record({"name": "next", "type": ["null", "n.R"]}),
    ),
    "logical type added": (of("long"), of(logical("long", "timestamp-millis"))),
    "decimal of more digits": (
        of(logical("bytes", "decimal", precision=4, scale=2)),
        of(logical("bytes", "decimal", precision=9, scale=2)),
    ),
    "alias that the same schema uses as a name": (
        record({"name": "a", "type": "int", "aliases": ["b"]}, {"name": "b", "type": "int"}),
        record({"name": "a", "type": "int", "aliases": ["b"]}, {"name": "b", "type": "int"}),
    ),
}

UNREADABLE = {
    "added without default": (record(), of("int"), "at a: the writer does not have the field"),
    "narrowed": (of("long"), of("int"), "at a: the writer has long, the reader int"),
    "string to int": (of("string"), of("int"), "at a: the writer has string"),
    "boolean to int": (of("boolean"), of("int"), "at a: the writer has boolean"),
    "int to string": (of("int"), of("string"), "at a: the writer has int"),
    "no branch": (of("string"), of(["null", "int"]), "string is none of the reader's [null, int]"),
    "all branches gone": (of(["int", "long"]), of("string"), "at a: the writer has int"),
    "fixed of another size": (of(fixed(2)), of(fixed(3)), "has 2 bytes, the reader 3"),
    "fixed of another name": (of(fixed(2)), of(fixed(2, "G")), "is n.F, the reader's n.G"),
    "enum of another name": (of(enum("X")), of(enum("X", name="G")), "is n.E, the reader's n.G"),
    "every symbol gone": (of(enum("X")), of(enum("Y")), "has no default and lacks X"),
    "field alias under another record name": (
        of("int", "old") | {"name": "n.Other"},
        of("int", aliases=["old"]),
        "at a: the writer does not have the field",
    ),
    "field and its alias": (
        record({"name": "a", "type": "int"}, {"name": "old", "type": "int"}),
        of("int", aliases=["old"]),
        "has the field and its alias: a, old",
    ),
    "nested": (of(of("long") | {"name": "I"}), of(of("int") | {"name": "I"}), "at a.a: "),
    "timestamp of another unit": (
        of(logical("long", "timestamp-millis")),
        of(logical("long", "timestamp-micros")),
        "has timestamp-millis, the reader timestamp-micros",
    ),
    "decimal of another scale": (
        of(logical("bytes", "decimal", precision=4, scale=2)),
        of(logical("bytes", "decimal", precision=4)),
        "scale 2, the reader's 0",
    ),
}

SOMETIMES = {
    "null where none is allowed": (of(["null", "int"]), of("int"), "at a: the writer has null"),
    "a symbol gone": (of(enum("X", "Y")), of(enum("X")), "lacks Y"),
    "items of another type": (
        of({"type": "array", "items": "string"}),
        of({"type": "array", "items": "int"}),
        "at a[]: ",
    ),
    "values of another type": (
        of({"type": "map", "values": "string"}),
        of({"type": "map", "values": "int"}),
        "at a{}: ",
    ),
}


@pytest.mark.parametrize(("writer", "reader"), READABLE.values(), ids=READABLE)
def test_readable(writer: Any, reader: Any) -> None:
    """Evolution within the rules gives no reason against."""
    assert resolves(parse(writer, "w"), parse(reader, "r")) == []


@pytest.mark.parametrize(("writer", "reader", "part"), UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable(writer: Any, reader: Any, part: str) -> None:
    """Where no record can be read, the reason names the place and both sides."""
    found = incompatibilities(parse(writer, "w"), parse(reader, "r"))
    assert any(problem.always for problem in found)
    assert any(part in str(problem) for problem in found)


@pytest.mark.parametrize(("writer", "reader", "part"), SOMETIMES.values(), ids=SOMETIMES)
def test_sometimes(writer: Any, reader: Any, part: str) -> None:
    """Where only records with certain content are concerned, the reason says so."""
    (text,) = resolves(parse(writer, "w"), parse(reader, "r"))
    assert part in text
    assert text.endswith("(in some records)")


def nested(prefix: str, depth: int) -> Any:
    """Records in unions in records; names differ, so that only the structure says what fits."""
    inner: Any = "int"
    for level in range(depth):
        field = {"name": "a", "type": ["null", inner]}
        inner = {"type": "record", "name": f"{prefix}{level}", "fields": [field]}
    return of(["null", inner])


def test_nested_unions_are_compared_once() -> None:
    """Not twice as often at each level: 2 to the 45 comparisons would not end."""
    writer = parse(nested("W", 45), "w")
    assert resolves(writer, parse(nested("R", 45), "r")) == []
    (found,) = resolves(writer, parse(nested("R", 3), "r"))
    assert found.startswith("at a.a.a.a: the writer's record n.W41 is none of the reader's [null")


def test_unions_of_many_records_in_each_other() -> None:
    """Ten records at each of four levels, on both sides: a hundred million ways to pair them."""

    def union(prefix: str, level: int) -> Any:
        if level == 4:
            return ["null", "int"]
        inner = union(prefix, level + 1)
        fields = [[{"name": "a", "type": inner}]]
        # What has a name is written where it is first used.
        names = ["null", "int"] if level == 3 else ["null", *(each["name"] for each in inner[1:])]
        fields += [[{"name": "a", "type": names}]] * 9
        records = [
            {"type": "record", "name": f"{prefix}{level}_{number}", "fields": each}
            for number, each in enumerate(fields)
        ]
        return ["null", *records]

    writer, reader = parse(of(union("W", 0)), "w"), parse(of(union("R", 0)), "r")
    with pytest.raises(SchemaError, match="w: its records can be paired with those of r in too"):
        resolves(writer, reader)
