"""The columns of a message, as the schema of a record.

=============================================  ==================================================
Protobuf                                       Column
=============================================  ==================================================
string; bytes; bool                            STRING; BINARY; BOOLEAN
int32, sint32, sfixed32                        INT
other whole numbers                            BIGINT
float; double                                  FLOAT; DOUBLE
enum                                           enum (STRING), NULL for a number without a name
message                                        record
repeated; map                                  ARRAY; MAP with keys of STRING
google.protobuf.Timestamp                      TIMESTAMP
google.protobuf.StringValue and such           the type of the value
=============================================  ==================================================

A field that knows whether it is there (``optional``, of a oneof, a message, of proto2) is NULL when
it is not, or has the default that the file gives it; any other one has 0, false or an empty value.
A message that contains itself, and a group of proto2, is no column.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.avro.schema_nodes import Node
from spark_cep.errors import SchemaError

TIMESTAMP_NAME: Final = "google.protobuf.Timestamp"
WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in (
        "Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes",
    )
)  # fmt: skip
_INTS = (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SFIXED32)
_TYPES = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_BOOL: "boolean",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_DOUBLE: "double",
}
_UNSIGNED = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
_DEEPEST = 60
_LARGEST = (1 << 63) - 1


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a field has any number of values; maps do, too."""
    return bool(field.is_repeated)


def is_map(field: FieldDescriptor) -> bool:
    """Return whether a field is a map."""
    of = field.message_type
    return is_repeated(field) and of is not None and of.GetOptions().map_entry


def wrapped(field: FieldDescriptor) -> FieldDescriptor | None:
    """The field with the value, where a field is a wrapper around one."""
    of = field.message_type
    if of is None or of.full_name not in WRAPPERS:
        return None
    inner: FieldDescriptor = of.fields_by_number[1]
    return inner


def columns_of(message: Descriptor, origin: str) -> AvroSchema:
    """The schema of a message. Raises SchemaError where it has no columns."""
    node = _MessageColumns().record(message, (message.full_name,))
    if node is None or not isinstance(node, dict) or not node["fields"]:
        raise SchemaError(f"{origin}: the message {message.full_name} has no fields")
    return parse(node, origin)


class _MessageColumns:
    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def record(self, message: Descriptor, around: tuple[str, ...]) -> Node | None:
        """The record of a message; its name once that is defined; ``None`` where it has no
        columns."""
        name = message.full_name
        if name in self._known:
            return name if self._known[name] else None
        fields = []
        self._known[name] = True
        for field in message.fields:
            node = self._field(field, around)
            if node is None:
                continue
            made = {"name": field.name, "type": node, **_default(field, node)}
            # Protobuf's own JSON has names such as userId.
            if field.json_name not in message.fields_by_name:
                made["aliases"] = [field.json_name]
            fields.append(made)
        self._known[name] = bool(fields)
        return {"type": "record", "name": name, "fields": fields} if fields else None

    def _field(self, field: FieldDescriptor, around: tuple[str, ...]) -> Node | None:
        """The type of a field; ``None`` where it is no column."""
        if is_map(field):
            value = self._value(field.message_type.fields_by_number[2], around)
            return None if value is None else {"type": "map", "values": value}
        value = self._value(field, around)
        if value is None:
            return None
        if is_repeated(field):
            return {"type": "array", "items": value}
        if field.has_presence and not field.has_default_value:
            return ["null", value]
        return value

    def _value(self, field: FieldDescriptor, around: tuple[str, ...]) -> Node | None:
        of = field.message_type
        if field.type == FieldDescriptor.TYPE_GROUP:
            return None
        if of is not None:
            if of.full_name == TIMESTAMP_NAME:
                return {"type": "long", "logicalType": "timestamp-micros"}
            inner = wrapped(field)
            if inner is not None:
                return self._value(inner, around)
            if of.full_name in around or len(around) > _DEEPEST:
                return None
            return self.record(of, (*around, of.full_name))
        if field.enum_type is not None:
            return self._enum(field)
        if field.type in _TYPES:
            return _TYPES[field.type]
        return "int" if field.type in _INTS else "long"

    def _enum(self, field: FieldDescriptor) -> Node:
        name: str = field.enum_type.full_name
        if name in self._known:
            return name
        self._known[name] = True
        symbols = [each.name for each in field.enum_type.values]
        return {"type": "enum", "name": name, "symbols": symbols}


def _default(field: FieldDescriptor, node: Node) -> dict[str, Any]:
    """The default of a field that is not there, for events in JSON and those of tests; none for a
    number that Avro's JSON does not have, or that no column has."""
    if isinstance(node, list):
        return {"default": None}
    if is_repeated(field):
        return {"default": {} if is_map(field) else []}
    value = field.default_value
    endless = isinstance(value, float) and not isfinite(value)
    if endless or (field.type in _UNSIGNED and value > _LARGEST):
        return {}
    if field.enum_type is not None:
        value = field.enum_type.values_by_number[value].name
    elif isinstance(value, bytes):
        value = value.decode("latin-1")
    return {"default": value}
