"""SQL types, and how an Avro schema becomes one.

The types are those that expressions know. ``record_type`` maps an Avro schema as Spark's
``SchemaConverters`` do, so a column has the same type here and in a Spark data frame:

===================================  ==========================================================
Avro                                 SQL
===================================  ==========================================================
boolean, string, bytes, fixed        BOOLEAN, STRING, BINARY, BINARY
int, long, float, double             INT, BIGINT, FLOAT, DOUBLE
enum; uuid on string                 STRING
date on int                          DATE
timestamp-millis, -micros on long    TIMESTAMP
local-timestamp-* on long            TIMESTAMP_NTZ: carried, but no expression computes with it
decimal on bytes or fixed            DECIMAL(p, s)
other logical types                  the type beneath
array, map, record                   ARRAY, MAP with STRING keys, record
union with null                      the other branches; every type here may be NULL
union of int and long                BIGINT
union of float and double            DOUBLE
other unions                         record of ``member0``, ``member1``, …
===================================  ==========================================================

A decimal that Spark SQL does not have, and a type that contains itself, are of an
``UnreadableType``, and so is an array, a map or a union with such a type inside: that column is not
read, all others are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from spark_cep.errors import SchemaError

MAX_DECIMAL_DIGITS = 38
_MAX_NESTING = 64
_DECIMALS = f"a precision of 1 to {MAX_DECIMAL_DIGITS} and a scale of 0 to the precision"
_SMALLER_DECIMAL = (
    "a reader schema (`reader_schema` of the input) that gives the column a smaller precision;"
    " records with more digits than that become dead letters"
)
_WITHOUT_IT = (
    "a reader schema (`reader_schema` of the input) in which it does not; the other columns are"
    " read without that, too"
)


@dataclass(frozen=True, slots=True)
class SqlType:
    """Base of all types; ``str()`` is the type as Spark SQL writes it."""


@dataclass(frozen=True, slots=True)
class PrimitiveType(SqlType):
    """A type without parameters, such as ``STRING``."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType(SqlType):
    """An exact number of ``precision`` digits, ``scale`` of them behind the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType(SqlType):
    """A list of values of one type."""

    element: SqlType

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType(SqlType):
    """Values by key; keys from Avro are always ``STRING``."""

    key: SqlType
    value: SqlType

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True, eq=True)
class RecordType(SqlType):
    """Named fields in order. ``name`` is the full Avro name, empty for a union's record.
    ``symbols``: of the fields that are enums, whose type is STRING."""

    fields: Mapping[str, SqlType]
    name: str = ""
    symbols: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: MappingProxyType({}), compare=False, repr=False
    )

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.fields.items())))

    def __str__(self) -> str:
        inner = ", ".join(f"{name}: {kind}" for name, kind in self.fields.items())
        return f"STRUCT<{inner}>"


@dataclass(frozen=True, slots=True)
class UnreadableType(SqlType):
    """A type whose values are not read: ``reason`` and ``remedy`` are for messages."""

    name: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return self.name


def column_type(record: RecordType, path: tuple[str, ...]) -> SqlType | None:
    """The type of a column, or ``None`` when the record has no such column. What is below an
    unreadable column has its type."""
    found: SqlType = record
    if is_of_kafka(record, path[:1]):
        # As a whole it is no column.
        found, path = (KAFKA_COLUMNS, path[1:]) if len(path) > 1 else (record, path)
    for part in path:
        if isinstance(found, UnreadableType):
            return found
        if not isinstance(found, RecordType) or part not in found.fields:
            return None
        found = found.fields[part]
    return found


def is_of_kafka(record: RecordType, path: tuple[str, ...]) -> bool:
    """Return whether a column of a record type is one of Kafka's own."""
    return path[:1] == (KAFKA,) and KAFKA not in record.fields


def unreadable_part(kind: SqlType) -> UnreadableType | None:
    """The first part of a type that is not read; ``None`` where all of it is."""
    match kind:
        case UnreadableType():
            return kind
        case RecordType(fields=fields):
            return next(filter(None, map(unreadable_part, fields.values())), None)
    return None


def readable_columns(record: RecordType) -> list[tuple[str, ...]]:
    """The columns that can be read: those of the record itself, and where a part of one cannot,
    the others inside it."""
    found: list[tuple[str, ...]] = []
    for name, kind in record.fields.items():
        if unreadable_part(kind) is None:
            found.append((name,))
        elif isinstance(kind, RecordType):
            found += [(name, *path) for path in readable_columns(kind)]
    return found


