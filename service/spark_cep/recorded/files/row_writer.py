"""Rows of Arrow columns as Avro records with a schema id in front, as a topic has them.

Numbers and texts are written by the compiled loop that writes results; values that nest, decimals
and what else Arrow knows otherwise are written one by one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.avro.schema_nodes import Node, kind
from spark_cep.codecs.output.loops import result_bytes as loops
from spark_cep.codecs.registry.framing import frame
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes, Flags, texts_together
from spark_cep.pattern.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    SqlType,
    scalar_type,
)
from spark_cep.pipeline.wire.arrow_bytes import bytes_of

#: Bytes of a part at most, beyond those of its text.
_MOST_OF_PART = 11
_UTC = "UTC"
_UNITS = {"millis": "ms", "micros": "us"}


class RowError(ValueError):
    """Some row among those that were to be written cannot be, as the text says."""


@dataclass(frozen=True)
class RowColumn:
    """A field of the records. ``node``: its type without NULL, unless it is a union of several;
    ``symbols``: those of an enum. ``arrow``: the type in which its values are given; ``None``: as
    Python values that the field's type takes."""

    name: str
    nullable: bool
    default: Any
    node: Node
    symbols: tuple[str, ...]
    arrow: pa.DataType | None

    @property
    def can_lack(self) -> bool:
        """Return whether records need not have it."""
        of_several = isinstance(self.node, list) and "null" in self.node
        return self.nullable or of_several or self.default is not None


def columns_of(schema: AvroSchema) -> list[RowColumn]:
    """The columns of a record's schema."""
    assert isinstance(schema.root, str)
    found = []
    for field in schema.named[schema.root]["fields"]:
        node, nullable = _without_null(field["type"])
        of = schema.resolve(node)
        symbols = tuple(of["symbols"]) if isinstance(of, dict) and of["type"] == "enum" else ()
        default = field.get("default")
        found.append(RowColumn(field["name"], nullable, default, node, symbols, _arrow_type(of)))
    return found


def _without_null(node: Node) -> tuple[Node, bool]:
    """The type without NULL, and whether that was one of its values. A union of several others
    stays as it is."""
    if not isinstance(node, list):
        return node, False
    others = [each for each in node if each != "null"]
    return (others[0], len(node) > 1) if len(others) == 1 else (node, False)


def _arrow_type(node: Node) -> pa.DataType | None:
    if isinstance(node, list) or kind(node) in ("record", "array", "map"):
        return None
    of: SqlType = scalar_type(node)
    if of in (TIMESTAMP, TIMESTAMP_NTZ):
        assert isinstance(node, dict)
        unit = _UNITS[str(node["logicalType"]).rpartition("-")[2]]
        return pa.timestamp(unit, _UTC if of == TIMESTAMP else None)
    if isinstance(of, DecimalType):
        return pa.decimal128(of.precision, of.scale)
    return None if kind(node) == "fixed" else _ARROW.get(of)


