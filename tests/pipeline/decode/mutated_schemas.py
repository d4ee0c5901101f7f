"""Schemas damaged at random, and records of those that still are schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from io import BytesIO
from random import Random
from typing import Any

import fastavro

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node
from tests.e2e.poison import without_logical_types
from tests.pipeline.decode import schemas as known

#: Deeper, values come to their ends where they can.
_DEEP, _DEEPEST = 3, 12
ITSELF = {"type": "record", "name": "Z", "fields": [{"name": "z", "type": "Z"}]}
ODD: list[Any] = [
    None, True, 0, -1, 5, 1.5, 2**70, "", "x", "\ud800", "null", "int", "string", "record", "array",
    "enum", "fixed", "decimal", "t.Event", "Z", [], ["null"], ["null", "null"], [[]], {}, {"a": 1},
    {"type": "array", "items": "t.Event"}, {"type": {"type": {}}}, ITSELF, "x" * 2_000,
]  # fmt: skip
#: Types that are legal, or nearly so.
STRANGE: list[Any] = [
    ITSELF, {"type": "array", "items": ITSELF}, {"type": "array", "items": "t.Event"},
    {"type": "map", "values": ["null", "t.Event"]}, ["null", "t.Event"], "t.Event", [], ["null"],
    {"type": "array", "items": "null"}, {"type": "record", "name": "t.None", "fields": []},
    {"type": "array", "items": {"type": "record", "name": "t.None", "fields": []}},
    {"type": "fixed", "name": "t.No", "size": 0}, {"type": "enum", "name": "t.W", "symbols": []},
    {"type": "array", "name": "xs", "items": {"type": "map", "name": 5, "values": "long"}},
    ["null", {"type": "array", "name": "xs", "items": "string"}], {"type": {"type": "string"}},
    known.decimal(60, 2), known.decimal(5, 2, 1), {"type": "bytes", "logicalType": "decimal"},
    {"type": "string", "logicalType": "decimal", "precision": "x"}, ["int", "long", "float"],
    known.TREE, ["null", known.TREE, known.DEEP], {"type": "int", "logicalType": ["date"]},
]  # fmt: skip
PROPERTIES = [
    "type", "name", "namespace", "aliases", "doc", "order", "fields", "symbols", "items", "values",
    "size", "default", "logicalType", "precision", "scale",
]  # fmt: skip


def mutated_event(random: Random) -> Any:
    """The reader of events, or a writer of them, mutated."""
    return mutated(
        random, random.choice([known.reader().json, known.writer(random, random.random())])
    )


def mutated(random: Random, record: Any) -> Any:
    """A record's schema with up to two changes, most of them to its types, and fields beside."""
    schema: Any = deepcopy(record)
    schema["fields"] += [
        {"name": f"x{n}", "type": deepcopy(random.choice(STRANGE))}
        for n in range(random.choice([0, 1, 2]))
    ]
    if random.random() < 0.1:
        schema = [schema, "null", deepcopy(known.STRANGER)]
    for _ in range(random.choice([0, 1, 1, 2])):
        places = [*_places(schema)]
        types = [(holder, key) for holder, key in places if key in ("type", "items", "values")]
        holder, key = random.choice(types if types and random.random() < 0.8 else places)
        before = holder[key]
        match random.randrange(8):
            case 0 if random.random() < 0.3:
                del holder[key]
            case 1 if random.random() < 0.3:
                holder[key] = deepcopy(random.choice(ODD))
            case 2:
                holder[key] = {"type": random.choice(["array", "map"]), "items": before}
                holder[key]["values"] = before
            case 3:
                holder[key] = ["null", before]
            case 4 if isinstance(before, dict):
                before[random.choice(PROPERTIES)] = deepcopy(random.choice(ODD))
            case 5 if isinstance(before, str):
                other = random.choice(PROPERTIES[1:])
                holder[key] = {"type": before, other: deepcopy(random.choice(ODD))}
            case 6:
                other, place = random.choice(types or places)
                holder[key] = deepcopy(other[place])
            case _:
                holder[key] = deepcopy(random.choice(STRANGE))
    return schema


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Where a value stands in another: that, and its index or name in it."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in pairs:
        yield node, key
        if isinstance(value, dict | list):
            yield from _places(value)