STRING = PrimitiveType("STRING")
INT = PrimitiveType("INT")
BIGINT = PrimitiveType("BIGINT")
FLOAT = PrimitiveType("FLOAT")
DOUBLE = PrimitiveType("DOUBLE")
BOOLEAN = PrimitiveType("BOOLEAN")
TIMESTAMP = PrimitiveType("TIMESTAMP")
TIMESTAMP_NTZ = PrimitiveType("TIMESTAMP_NTZ")
DATE = PrimitiveType("DATE")
BINARY = PrimitiveType("BINARY")
DAY_TIME = PrimitiveType("INTERVAL DAY TO SECOND")
"""A span of time of fixed length, in whole microseconds."""
YEAR_MONTH = PrimitiveType("INTERVAL YEAR TO MONTH")
"""A number of months; it is only added to and subtracted from dates and timestamps."""
NULL = PrimitiveType("NULL")
"""The type of a bare ``NULL``; goes with every other type."""
UNKNOWN = PrimitiveType("UNKNOWN")
"""The type of what no schema describes; goes with every other type."""

#: In front of columns that are Kafka's, not the event's: ``_kafka.offset``.
KAFKA: Final = "_kafka"
KAFKA_COLUMNS: Final = RecordType(
    {
        "topic": STRING,
        "partition": INT,
        "offset": BIGINT,
        "timestamp": TIMESTAMP,
        "key": STRING,
        "headers": MapType(STRING, STRING),
    },
    KAFKA,
)
"""They are columns of every record type that has none of that name."""

_PRIMITIVES: dict[str, SqlType] = {
    "null": NULL,
    "boolean": BOOLEAN,
    "int": INT,
    "long": BIGINT,
    "float": FLOAT,
    "double": DOUBLE,
    "bytes": BINARY,
    "string": STRING,
}

_LOGICAL: dict[tuple[str, str], SqlType] = {
    ("int", "date"): DATE,
    ("long", "timestamp-millis"): TIMESTAMP,
    ("long", "timestamp-micros"): TIMESTAMP,
    ("long", "local-timestamp-millis"): TIMESTAMP_NTZ,
    ("long", "local-timestamp-micros"): TIMESTAMP_NTZ,
}


def record_type(avro_schema: Mapping[str, Any] | str) -> RecordType:
    """The record that an Avro schema describes; ``SchemaError`` when it is not a usable record."""
    schema: object = avro_schema
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except json.JSONDecodeError as error:
            raise SchemaError(f"the Avro schema is not JSON: {error}") from error
    converted = _AvroReader().convert(schema, _At())
    if not isinstance(converted, RecordType):
        raise SchemaError(f"the Avro schema is {converted}; an event must be a record")
    return converted


def scalar_type(node: object) -> SqlType:
    """The type of a node that is a primitive, an enum or a fixed."""
    return _AvroReader().convert(node, _At())


@dataclass(frozen=True, slots=True)
class _At:
    """A part of a schema: the namespace of its names, its place for messages, its depth."""

    namespace: str = ""
    place: str = "the schema"
    depth: int = 0

    def below(self, mark: str = "") -> _At:
        """A part inside this one."""
        return _At(self.namespace, self.place + mark, self.depth + 1)

    def full(self, name: str) -> str:
        """The name with its namespace."""
        return name if "." in name or not self.namespace else f"{self.namespace}.{name}"

    def refused(self, message: str) -> SchemaError:
        """The error of what stands here."""
        return SchemaError(f"{self.place}: {message}")


