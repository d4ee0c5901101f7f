"""Schemas of the decoder's tests: one reader, writers of all kinds, and values for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO
from random import Random
from typing import Any

import fastavro

from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.registry.framing import frame
from tests.e2e import poison
from tests.e2e.schemas import MICROS, MILLIS, field, record

NOW_MS = 1_769_817_600_000
HOUR = 3_600_000
DAY = {"type": "int", "logicalType": "date"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}


def decimal(precision: int, scale: int, size: int | None = None) -> dict[str, Any]:
    """A decimal on bytes, or on a fixed of ``size`` bytes."""
    logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
    if size is None:
        return {"type": "bytes", **logical}
    return {"type": "fixed", "name": f"t.Dec{precision}", "size": size, **logical}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    """Moods."""
    return {"type": "enum", "name": "t.Mood", "symbols": [*symbols], **more}


FOUR = {"type": "fixed", "name": "t.Four", "size": 4}
DEEP = record("t.Deep", c=["null", "int"])
PLACE = record(
    "t.Place", city="string", height=["null", "double"], deep=field(DEEP, default={"c": 7})
)
OLD_PLACE = record("t.Place", height=["double", "null"], more="long", city="string")
TREE = record("t.Tree", name="string", children={"type": "array", "items": "t.Tree"})
TAGS = {"type": "array", "items": "string"}
#: The reader: a type, and what more a field has.
READER: dict[str, tuple[Any, dict[str, Any]]] = {
    "kind": ("string", {}),
    "mood": (enum("GOOD", "BAD", default="GOOD"), {"default": "BAD"}),
    "k": (["null", "string"], {"default": None}),
    "n": ("int", {}),
    "big": ("long", {"default": 5_000_000_000}),
    "x": ("double", {"default": 0.25}),
    "f": (["null", "float"], {"default": None}),
    "ok": ("boolean", {"default": True}),
    "amount": (decimal(12, 2), {}),
    "fixed": (["null", decimal(18, 3, 9)], {"default": None}),
    "wide": (["null", decimal(30, 4)], {"default": None}),
    "ts": (["null", MILLIS], {"default": None}),
    "seen": (MICROS, {}),
    "day": (["null", DAY], {"default": None}),
    "local": (["null", LOCAL], {"default": None}),
    "tags": (TAGS, {"default": ["ü", ""]}),
    "attrs": ({"type": "map", "values": "long"}, {"default": {}}),
    "several": (["null", "string", "int", FOUR], {"default": None}),
    "number": (["int", "long"], {"default": 3}),
    "place": (PLACE, {"default": {"city": "Bonn", "height": None}}),
    "other": (["null", "t.Place"], {"default": None}),
    "raw": ("bytes", {"default": ""}),
    "note": (["string", "null"], {"default": "unset", "aliases": ["old_note"]}),
}
#: What older and foreign writers have instead.
VARIANTS: dict[str, list[Any]] = {
    "kind": ["bytes"],
    "mood": [enum("BAD", "GOOD"), enum("UGLY", "GOOD", "BAD")],
    "k": ["string", ["string", "null"], "null"],
    "big": ["int"],
    "x": ["float", "long", "int"],
    "f": [["null", "int"], "long", ["float", "null"]],
    "fixed": [decimal(18, 3, 9)],
    "ts": [MILLIS],
    "day": [DAY, "int"],
    "attrs": [{"type": "map", "values": "int"}],
    "several": ["string", ["int", "null"], FOUR],
    "number": ["int", "long"],
    "place": [OLD_PLACE],
    "raw": ["string"],
    "note": ["string", "null"],
}
EXTRA: dict[str, Any] = {
    "gone": ["null", "string"],
    "tree": TREE,
    "sizes": {"type": "map", "values": {"type": "array", "items": ["null", "long"]}},
    "wonder": ["null", "double", {"type": "enum", "name": "t.W", "symbols": ["A"]}],
}
PAYMENT = record("t.Payment", kind="string", n="long", k=["null", "string"], at="long", x="float")
STRANGER = record("t.Stranger", name="string")
KINDS = [
    "a", "b", "ab", "", "it's", "ключ", "a\u0000b", "a%b", "\\", 'sa"y\n\x1f\x7f', "other",
    *(f"k{n}" for n in range(30)),
]  # fmt: skip


def reader() -> AvroSchema:
    """The reader of events."""
    fields = {name: field(kind, **more) for name, (kind, more) in READER.items()}
    return parse(json.dumps(record("t.Event", **fields)), "reader")


def writer(random: Random, wild: float) -> dict[str, Any]:
    """A writer's record: with ``wild`` near 1 little is as the reader has it."""
    fields: dict[str, Any] = {}
    for name, (kind, more) in READER.items():
        if "default" in more and random.random() < wild / 3:
            continue
        if name in VARIANTS and random.random() < wild:
            kind = random.choice(VARIANTS[name])  # noqa: PLW2901
        if name == "other" and "place" not in fields:
            kind = ["null", PLACE]  # noqa: PLW2901
        fields["old_note" if name == "note" and random.random() < wild / 2 else name] = kind
    fields |= {name: kind for name, kind in EXTRA.items() if random.random() < wild}
    names = list(fields)
    if "place" not in fields or "other" not in fields:
        random.shuffle(names)
    return record("t.Event", **{name: fields[name] for name in names})