#: A value for a field of the record, given its name and type; ``None``: any.
Preset = Callable[[str, Any], Any]


class NoValueError(Exception):
    """A schema has no values, none that are small, or fastavro cannot write them."""


def some_body(random: Random, schema: AvroSchema, preset: Preset = lambda *_: None) -> bytes:
    """A record of the schema as a writer writes it, with values in the range of every type that may
    read them. ``preset`` chooses some of them. Raises NoValueError."""
    body = BytesIO()
    try:
        plain: Any = without_logical_types(json.loads(schema.text))
        datum = _Values(random, schema, preset).of(schema.root, 0)
        fastavro.schemaless_writer(body, plain, datum)
    except Exception as error:
        # Also what fastavro does not take.
        raise NoValueError(str(error)) from error
    return body.getvalue()


class _Values:
    """Values of the types of a schema, as fastavro takes them without logical types."""

    def __init__(self, random: Random, schema: AvroSchema, preset: Preset) -> None:
        self._random, self._schema, self._preset = random, schema, preset

    def of(self, node: Node, depth: int) -> Any:
        """A value of a type."""
        if depth > _DEEPEST:
            raise NoValueError("too deep")
        node = self._schema.resolve(node)
        if isinstance(node, list):
            return self._of_union(node, depth)
        if not isinstance(node, dict):
            return self._scalar(node)
        match node["type"]:
            case "record":
                return {f["name"]: self._of_field(f, depth) for f in node["fields"]}
            case "array":
                return self._several(node["items"], depth)
            case "map":
                return dict(zip("aü", self._several(node["values"], depth), strict=False))
            case "enum":
                return self._random.choice(node["symbols"])
        return self._of_logical(node)

    def _of_union(self, union: list[Node], depth: int) -> Any:
        branch = self._random.choice(union)
        if depth > _DEEP and "null" in union:
            branch = "null"
        of = self._schema.resolve(branch)
        name = of.get("name", of["type"]) if isinstance(of, dict) else of
        return None if name == "null" else (name, self.of(branch, depth + 1))

    def _of_field(self, field: dict[str, Any], depth: int) -> Any:
        chosen = None
        if depth == 0:
            chosen = self._preset(field["name"], self._schema.resolve(field["type"]))
        return self.of(field["type"], depth + 1) if chosen is None else chosen

    def _several(self, items: Node, depth: int) -> list[Any]:
        count = 0 if depth > _DEEP else self._random.randrange(3)
        return [self.of(items, depth + 1) for _ in range(count)]

    def _of_logical(self, node: dict[str, Any]) -> Any:
        kind, logical = node["type"], str(node.get("logicalType"))
        if kind == "fixed" and logical != "decimal":
            return self._random.randbytes(node["size"])
        if logical == "decimal":
            return self._random.randrange(100).to_bytes(node.get("size", 2), "big")
        if logical.endswith("-micros"):
            return known.NOW_MS * 1000 + self._random.randrange(10**6)
        if logical.endswith("-millis") and kind == "long":
            return known.NOW_MS + self._random.randrange(1000)
        return self._scalar(kind)

    def _scalar(self, kind: str) -> Any:
        random = self._random
        match kind:
            case "null":
                return None
            case "boolean":
                return random.random() < 0.5
            case "int":
                return random.choice([0, 1, 5, -1, random.randrange(20_000)])
            case "long":
                return random.choice([0, 1, 5, -1, random.randrange(2**40)])
            case "float" | "double":
                return random.choice([0.0, -0.0, 0.5, 0.25, float("inf")])
            case "bytes":
                return random.choice(known.KINDS).encode()
        return random.choice(known.KINDS)