class _AvroReader:
    """Walks one schema; knows the named types met so far."""

    def __init__(self) -> None:
        self._named: dict[str, SqlType] = {}
        self._enums: dict[str, tuple[str, ...]] = {}
        self._open: list[str] = []

    def convert(self, schema: object, at: _At) -> SqlType:
        """The type of any Avro schema."""
        if at.depth > _MAX_NESTING:
            raise at.refused(f"types are nested more than {_MAX_NESTING} deep")
        if isinstance(schema, str):
            return self._by_name(schema, at)
        if isinstance(schema, list):
            return self._union(schema, at)
        if not isinstance(schema, Mapping):
            raise at.refused(f"{schema!r} is not an Avro schema")
        kind = schema.get("type")
        if isinstance(kind, list | Mapping):
            return self.convert(kind, at.below())
        if not isinstance(kind, str):
            raise at.refused(f"an Avro schema needs a 'type', found {kind!r}")
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(kind, schema, at)
        if kind == "array":
            return _whole(ArrayType, self.convert(schema.get("items"), at.below("[]")))
        if kind == "map":
            value = self.convert(schema.get("values"), at.below("{}"))
            return _whole(partial(MapType, STRING), value)
        if kind == "bytes" and schema.get("logicalType") == "decimal":
            return _decimal(schema)
        logical = _LOGICAL.get((kind, str(schema.get("logicalType"))))
        return logical or self._by_name(kind, at)

    def _by_name(self, name: str, at: _At) -> SqlType:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        for candidate in (at.full(name), name):
            if candidate in self._open:
                reason = f"the type {candidate} contains itself"
                return UnreadableType(candidate, reason, _WITHOUT_IT)
            if candidate in self._named:
                return self._named[candidate]
        raise at.refused(f"unknown Avro type {name!r}")

    def _define(self, kind: str, schema: Mapping[str, Any], at: _At) -> SqlType:
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise at.refused(f"an Avro {kind} needs a name")
        full = replace(at, namespace=str(schema.get("namespace", at.namespace) or "")).full(name)
        if kind == "enum":
            self._named[full] = STRING
            self._enums[full] = tuple(map(str, schema.get("symbols", ())))
        elif kind == "fixed":
            decimal = schema.get("logicalType") == "decimal"
            self._named[full] = _decimal(schema) if decimal else BINARY
        else:
            inside = replace(at, namespace=full.rpartition(".")[0])
            self._open.append(full)
            fields = self._fields(schema, inside)
            found = {f["name"]: self._symbols(f["type"], inside) for f in schema["fields"]}
            symbols = {name: of_field for name, of_field in found.items() if of_field}
            self._named[full] = RecordType(fields, full, symbols)
            self._open.pop()
        return self._named[full]

    def _fields(self, schema: Mapping[str, Any], at: _At) -> dict[str, SqlType]:
        declared = schema.get("fields")
        if not isinstance(declared, list):
            raise at.refused("an Avro record needs a list of fields")
        fields: dict[str, SqlType] = {}
        for declaration in declared:
            name = declaration.get("name") if isinstance(declaration, Mapping) else None
            if not isinstance(name, str) or not name:
                raise at.refused("a field of an Avro record needs a name")
            if name in fields:
                raise at.refused(f"the field {name!r} is there twice")
            fields[name] = self.convert(declaration.get("type"), at.below(f".{name}"))
        return fields

    def _symbols(self, schema: object, at: _At) -> tuple[str, ...]:
        """The symbols of a field's type, if that is an enum, perhaps nullable."""
        match schema:
            case str():
                return self._enums.get(at.full(schema), self._enums.get(schema, ()))
            case list():
                others = [branch for branch in schema if branch not in ("null", {"type": "null"})]
                return self._symbols(others[0], at) if len(others) == 1 else ()
            case {"type": "enum", "symbols": list(symbols)}:
                return tuple(map(str, symbols))
            case {"type": inner}:
                return self._symbols(inner, at)
        return ()

    def _union(self, branches: list[Any], at: _At) -> SqlType:
        types = [
            self.convert(branch, at.below())
            for branch in branches
            if branch not in ("null", {"type": "null"})
        ]
        if not types:
            return NULL
        if len(types) == 1:
            return types[0]
        if types in ([INT, BIGINT], [BIGINT, INT]):
            return BIGINT
        if types in ([FLOAT, DOUBLE], [DOUBLE, FLOAT]):
            return DOUBLE
        members = [f"member{index}" for index in range(len(types))]
        return _whole(lambda *kinds: RecordType(dict(zip(members, kinds, strict=True))), *types)


def _whole(of: Callable[..., SqlType], *inside: SqlType) -> SqlType:
    """The type ``of`` these, which is read as a whole or not at all."""
    parts = [part for part in map(unreadable_part, inside) if part is not None]
    return replace(parts[0], name=str(of(*inside))) if parts else of(*inside)


def _decimal(schema: Mapping[str, Any]) -> SqlType:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    match precision, scale:
        case int(), int() if 1 <= precision <= MAX_DECIMAL_DIGITS and 0 <= scale <= precision:
            return DecimalType(precision, scale)
    name = f"DECIMAL({precision}, {scale})"
    return UnreadableType(name, f"{name} is beyond {_DECIMALS}", _SMALLER_DECIMAL)
