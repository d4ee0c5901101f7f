"""Events as the service would read them: columns through Avro's bytes and back.

So a value has the column's own width, precision and unit, and a test cannot send what no producer
could write.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, cached_property
from io import BytesIO
from typing import Any, NamedTuple

import fastavro

from spark_cep.codecs.avro.default_values import default_value
from spark_cep.codecs.avro.reader_schemas import project, record_names
from spark_cep.codecs.avro.resolved import resolved
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node
from spark_cep.codecs.avro.value_reader import ValueReader
from spark_cep.documents.nearest import nearest
from spark_cep.pattern.types import DecimalType, RecordType, readable_columns, record_type


class _KitColumn(NamedTuple):
    """The column as the only field of its record, for fastavro, and what reads that."""

    schema: Any
    reader: ValueReader


class EventSchema:
    """One record type. Raises SchemaError where ``schema`` cannot be read."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        (self.name,) = record_names(schema)
        #: The schema as column types.
        self.columns: RecordType = record_type(schema.text)
        self._column = cache(self._written_column)

    @cached_property
    def _fields(self) -> Mapping[str, dict[str, Any]]:
        return {field["name"]: field for field in self._schema.named[self.name]["fields"]}

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        return {
            name: default_value(self._schema, field["type"], field["default"])
            for name, field in self._fields.items()
            if "default" in field and name in self._readable
        }

    @cached_property
    def _readable(self) -> Mapping[str, list[str]]:
        """By column, what of it can be read."""
        found: dict[str, list[str]] = {}
        for path in readable_columns(self.columns):
            found.setdefault(path[0], []).append(".".join(path))
        return found

    def read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The columns that the service would read of an event with these, defaults included.
        Those that it cannot read may be given, and are left out.

        Raises ValueError for a column that the schema does not have, and for a value that cannot
        be written with it.
        """
        for name in values:
            if name not in self._fields:
                meant = nearest(name, self._fields)
                instead = (
                    f"did you mean {meant!r}?" if meant else f"there are {', '.join(self._fields)}"
                )
                raise ValueError(f"{self.name} has no column {name!r}; {instead}")
        given = {name: value for name, value in values.items() if name in self._readable}
        return self._defaults | {name: self._read(name, value) for name, value in given.items()}

    def _read(self, name: str, value: Any) -> Any:
        column = self._column(name)
        given = {name: self._with_its_type(name, value)}
        body = BytesIO()
        try:
            fits = fastavro.validation.validate(given, column.schema, raise_errors=False)
            if fits:
                fastavro.schemaless_writer(body, column.schema, given)
        except (ValueError, TypeError, ArithmeticError, LookupError):
            fits = False
        if not fits:
            raise ValueError(
                f"{self.name}.{name} cannot be {value!r}: {self._allowed(name, value)}"
            )
        return column.reader(body.getvalue())[name]

    def _written_column(self, name: str) -> _KitColumn:
        alone = project(self._schema, self._readable[name])
        return _KitColumn(
            fastavro.parse_schema(alone.json), ValueReader(resolved(alone, alone), alone)
        )

    def _with_its_type(self, name: str, value: Any) -> Any:
        if isinstance(value, int) and isinstance(self.columns.fields[name], DecimalType):
            return Decimal(value)
        return _in_utc(value)

    def _allowed(self, name: str, value: Any) -> str:
        node = self._fields[name]["type"]
        branches = node if isinstance(node, list) else [node]
        for symbols in filter(None, map(self._symbols, branches)):
            meant = nearest(value, symbols) if isinstance(value, str) else None
            hint = f"; did you mean {meant!r}?" if meant else ""
            return f"the symbols are {', '.join(symbols)}{hint}"
        nullable = " or NULL" if "null" in branches else ""
        return f"the column is {self.columns.fields[name]}{nullable}"

    def _symbols(self, node: Node) -> list[str] | None:
        definition = self._schema.resolve(node)
        return definition.get("symbols") if isinstance(definition, dict) else None


def _in_utc(value: Any) -> Any:
    """The value; what has no zone is in UTC, as everywhere in the service."""
    match value:
        case datetime(tzinfo=None):
            return value.replace(tzinfo=UTC)
        case Mapping():
            return {name: _in_utc(inner) for name, inner in value.items()}
        case list():
            return [_in_utc(inner) for inner in value]
    return value