def written(random: Random, schema_id: int, schema: AvroSchema) -> bytes:
    """A record as a writer writes it; its values may be odd."""
    body = BytesIO()
    plain: Any = poison.without_logical_types(schema.json)
    fastavro.schemaless_writer(body, plain, _value(random, schema, schema.root, ""))
    return frame(schema_id, body.getvalue())


def _value(random: Random, schema: AvroSchema, node: Any, name: str) -> Any:
    node = schema.resolve(node)
    if isinstance(node, list):
        branch = random.choice([*node, *node[1:]])
        value = _value(random, schema, branch, name)
        definition = schema.resolve(branch)
        if isinstance(definition, dict) and definition["type"] == "record":
            return (definition["name"], value)
        return value
    if isinstance(node, dict):
        match node["type"]:
            case "record":
                return {
                    f["name"]: _value(random, schema, f["type"], f["name"]) for f in node["fields"]
                }
            case "array":
                several = 2 if name == "children" else 4
                items = range(random.randrange(several) if random.random() < 0.5 else 0)
                return [_value(random, schema, node["items"], name) for _ in items]
            case "map":
                keys = random.sample(["a", "b", "ü", ""], random.randrange(3))
                return {key: _value(random, schema, node["values"], name) for key in keys}
            case "enum":
                return random.choice(node["symbols"])
            case "fixed" if "logicalType" not in node:
                return random.choice([b"four", b"\0\0\0\0"])
        if node.get("logicalType") == "decimal":
            return _decimal(random, node)
    return _scalar(random, name, node if isinstance(node, str) else node["type"])


def _decimal(random: Random, node: dict[str, Any]) -> bytes:
    most: int = 10 ** node["precision"] - 1
    unscaled = random.choice([0, 1, -1, 500, 501, most, -most, random.randint(-most, most)])
    least = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return unscaled.to_bytes(node.get("size", least + random.randrange(2)), "big", signed=True)


def _scalar(random: Random, name: str, kind: str) -> Any:
    if name in ("ts", "at", "seen", "local"):
        moment = random.choice([NOW_MS, NOW_MS, NOW_MS + 2 * HOUR, 0, -1])
        return {"at": moment // 1000, "ts": moment}.get(name, moment * 1000 + 7)
    if name == "day":
        return random.choice([0, 20_000, 20_484, -719_162, 2_932_896])
    texts: Sequence[str] = ["u1", "", "ü" * 9, f"user-{random.randrange(99):040d}"]
    texts = KINDS if name in ("kind", "", "tags") else ["Bonn", "Köln"] if name == "city" else texts
    match kind:
        case "null":
            return None
        case "boolean":
            return random.random() < 0.5
        case "int":
            return random.choice([0, 1, 5, -1, -(2**31), 2**31 - 1, random.randrange(20)])
        case "long":
            return random.choice([0, 1, 5, 2**40, 2**63 - 1, -(2**63), random.randrange(20)])
        case "float" | "double":
            return random.choice([0.0, -0.0, 0.5, 0.25, 1e30, float("inf"), float("nan")])
        case "bytes":
            return random.choice(texts).encode()
    return random.choice(texts)
