"""Avro schemas for columns of Arrow: of Parquet files, and of what is found out about text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.avro.schema_nodes import Node
from spark_cep.errors import SchemaError
from spark_cep.pattern.types import MAX_DECIMAL_DIGITS

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro_schema(columns: pa.Schema, record: str, origin: str) -> tuple[AvroSchema, list[str]]:
    """The schema of a record that has these columns, all of which may be NULL; and why columns are
    left out. Raises SchemaError where none is left."""
    names = _Names(record)
    fields, left_out = [], []
    for column in columns:
        if not _NAME.fullmatch(column.name):
            left_out.append(f"{column.name!r} is no name of a field in Avro")
            continue
        try:
            node = names.node(column.type, column.name)
        except _NoTypeError as error:
            left_out.append(f"{column.name} is {error}, which has no type in Avro")
            continue
        fields.append({"name": column.name, "type": ["null", node], "default": None})
    if not fields:
        raise SchemaError(f"{origin}: there is no column to read: {'; '.join(left_out)}")
    return parse({"type": "record", "name": record, "fields": fields}, origin), left_out


class _NoTypeError(Exception):
    """A type of Arrow's that Avro has not."""


class _Names:
    """Makes types, with names for the records in them."""

    def __init__(self, record: str) -> None:
        self._record = record
        self._used = 0

    def node(self, of: pa.DataType, name: str) -> Node:
        """The Avro type for one of Arrow's."""
        types = pa.types
        if types.is_dictionary(of):
            return self.node(of.value_type, name)
        if types.is_timestamp(of):
            # Without a zone it is UTC, as everywhere.
            unit = "millis" if of.unit in ("s", "ms") else "micros"
            return {"type": "long", "logicalType": f"timestamp-{unit}"}
        if types.is_date(of):
            return {"type": "int", "logicalType": "date"}
        if types.is_decimal(of) and of.precision <= MAX_DECIMAL_DIGITS and of.scale >= 0:
            return {
                "type": "bytes", "logicalType": "decimal",
                "precision": of.precision, "scale": of.scale,
            }  # fmt: skip
        if types.is_map(of):
            return {"type": "map", "values": ["null", self.node(of.item_type, name)]}
        if types.is_list(of) or types.is_large_list(of) or types.is_fixed_size_list(of):
            return {"type": "array", "items": ["null", self.node(of.value_type, name)]}
        if types.is_struct(of):
            self._used += 1
            fields = [*self._fields(of)]
            if not fields:
                raise _NoTypeError(str(of))
            return {
                "type": "record",
                "name": f"{self._record}_{name}_{self._used}",
                "fields": fields,
            }
        for holds, node in _PLAIN:
            if holds(of):
                return node
        raise _NoTypeError(str(of))

    def _fields(self, of: pa.StructType) -> Iterator[dict[str, Any]]:
        for number in range(of.num_fields):
            field = of.field(number)
            if _NAME.fullmatch(field.name):
                node = self.node(field.type, field.name)
                yield {"name": field.name, "type": ["null", node], "default": None}


_PLAIN = (
    (pa.types.is_boolean, "boolean"),
    (lambda of: pa.types.is_integer(of) and of.bit_width < 32, "int"),  # noqa: PLR2004
    (pa.types.is_int32, "int"),
    (pa.types.is_integer, "long"),
    (pa.types.is_float16, "float"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (lambda of: pa.types.is_string(of) or pa.types.is_large_string(of), "string"),
    (lambda of: pa.types.is_binary(of) or pa.types.is_large_binary(of), "bytes"),
    (pa.types.is_fixed_size_binary, "bytes"),
    # Of no value has anything been seen.
    (pa.types.is_null, "string"),
)
