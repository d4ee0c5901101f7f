"""JSON Schema as the schema that records are read with.

A JSON Schema says which values are valid; a record type says which columns there are. So an object
with ``properties`` becomes a record, and what a schema leaves open (an object without properties, a
value of several kinds of objects, a value of any type) becomes no column: ``left_out`` says which.
Drafts 4 to 2020-12 are read alike.

=============================================  ==================================================
JSON Schema                                    Column
=============================================  ==================================================
string; with ``enum`` of names                 STRING; an enum
string, format date-time; date                 TIMESTAMP; DATE
string, contentEncoding base64; format byte    BINARY
integer; format or connect.type int32          BIGINT; INT
number; format or connect.type float (32)      DOUBLE; FLOAT
number with multipleOf 0.01                    DECIMAL(18, 2), likewise for other powers of ten
boolean                                        BOOLEAN
array with items                               ARRAY
object with properties                         record
object with additionalProperties               MAP
a type with null, or oneOf, anyOf with null    the type; it may be NULL
several scalar types                           record of ``member0``, ``member1``, …
``const``; ``enum`` without a type             the type of the value
=============================================  ==================================================

A property that is not ``required`` may be missing, and is NULL then. A property whose name is no
name of a column, as ``user-id``, is the column ``user_id``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.avro.schema_nodes import Node
from spark_cep.errors import SchemaError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEEPEST = 60
_MOST_PARTS = 20_000
_DECIMAL_DIGITS = 18
_TYPE_OF_VALUE = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    Decimal: "number",
}
_SCALARS = ("string", "integer", "number", "boolean")


class FromJsonSchema(NamedTuple):
    """The schema of a record type, and why properties are no columns of it."""

    schema: AvroSchema
    left_out: list[str]


def is_json_schema(schema: Any) -> bool:
    """Return whether JSON values are a JSON Schema, not one of Avro."""
    return isinstance(schema, Mapping) and (
        "$schema" in schema or "properties" in schema or "$ref" in schema
        or schema.get("type") == "object"
    )  # fmt: skip


def from_json_schema(
    text: str, record: str | None, origin: str, references: Mapping[str, str] | None = None
) -> FromJsonSchema:
    """The schema of the records that a JSON Schema describes. ``record``: the name of the record
    type; ``None``: the schema's title, where that is a name. ``references``: texts of other
    schemas, by the name that ``$ref`` has for them.

    Raises SchemaError.
    """
    documents = {"": _document(text, origin)}
    for name, each in (references or {}).items():
        documents[name] = _document(each, f"{origin}, reference {name!r}")
    reading = _SchemaReading(origin, documents)
    try:
        root, at = reading.resolved(documents[""], _SchemaPlace("", "", 0))
    except _LeftOutError as why:
        raise SchemaError(f"{origin}: {why}") from None
    title = root.get("title")
    if record is None:
        record = title if isinstance(title, str) and _NAME.fullmatch(title) else "Event"
    if "properties" not in root:
        raise SchemaError(f"{origin}: an event is an object, so the schema needs 'properties'")
    made = reading.record(root, at, record)
    if not made["fields"]:
        raise SchemaError(f"{origin}: no property can be read: {'; '.join(reading.left_out)}")
    return FromJsonSchema(parse(made, origin), reading.left_out)


def _document(text: str, origin: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise SchemaError(f"{origin}: the schema is not JSON: {error}") from error
    except RecursionError:
        raise SchemaError(f"{origin}: the schema nests too deeply") from None
    if not isinstance(found, dict):
        raise SchemaError(f"{origin}: a JSON Schema is an object, not {type(found).__name__}")
    return found


class _SchemaPlace(NamedTuple):
    """The place of a part of a schema: its document, the path of the property, its depth."""

    document: str
    path: str
    depth: int

    def below(self, name: str) -> _SchemaPlace:
        """A part inside."""
        return _SchemaPlace(
            self.document, f"{self.path}.{name}" if self.path else name, self.depth + 1
        )


class _LeftOutError(Exception):
    """A property that is no column, and why."""


@dataclass
class _SchemaReading:
    origin: str
    documents: Mapping[str, Mapping[str, Any]]
    left_out: list[str] = field(default_factory=list)
    _records: set[str] = field(default_factory=set)
    #: References that are being followed.
    _open: list[tuple[str, str]] = field(default_factory=list)
    _parts: int = 0

    def record(self, schema: Mapping[str, Any], at: _SchemaPlace, name: str) -> dict[str, Any]:
        """The record of an object with properties."""
        self._records.add(name)
        return {"type": "record", "name": name, "fields": [*self._fields(schema, at, name)]}

    def _fields(
        self, schema: Mapping[str, Any], at: _SchemaPlace, record: str
    ) -> Iterator[dict[str, Any]]:
        required = schema.get("required", [])
        properties = schema["properties"]
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            raise SchemaError(
                f"{self.origin}: {at.path or 'the schema'}: 'properties' must be an object and"
                f" 'required' a list, not {type(properties).__name__} and {type(required).__name__}"
            )
        taken: set[str] = {name for name in properties if _NAME.fullmatch(name)}
        for given, part in properties.items():
            below = at.below(given)
            name, aliases = given, {}
            if not _NAME.fullmatch(given):
                name, aliases = _column_name(given), {"aliases": [given]}
                if name in taken:
                    self.left_out.append(f"{below.path}: there is a column {name} already")
                    continue
                taken.add(name)
            try:
                node, nullable = self._type(part, below, f"{record}_{name}")
            except _LeftOutError as why:
                self.left_out.append(f"{below.path}: {why}")
                continue
            if nullable or given not in required:
                node = ["null", *node] if isinstance(node, list) else ["null", node]
            absent = {} if given in required else {"default": None}
            yield {"name": name, "type": node, **aliases, **absent}

    def resolved(self, schema: Any, at: _SchemaPlace) -> tuple[Mapping[str, Any], _SchemaPlace]:
        """A schema, behind its references, with its ``allOf`` merged into it."""
        for _ in range(_DEEPEST):
            if schema is True or not isinstance(schema, Mapping):
                raise _LeftOutError("any value is allowed there")
            if isinstance(schema.get("$ref"), str):
                schema, at = self._referred(schema["$ref"], at)
                continue
            parts = schema.get("allOf")
            if not isinstance(parts, list) or not parts:
                return schema, at
            merged = {key: value for key, value in schema.items() if key != "allOf"}
            for each in parts:
                if at.depth > _DEEPEST:
                    raise SchemaError(f"{self.origin}: {at.path}: 'allOf' contains itself")
                part, _ = self.resolved(each, at.below("allOf"))
                for key, value in part.items():
                    if key == "properties" and isinstance(value, Mapping):
                        merged[key] = {**merged.get(key, {}), **value}
                    elif key == "required" and isinstance(value, list):
                        merged[key] = [*merged.get(key, []), *value]
                    else:
                        merged.setdefault(key, value)
            schema = merged
        raise SchemaError(f"{self.origin}: {at.path or 'the schema'}: references in a circle")

    def _referred(self, reference: str, at: _SchemaPlace) -> tuple[Any, _SchemaPlace]:
        document, _, pointer = reference.partition("#")
        document = document or at.document
        if document not in self.documents:
            raise SchemaError(
                f"{self.origin}: {at.path or 'the schema'}: there is no schema {document!r};"
                f" known are references inside of the schema, as #/$defs/…, and those of the"
                " registry"
            )
        found: Any = self.documents[document]
        for token in filter(None, pointer.split("/")):
            name = token.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or name not in found:
                raise SchemaError(
                    f"{self.origin}: {at.path or 'the schema'}: there is nothing at {reference!r}:"
                    f" {name!r} is not there"
                )
            found = found[name]
        return found, at._replace(document=document)

    def _type(self, part: Any, at: _SchemaPlace, name: str) -> tuple[Node, bool]:
        """The type of a property, and whether it may be NULL."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise SchemaError(
                f"{self.origin}: its references, written out, have more than {_MOST_PARTS:,} types"
            )
        reference = part.get("$ref") if isinstance(part, Mapping) else None
        if reference is None:
            return self._resolved_type(part, at, name)
        here = (at.document, str(reference))
        if here in self._open:
            raise _LeftOutError(f"{reference} contains itself")
        self._open.append(here)
        try:
            return self._resolved_type(part, at, name)
        finally:
            self._open.pop()

    def _resolved_type(self, part: Any, at: _SchemaPlace, name: str) -> tuple[Node, bool]:
        if at.depth > _DEEPEST:
            raise _LeftOutError(f"it nests more than {_DEEPEST} levels deep")
        schema, at = self.resolved(part, at)
        options = schema.get("oneOf", schema.get("anyOf"))
        if isinstance(options, list):
            return self._one_of(options, at, name)
        given = schema.get("type")
        types = given if isinstance(given, list) else [given]
        if given is None:
            types = self._types_of_values(schema)
        nullable = "null" in types
        types = [each for each in types if each != "null"]
        if not types:
            raise _LeftOutError("null is its only value")
        if len(types) == 1:
            return self._single(str(types[0]), schema, at, name), nullable
        return self._several([self._single(str(t), schema, at, name) for t in types]), nullable

    @staticmethod
    def _types_of_values(schema: Mapping[str, Any]) -> list[str]:
        if "properties" in schema or "additionalProperties" in schema:
            return ["object"]
        if "items" in schema:
            return ["array"]
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if not isinstance(values, list) or not values:
            raise _LeftOutError("any value is allowed there; give it a type")
        return list(
            dict.fromkeys(
                "null" if value is None else _TYPE_OF_VALUE.get(type(value), "object")
                for value in values
            )
        )

    def _one_of(self, options: list[Any], at: _SchemaPlace, name: str) -> tuple[Node, bool]:
        found: list[Node] = []
        nullable = False
        for each in options:
            schema, _ = self.resolved(each, at)
            if schema.get("type") == "null" or schema.get("const", 0) is None:
                nullable = True
                continue
            node, may_be = self._type(each, at, name)
            nullable = nullable or may_be
            found += node if isinstance(node, list) else [node]
        return (found[0] if len(found) == 1 else self._several(found)), nullable

    @staticmethod
    def _several(found: list[Node]) -> Node:
        different = [each for place, each in enumerate(found) if each not in found[:place]]
        if len(different) == 1:
            return different[0]
        if any(isinstance(each, dict) and "type" in each and each["type"] in _NESTED
               for each in different):  # fmt: skip
            raise _LeftOutError("it is one of several objects or arrays")
        kinds = [each["type"] if isinstance(each, dict) else each for each in different]
        if len(set(kinds)) < len(kinds) or not kinds:
            # Such as a date-time and an integer.
            raise _LeftOutError("it is one of several types that cannot be told apart")
        return different

    def _single(self, of: str, schema: Mapping[str, Any], at: _SchemaPlace, name: str) -> Node:
        if of not in (*_SCALARS, "object", "array"):
            raise SchemaError(f"{self.origin}: {at.path}: {of!r} is no type of JSON Schema")
        hints = {str(schema.get("format")), str(schema.get("connect.type"))}
        match of:
            case "boolean":
                return "boolean"
            case "integer":
                return "int" if hints & {"int32", "int16", "int8"} else "long"
            case "number":
                return _number(schema, hints)
            case "string":
                return self._text(schema, name)
            case "array":
                items = schema.get("items")
                if not isinstance(items, Mapping):
                    raise _LeftOutError("an array without 'items'")
                node, nullable = self._type(items, at.below("[]"), f"{name}_item")
                return {"type": "array", "items": _optional(node, nullable=nullable)}
        if "properties" in schema:
            return self.record(schema, at, self._free(name))
        values = schema.get("additionalProperties")
        if not isinstance(values, Mapping):
            raise _LeftOutError("an object without 'properties'")
        node, nullable = self._type(values, at.below("{}"), f"{name}_value")
        return {"type": "map", "values": _optional(node, nullable=nullable)}

    def _text(self, schema: Mapping[str, Any], name: str) -> Node:
        match schema.get("format"):
            case "date-time":
                return {"type": "long", "logicalType": "timestamp-micros"}
            case "date":
                return {"type": "int", "logicalType": "date"}
            case "byte" | "base64":
                return "bytes"
        if schema.get("contentEncoding") == "base64":
            return "bytes"
        values = schema.get("enum")
        if isinstance(values, list):
            symbols = [value for value in values if isinstance(value, str)]
            if symbols and all(map(_NAME.fullmatch, symbols)) and len(set(symbols)) == len(symbols):
                return {"type": "enum", "name": self._free(name), "symbols": symbols}
        return "string"

    def _free(self, name: str) -> str:
        """A name that no other type has."""
        found, number = name, 1
        while found in self._records:
            number += 1
            found = f"{name}_{number}"
        self._records.add(found)
        return found


_NESTED = ("record", "array", "map", "enum")


def _optional(node: Node, *, nullable: bool) -> Node:
    if not nullable:
        return node
    return ["null", *node] if isinstance(node, list) else ["null", node]


def _number(schema: Mapping[str, Any], hints: set[str]) -> Node:
    step = schema.get("multipleOf")
    if isinstance(step, Decimal | int) and not isinstance(step, bool):
        digits = Decimal(step).normalize().as_tuple()
        if digits.digits == (1,) and isinstance(digits.exponent, int):
            scale = -digits.exponent
            if scale == 0:
                return "long"
            if 0 < scale <= _DECIMAL_DIGITS:
                return {
                    "type": "bytes", "logicalType": "decimal",
                    "precision": _DECIMAL_DIGITS, "scale": scale,
                }  # fmt: skip
    return "float" if hints & {"float", "float32"} else "double"


def _column_name(given: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", given)
    return name if _NAME.fullmatch(name) else f"_{name}"