_ARROW: dict[SqlType, pa.DataType] = {
    STRING: pa.string(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    BOOLEAN: pa.bool_(),
    BINARY: pa.binary(),
    DATE: pa.date32(),
}


def written_schema(schema: AvroSchema) -> AvroSchema:
    """The schema that rows of a record's schema are written with: NULL is the first branch of a
    field that may be NULL."""
    assert isinstance(schema.root, str)
    fields = [
        field | {"type": _null_first(field["type"])}
        for field in schema.named[schema.root]["fields"]
    ]
    fields = [{name: each[name] for name in each if name != "default"} for each in fields]
    named = dict(schema.named)
    named[schema.root] = named[schema.root] | {"fields": fields}
    written = AvroSchema(schema.origin, schema.root, named)
    return parse(written.text, schema.origin, defaults=False)


def _null_first(node: Node) -> Node:
    if not isinstance(node, list) or "null" not in node:
        return node
    return ["null", *(each for each in node if each != "null")]


class RowWriter:
    """Writes records of one schema. ``schema_id``: of :func:`written_schema` of it."""

    def __init__(self, schema: AvroSchema, schema_id: int) -> None:
        self.columns = columns_of(schema)
        self._prefix = frame(schema_id, b"")
        self._single: dict[str, Callable[[Any], bytes]] = {
            each.name: _writer(schema, each) for each in self.columns if _one_by_one(each)
        }

    def written(self, given: Mapping[str, pa.Array | list[Any]], count: int) -> Bytes:
        """``count`` records of these columns; a field that is not given is NULL, or its default.

        Raises RowError.
        """
        parts = _RecordParts(count)
        parts.constant(self._prefix)
        for column in self.columns:
            values = given.get(column.name)
            if _one_by_one(column):
                each = [None] * count if values is None else values
                self._objects(parts, column, each if isinstance(each, list) else each.to_pylist())
            else:
                self._values(parts, column, values)
        return parts.written()

    def _objects(self, parts: _RecordParts, column: RowColumn, values: list[Any]) -> None:
        write = self._single[column.name]
        default = None if column.nullable else column.default
        given = (default if value is None else value for value in values)
        of_several = isinstance(column.node, list) and "null" in column.node
        made = [None if each is None and not of_several else write(each) for each in given]
        numbers = np.arange(len(made))
        nulls = np.array([each is None for each in made], bool)
        self._check(column, nulls)
        first = parts.texts(Bytes.of(made))
        parts.column(loops.RAW, numbers + first, nulls, nullable=column.nullable)

    def _values(self, parts: _RecordParts, column: RowColumn, values: Any) -> None:
        assert column.arrow is not None
        array = pa.nulls(parts.count, column.arrow) if values is None else values
        if array.type != column.arrow:
            raise TypeError(f"{column.name} is {array.type}, not {column.arrow}")
        if array.null_count and not column.nullable and column.default is not None:
            default = column.default
            if pa.types.is_binary(column.arrow):
                default = default.encode("latin-1")
            array = array.fill_null(pa.scalar(default).cast(column.arrow))
        nulls = pc.is_null(array).to_numpy(zero_copy_only=False)
        self._check(column, nulls)
        nullable = column.nullable
        if column.symbols:
            number = pc.index_in(array, pa.array(column.symbols, pa.string()))
            wrong = np.flatnonzero(pc.is_null(number).to_numpy(zero_copy_only=False) & ~nulls)
            if len(wrong):
                raise RowError(
                    f"{column.name} is {array[int(wrong[0])].as_py()!r}; allowed are"
                    f" {', '.join(column.symbols)}"
                )
            parts.column(loops.LONG, _numbers(number), nulls, nullable=nullable)
        elif pa.types.is_string(array.type) or pa.types.is_binary(array.type):
            first = parts.texts(bytes_of(array))
            numbers = np.arange(parts.count) + first
            parts.column(loops.TEXT, numbers, nulls, nullable=nullable)
        elif pa.types.is_float32(array.type):
            singles = array.fill_null(0).to_numpy(zero_copy_only=False).astype("<f4")
            ends = np.arange(0, 4 * parts.count + 4, 4)
            first = parts.texts(Bytes.of_ends(singles.view(np.uint8), ends))
            numbers = np.arange(parts.count) + first
            parts.column(loops.RAW, numbers, nulls, nullable=nullable)
        elif pa.types.is_float64(array.type):
            doubles = array.fill_null(0).to_numpy(zero_copy_only=False)
            parts.column(loops.DOUBLE, doubles.view(np.int64), nulls, nullable=nullable)
        elif pa.types.is_boolean(array.type):
            parts.column(loops.BYTE, _numbers(array), nulls, nullable=nullable)
        else:
            wide = pa.int32() if pa.types.is_date32(array.type) else pa.int64()
            parts.column(loops.LONG, _numbers(array.cast(wide)), nulls, nullable=nullable)

    @staticmethod
    def _check(column: RowColumn, nulls: Flags) -> None:
        if not column.nullable and nulls.any():
            raise RowError(f"{column.name} is missing, or null, and the schema has no default")


def _one_by_one(column: RowColumn) -> bool:
    """Return whether values are written one by one."""
    return column.arrow is None or pa.types.is_decimal(column.arrow)


def _numbers(array: pa.Array) -> I64:
    found: I64 = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return found


def _writer(schema: AvroSchema, column: RowColumn) -> Callable[[Any], bytes]:
    """The function that writes a value of a field by itself."""
    alone = AvroSchema(schema.origin, column.node, schema.named)
    parsed: Any = fastavro.parse_schema(json.loads(alone.text))

    def written(value: Any) -> bytes:
        body = BytesIO()
        try:
            fastavro.schemaless_writer(body, parsed, value)
        except (ValueError, TypeError, OverflowError, LookupError, AttributeError) as error:
            raise RowError(f"{column.name} cannot be {value!r}: {error}") from error
        return body.getvalue()

    return written


class _RecordParts:
    """The parts of all records, and their numbers, as the loop takes them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._parts: list[tuple[int, int, int, int]] = []
        self._numbers: list[I64] = []
        self._texts: list[Bytes] = []
        self._room = 1

    def texts(self, texts: Bytes) -> int:
        """The number of the first of these texts."""
        first = sum(map(len, self._texts))
        self._texts.append(texts)
        self._room += int(texts.lengths.sum())
        return first

    def constant(self, content: bytes) -> None:
        """Add a part with the same bytes in all records."""
        self._parts.append((loops.CONSTANT, self.texts(Bytes.of([content])), -1, -1))
        self._room += self.count * len(content)

    def column(self, part: int, numbers: I64, nulls: Flags, *, nullable: bool) -> None:
        """Add a part of this kind with these numbers."""
        which = len(self._numbers)
        self._numbers.append(numbers)
        branch = of_nulls = -1
        if nullable:
            # The number of the branch behind NULL.
            branch = 2
            if nulls.any():
                of_nulls = which + 1
                self._numbers.append(nulls.astype(np.int64))
        self._parts.append((part, which, branch, of_nulls))
        self._room += self.count * _MOST_OF_PART

    def written(self) -> Bytes:
        """The records."""
        out, ends = np.empty(self._room, np.uint8), np.zeros(self.count + 1, np.int64)
        no_parts, nothing = np.zeros((0, 4), np.int64), np.zeros(self.count, np.int64)
        numbers = np.array(self._numbers, np.int64).reshape(len(self._numbers), self.count)
        loops.write_values(
            nothing, nothing, np.zeros(0, np.int64), np.array(self._parts, np.int64), numbers,
            no_parts, no_parts, np.zeros((0, 0), np.int64), no_parts,
            *texts_together(self._texts).pool, out, ends,
        )  # fmt: skip
        return Bytes.of_ends(out[: ends[-1]], ends)
